"""Rankers: gradients by an oracle and by hand, NDCG by scikit-learn's, equal models on all backends
of the CPU, queries that early stopping sets aside, and all that else a fit can be given."""

import pickle

import numpy as np
import pytest
from paths import has_numba
from sklearn.base import clone
from sklearn.metrics import ndcg_score

import gpuforest as gf
from gpuforest import HistGradientBoostingRanker as Ranker
from gpuforest.kernels.gradients import ranking

pytestmark = pytest.mark.skipif(not has_numba, reason="no numba here")

rng = np.random.default_rng(0)
SIZES = np.array([1, 2, 45, *rng.integers(2, 30, 40)])
N, qid = SIZES.sum(), np.repeat(np.arange(len(SIZES)), SIZES)
X = rng.normal(size=(N, 4))
Y = np.clip(np.digitize(X[:, 0] + rng.normal(size=N) / 2, [0, 1, 1.5, 2]), 0, 4)
Y[qid == 5] = 0  # a query without relevance
TARGET = np.stack([Y, qid], axis=1).astype(float)
WEIGHT = rng.uniform(0.5, 2, N)
GIVEN = {"max_iter": 6, "min_samples_leaf": 3, "random_state": 0}
LOSSES = [*ranking.NAMES]


def oracle(grades, raw):
    """Gradients and hessians of lambdarank, of one query, pair by pair."""
    n, gain = len(raw), 2.0**grades - 1
    order = np.lexsort((np.arange(n), -raw))
    discount = 1 / np.log2(np.arange(n) + 2)
    best = (np.sort(gain)[::-1] * discount)[:30].sum()
    g, h, sizes = np.zeros(n), np.zeros(n), 0.0
    for i in range(min(n, 30)):
        for j in range(i + 1, n):
            a, b = order[i], order[j]
            if grades[a] == grades[b]:
                continue
            high, low = (a, b) if grades[a] > grades[b] else (b, a)
            change = (gain[high] - gain[low]) * (discount[i] - discount[j]) / best
            if raw.max() != raw.min():
                change /= 0.01 + abs(raw[high] - raw[low])
            p = 1 / (1 + np.exp(raw[high] - raw[low]))
            g[high] -= p * change
            g[low] += p * change
            h[[high, low]] += p * (1 - p) * change
            sizes += 2 * p * change
    factor = np.log2(1 + sizes) / sizes if sizes > 0 else 1.0
    return g * factor, h * factor


@pytest.mark.parametrize("raw", [np.zeros(N), rng.normal(size=N), rng.normal(size=N).round()])
def test_lambdas_are_those_of_all_pairs(raw):
    loss = ranking.RankingLoss("lambdarank")
    loss.derivatives(TARGET, -raw[None], None)  # another order is where the next one begins
    found = loss.derivatives(TARGET, raw[None], None)
    for q in range(len(SIZES)):
        rows = qid == q
        for part, expected in zip(found, oracle(Y[rows], raw[rows]), strict=True):
            assert np.allclose(part[0, rows], expected, rtol=1e-11, atol=1e-14)
    weighted = loss.derivatives(TARGET, raw[None], WEIGHT)
    assert np.array_equal(weighted[0], found[0] * WEIGHT)


def test_the_compiled_kernel_computes_what_python_does(monkeypatch):
    raw = rng.normal(size=N)
    compiled = ranking.lambdas_of(ranking.Queries(TARGET), raw)
    monkeypatch.setattr(ranking, "lambdas", ranking.lambdas.function)
    assert np.array_equal(compiled, ranking.lambdas_of(ranking.Queries(TARGET), raw))


def test_two_rows_by_hand():
    y = np.array([[0.0, 0], [1, 0], [3, 1]])
    g, h = ranking.RankingLoss("lambdarank").derivatives(y, np.zeros((1, 3)), None)
    change = 1 - 1 / np.log2(3)  # of ranks 1 and 2, over the best DCG, which is 1
    factor = np.log2(1 + change) / change
    assert np.allclose(g[0], np.array([0.5, -0.5, 0]) * change * factor)
    assert np.allclose(h[0], np.array([0.25, 0.25, 0]) * change * factor)


def test_entropies_by_hand():
    """The first three terms of the gradient, of draws that hashes make."""
    y, raw = np.array([[0.0, 0], [2, 0], [1, 0], [1, 1]]), np.array([[0.3, -0.2, 0.1, 5.0]])
    g, h = ranking.RankingLoss("rank_xendcg", seed=7).derivatives(y, raw, None)
    rho = np.exp(raw[0, :3]) / np.exp(raw[0, :3]).sum()
    assert np.allclose(h[0, :3], rho * (1 - rho))
    assert g[0, 3] == h[0, 3] == 0  # alone
    other = ranking.RankingLoss("rank_xendcg", seed=8).derivatives(y, raw, None)[0]
    assert not np.allclose(g, other)
    assert np.isclose(g[0, :3].sum(), other[0, :3].sum())  # whatever is drawn


def test_the_loss_is_scikit_learns_ndcg():
    """Also of ties, whose rows share their places: rows in the order of grades are no better."""
    loss = ranking.RankingLoss("lambdarank")
    for raw in (np.zeros(N), rng.normal(size=N), rng.normal(size=N).round()):
        judged = [q for q in range(1, len(SIZES)) if Y[qid == q].any()]
        found = [ndcg_score([2.0 ** Y[qid == q] - 1], [raw[qid == q]], k=10) for q in judged]
        assert np.isclose(loss.mean(TARGET, raw[None], None), 1 - np.mean(found), rtol=1e-12)
        weights = [WEIGHT[qid == q].mean() for q in judged]
        expected = 1 - np.average(found, weights=weights)
        assert np.isclose(loss.mean(TARGET, raw[None], WEIGHT), expected, rtol=1e-7)


def same(a, b):
    names = ("nodes", "tree_offsets", "leaf_sums", "leaf_values")
    return all(np.array_equal(getattr(a.forest_, n), getattr(b.forest_, n)) for n in names)


CODED = X.copy()
CODED[:, 1], CODED[::5, 2] = np.digitize(X[:, 1], [-1, 0, 1]), np.nan
MODELS = {
    "plain": {}, "stopped": {"early_stopping": True, "max_iter": 30},
    "subsample": {"subsample": 0.5}, "categories": {"categorical_features": [1]},
    "monotonic": {"monotonic_cst": [1, 0, 0, 0]}, "interactions": {"interaction_cst": [{0}, {1}]},
    "refit": {"early_stopping": True, "refit": True}, "features": {"max_features": 0.5},
}  # fmt: skip


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("name", MODELS)
def test_models_are_equal_on_all_backends_of_the_cpu(name, loss):
    model = Ranker(loss, **GIVEN | MODELS[name])
    for weight in (None, WEIGHT):
        first = clone(model).set_params(backend="numpy").fit(CODED, Y, weight, qid=qid)
        second = clone(model).set_params(backend="numba", n_jobs=2).fit(CODED, Y, weight, qid=qid)
        assert same(first, second)
        assert np.array_equal(first.validation_score_, second.validation_score_)
        assert first.predict(CODED).shape == (N,)
    if name == "plain":
        assert second.score(CODED, Y, qid=qid) > 0.9
        again = model.fit(CODED, Y, WEIGHT, group=SIZES)
        assert same(second, again)
        plain = clone(model).fit(CODED, Y, qid=qid)
        data = gf.BinnedData.from_blocks([CODED], max_bins=255)
        assert same(plain, clone(model).fit(data, Y, group=SIZES))
    if name == "monotonic":
        grid = np.zeros((50, 4))
        grid[:, 0] = np.linspace(-3, 3, 50)
        assert (np.diff(second.predict(grid)) >= 0).all()


@pytest.mark.parametrize("loss", LOSSES)
def test_rounds_can_be_added(loss):
    whole = Ranker(loss, **GIVEN).fit(X, Y, qid=qid)
    part = Ranker(loss, **GIVEN | {"max_iter": 3, "warm_start": True}).fit(X, Y, qid=qid)
    assert same(whole, part.set_params(max_iter=6).fit(X, Y, qid=qid))
    *_, last = whole.staged_predict(X)
    assert np.array_equal(last, whole.predict(X))


def test_rows_of_no_weight_are_as_if_they_were_not_there():
    weight = rng.integers(0, 2, N).astype(float)
    kept = weight > 0
    model = Ranker(**GIVEN).fit(X, Y, weight, qid=qid)
    other = Ranker(**GIVEN).fit(X[kept], Y[kept], np.ones(kept.sum()), qid=qid[kept])
    assert same(model, other)
    first = np.append(True, qid[1:] != qid[:-1])  # one row of each query is nothing to rank
    with pytest.raises(ValueError, match="every query of y has one row"):
        Ranker(**GIVEN).fit(X, Y, first.astype(float), qid=qid)


def test_early_stopping_judges_by_whole_queries():
    model = Ranker(**GIVEN | {"early_stopping": True, "max_iter": 40})
    held = qid >= 30
    given = {"X_val": X[held], "y_val": Y[held]}
    by_label = clone(model).fit(X[~held], Y[~held], qid=qid[~held], qid_val=qid[held], **given)
    sizes = clone(model).fit(X[~held], Y[~held], group=SIZES[:30], group_val=SIZES[30:], **given)
    assert same(by_label, sizes)
    loss = ranking.RankingLoss("lambdarank").mean(
        TARGET[held], by_label.predict(X[held])[None], None
    )
    assert np.isclose(by_label.validation_score_[-1], -loss)
    assert by_label.validation_score_[-1] > by_label.validation_score_[0]
    aside = clone(model).fit(X, Y, qid=qid)
    assert aside.validation_score_[-1] > aside.validation_score_[0]
    weight = (np.arange(held.sum()) % 3 > 0) * rng.uniform(1, 2, held.sum())
    judge = {**given, "qid_val": qid[held], "sample_weight_val": weight}
    some = {name: part[weight > 0] for name, part in judge.items()}
    first, second = (clone(model).fit(X, Y, qid=qid, **part) for part in (judge, some))
    assert np.array_equal(first.validation_score_, second.validation_score_)
    with pytest.raises(ValueError, match="no query of the rows that judge"):
        clone(model).fit(X, Y, qid=qid, X_val=X[qid == 5], y_val=Y[qid == 5], qid_val=qid[qid == 5])


def test_score_is_the_mean_ndcg():
    model = Ranker(**GIVEN).fit(X, Y, qid=qid)
    found, used = model.predict(X), [q for q in range(1, len(SIZES)) if Y[qid == q].any()]
    each = [ndcg_score([Y[qid == q]], [found[qid == q]]) for q in used]
    assert np.isclose(model.score(X, Y, group=SIZES), np.mean(each))
    with pytest.raises(ValueError, match="no query of y"):
        model.score(X, 0 * Y, qid=qid)


WRONG = {
    "pass one of qid and group": {"qid": None},
    "one of qid and group:": {"group": SIZES},
    "are apart": {"qid": qid % 7},
    "every query of y has one row": {"qid": np.arange(N)},
    "add up to": {"qid": None, "group": SIZES[1:]},
    "positive integers": {"qid": None, "group": SIZES - 1},
    "integers from 0 to 31, not -1": {"y": Y - 1},
    "not 0.5": {"y": Y + 0.5},
    "not 32": {"y": Y * 0 + 32},
    "not nan": {"y": Y * np.nan},
    "one grade": {"y": np.stack([Y, Y], axis=1)},
    "every row needs the label of its qid": {"qid": np.where(qid > 3, qid, np.nan)},
    "X has": {"X": X[1:]},
    "qid_val and group_val are for": {"qid_val": qid},
    "X_val was not provided": {"y_val": Y, "qid_val": qid},
    "pass one of qid_val": {"X_val": X, "y_val": Y},
}  # fmt: skip


@pytest.mark.parametrize("says", WRONG)
def test_wrong_queries_are_refused(says):
    model = Ranker(**GIVEN)
    with pytest.raises(ValueError, match=says):
        model.fit(**{"X": X, "y": Y, "qid": qid} | WRONG[says])
    assert not hasattr(model, "forest_")


@pytest.mark.parametrize("loss", LOSSES)
def test_files_and_writers(loss, tmp_path):
    model = Ranker(loss, **GIVEN).fit(CODED, Y, qid=qid)
    model.save(tmp_path / "model")
    loaded = gf.load(tmp_path / "model")
    for other in (loaded, pickle.loads(pickle.dumps(model))):
        assert np.array_equal(other.predict(CODED), model.predict(CODED))
        assert other.get_params() == model.get_params()
    namespace = {}
    exec(gf.export_python(model, None), namespace)
    names = [f"feature_{i}" for i in range(4)]
    found = [namespace["predict"](dict(zip(names, row, strict=True))) for row in CODED.tolist()]
    assert np.allclose(found, model.predict(CODED), rtol=1e-12)
    assert model.to_onnx() is not None
    assert "HistGradientBoostingRanker" in gf.export_c(model)
    with pytest.raises(TypeError, match="no ranker"):
        model.to_sklearn()
    assert np.allclose(
        model.shap_values(X[:5]).sum(axis=1) + model.expected_value_, model.predict(X[:5])
    )


def test_presets_and_reports():
    model = Ranker.preset("fast", max_iter=5, random_state=0).fit(X, Y, qid=qid)
    assert model.report(X).lower().startswith("<!doctype")
    with pytest.raises(ValueError, match="no target"):
        model.report(X, Y)
