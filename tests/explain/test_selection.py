"""Alphas chosen by cross-validation or rows held out: against pruning at every alpha, and files."""

import json
import math
import pickle

import numpy as np
import pytest
from engine import same_forest
from pruned import CANCER, DIABETES, TASKS, alphas_of, slow_sums
from sklearn.model_selection import KFold, RepeatedKFold, StratifiedKFold
from sklearn.tree import DecisionTreeClassifier as SklearnClassifier

import gpuforest as gf
from gpuforest.explain.pruning import choose, middles
from gpuforest.export import container, model_file


def slow_curve(model, X, y, w, folds):
    """Errors and standard errors at each candidate, a tree pruned for each."""
    params = {**model.get_params(), "ccp_alpha": 0.0}
    weight = np.ones(len(y)) if w is None else w
    fitted = [
        type(model)(**params).fit(X[grow], y[grow], None if w is None else w[grow])
        for grow, _ in folds
    ]
    total, squares = math.fsum(weight), math.fsum(weight**2)
    found = []
    for alpha in [*model.pruning_curve_.ccp_alphas[:-1], 1e300]:  # the last: all are roots
        parts = [
            slow_sums(tree, alpha, X[test], y[test], weight[test])
            for tree, (_, test) in zip(fitted, folds, strict=True)
        ]
        loss, weighted, squared = (float(sum(part)) for part in zip(*parts, strict=True))
        error = loss / total
        spread = squared - 2 * error * weighted + error**2 * squares
        found.append((error, math.sqrt(max(spread, 0.0)) / total))
    return found


def folds_of(kind, n, X, y, seed):
    kfold = StratifiedKFold if kind is gf.DecisionTreeClassifier else KFold
    return list(kfold(n, shuffle=True, random_state=seed).split(X, y))


@pytest.mark.parametrize("backend", ["numpy", "numba"])
@pytest.mark.parametrize("criterion", TASKS)
def test_the_curve_is_pruning_and_predicting_at_every_alpha(backend, criterion):
    kind, X, y = TASKS[criterion]
    w = np.random.default_rng(1).random(len(y)) if backend == "numba" else None
    params = {"ccp_alpha": "cv", "ccp_cv": 4, "random_state": 3, "min_samples_leaf": 3}
    model = kind(criterion=criterion, backend=backend, **params).fit(X, y, w)
    curve = model.pruning_curve_
    slow = slow_curve(model, X, y, w, folds_of(kind, 4, X, y, 3))
    assert list(zip(curve.errors.tolist(), curve.std_errors.tolist(), strict=True)) == slow


@pytest.mark.parametrize("criterion", TASKS)
def test_candidates_lie_between_alphas_and_the_tree_is_that_of_its_own(criterion, backend):
    kind, X, y = TASKS[criterion]
    whole = kind(criterion=criterion, random_state=0).fit(X, y)
    model = kind(criterion=criterion, ccp_alpha="cv", random_state=0).fit(X, y)
    alphas, curve = alphas_of(whole), model.pruning_curve_
    assert (curve.ccp_alphas[0], curve.ccp_alphas[-1]) == (0, alphas[-1])
    assert (curve.ccp_alphas[:-1] >= alphas[:-1]).all()
    assert (curve.ccp_alphas[:-1] < alphas[1:]).all()
    # but for rounding
    assert np.allclose(curve.ccp_alphas[1:-1] ** 2, alphas[1:-1] * alphas[2:], rtol=1e-14)
    assert (np.diff(curve.n_leaves) < 0).all()
    assert curve.n_leaves[-1] == 1
    for alpha, n_leaves in zip(curve.ccp_alphas[1:], curve.n_leaves[1:], strict=True):
        small = kind(criterion=criterion, random_state=0, ccp_alpha=alpha).fit(X, y)
        assert small.get_n_leaves() == n_leaves
    assert model.get_n_leaves() == curve.n_leaves[curve.ccp_alphas == model.ccp_alpha_]
    params = {"criterion": criterion, "random_state": 0, "backend": backend, "ccp_cv": 5}
    chosen = kind(ccp_alpha="cv", ccp_rule="one_se", **params).fit(X, y)
    given = kind(ccp_alpha=chosen.ccp_alpha_, **params).fit(X, y)
    assert given.ccp_alpha_ == chosen.ccp_alpha_ > 0
    assert same_forest(given.forest_, chosen.forest_)
    assert not hasattr(given, "pruning_curve_")
    assert given.feature_importances_.tolist() == chosen.feature_importances_.tolist()
    # of numbers the one adds the rows of a leaf, the other what its splits had gained
    assert np.allclose(given.tree_.impurity, chosen.tree_.impurity, rtol=1e-12)


def test_middles_and_rules_by_hand():
    alphas = np.array([0.0, 1.0, np.nextafter(1, 2), 2.0, 8.0])
    assert middles(alphas).tolist() == [0.0, 1.0, math.sqrt(2 * alphas[2]), 4.0, 8.0]
    errors, std_errors = np.array([3.0, 2, 2, 2.5, 2.75, 4]), np.full(6, 0.5)
    assert choose(errors, std_errors, "min") == 2  # the smaller of two
    assert choose(errors, std_errors, "one_se") == 3
    assert choose(errors, np.zeros(6), "one_se") == 2


def test_folds_of_the_users_own_and_rows_of_no_weight():
    X, y = CANCER
    params = {"ccp_alpha": "cv", "random_state": 0}
    model = gf.DecisionTreeClassifier(ccp_cv=5, **params).fit(X, y)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    for ccp_cv in (folds, list(folds.split(X, y))):
        other = gf.DecisionTreeClassifier(ccp_cv=ccp_cv, **params).fit(X, y)
        assert other.pruning_curve_.errors.tolist() == model.pruning_curve_.errors.tolist()
    # to test every row twice the same way is no more informative than once
    twice = gf.DecisionTreeClassifier(ccp_cv=list(folds.split(X, y)) * 2, **params).fit(X, y)
    assert twice.pruning_curve_.std_errors.tolist() == model.pruning_curve_.std_errors.tolist()
    repeated = RepeatedKFold(n_splits=3, n_repeats=2, random_state=0)
    assert gf.DecisionTreeClassifier(ccp_cv=repeated, **params).fit(X, y).get_n_leaves() > 1
    w = np.ones(len(y))
    w[::3] = 0
    a = gf.DecisionTreeClassifier(**params).fit(X, y, w)
    b = gf.DecisionTreeClassifier(**params).fit(X[w > 0], y[w > 0])
    assert a.pruning_curve_.errors.tolist() == b.pruning_curve_.errors.tolist()
    assert same_forest(a.forest_, b.forest_)


@pytest.mark.parametrize("kind", [gf.DecisionTreeClassifier, gf.DecisionTreeRegressor])
def test_several_outputs(backend, kind):
    X, y = DIABETES
    two = np.stack([y > 140, y > 100], axis=1) if kind is gf.DecisionTreeClassifier else None
    two = np.stack([y, X[:, 2] * 300], axis=1) if two is None else two
    model = kind(ccp_alpha="cv", random_state=0, backend=backend).fit(X, two)
    folds = folds_of(gf.DecisionTreeRegressor, 10, X, y, 0)
    found = []
    for grow, test in folds:  # roots
        mean = two[grow].mean(axis=0)
        wrong = two[test] != (mean > 0.5) if two.dtype == bool else (two[test] - mean) ** 2
        found += wrong.mean(axis=1).tolist()
    # in another order
    assert model.pruning_curve_.errors[-1] == pytest.approx(np.mean(found), rel=1e-12)
    assert model.get_n_leaves() < kind(random_state=0).fit(X, two).get_n_leaves()
    with pytest.raises(ValueError, match="y has 1 outputs, but the tree was fitted to 2"):
        model.prune(X, two[:, 0])


def test_few_leaves_and_bounds_come_first(backend):
    X, y = DIABETES
    signs = [0, 0, 1, 1, 0, 0, 0, 0, 1]
    params = {"monotonic_cst": signs, "max_leaf_nodes": 40, "min_samples_leaf": 5}
    params |= {"random_state": 0, "backend": backend}
    model = gf.DecisionTreeRegressor(ccp_alpha="cv", ccp_cv=4, **params).fit(X, y)
    assert model.pruning_curve_.n_leaves[0] <= 40
    errors = []
    for alpha in model.pruning_curve_.ccp_alphas[1:-1]:
        loss = []
        for grow, test in folds_of(gf.DecisionTreeRegressor, 4, X, y, 0):
            tree = gf.DecisionTreeRegressor(ccp_alpha=alpha, **params).fit(X[grow], y[grow])
            loss += ((y[test] - tree.predict(X[test])) ** 2).tolist()
        errors.append(np.mean(loss))
    # in another order
    assert np.allclose(model.pruning_curve_.errors[1:-1], errors, rtol=1e-12)
    given = gf.DecisionTreeRegressor(ccp_alpha=model.ccp_alpha_, **params).fit(X, y)
    assert same_forest(given.forest_, model.forest_)
    assert given.predict(X).tolist() == model.predict(X).tolist()


def test_classes_that_a_fold_has_not_seen_and_trees_without_a_split():
    X, y = np.arange(8.0)[:, None], np.array([0, 0, 0, 0, 1, 1, 1, 2])
    own = [(np.arange(7), [7]), (np.arange(1, 8), [0])]
    model = gf.DecisionTreeClassifier(ccp_alpha="cv", ccp_cv=own).fit(X, y)
    # class 2 is an error at any alpha; class 0 only where roots, of four rows of class 0, err not
    assert model.pruning_curve_.errors.tolist()[0] == 0.5
    model = gf.DecisionTreeClassifier(ccp_alpha="cv", ccp_cv=2).fit(np.zeros((4, 1)), [0, 1, 1, 0])
    assert (model.ccp_alpha_, model.get_n_leaves()) == (0.0, 1)
    expected = [[0], [1], [0.5], [0.25]]
    assert [values.tolist() for values in model.pruning_curve_.values()] == expected


def test_the_path_tells_the_number_of_leaves():
    X, y = CANCER
    X = X.astype(np.float32)
    ours = gf.DecisionTreeClassifier(max_bins=65535).cost_complexity_pruning_path(X, y)
    assert ours.n_leaves.shape == ours.ccp_alphas.shape
    assert (np.diff(ours.n_leaves) < 0).all()
    for alpha, n_leaves in list(zip(ours.ccp_alphas, ours.n_leaves, strict=True))[1:]:
        after = gf.DecisionTreeClassifier(max_bins=65535, ccp_alpha=alpha).fit(X, y).get_n_leaves()
        assert after == ours.n_leaves[np.flatnonzero(ours.ccp_alphas == alpha)[-1]] <= n_leaves
    assert "n_leaves" not in SklearnClassifier().cost_complexity_pruning_path(X, y)


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


def test_reduced_error_is_the_best_of_all_subtrees():
    rng = np.random.default_rng(0)
    for _ in range(20):
        X, y = rng.random((40, 2)), rng.integers(0, 3, 40)
        test, held = rng.random((30, 2)), rng.integers(0, 4, 30)  # one class was never seen
        weight = rng.integers(0, 4, 30)
        tree = gf.DecisionTreeClassifier(max_depth=3).fit(X, y)
        view = tree.tree_
        paths = tree.decision_path(test).toarray().astype(bool)
        label = view.value[:, 0].argmax(axis=1)

        def best(node, view=view, paths=paths, label=label, held=held, weight=weight):
            errors = int(weight[paths[:, node] & (held != label[node])].sum())
            leaf = (errors, 1)
            if view.children_left[node] < 0:
                return leaf
            sides = [best(view.children_left[node]), best(view.children_right[node])]
            return min(leaf, tuple(map(sum, zip(*sides, strict=True))))

        pruned = tree.prune(test, held, weight, method="reduced_error")
        errors = int(weight[pruned.predict(test) != held].sum())
        assert (errors, pruned.get_n_leaves()) == best(0)


def test_pruned_again_and_predicting_in_other_ways(tmp_path):
    X, y = DIABETES
    (grow, test) = held_out(gf.DecisionTreeRegressor, X, y)
    model = gf.DecisionTreeRegressor(random_state=0, ccp_alpha=1.0).fit(*grow)
    assert model.ccp_alpha_ == 1.0
    model.prune(*test)
    assert model.tree_.value[model.apply(X), 0, 0].tolist() == model.predict(X).tolist()
    rows = model.apply(grow[0])
    for leaf in np.unique(rows):
        # the one adds the rows of a leaf, the other what its splits had gained
        assert np.isclose(model.tree_.impurity[leaf], grow[1][rows == leaf].var(), rtol=1e-9)
    assert model.to_sklearn().predict(X.astype(np.float32)).shape == (len(y),)


@pytest.mark.parametrize("kind", [gf.DecisionTreeClassifier, gf.DecisionTreeRegressor])
@pytest.mark.parametrize(("params", "message"), [
    ({"ccp_alpha": -0.1}, "'ccp_alpha' parameter"),
    ({"ccp_alpha": "best"}, "'ccp_alpha' parameter"),
    ({"ccp_cv": 1}, "'ccp_cv' parameter"),
    ({"ccp_cv": None}, "'ccp_cv' parameter"),
    ({"ccp_rule": "two_se"}, "'ccp_rule' parameter"),
    ({"ccp_alpha": "cv", "ccp_cv": "ten"}, "Expected `cv` as an integer"),
    ({"ccp_alpha": "cv", "ccp_cv": 11}, "n_splits=11"),
    ({"ccp_alpha": "cv", "ccp_cv": []}, "no test rows of any weight"),
    ({"ccp_alpha": "cv", "ccp_cv": [(range(9), [])]}, "no test rows of any weight"),
])  # fmt: skip
def test_what_is_refused(kind, params, message):
    model = kind(**params)
    with pytest.raises(ValueError, match=message):
        model.fit(np.arange(10.0)[:, None], np.arange(10) % 2)
    assert not hasattr(model, "forest_")


def test_prune_and_ensembles_refuse():
    X, y = CANCER
    Kind = gf.DecisionTreeClassifier
    model = Kind().fit(X, y)
    nodes = model.forest_.n_nodes
    for call, message in (
        (lambda: Kind().prune(X, y), "not fitted"),
        (lambda: model.prune(X, y, method="best"), "method='best' is unknown: pass one of cost_c"),
        (lambda: model.prune(X, y, rule="most"), "rule='most' is unknown: pass one of min, one_se"),
        (lambda: model.prune(X, y, -y), "Negative values"),
        (lambda: model.prune(X, y[:3]), "X has 240 rows, y has 3"),
        (lambda: gf.RandomForestClassifier(ccp_alpha="cv").fit(X, y), "'ccp_alpha' .* be a float"),
        (lambda: gf.BaggingClassifier(Kind(ccp_alpha="cv")).fit(X, y),
         "for a tree fitted by itself: give the trees of an ens"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            call()
    assert model.forest_.n_nodes == nodes
    big = gf.DecisionTreeRegressor().fit([[0.0], [1]], [1.0, -1])
    with pytest.raises(ValueError, match="overflow: divide y by a constant"):
        big.prune([[0.0], [1]], [1e200, -1])
    big.prune([[0.0], [1]], [1e200, -1], [0, 1])  # that row does not count
    assert big.get_n_leaves() == 2
    bags = gf.BaggingClassifier(Kind(ccp_alpha=0.01), 2).fit(X, y)
    assert bags.estimators_[0].ccp_alpha_ == 0.01


@pytest.mark.parametrize("criterion", TASKS)
def test_files_keep_the_curve(tmp_path, criterion):
    kind, X, y = TASKS[criterion]
    model = kind(criterion=criterion, ccp_alpha="cv", ccp_cv=3, random_state=0).fit(X, y)
    model.save(tmp_path / "model")
    for other in (pickle.loads(pickle.dumps(model)), gf.load(tmp_path / "model")):
        assert other.get_params() == model.get_params()
        assert other.ccp_alpha_ == model.ccp_alpha_
        for name, values in model.pruning_curve_.items():
            assert other.pruning_curve_[name].tolist() == values.tolist()
            assert other.pruning_curve_[name].dtype == values.dtype
        assert other.predict(X).tolist() == model.predict(X).tolist()
    other.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()
    assert model.to_sklearn().ccp_alpha == model.ccp_alpha_
    model.set_params(ccp_cv=KFold(3)).fit(X, y).save(tmp_path / "model")
    assert gf.load(tmp_path / "model").ccp_cv == 10  # no file can hold a splitter
    plain = kind(criterion=criterion, ccp_alpha=0.1).fit(X, y)
    plain.save(tmp_path / "plain")
    loaded = gf.load(tmp_path / "plain")
    assert (loaded.ccp_alpha_, hasattr(loaded, "pruning_curve_")) == (0.1, False)


def written(**changes):
    whole = {"ccp_alphas": [0.0, 0.1], "n_leaves": [2, 1], "errors": [0.5, 0.6]}
    return {**whole, "std_errors": [0.1, 0.1], **changes}


@pytest.mark.parametrize(("ccp_alpha", "curve"), [
    (0.1, None), (None, written()), (0.3, written()), (0.1, {"ccp_alphas": [0.1]}),
    (0.1, written(std_errors=[0.1])), (0.1, written(std_errors=[0.1, -0.1])),
    (0.1, written(errors=[0.5, float("inf")])), (0.1, written(n_leaves=[2**40, 1])),
    (0.1, written(ccp_alphas=[0.1, 0.0])),
    (0.1, written(ccp_alphas=[], n_leaves=[], errors=[], std_errors=[])),
], ids=range(10))  # fmt: skip
def test_curves_that_cannot_have_been_written(tmp_path, ccp_alpha, curve):
    path = tmp_path / "model"
    gf.DecisionTreeClassifier(ccp_alpha="cv").fit(*CANCER).save(path)
    text, arrays = container.read(path, model_file.ARRAYS)
    header = json.loads(text) | {"ccp_alpha": ccp_alpha, "pruning_curve": curve}
    header = {name: value for name, value in header.items() if value is not None}
    container.write(path, json.dumps(header), arrays)
    with pytest.raises(gf.ModelFormatError):
        gf.load(path)
