"""The package's exceptions: what they are, and what they advise."""

import pytest

from gpuforest import BackendError, ModelFormatError
from gpuforest.common.errors import need


def test_what_is_damaged_is_named_with_what_helps():
    need(True, "nothing")
    with pytest.raises(ModelFormatError) as caught:
        need(False, "no leaf table")
    assert str(caught.value) == (
        "damaged model: no leaf table; take an undamaged copy, or save it again"
    )
    assert issubclass(ModelFormatError, ValueError)  # which callers already catch
    assert issubclass(BackendError, RuntimeError)
