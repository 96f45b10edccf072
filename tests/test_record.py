"""Forests stay as they are: golden/forests.json holds a hash of each case of record_cases.py."""

import json
from functools import cache

import pytest
import record
from record_cases import cases

import gpuforest
from gpuforest.core.criteria import CRITERIA

CASES = list(cases())
KNOWN = json.loads(record.FILE.read_text())
GROWN = [
    pytest.param(case, backend, id=f"{backend}: {case.title}")
    for case in CASES
    for backend in case.backends
]
why_not = cache(record.why_not)


@pytest.mark.emulated(every=9)
@pytest.mark.parametrize(("case", "backend"), GROWN)
def test_the_forest_is_the_one_of_the_record(case, backend):
    if (reason := why_not(backend)) is not None:
        pytest.skip(reason)
    assert record.grown(case, backend) == KNOWN[case.title]


def test_the_record_holds_the_cases():
    titles = [case.title for case in CASES]
    assert len(titles) == len(set(titles)) >= 100
    assert set(KNOWN) == set(titles)


def test_every_estimator_is_in_the_record():
    public = {name for name in gpuforest.__all__ if hasattr(getattr(gpuforest, name), "fit")}
    public.remove("BorutaSelector")  # which keeps no forest
    assert public == {case.estimator for case in CASES}


@pytest.mark.filterwarnings("ignore:Value `.friedman_mse:FutureWarning")
def test_every_criterion_is_in_the_record_on_every_backend():
    on_cpu = {name for name, c in CRITERIA.items() if c.medians or c.at_risk}
    for backend, lacks in (("numba", set()), ("numpy", set()), ("emulated", on_cpu)):
        models = [record.estimator(case, backend) for case in CASES if backend in case.backends]
        found = {model.criterion for model in models if hasattr(model, "criterion")}
        assert found == set(CRITERIA) - lacks
