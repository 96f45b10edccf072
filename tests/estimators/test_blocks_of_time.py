"""Rows in the order of time: trees of earlier blocks judge later ones."""

import pickle

import numpy as np
import pytest
from engine import same_forest
from sklearn.base import clone
from sklearn.metrics import accuracy_score, r2_score

import gpuforest as gf
from gpuforest.backends import registry
from gpuforest.estimators import boosting_fit
from gpuforest.growing.bags import cutoff

RNG = np.random.default_rng(0)
BLOCKS = np.sort(RNG.integers(0, 6, 150))
N = len(BLOCKS)
ORDER = RNG.permutation(N)  # rows need not lie in the order of time
BLOCKS = BLOCKS[ORDER]
X = RNG.normal(size=(N, 3))
Y = X[:, 0] + 0.4 * BLOCKS * X[:, 1] + 0.3 * RNG.normal(size=N)
LABELS = np.where(Y > 0, "high", "low")
WEIGHTS = RNG.integers(0, 3, N)
FORESTS = [
    gf.RandomForestRegressor, gf.ExtraTreesClassifier, gf.RandomForestQuantileRegressor,
    gf.BaggingRegressor, gf.RandomForestClassifier,
]  # fmt: skip


def made(kind, **params):
    more = {"n_estimators": 24, "random_state": 0, "oob_score": True, "bootstrap": True}
    if kind is gf.BaggingRegressor:
        tree = kind._tree(backend=params.pop("backend", "numpy"), max_depth=5)
        return kind(tree, **{**more, **params})
    return kind(**{**more, "backend": "numpy", "max_depth": 5, **params})


def target(kind):
    return LABELS if hasattr(kind, "predict_proba") else Y


def judged_by(n_trees, blocks=BLOCKS):
    """Which trees judge which rows, by hand: bool[N, T]."""
    known = np.array([cutoff(blocks, t) + 1 for t in range(n_trees)])
    return (known <= blocks[:, None]) & (4 * known >= 3 * blocks[:, None])


def judges_of(model):
    """The trees that judge, as estimators."""
    other = clone(model)
    other.__dict__.update(vars(model) | {"forest_": model._judges_[0]})
    other.__dict__.pop("estimators_", None)
    return other.estimators_


@pytest.mark.parametrize("bootstrap", [True, False])
@pytest.mark.parametrize("kind", FORESTS)
def test_rows_are_judged_by_trees_of_earlier_blocks(kind, bootstrap):
    y = target(kind)
    model = made(kind, bootstrap=bootstrap).fit(X, y, blocks=BLOCKS)
    plain = made(kind, bootstrap=bootstrap, oob_score=False).fit(X, y)
    assert same_forest(model.forest_, plain.forest_)
    is_classes = hasattr(kind, "predict_proba")
    trees, by = judges_of(model), judged_by(24)
    if is_classes:
        values = np.array([tree.predict_proba(X)[:, 0] for tree in trees]).T
        found = model.oob_decision_function_[:, 0]
    else:
        values, found = np.array([tree.predict(X) for tree in trees]).T, model.oob_prediction_
    seen = by.any(axis=1)
    assert np.array_equal(seen, BLOCKS > 0)
    means = np.where(by, values, 0).sum(axis=1)[seen] / by.sum(axis=1)[seen]
    assert np.allclose(found[seen], means)
    assert np.isnan(found[~seen]).all()
    if is_classes:
        score = accuracy_score(y[seen], np.where(found[seen] >= 0.5, "high", "low"))
    else:
        score = r2_score(y[seen], means)
    assert np.isclose(model.oob_score_, score)
    assert model.oob_curve_.n_estimators[-1] == 24


@pytest.mark.parametrize("kind", [gf.RandomForestRegressor, gf.ExtraTreesClassifier])
@pytest.mark.parametrize("bootstrap", [True, False])
@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_trees_know_no_later_row(kind, bootstrap, weights):
    """Judges of data that differ in the order of the targets and features of later blocks."""
    y, later = target(kind), BLOCKS > 2
    other, other_y = X.copy(), y.copy()
    other[later], other_y[later] = X[later][::-1], np.roll(y[later], 7)
    other_weights = weights
    if weights is not None:  # bins are those of rows of some weight, which stay the same
        other_weights = weights.copy()
        other_weights[later] = weights[later][::-1]
    model, changed = (
        made(kind, bootstrap=bootstrap).fit(a, b, w, blocks=BLOCKS)
        for a, b, w in ((X, y, weights), (other, other_y, other_weights))
    )
    cutoffs = np.array([cutoff(BLOCKS, t) for t in range(24)])
    assert set(cutoffs) == {0, 1, 2, 3, 4}
    for t, (one, two) in enumerate(zip(judges_of(model), judges_of(changed), strict=True)):
        same = np.array_equal(one.apply(X), two.apply(X))
        same = same and np.allclose(one.tree_.value, two.tree_.value)
        assert same == (cutoffs[t] <= 2), t
        assert one.tree_.n_node_samples[0] <= (cutoffs[t] >= BLOCKS).sum()


@pytest.mark.parametrize("kind", [gf.RandomForestRegressor, gf.RandomForestClassifier])
def test_a_planted_leak_gains_nothing(kind):
    """A feature that holds the mean target of the rows' own block."""
    rng = np.random.default_rng(1)
    blocks = np.repeat(np.arange(12), 40)
    level = rng.normal(scale=2, size=12)[blocks]
    y = level + rng.normal(size=480)
    y = y > 0 if kind is gf.RandomForestClassifier else y
    mean = np.array([y[blocks == b].mean() for b in range(12)])
    leak = (rng.permutation(12) + mean)[blocks]  # one value in each block
    features = np.column_stack([rng.normal(size=(480, 2)), leak])
    scores = {}
    for name, columns in (("plain", features[:, :2]), ("leak", features)):
        for by in (None, blocks):
            model = made(kind, n_estimators=60, backend="numba", max_features=None)
            scores[name, by is None] = model.fit(columns, y, blocks=by).oob_score_
    assert scores["leak", True] > scores["plain", True] + 0.15
    assert scores["leak", False] < scores["plain", False] + 0.05


@pytest.mark.parametrize(
    ("kind", "params"),
    [
        (gf.RandomForestClassifier, {"class_weight": "balanced_subsample"}),
        (gf.RandomForestRegressor, {"max_samples": 0.5, "criterion": "absolute_error"}),
        (gf.ExtraTreesRegressor, {"bootstrap": False, "unbiased_importances": True}),
        (gf.BaggingRegressor, {"bootstrap": False, "max_samples": 0.6}),
        (gf.RandomForestQuantileRegressor, {"max_leaf_nodes": 6}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_backends_agree(kind, params, weights):
    models = [
        made(kind, backend=backend, n_jobs=jobs, n_estimators=9, **params).fit(
            X, target(kind), weights, blocks=BLOCKS
        )
        for backend, jobs in (("numpy", 1), ("numba", 2))
    ]
    assert_judged_alike(*models)


def assert_judged_alike(one, other):
    assert same_forest(one.forest_, other.forest_)
    assert same_forest(one._judges_[0], other._judges_[0])
    assert one.oob_score_ == other.oob_score_
    for name in ("oob_prediction_", "oob_decision_function_", "_unbiased_importances_"):
        if hasattr(one, name):
            assert np.array_equal(getattr(one, name), getattr(other, name), equal_nan=True)


def test_emulated_cuda_agrees(cuda, monkeypatch):
    monkeypatch.setattr(
        registry, "_factories", registry._factories | {"device": lambda *_: cuda.backend()}
    )
    models = [
        made(gf.RandomForestRegressor, n_estimators=4, max_depth=2, backend=name)
        for name in ("numpy", "device")
    ]
    assert_judged_alike(*(model.fit(X, Y, WEIGHTS, blocks=BLOCKS) for model in models))


@pytest.mark.parametrize(
    "labels", [[f"2020-{b + 1:02}" for b in BLOCKS], np.datetime64("2020-01-01") + BLOCKS]
)
def test_labels_sort_in_the_order_of_time(labels):
    models = [made(gf.RandomForestRegressor).fit(X, Y, blocks=b) for b in (BLOCKS, labels)]
    assert_judged_alike(*models)


def test_more_blocks_than_trees():
    """Each row a block of its own: cutoffs lie evenly, and only early rows lack a judge."""
    model = made(gf.RandomForestRegressor, n_estimators=20).fit(X, Y, blocks=np.arange(N))
    by = judged_by(20, np.arange(N))
    assert np.array_equal(np.isnan(model.oob_prediction_), ~by.any(axis=1))
    assert by[40:].any(axis=1).all()
    gaps = np.diff(sorted(cutoff(np.arange(N), t) for t in range(20)))
    assert gaps.max() <= 3 * N / 20


def test_rows_of_no_weight_make_no_blocks():
    weights = np.where((BLOCKS == 0) | (BLOCKS == 3), 0, 1)
    model = made(gf.RandomForestRegressor).fit(X, Y, weights, blocks=BLOCKS)
    judged = ~np.isnan(model.oob_prediction_)
    assert np.array_equal(judged, BLOCKS > 1)  # those of weight zero too, but they do not score
    seen = judged & (weights > 0)
    assert np.isclose(model.oob_score_, r2_score(Y[seen], model.oob_prediction_[seen]))


def test_importances_and_intervals_are_those_of_judges():
    model = made(gf.RandomForestRegressor, unbiased_importances=True).fit(X, Y, blocks=BLOCKS)
    found = gf.oob_impurity_importance(model, X, Y).importances_mean
    assert np.array_equal(found, model.unbiased_feature_importances_)
    stumps = made(gf.RandomForestRegressor, max_depth=1).fit(X, Y, blocks=BLOCKS)
    gains, by = gf.oob_impurity_importance(stumps, X, Y).importances, judged_by(24)
    permuted = gf.oob_permutation_importance(stumps, X, Y).importances
    for t, tree in enumerate(judges_of(stumps)):
        value, middle = tree.tree_.value[:, 0, 0], tree.tree_.value[0, 0, 0]
        moved = value[tree.apply(X)] - middle
        assert np.isclose(gains[:, t].sum(), ((Y - middle) * moved)[by[:, t]].mean())
        assert not permuted[np.arange(3) != tree.tree_.feature[0], t].any()
    assert (permuted.max(axis=0) > 0).sum() > 12
    seen = BLOCKS > 0
    trees = np.array([tree.predict(X) for tree in judges_of(model)]).T[seen]
    spread = np.array([row[known].std() for row, known in zip(trees, by[seen], strict=True)])
    width = spread + spread.mean() / 2
    error = np.abs(Y - model.oob_prediction_)[seen]
    assert np.allclose(model._calibration_.scores[0], np.sort(error / width))


def test_quantile_forests_are_judged_by_judges():
    model = made(gf.RandomForestQuantileRegressor, min_samples_leaf=4)
    model.fit(X, Y, blocks=BLOCKS)
    found, by, trees = model.predict(X, "mean", oob_score=True), judged_by(24), judges_of(model)
    assert np.array_equal(np.isnan(found), BLOCKS == 0)
    values = np.array([tree.predict(X) for tree in trees]).T  # means of the draws in leaves
    means = np.where(by, values, 0).sum(axis=1)[BLOCKS > 0] / by.sum(axis=1)[BLOCKS > 0]
    assert np.allclose(found[BLOCKS > 0], means)
    ranks = model.quantile_ranks(X, Y, oob_score=True)
    assert np.array_equal(np.isnan(ranks), BLOCKS == 0)


def test_pickles_have_judges_and_files_say_that_they_have_none(tmp_path):
    model = made(gf.RandomForestRegressor).fit(X, Y, blocks=BLOCKS)
    copied = pickle.loads(pickle.dumps(model))
    importances = [gf.oob_permutation_importance(m, X, Y).importances for m in (model, copied)]
    assert np.array_equal(*importances)
    model.save(tmp_path / "model")
    loaded = gf.load(tmp_path / "model")
    assert np.array_equal(loaded.predict_interval(X), model.predict_interval(X))
    assert np.array_equal(loaded.predict(X, return_std=True), model.predict(X, return_std=True))
    loaded.save(tmp_path / "again")
    unjudged = made(gf.RandomForestRegressor, oob_score=False).fit(X, Y, blocks=BLOCKS)
    for other in (loaded, gf.load(tmp_path / "again"), unjudged):
        with pytest.raises(ValueError, match="known only to the estimator that was fitted with"):
            gf.oob_permutation_importance(other, X, Y)


@pytest.mark.parametrize(
    "kind", [gf.HistGradientBoostingRegressor, gf.HistGradientBoostingClassifier]
)
@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_early_stopping_sets_the_last_blocks_aside(kind, weights):
    y = LABELS if kind is gf.HistGradientBoostingClassifier else Y
    params = {"max_iter": 4, "early_stopping": True, "random_state": 0, "min_samples_leaf": 5}
    rows = np.ones(N, bool) if weights is None else weights > 0
    for fraction, n_held in ((0.1, rows.sum() / 10), (40, 40)):
        first = max(b for b in range(6) if (rows & (b <= BLOCKS)).sum() >= n_held)
        model, again = (
            kind(**params, validation_fraction=fraction, backend=backend, refit=refit).fit(
                X, y, weights, blocks=BLOCKS
            )
            for backend, refit in (("numba", False), ("numpy", True))
        )
        train, held = rows & (first > BLOCKS), rows & (first <= BLOCKS)
        parts = {} if weights is None else {"sample_weight_val": weights[held]}
        by_hand = kind(**params, backend="numpy").fit(
            X[train], y[train], None if weights is None else weights[train],
            X_val=X[held], y_val=y[held], **parts,
        )  # fmt: skip
        assert same_forest(model.forest_, by_hand.forest_)
        assert np.array_equal(model.validation_score_, by_hand.validation_score_)
        plain = kind(**params | {"max_iter": again.n_iter_, "early_stopping": False})
        assert same_forest(again.forest_, plain.fit(X, y, weights).forest_)


def test_the_last_blocks_are_as_few_as_have_the_rows():
    blocks = np.array([3, 1, 1, 2, 3, 0, 0, 2, 2, 1])
    for fraction, first in ((0.1, 3), (0.2, 3), (0.21, 2), (0.5, 2), (6, 1), (0.8, 1), (0.81, 0)):
        held = boosting_fit.last_blocks(blocks, fraction)
        assert np.array_equal(held, blocks >= first)


NAMES = ["mar", "apr", "may", "jun", "jul", "aug"]


def ordered_by(library, names=NAMES):
    """The blocks as names of months, in a type that has their order."""
    months = np.array(NAMES, object)[BLOCKS]
    if library == "pandas":
        pandas = pytest.importorskip("pandas")
        return pandas.Series(pandas.Categorical(months, names, ordered=True))
    if library == "categorical":
        return pytest.importorskip("pandas").Categorical(months, names, ordered=True)
    if library == "polars":
        polars = pytest.importorskip("polars", reason="needs pip install 'gpuforest[checks]'")
        return polars.Series(months.tolist(), dtype=polars.Enum(names))
    pa = pytest.importorskip("pyarrow")
    codes = pa.array([names.index(month) for month in months], pa.int8())
    whole = pa.DictionaryArray.from_arrays(codes, names, ordered=True)
    return pa.chunked_array([whole[:60], whole[60:]]) if library == "chunks" else whole


@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB")
@pytest.mark.parametrize("library", ["pandas", "categorical", "polars", "arrow", "chunks"])
def test_ordered_types_give_the_order_of_blocks(library):
    model = made(gf.RandomForestRegressor, n_estimators=12)
    whole = clone(model).fit(X, Y, blocks=BLOCKS)
    found = clone(model).fit(X, Y, blocks=ordered_by(library))
    assert np.array_equal(found.oob_prediction_, whole.oob_prediction_, equal_nan=True)


@pytest.mark.parametrize("library", ["pandas", "polars", "chunks"])
def test_blocks_of_files_keep_the_order_of_their_types(library):
    labels = ordered_by(library)
    data = gf.BinnedData.from_blocks(
        [(X[:60], Y[:60], None, None, labels[:60]), (X[60:], Y[60:], None, None, labels[60:])]
    )
    assert data.blocks.tolist() == BLOCKS.tolist()
    other = ordered_by("pandas", NAMES[::-1])
    with pytest.raises(ValueError, match="blocks are ordered otherwise than in earlier blocks"):
        gf.BinnedData.from_blocks(
            [(X[:60], Y[:60], None, None, labels[:60]), (X[60:], Y[60:], None, None, other[60:])]
        )


def test_columns_of_time_keep_the_order_of_their_types():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"x": X[:, 0], "y": Y, "month": ordered_by("pandas")})
    data = gf.BinnedData.from_blocks([frame[:60], frame[60:]], target="y", time="month")
    assert data.blocks.tolist() == BLOCKS.tolist()


@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB")
def test_text_that_is_no_date_warns_of_its_order():
    model = made(gf.RandomForestRegressor, n_estimators=12)
    with pytest.warns(UserWarning, match=r"time runs as 'apr', 'aug', 'jul', 'jun', \.\.\.: if"):
        model.fit(X, Y, blocks=np.array(NAMES)[BLOCKS])
    with pytest.warns(UserWarning, match="time runs as '10', '5', '6', '7', "):
        model.fit(X, Y, blocks=[str(5 + b) for b in BLOCKS])
    for first in ("2020-0{}", "2020-11-0{}", "202{}", "2020Q{}", "2020-W0{}", "0{}", "week {}"):
        model.fit(X, Y, blocks=[first.format(1 + b) for b in BLOCKS])  # no warning
