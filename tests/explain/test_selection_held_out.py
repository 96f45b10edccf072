"""Trees pruned by rows held out: against every subtree, and by hand."""

import math
import pickle

import numpy as np
import pytest
from engine import same_forest
from pruned import CANCER, DIABETES, TASKS, alphas_of, losses, slow_sums

from gpuforest import DecisionTreeClassifier, DecisionTreeRegressor


def held_out(kind, X, y, seed=0):
    order = np.random.default_rng(seed).permutation(len(y))
    grow, test = order[: len(y) * 2 // 3], order[len(y) * 2 // 3 :]
    return (X[grow], y[grow]), (X[test], y[test])


@pytest.mark.parametrize("criterion", TASKS)
def test_held_out_rows_choose_the_best_of_the_nested_subtrees(backend, criterion):
    kind, X, y = TASKS[criterion]
    grow, test = held_out(kind, X, y)
    whole = kind(criterion=criterion, random_state=0, backend=backend).fit(*grow)
    alphas = alphas_of(whole)
    ones = np.ones(len(test[1]))
    slow = [float(slow_sums(whole, alpha, *test, ones)[0]) / len(ones) for alpha in alphas]
    model = kind(criterion=criterion, random_state=0, backend=backend).fit(*grow)
    assert model.prune(*test) is model
    curve = model.pruning_curve_
    assert curve.ccp_alphas.tolist() == alphas.tolist()
    assert curve.errors.tolist() == slow
    best = max(i for i in range(len(slow)) if slow[i] == min(slow))
    assert model.ccp_alpha_ == alphas[best] > 0
    params = {"criterion": criterion, "random_state": 0, "backend": backend}
    small = kind(ccp_alpha=alphas[best], **params).fit(*grow)
    assert same_forest(small.forest_, model.forest_)
    one = kind(criterion=criterion, random_state=0).fit(*grow).prune(*test, rule="one_se")
    assert one.get_n_leaves() <= model.get_n_leaves() < whole.get_n_leaves()


@pytest.mark.parametrize("criterion", TASKS)
@pytest.mark.parametrize("seed", range(4))
def test_reduced_error_never_makes_more_errors(backend, criterion, seed):
    kind, X, y = TASKS[criterion]
    grow, test = held_out(kind, X, y, seed)
    model = kind(criterion=criterion, random_state=0, backend=backend).fit(*grow)
    full, before = model.get_n_leaves(), math.fsum(losses(model, test[1], model.predict(test[0])))
    assert (model.feature_importances_ > 0).sum() > 1
    model.prune(*test, method="reduced_error")
    after = math.fsum(losses(model, test[1], model.predict(test[0])))
    assert after <= before
    assert model.get_n_leaves() == model.tree_.n_leaves <= full
    used = {*model.tree_.feature} - {-2}
    assert set(np.flatnonzero(model.feature_importances_)) == used
    assert (model.ccp_alpha_, hasattr(model, "pruning_curve_")) == (0.0, False)
    # there is nothing more to gain, nor at the cost of no error: the smallest of the best
    again = pickle.loads(pickle.dumps(model)).prune(*test, method="reduced_error")
    assert same_forest(again.forest_, model.forest_)
    chosen = kind(criterion=criterion, random_state=0).fit(*grow).prune(*test)
    chosen_loss = math.fsum(losses(chosen, test[1], chosen.predict(test[0])))
    assert after <= chosen_loss * (1 + 1e-12)  # one of the subtrees among which it chose


def test_reduced_error_by_hand():
    X, y = np.arange(8.0)[:, None], np.array(list("aabbccdd"))

    def pruned(rows, labels, weights=None):
        # x <= 1.5: a leaf a, else a node, as a leaf a b: x <= 3.5: a leaf b, else a node,
        # as a leaf a c: x <= 5.5: a leaf c, else a leaf d
        tree = DecisionTreeClassifier().fit(X, y)
        assert tree.tree_.threshold[tree.tree_.feature == 0].tolist() == [1.5, 3.5, 5.5]
        rows = np.array(rows, float)[:, None]
        tree.prune(rows, list(labels), weights, method="reduced_error")
        return "".join(tree.predict(X))

    # the lowest errs nowhere as a leaf, but once by its leaf d: a leaf. The next would err
    # in 4 and 6, the root in all but 0; now neither errs: they stay
    assert pruned([0, 2, 4, 6], "abcc") == "aabbcccc"
    # no row comes to the lowest, which errs no more as a leaf; nor does the next, in 2 either
    # way; the root then does not err at all
    assert pruned([0, 2], "aa") == "aaaaaaaa"
    # weights count, and a class never seen is an error everywhere
    held = [0, 2, 2, 7], "abaz"
    assert pruned(*held, [1, 2, 1, 9]) == "aabbbbbb"
    assert pruned(*held, [1, 1, 2, 9]) == "aaaaaaaa"


def test_reduced_error_is_the_best_of_all_subtrees():
    """Of every way to prune a small tree none errs less, nor as little with fewer leaves."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        X, y = rng.random((40, 2)), rng.integers(0, 3, 40)
        test, held = rng.random((30, 2)), rng.integers(0, 3, 30)
        tree = DecisionTreeClassifier(max_depth=3).fit(X, y)
        view = tree.tree_
        paths = tree.decision_path(test).toarray().astype(bool)
        label = view.value[:, 0].argmax(axis=1)

        def best(node, view=view, paths=paths, label=label, held=held):
            errors = int((held[paths[:, node]] != label[node]).sum())
            leaf = (errors, 1)
            if view.children_left[node] < 0:
                return leaf
            sides = [best(view.children_left[node]), best(view.children_right[node])]
            return min(leaf, tuple(map(sum, zip(*sides, strict=True))))

        pruned = tree.prune(test, held, method="reduced_error")
        assert (int((pruned.predict(test) != held).sum()), pruned.get_n_leaves()) == best(0)


def test_pruned_again_and_predicting_in_other_ways(tmp_path):
    X, y = DIABETES
    (grow, test) = held_out(DecisionTreeRegressor, X, y)
    model = DecisionTreeRegressor(random_state=0, ccp_alpha=1.0).fit(*grow)
    assert model.ccp_alpha_ == 1.0
    model.prune(*test)
    assert model.tree_.value[model.apply(X), 0, 0].tolist() == model.predict(X).tolist()
    rows = model.apply(grow[0])
    for leaf in np.unique(rows):
        # the one adds the rows of a leaf, the other what its splits had gained
        assert np.isclose(model.tree_.impurity[leaf], grow[1][rows == leaf].var(), rtol=1e-9)
    assert model.to_sklearn().predict(X.astype(np.float32)).shape == (len(y),)


def test_prune_refuses():
    X, y = CANCER
    with pytest.raises(ValueError, match="not fitted"):
        DecisionTreeClassifier().prune(X, y)
    model = DecisionTreeClassifier().fit(X, y)
    nodes = model.forest_.n_nodes
    for params, message in (
        ({"method": "best"}, "method='best' is unknown: pass one of cost_complexity, reduced"),
        ({"rule": "most"}, "rule='most' is unknown: pass one of min, one_se"),
        ({"sample_weight": -y}, "Negative values"),
    ):
        with pytest.raises(ValueError, match=message):
            model.prune(X, y, **params)
    with pytest.raises(ValueError, match="X has 240 rows, y has 3"):
        model.prune(X, y[:3])
    assert model.forest_.n_nodes == nodes
    big = DecisionTreeRegressor().fit([[0.0], [1]], [1.0, -1])
    with pytest.raises(ValueError, match="overflow: divide y by a constant"):
        big.prune([[0.0], [1]], [1e200, -1])
    big.prune([[0.0], [1]], [1e200, -1], [0, 1])  # that row does not count
    assert big.get_n_leaves() == 2
