"""Documents have plain sentences: constructions that outsiders could not read do not come back."""

import json
import re

import pytest
from paths import ROOT

import gpuforest

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
# code, and messages that a page quotes
CODE = re.compile(r"^```.*?^```$|`[^`\n]*`|refused[^|\n]*?: \"[^|\n]*", re.MULTILINE | re.DOTALL)
# what is not written, and what is written instead
BANNED = {
    r"\bof which (some|most|all|none|one|two)\b": "a sentence of its own: Some of them ...",
    r"\b(neither|nor|, so|; so|\. so|and so) (is|are|was|does|do|has|have|can)\b": "X is Y, too",
    r"\bnone (is|are|was)\b": "no row is ...",
    r"\bnot for (it|them)\b": "X does not support Y",
    r"\bit is (they|those)\b": "the subject first",
    r"\bflatters?\b": "is too optimistic",
    r"\bno more than by chance\b": "do not differ significantly",
    r", of what\b": "a sentence of its own",
    r"(?<!\bof )\bso (many|few)\b(?! that)": "the number, or this many",
    r"\bbut (for|of|by|those)\b": "except",
    r"\b(that|which|they) (is|are) no (?!longer|better|more|less|worse)\w+": "is not a ...",
    r"\bthose (that|which|who)\b": "the noun again",
    r"(?<!no )\bsuch (?!as\b|a\b|an\b)": "this kind of, or the noun again",
}  # fmt: skip


def check(text: str) -> None:
    for pattern, instead in BANNED.items():
        found = re.search(pattern, text, re.IGNORECASE)
        around = found and text[max(found.start() - 60, 0) : found.end() + 40]
        assert found is None, f"{around!r}: write {instead!r} instead of {found and found[0]!r}"


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_pages_have_no_riddles(page):
    check(" ".join(CODE.sub("CODE", page.read_text()).split()))


def test_public_docstrings_have_no_riddles():
    for full, members in json.loads((ROOT / "tests" / "public_names.json").read_text()).items():
        home, _, name = full.rpartition(".")
        if home != "gpuforest":  # others take seconds to import
            continue
        public = getattr(gpuforest, name)
        owners = [public, *(getattr(public, member, None) for member in members)]
        for owner in owners:
            if callable(owner) and (owner.__module__ or "").startswith("gpuforest"):
                check(" ".join(CODE.sub("CODE", owner.__doc__ or "").split()))


@pytest.mark.parametrize("text", ["Neither is X.", "of which some are", "All but those of Y"])
def test_a_riddle_is_found(text):
    with pytest.raises(AssertionError, match="instead of"):
        check(text)
