"""LLVM's code for bins of 8 and of 16 bits follows from one text, or is refused."""

import pytest

pytest.importorskip("numba", reason="no numba here, which compiles the kernels")
from gpuforest.compiler import compile as compiled

TEXT = """define void @f(ptr %p, i64 %i) {
  %a = getelementptr inbounds i24, ptr %p, i64 %i
  %b = getelementptr inbounds nuw i8, ptr %a, i64 8
  %c = load i24, ptr %b, align 4
  store i24 %c, ptr %a, align 4
  store i64 118130598830949, ptr %q, align 8
}
"""


@pytest.mark.parametrize(("code", "bits"), [("uint8", 8), ("uint16", 16)])
def test_code_for_bins_of_a_width_follows_from_that_of_none(code, bits):
    """The second bin after %a, which LLVM places 8 bytes on, is two bins of any width on."""
    assert compiled.ITEM == 118130598830949
    n = bits // 8
    wanted = TEXT.replace("i24", f"i{bits}").replace("align 4", f"align {n}")
    wanted = wanted.replace("%a, i64 8", f"%a, i64 {2 * n}").replace("118130598830949", str(n))
    assert compiled.with_codes(TEXT, code) == wanted


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("i64 8", "i64 %i"),  # bytes that are not known
        ("i64 8", "i64 6"),  # within a bin
        ("ptr %q", "ptr %b"),  # something else is there too
        ("%c = load", "%d = phi ptr [ %b, %x ]\n  %c = load"),  # where it leads is not known
        ("ptr %b, align", "ptr %e, align"),
        ("%c = load", "call void @g(ptr %g)\n  %c = load"),
    ],
)
def test_addresses_of_bins_that_would_be_wrong_are_refused(old, new):
    text = TEXT.replace(old, new)
    given = {"%e": "select i1 %t, ptr %b, ptr %a", "%g": "getelementptr i8, ptr %a, i64 4"}
    for name in [name for name in given if name in new]:  # through a choice; to a function
        text = text.replace("  %b =", f"  {name} = {given[name]}\n  %b =")
    assert compiled.with_codes(text, "uint8") is None
