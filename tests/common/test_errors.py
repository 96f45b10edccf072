"""The package's exceptions: what they are, and what they advise."""

import pytest

from gpuforest import BackendError, ModelFormatError
from gpuforest.common.errors import damaged, need


def test_they_are_errors_that_callers_already_catch():
    assert issubclass(ModelFormatError, ValueError)
    assert issubclass(BackendError, RuntimeError)


def test_what_is_damaged_is_named_with_what_helps():
    assert str(damaged("no leaf table")) == (
        "damaged model: no leaf table; take an undamaged copy, or save it again"
    )


def test_what_is_needed():
    need(True, "nothing")
    with pytest.raises(ModelFormatError, match="damaged model: an edge that is no number; "):
        need(False, "an edge that is no number")
