"""Numbers that Python and CUDA share are written in Python alone."""

import re

import pytest
from cuda_on_cpu.build import COMMENT
from cuda_variants import PACKAGE

from gpuforest.common import hashing
from gpuforest.compiler.source import CONSTANTS, CRITERIA, constants_text
from gpuforest.engine import criteria

TEXTS = {
    path.relative_to(PACKAGE).as_posix(): COMMENT.sub(" ", path.read_text())
    for path in sorted(PACKAGE.rglob("*.cu*"))
}
NUMBER = re.compile(r"\b(?:0[xX][0-9a-fA-F]+|\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)")
COMMON = 64  # smaller numbers, and powers of two up to 2^10, have many meanings


def numbers(text: str) -> set[float]:
    """Values of the numbers in a text."""
    return {int(n, 16) if n[:2] in ("0x", "0X") else float(n) for n in NUMBER.findall(text)}


@pytest.mark.parametrize("name", [*CONSTANTS, *CRITERIA])
def test_a_constant_is_used_and_not_written_again(name):
    assert any(re.search(rf"\b{name}\b", text) for text in TEXTS.values())
    for path, text in TEXTS.items():
        assert not re.search(rf"\b{name} *=[^=]|#define {name}\b", text), path


def test_no_number_of_python_is_typed():
    own = {float(value) for value in CONSTANTS.values() if not isinstance(value, tuple)}
    own = {value for value in own if value > COMMON and value not in (128.0, 256.0, 1024.0)}
    assert len(own) >= 10
    for path, text in TEXTS.items():
        assert not {float(n) for n in numbers(text)} & own, path
        assert not re.search(r"__launch_bounds__\(\d+[,)]", text), path


def test_the_values_are_those_of_python():
    text = constants_text()
    assert f"constexpr unsigned long long GOLDEN = {hashing.GOLDEN}ull;\n" in text
    assert f"constexpr double LN2 = {criteria.LN2!r};\n" in text
    assert f"#define POISSON {criteria.POISSON}\n" in text
    series = re.search(r"#define ATANH {(.*)}", text)
    assert tuple(map(float, series[1].split(", "))) == criteria.ATANH
    assert len(text.splitlines()) == len(CONSTANTS) + len(CRITERIA)
