"""Pruned trees: against growth under narrower rules, scikit-learn, and slow implementations."""

from fractions import Fraction

import numpy as np
import pytest
from engine import Task, same_forest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_diabetes, load_wine
from sklearn.tree import DecisionTreeClassifier as SklearnClassifier
from sklearn.tree import DecisionTreeRegressor as SklearnRegressor
from small_trees import TASKS, chain, children, some_task

from gpuforest import DecisionTreeClassifier, DecisionTreeRegressor
from gpuforest.backends import numba, numpy, registry
from gpuforest.core.criteria import CRITERIA
from gpuforest.core.forest import tree_groups
from gpuforest.core.nodes import is_leaf
from gpuforest.explain import paths, pruning

seeds = st.integers(0, 2**32)


def leaf_counts(forest):
    before = np.concatenate([[0], np.cumsum(is_leaf(forest.nodes))])
    return np.diff(before[forest.tree_offsets]).tolist()


@pytest.mark.parametrize("criterion", TASKS)
@pytest.mark.parametrize("depth", [0, 1, 3, 6])
def test_the_splits_above_a_depth_are_a_growth_to_that_depth(engine, criterion, depth):
    task = some_task(2, criterion)
    forest = task.grow(engine)
    keep = np.zeros(forest.n_nodes, bool)
    keep[np.concatenate(forest.levels()[:depth] or [[]]).astype(int)] = True
    assert paths.tree_depths(forest).max() > depth
    assert same_forest(pruning.keep_splits(forest, keep), task.but(max_depth=depth).grow(engine))


@pytest.mark.parametrize("criterion", ["gini", "squared_error"])
def test_groups_of_trees_change_nothing(monkeypatch, criterion):
    forest = some_task(3, criterion).grow(numpy.NumpyBackend())
    keep = np.random.default_rng(0).random(forest.n_nodes) < 0.8
    whole = pruning.keep_splits(forest, keep)
    gains = pruning.split_gains(forest, CRITERIA[criterion])
    monkeypatch.setattr("gpuforest.core.forest.GROUP_VALUES", 1)
    assert len(tree_groups(forest)) == forest.n_trees
    assert same_forest(pruning.keep_splits(forest, keep), whole)
    assert pruning.split_gains(forest, CRITERIA[criterion]).tolist() == gains.tolist()


def slow_best_first(forest, tree, gains, n_splits):
    """The best of all open nodes, looked for anew for each split."""
    begin, left = children(forest, tree)
    found, chosen = [0], []
    while len(chosen) < n_splits:
        able = [n for n in found if n in left and n not in chosen]
        if not able:
            break
        best = max(able, key=lambda n: gains[begin + n])  # the first of equal ones
        chosen.append(best)
        found += [left[best], left[best] + 1]
    return [begin + n for n in chosen]


@given(seed=seeds, criterion=st.sampled_from(TASKS), n=st.integers(1, 40))
def test_best_first_takes_the_best_open_node(seed, criterion, n):
    forest = some_task(seed, criterion).grow(numba.NumbaBackend())
    gains, keep = pruning.split_gains(forest, CRITERIA[criterion]), np.zeros(forest.n_nodes, bool)
    for tree in range(forest.n_trees):
        keep[slow_best_first(forest, tree, gains, n - 1)] = True
    found, full = pruning.best_first(forest, CRITERIA[criterion], n), leaf_counts(forest)
    assert same_forest(found, pruning.keep_splits(forest, keep))
    assert leaf_counts(found) == [min(n, leaves) for leaves in full]


def slow_path(left, gains):
    """The weakest link of all, looked for anew for each step: top and gain per split."""
    split, steps = dict(left), []

    def below(node):
        own = [node] if node in split else []
        return own + [n for c in (left[node], left[node] + 1) for n in below(c)] if own else []

    while split:
        links = {n: sum(gains[i] for i in below(n)) / Fraction(len(below(n))) for n in split}
        weakest = min(sorted(links), key=links.__getitem__)
        steps.append((weakest, links[weakest]))
        for node in below(weakest):
            del split[node]
    return steps


@given(seed=seeds, n_values=st.sampled_from([1, 2, 3, 1000]))
def test_blocks_are_the_weakest_links_one_by_one(seed, n_values):
    rng = np.random.default_rng(seed)
    forest = some_task(seed, "gini", n_trees=1, max_depth=6).grow(numba.NumbaBackend())
    _, left = children(forest, 0)
    gains = [int(g) for g in rng.integers(0, n_values, forest.n_nodes)]
    top, total, n_splits = pruning._pooled([left.get(n, 0) for n in range(forest.n_nodes)], gains)
    blocks = {top[n] for n in left}
    found = sorted((Fraction(total[n], n_splits[n]), n) for n in blocks)
    assert [(n, link) for link, n in found] == slow_path(left, gains)


def path_cases():
    X, y = load_diabetes(return_X_y=True)
    yield pytest.param("squared_error", X, y, None, id="numbers")
    yield pytest.param("squared_error", X, y, np.arange(len(X)) % 3 + 1, id="weights")
    yield pytest.param("poisson", X, y, None, id="counts")
    X, y = load_wine(return_X_y=True)
    yield pytest.param("gini", X, y, None, id="gini")
    yield pytest.param("entropy", X, y, None, id="entropy")


@pytest.mark.parametrize(("criterion", "X", "y", "weight"), list(path_cases()))
def test_the_path_is_scikit_learns(backend, criterion, X, y, weight):
    X, is_classes = X.astype(np.float32), CRITERIA[criterion].task == "classification"
    ours = DecisionTreeClassifier if is_classes else DecisionTreeRegressor
    theirs = SklearnClassifier if is_classes else SklearnRegressor
    params = {"criterion": criterion, "min_samples_leaf": 6}
    full = ours(max_bins=1000, backend=backend, **params).fit(X, y, weight)
    theirs = theirs(random_state=0, **params)
    path = theirs.cost_complexity_pruning_path(X, y, sample_weight=weight)
    tree = theirs.fit(X, y, sample_weight=weight).tree_
    assert full.forest_.n_nodes == tree.node_count
    alphas, decreases, n_leaves = pruning.pruning_path(full.forest_, CRITERIA[criterion])
    assert (n_leaves[0], n_leaves[-1]) == (full.get_n_leaves(), 1)
    # not ==: there float64 impurities are added up, here gains; and n ln n has 26 bits of
    # fraction
    rtol = 1e-7 if criterion == "entropy" else 1e-9
    assert len(alphas) == len(path.ccp_alphas)
    assert np.allclose(alphas, path.ccp_alphas, rtol=rtol, atol=0)
    impurities = tree.impurity[0] - decreases
    assert np.allclose(impurities, path.impurities, rtol=rtol, atol=0)
    for alpha in (alphas[:-1] + alphas[1:])[:: max(1, len(alphas) // 8)] / 2:
        pruned = pruning.prune(full.forest_, CRITERIA[criterion], alpha)
        theirs.set_params(ccp_alpha=alpha).fit(X, y, sample_weight=weight)
        assert pruned.n_nodes == theirs.tree_.node_count


@pytest.mark.parametrize("criterion", TASKS)
def test_trees_are_pruned_one_by_one(engine, criterion):
    task, c = some_task(8, criterion), CRITERIA[criterion]
    forest = task.grow(engine)
    alphas, _, _ = pruning.pruning_path(task.but(n_trees=1).grow(engine), c)
    alpha = alphas[len(alphas) // 2]
    pruned = pruning.prune(forest, c, alpha)
    first = pruning.prune(task.but(n_trees=1).grow(engine), c, alpha)
    same = pruned.nodes[: pruned.tree_offsets[1]] == first.nodes
    assert (same | is_leaf(first.nodes)).all()  # the tables of leaves differ
    assert pruned.node_sums(0, 1).tolist() == first.node_sums(0, 1).tolist()
    assert leaf_counts(first)[0] < leaf_counts(forest)[0]
    assert len(leaf_counts(pruned)) == forest.n_trees
    with pytest.raises(ValueError, match="the forest has 4 trees: a pruning path is that of one"):
        pruning.pruning_path(forest, c)


def test_alpha_zero_takes_splits_that_gain_nothing():
    # the XOR's first split gains nothing, but those below it do
    X = np.array([[0.0, 0], [0, 1], [1, 0], [1, 1]])
    c = CRITERIA["gini"]
    xor = Task(X, np.array([0, 1, 1, 0])).grow(numpy.NumpyBackend())
    assert pruning.split_gains(xor, c)[0] == 0
    assert same_forest(pruning.prune(xor, c, 0), xor)
    alphas, decreases, _ = pruning.pruning_path(xor, c)
    assert (alphas.tolist(), decreases.tolist()) == ([0, 0.5 / 3], [0.5, 0])
    # of six rows one is of the other class, and no cut makes another majority
    X, y, c = np.arange(6.0)[:, None], np.array([0, 1, 0, 0, 0, 0]), CRITERIA["misclassification"]
    forest = Task(X, y, c.name, max_depth=1).grow(numpy.NumpyBackend())
    assert (forest.n_nodes, pruning.prune(forest, c, 0).n_nodes) == (3, 1)
    assert pruning.pruning_path(forest, c)[0].tolist() == [0, 0]


def test_a_tree_without_a_split():
    forest = Task(np.zeros((3, 1)), np.array([0, 1, 1])).grow(numpy.NumpyBackend())
    c = CRITERIA["gini"]
    assert [a.tolist() for a in pruning.pruning_path(forest, c)] == [[0], [0], [1]]
    assert same_forest(pruning.prune(forest, c, 1.0), forest)
    assert same_forest(pruning.best_first(forest, c, 7), forest)


def test_a_chain_and_a_big_tree():
    c, forest = CRITERIA["gini"], chain(3000)
    alphas, _, _ = pruning.pruning_path(forest, c)
    assert pruning.prune(forest, c, alphas[-1]).n_nodes == 1
    # every row its own leaf; the number of steps decides that no step may cost O(nodes)
    rng = np.random.default_rng(0)
    X, y = rng.random((20_000, 3)), rng.random(20_000)
    forest = Task(X, y, "squared_error", max_bins=65535).grow(registry.get_backend("numba"))
    assert leaf_counts(forest) == [20_000]
    c = CRITERIA["squared_error"]
    alphas, decreases, _ = pruning.pruning_path(forest, c)
    middle = len(alphas) // 2
    pruned = pruning.prune(forest, c, alphas[middle])
    assert pruning.pruning_path(pruned, c)[1].tolist() == decreases[middle:].tolist()
    assert paths.subtree_sizes(pruned, 0)[0] == pruned.n_nodes < forest.n_nodes
