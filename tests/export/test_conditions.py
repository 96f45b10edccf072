"""Conditions: their words, their code and the values that meet them say the same."""

from itertools import combinations
from math import inf, nan

import numpy as np
import pytest

from gpuforest.export.conditions import OneOf, Range, all_of, is_missing, narrowed

KNOWN = ("sunny", "overcast", "rainy")


def of(**kind):
    return Range(feature=0, name="x", **kind)


def among(*values, feature=1, name="outlook", known=KNOWN, **flags):
    return OneOf(feature=feature, name=name, values=values, known=known, **flags)


RANGES = {
    "x <= 1.5": of(high=1.5),
    "x > 1.5": of(low=1.5),
    "1.5 < x <= 3.25": of(low=1.5, high=3.25),
    "x <= 1.5 or missing": of(high=1.5, missing=True),
    "x > 1.5 or missing": of(low=1.5, missing=True),
    "1.5 < x <= 3.25 or missing": of(low=1.5, high=3.25, missing=True),
    "x is not missing": of(),
    "x is missing": of(low=inf, missing=True),
    "x is anything": of(missing=True),
    "x is nothing": of(low=2.0, high=2.0),
}
CATEGORIES = {
    "outlook is sunny": among("sunny"),
    "outlook in {overcast, rainy}": among("overcast", "rainy"),
    "outlook is sunny or missing": among("sunny", missing=True),
    "outlook in {sunny, rainy} or other": among("sunny", "rainy", others=True),
    "outlook is sunny or other or missing": among("sunny", others=True, missing=True),
    "outlook is missing": among(missing=True),
    "outlook is other": among(others=True),
    "outlook is nothing": among(),
}
NUMBERS = [-1e9, 0, 1.5, np.nextafter(1.5, 2), 2, 3.25, 4, nan, None]
WEATHER = [*KNOWN, "fog", nan, None]


@pytest.mark.parametrize(("words", "condition"), [*RANGES.items(), *CATEGORIES.items()])
def test_words_and_code_say_what_the_condition_does(words, condition):
    assert condition.words() == words
    values = NUMBERS if isinstance(condition, Range) else WEATHER
    assert [evaluated(condition, v) for v in values] == [condition.holds(v) for v in values]


def evaluated(condition, value):
    value = nan if value is None else value
    return eval(condition.source(), {"x": {condition.name: value}, "is_missing": is_missing})


@pytest.mark.parametrize(
    ("kind", "values"), [(RANGES, NUMBERS), (CATEGORIES, WEATHER)], ids=["ranges", "categories"]
)
def test_both_of_two_holds_where_both_hold(kind, values):
    for a, b in combinations(kind.values(), 2):
        both = a & b
        assert [both.holds(v) for v in values] == [a.holds(v) and b.holds(v) for v in values]


def test_words_of_paths_of_numbers_and_of_names():
    path = ()
    for condition in (
        of(low=1.0, missing=True),
        among("sunny", "rainy"),
        of(high=3.0),
        among("rainy", others=True),
    ):
        path = narrowed(path, condition)
    assert path == (of(low=1.0, high=3.0), among("rainy"))
    assert all_of(path) == "1.0 < x <= 3.0 and outlook is rainy"
    either = of(high=1.0, missing=True)
    assert all_of([either]) == "x <= 1.0 or missing"
    assert all_of([either, among("sunny")]) == "(x <= 1.0 or missing) and outlook is sunny"
    assert all_of([]) == ""
    assert of(low=1 / 3, high=2 / 3).words(lambda v: f"{v:.2f}") == "0.33 < x <= 0.67"
    assert of(low=1 / 3).words() == f"x > {1 / 3!r}"
    name = 'a "b"\n\tc\\'
    assert Range(feature=0, name=name, high=1.0).words() == 'a "b"\\n\\tc\\ <= 1.0'
    assert among("x\ny", 7, name=name).words() == 'a "b"\\n\\tc\\ in {x\\ny, 7}'


def test_categories_that_are_numbers_or_hold_quotes():
    for values in ((1, 2.5), ("it's", 'a "b"\n'), (True,)):
        condition = among(*values, known=values)
        assert all(evaluated(condition, v) for v in values)
        assert not evaluated(condition, "else")
