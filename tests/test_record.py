"""Forests stay as they are: golden/forests.json holds a hash of each case of record.py."""

import json

import pytest
import record

KNOWN = json.loads(record.FILE.read_text())
CASES = {record.title(*case): case for case in record.cases()}


@pytest.mark.parametrize("title", CASES)
def test_the_forest_is_the_one_of_the_record(title):
    pytest.importorskip("numba", reason="no numba here")
    assert record.grown(*CASES[title], "numba") == KNOWN[title]


def test_the_record_holds_the_cases():
    assert set(KNOWN) == set(CASES)
