"""Pairs of what a fit can be given: docs/pairs.md says which go together, and here each is fitted.

A pair that is taken keeps the laws of both its parts, and one that is refused is refused before
growth. Half of the pairs of a family are tried, each with one estimator; in deep runs all are, with
all estimators.
"""

from functools import cache

import numpy as np
import pairs
import pandas as pd
import pytest
from engine import same_forest
from paths import has_numba
from sklearn.base import RegressorMixin

from gpuforest.common import progress
from gpuforest.estimators import out_of_bag

pytestmark = [
    pytest.mark.skipif(not has_numba, reason="no numba here"),
    pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores"),
    pytest.mark.filterwarnings("ignore:column .* has .* different values"),
    pytest.mark.filterwarnings("ignore:.*max_samples"),
    pytest.mark.filterwarnings("ignore:.* groups have one value of the treatment"),
]
ON_DASK = {"dask", "dask by rows"}


def outcome(kind, a, b):
    if {a, b} & ON_DASK:
        return "on dask"
    return "refused" if pairs.refusal_of(kind, a, b) else "taken"


def listed(wanted, every=1):
    """The pairs of this outcome, as cases of a test. Deep runs have them all; others every so many,
    each of one estimator."""
    turn, cases = 0, []
    for family in pairs.FAMILIES:
        for i, (a, b, kinds) in enumerate(pairs.pairs_of(family)):
            chosen = [kind for kind in kinds if outcome(kind, a, b) == wanted]
            for kind in chosen:
                now = kind is chosen[i % len(chosen)] and turn % every == 0
                turn += kind is chosen[i % len(chosen)]
                marks = [] if now else [pytest.mark.deep]
                name = f"{kind.__name__}, {a}, {b}"
                cases.append(pytest.param(pairs.Case(kind, {a, b}), a, b, id=name, marks=marks))
    return cases


@pytest.fixture(autouse=True)
def few_trees(monkeypatch):
    """Choices by rows out of bag look at few trees."""
    monkeypatch.setattr(out_of_bag, "FIRST_TREES", 4)


@cache
def alone(kind, used):
    """A fit, which many laws compare with."""
    return pairs.Case(kind, {*used}).fit()


# what models are compared by


JUDGED = (
    "oob_score_", "oob_prediction_", "oob_decision_function_", "validation_score_", "offset_",
    "max_features_", "min_samples_leaf_", "n_estimators_", "unique_times_",
)  # fmt: skip


def assert_same(found, whole):
    """They are one model, and its rows are judged alike; `found` may have more rows of them."""
    assert same_forest(found.forest_, whole.forest_)
    for name in JUDGED:
        if hasattr(whole, name):
            one, other = getattr(found, name), getattr(whole, name)
            one = one[: len(other)] if np.ndim(other) else one
            assert np.array_equal(one, other, equal_nan=True), name


def predicted(case, model, X):
    """The numbers f64[N, K] that a model predicts."""
    if case.family == "isolation":
        return model.score_samples(X) if hasattr(model, "score_samples") else model.apply(X)
    found = model.predict_proba(X) if pairs.of_classes(case.kind) else model.predict(X)
    found = np.concatenate(found, axis=1) if isinstance(found, list) else found
    return found.reshape(len(X), -1)


def scored(case, model, rows):
    """The score of rows as `oob_score_` scores, and that of knowing nothing."""
    if pairs.of_classes(case.kind):
        y = rows.y.reshape(len(rows.y), -1)
        right = (model.predict(rows.X).reshape(y.shape) == y).all(axis=1)
        return right.mean(), np.unique(y, axis=0, return_counts=True)[1].max() / len(y)
    how = {"quantiles": "mean"} if case.family == "quantiles" else {}
    return model.score(rows.X, rows.y, **how), 0.5 * (case.family == "survival")


# laws, each of one part of a pair: a function of the case, its two parts and the fitted model


def rows_are_judged_as_new_ones(case, model):
    """Out-of-bag scores are not far above those of new groups or blocks, whose number or category
    says nothing; and names of labels that sort alike change nothing."""
    rows, name = case.rows, "groups" if "groups" in case.used else "blocks"
    labels = np.char.add("label ", np.char.zfill(getattr(rows, name).astype(str), 3))
    assert_same(case.fit(rows._replace(**{name: labels})), model)
    excess = judged_too_well(case, rows)
    if excess >= 0.15:  # by chance, because groups are few? Then not in the mean of others
        excess = np.mean(
            [judged_too_well(case, pairs.draw(case.kind, case.used, s)) for s in range(2, 8)]
        )
    assert excess < 0.15
    if name == "blocks" and case.family not in pairs.BOOSTED and not case.used & BY_ERROR:
        plain = case.fit(rows._replace(blocks=None), oob_score=False)
        assert same_forest(plain.forest_, model.forest_)


BY_ERROR = {"trees by oob", "features by oob", "leaves by oob", "shrinkage by oob", "preset"}


def judged_too_well(case, rows):
    """How far the score of the training rows is above that of new ones, and of knowing nothing."""
    if case.family in pairs.BOOSTED:
        wanted = {"early_stopping": True, "n_iter_no_change": 30, "validation_fraction": 0.3}
        losses = case.fit(rows, max_iter=30, learning_rate=0.3, **wanted).validation_score_
        # what other features tell; a partial likelihood falls less
        return 1 - losses.max() / losses[0] - (0.15 if case.family == "hazards" else 0.3)
    more = {} if case.used & {"trees by oob", "preset"} else {"n_estimators": 24}
    if "oob_score" not in vars(case.model()) or not case.model().oob_score:
        return 0.0
    judge = case.fit(rows, **more)
    new = pairs.draw(case.kind, case.used, seed=1, first=100)
    return judge.oob_score_ - max(scored(case, judge, new))


def rows_of_no_weight_are_not_there(case, model):
    rows = case.rows
    whole = case.fit(rows._replace(sample_weight=pairs.weights_of(rows)))
    assert_same(case.fit(pairs.with_junk(case.kind, case.used, rows)), whole)


def weights_are_relative(case, model):
    rows = case.rows
    if "preset" not in case.used or case.family not in pairs.BOOSTED:  # with regularized leaves
        assert_same(case.fit(rows._replace(sample_weight=4 * rows.sample_weight)), model)
    # where nothing is drawn, a row of weight two is as two rows; but statistics number these anew,
    # shrinkage counts two rows, and weights times those of classes are rounded. Two rows at risk
    # have another hessian than one of their weight, and two rows of a query have two ranks
    drawn = case.family in f"bags AdaBoost isolation effects {pairs.BOOSTED}"
    drawn = drawn or getattr(case.model(), "bootstrap", False)
    other = {"groups", "blocks", "ordered", "auto", "pruning", "class_weight", "shrinkage"}
    if not drawn and not case.used & other:
        times = 1 + np.arange(len(rows.X)) % 3
        weighed = case.fit(rows._replace(sample_weight=times))
        repeated = pairs.taken(
            rows._replace(sample_weight=None), np.repeat(np.arange(len(times)), times)
        )
        assert same_forest(weighed.forest_, case.fit(repeated).forest_)


def blocks_give_the_model_of_the_table(case, model):
    if case.family == "isolation" or case.used & {"early stopping", "refit"}:
        return  # bins come from other rows, or are others
    if case.family in pairs.BOOSTED and "preset" in case.used:
        return
    assert_same(model, alone(case.kind, frozenset(case.used - {"binned"})))


def steps_give_the_model_of_one(case, model):
    assert_same(model, alone(case.kind, frozenset(case.used - {"warm_start"})))


def choices_are_those_of_a_fit_by_them(case, model):
    names = dict.fromkeys(("max_features", "min_samples_leaf", "shrinkage"), "oob")
    names |= {"n_estimators": "auto"}
    chosen = {name: getattr(model, f"{name}_") for name, word in names.items()
              if getattr(model, name, None) == word}  # fmt: skip
    if chosen:
        assert same_forest(case.fit(**chosen).forest_, model.forest_)
    # the number of trees is chosen first
    if {"n_estimators"} == chosen.keys() - {*SIZES} and isinstance(model, RegressorMixin):
        assert model.oob_curve_.error[-1] == 1 - model.oob_score_


def predictions_rise(case, model):
    X, steps = pd.DataFrame(case.rows.X), []
    for value in np.linspace(-2, 2, 9):
        X[X.columns[0]] = value
        moved = X if case.used & {*pairs.CATEGORIES} else X.to_numpy()
        steps.append(predicted(case, model, moved))
    # of two classes that are sorted the second one
    assert (np.diff(steps, axis=0)[:, :, -1] >= 0).all()


def classes_weigh_as_their_rows(case, model):
    rows, weight = case.rows, case.model()
    drawn = case.family in ("bags", "AdaBoost") or getattr(weight, "bootstrap", False)
    if drawn or case.used & {"outputs", "ordered", "auto", "preset", "pruning"}:
        return
    by_name = {"high": 1.0, "low": 2.0, "mid": 4.0}
    of_rows = np.array([by_name[label] for label in rows.y]) * pairs.weights_of(rows)
    plain = pairs.Case(case.kind, case.used - {"class_weight"})
    plain = plain.fit(rows._replace(sample_weight=of_rows))
    assert same_forest(case.fit(class_weight=by_name).forest_, plain.forest_)


def all_rows_grow_the_last_rounds(case, model):
    if case.family in pairs.BOOSTED:
        again = {"refit": False, "early_stopping": False, "max_iter": model.n_iter_}
        assert same_forest(case.fit(**again).forest_, model.forest_)


SIZES = ("max_features", "min_samples_leaf")  # chosen before the number of trees
LAWS = {
    "groups": rows_are_judged_as_new_ones, "blocks": rows_are_judged_as_new_ones,
    "zero weights": rows_of_no_weight_are_not_there, "weights": weights_are_relative,
    "monotonic": predictions_rise, "class_weight": classes_weigh_as_their_rows,
    "warm_start": steps_give_the_model_of_one, "trees by oob": choices_are_those_of_a_fit_by_them,
    "features by oob": choices_are_those_of_a_fit_by_them,
    "leaves by oob": choices_are_those_of_a_fit_by_them,
    "shrinkage by oob": choices_are_those_of_a_fit_by_them,
    "preset": choices_are_those_of_a_fit_by_them, "refit": all_rows_grow_the_last_rounds,
    "binned": blocks_give_the_model_of_the_table,
}  # fmt: skip


# the tests


def test_the_page_has_these_tables():
    assert pairs.PAGE.read_text() == pairs.page()


@pytest.mark.parametrize(("case", "a", "b"), listed("taken", every=2))
def test_a_pair_that_is_taken(case, a, b):
    model = case.fit()
    assert np.isfinite(predicted(case, model, case.rows.X)).all()
    for law in dict.fromkeys(LAWS[name] for name in (a, b) if name in LAWS):
        law(case, model)


@pytest.mark.parametrize(("case", "a", "b"), listed("taken", every=6))
def test_backends_agree(case, a, b):
    one, other = case.fit(), case.fit(backend="numpy")
    assert_same(one, other)
    X = case.rows.X
    assert np.array_equal(predicted(case, one, X), predicted(case, other, X))


@pytest.mark.parametrize(("case", "a", "b"), listed("refused"))
def test_a_pair_that_is_refused(case, a, b):
    wanted = pairs.refusal_of(case.kind, a, b)
    with progress.listening() as stages, pytest.raises((ValueError, TypeError)) as caught:
        case.fit()
    assert str(caught.value) == pairs.text_of(wanted)
    assert "growing" not in stages or "warm_start" in case.used  # whose first fit grows


@pytest.mark.parametrize("kind", pairs.FAMILY)
def test_what_an_estimator_has_not_is_refused(kind):
    for name in pairs.CAPABILITIES:
        if pairs.has(kind, name) or name in ON_DASK:
            continue
        if pairs.FAMILY[kind] == "isolation" and name == "outputs":
            continue  # there is no target
        refused = pytest.raises((ValueError, TypeError, AttributeError))
        with progress.listening() as stages, refused as caught:
            pairs.Case(kind, {name}).fit()
        wanted = pairs.refusal_of(kind, name)
        assert not wanted or pairs.text_of(wanted) in str(caught.value)
        assert "growing" not in stages


@pytest.mark.parametrize("kind", [kind for kind in pairs.FAMILY if pairs.has(kind, "groups")])
def test_rows_are_judged_too_well_where_groups_are_not_known(kind):
    """The law of groups can fail."""
    case = pairs.Case(kind, {"groups"})
    if case.family == "effects":
        pytest.skip("the rows have no effects: test_causal.py looks at the bags")
    rows = case.rows._replace(groups=None)
    if case.family == "ranking":  # queries at random, where a town is in several
        rows = pairs.taken(rows, np.random.default_rng(0).permutation(len(rows.X)))
        rows = rows._replace(groups=np.arange(len(rows.X)) // 12)
    assert judged_too_well(case, rows) > 0.15


@pytest.fixture(scope="module")
def client():
    pytest.importorskip("distributed", reason="needs pip install 'gpuforest[checks]'")
    from partitioned import cluster_of

    with cluster_of(2) as client:
        yield client


@pytest.mark.parametrize(("case", "a", "b"), listed("on dask", every=5))
def test_a_pair_on_a_cluster(client, case, a, b):
    wanted = pairs.refusal_of(case.kind, a, b)
    if wanted:
        with pytest.raises((ValueError, TypeError)) as caught:
            case.fit_on(client)
        assert pairs.text_of(wanted) in str(caught.value)  # behind the name of a partition
        return
    # bins come from all rows, also of early stopping
    local = case.fit(pairs.binned(case.model(), case.rows))
    assert_same(case.fit_on(client), local)
