"""Structs that kernels take by value: one declaration, and a guard against wrong arrays."""

import re
from dataclasses import is_dataclass, replace

import numpy as np
import pytest
from cuda_on_cpu.build import COMMENT
from cuda_on_cpu.module import EmulatedModule, available
from cuda_variants import MACROS, PACKAGE

from gpuforest.backends.cuda.source import CONSTANTS, CRITERIA, STRUCTS, constants_text, cuda_source
from gpuforest.common import hashing
from gpuforest.core import criteria
from gpuforest.kernels.boosted_tree.records import TreeRows
from gpuforest.kernels.grow_subtrees.structs import Open
from gpuforest.kernels.shared.structs import (
    Codes,
    Histograms,
    Targets,
    dtype_of,
    packer_of,
    text_of,
)

MOST_PARAMETERS, MOST_LINES = 10, 60
CELLS, NARROW = np.zeros((1, 2, 3, 4), np.int64), np.zeros((1, 2, 3, 4), np.int32)
CELLS_ARE = "cells is an array of"
TEXTS = {
    path.relative_to(PACKAGE).as_posix(): COMMENT.sub("", path.read_text())
    for path in sorted(PACKAGE.rglob("*.cu*"))
}


def packed(record, macros):
    pack = packer_of(type(record), tuple(macros.items()))
    return pack(record, lambda array: int(array.ctypes.data))


def test_a_struct_is_laid_out_as_in_c():
    # the compilers check it again, by the text
    assert dtype_of(Open).itemsize == 14
    assert dtype_of(Codes).fields["stride"][1] == 24
    assert "static_assert(sizeof(Codes) == 40" in text_of(Codes)
    assert "static_assert(alignof(decltype(Codes::stride)) == 8" in text_of(Codes)


def test_the_bytes_are_those_of_the_fields():
    codes = np.zeros((3, 4), np.uint8)
    found = packed(Codes(codes, 3, 7, 4, None), {"CODE": "u8"})
    assert found.shape == ()
    assert found.view(dtype_of(Codes)).item() == (codes.ctypes.data, 3, 7, 4, 0)
    assert not any(packed(Codes(None, 0, 0, 0, None), {"CODE": "u8"}).tobytes())


@pytest.mark.parametrize(
    ("struct", "macros", "fault"),
    [
        (Codes(np.zeros((3, 4), np.uint8), 3, 7, 4, None), {"CODE": "u16"}, "uint8, not uint16"),
        (Codes(np.zeros((3, 4), np.uint8, "F"), 3, 7, 4, None), {"CODE": "u8"}, "not C-contiguous"),
        (TreeRows(np.zeros(3, np.int32), None, 3, 3), {}, "TreeRows.stats is an array of int32"),
        (Targets(np.zeros((3, 1), np.int32), 0, 1, 2), {"TARGET": "i64"}, "int32, not int64"),
        (Histograms(CELLS, 1, 2, 3, 4, 4), {"LABELS": "1"}, f"{CELLS_ARE} int64, not int32"),
        (Histograms(NARROW, 1, 2, 3, 4, 4), {"CRITERION": "3"}, f"{CELLS_ARE} int32, not int64"),
        (Targets(np.zeros((3, 8), np.uint8)[:, 4:5], 0, 8, 2), {"TARGET": "u8"}, "not C-cont"),
    ],
)
def test_wrong_arrays_are_refused(struct, macros, fault):
    with pytest.raises(TypeError, match=fault):
        packed(struct, macros)


@pytest.mark.parametrize(
    ("dtype", "order", "fault"),
    [(np.int64, "C", "int64, not int32"), (np.int32, "F", "int32, not C-contiguous, not int32")],
)
def test_a_launch_refuses_wrong_arrays(cuda, dtype, order, fault):
    backend = cuda.backend()
    keys = backend.asarray(np.zeros(2, np.uint64))
    weights = backend.asarray(np.zeros((2, 3), dtype))
    if order == "F":
        weights = backend.asarray(np.zeros((3, 2), dtype)).T
    backend.launch("bag", "bag", (1, 1), keys, 3, 3, None, 2, backend.zeros((2, 3), np.int32))
    with pytest.raises(TypeError, match=f"bag.weights is an array of {fault}"):
        backend.launch("bag", "bag", (1, 1), keys, 3, 3, None, 2, weights)
    with pytest.raises(ValueError, match="zip"):  # one argument is missing
        backend.launch("bag", "bag", (1, 1), keys, 3, 3, None, 2)


def test_a_struct_is_kept_as_long_as_its_record(cuda):
    backend, pack = cuda.backend(), packer_of(Codes, (("CODE", "u8"),))
    one, other = (
        Codes(backend.asarray(np.zeros((3, 4), np.uint8)), 3, 7, 4, None) for _ in range(2)
    )
    found = backend.struct_of(one, pack)
    assert backend.struct_of(one, pack) is found
    changed = replace(one, at=other.at)
    of_other, of_changed = (backend.struct_of(x, pack).tobytes() for x in (other, changed))
    assert of_changed == of_other != found.tobytes()
    # a kernel that reads other codes refuses these, although they have been packed
    with pytest.raises(TypeError, match="uint8, not uint16"):
        backend.struct_of(one, packer_of(Codes, (("CODE", "u16"),)))
    assert len(backend.known_structs) == 3
    del one, changed
    assert list(backend.known_structs) == [other]


@pytest.mark.parametrize("kind", [kind for kind in STRUCTS.values() if is_dataclass(kind)])
def test_records_whose_structs_are_kept_do_not_change(kind):
    assert kind.__dataclass_params__.frozen
    assert kind.__hash__ is object.__hash__


TEXT = f"""
typedef unsigned char u8;
typedef int i32;
typedef long long i64;
#define CODE u8
{text_of(Codes)}
extern "C" __global__ void read(Codes codes, i64* out) {{
  out[0] = codes.F; out[1] = codes.stride; out[2] = codes.at[codes.B];
}}"""


@pytest.mark.skipif(available() is not None, reason=str(available()))
def test_a_kernel_gets_a_struct_by_value():
    codes, out = np.arange(12, dtype=np.uint8), np.zeros(3, np.int64)
    kernel = EmulatedModule(TEXT).get_function("read")
    kernel((1,), (1,), (packed(Codes(codes, 3, 7, 4, None), {"CODE": "u8"}), out))
    assert out.tolist() == [3, 4, 7]
    for wrong in (np.zeros((), dtype_of(Open)), np.zeros(2, dtype_of(Codes)), np.int64(1)):
        with pytest.raises(TypeError, match="struct of 40 bytes"):
            kernel((1,), (1,), (wrong, out))


@pytest.mark.parametrize("operation", MACROS)
def test_kernels_take_few_parameters(operation):
    text = COMMENT.sub("", cuda_source(operation))
    for name, given in re.findall(r"__global__ [^;{]*?\)\s*(\w+)\(([^{]*)\) {", text):
        assert given.count(",") < MOST_PARAMETERS, name


@pytest.mark.parametrize("path", TEXTS)
def test_functions_fit_a_screen(path):
    begin = None
    for number, line in enumerate((PACKAGE / path).read_text().splitlines()):
        if begin is None and re.match(r'__device__|extern "C"|template', line):
            begin = number
        if line == "}" and begin is not None:
            assert number - begin < MOST_LINES, f"{path}:{begin + 1}"
        if line in ("}", "};") or (line.endswith(";") and line[0] != " "):
            begin = None


# numbers that Python and CUDA share are written in Python alone

NUMBER = re.compile(r"\b(?:0[xX][0-9a-fA-F]+|\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)")
COMMON = 64  # smaller numbers, and powers of two up to 2^10, have many meanings


def numbers(text: str) -> set[float]:
    """Values of the numbers in a text."""
    return {int(n, 16) if n[:2] in ("0x", "0X") else float(n) for n in NUMBER.findall(text)}


@pytest.mark.parametrize("name", [*STRUCTS, *CONSTANTS, *CRITERIA])
def test_a_name_is_used_and_not_written_again(name):
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
