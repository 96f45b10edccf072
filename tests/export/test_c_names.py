"""Names that functions of exported C can have, beside what a compiler takes."""

import shutil
import subprocess

import pytest
from exported import model

import gpuforest as gf
from gpuforest.export.c import KEYWORDS, LIBRARY, MATH, is_free

CC = shutil.which("cc")


@pytest.mark.skipif(CC is None, reason="there is no C compiler, cc")
@pytest.mark.parametrize("name", ["x", "sum", "PREDICT", "tomato"])
def test_names_beside_those_of_the_language(name):
    source = gf.export_c(model("tree"), name=name)
    strict = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only"]
    subprocess.run([CC, *strict, "-x", "c", "-"], input=source, text=True, check=True)


@pytest.mark.parametrize(
    "name", ["fmaf", "csqrtl", "NODES", "uint_fast16_t", "INT32_C", "M_PI", "_x", "_Bool", "2nd"]
)
def test_names_of_the_language(name):
    with pytest.raises(ValueError, match=f"name='{name}' is no name of a function in C"):
        gf.export_c(model("tree"), name=name)


@pytest.mark.skipif(CC is None, reason="there is no C compiler, cc")
def test_functions_that_the_compiler_knows():
    """Each name of the lists is the language's: a warning or an error of the compiler says so."""
    for name in [*KEYWORDS.split(), *MATH.split()]:
        assert not is_free(name)
    taken = [*KEYWORDS.split()[::6], *MATH.split()[::10], "printf", "malloc", "toupper"]
    for name in taken:
        source = f"#include <math.h>\nvoid {name}(const double *x, double *out) {{ *out = *x; }}\n"
        command = [CC, "-std=c99", "-Werror", "-fsyntax-only", "-x", "c", "-"]
        done = subprocess.run(command, input=source, text=True, capture_output=True)
        assert done.returncode, name
    assert {"printf", "malloc", "toupper"} <= {*LIBRARY.split()}
