"""Documents have plain sentences: constructions that outsiders could not read do not come back."""

import ast
import io
import json
import re
import tokenize

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


# the same of docstrings and comments of the code, where a description is short
IN_CODE = {
    r"\bof which\b": "a sentence of its own, or whose",
    r"\b[Tt]hose (that|which|who|below|whose)\b": "the noun again",
    r"\bnone (is|are|was)\b": "no row is ...",
    r"(?<!\bof )\bso (many|few)\b(?! (that|steps))|\bas (many|few) as\b": "the number",
    r"\b[Tt]heirs\b": "the noun again",
    r"\b[Oo]thers are\b": "other rows are ...",
    r"\bif any(thing)?\b(?! \w)": "or None",
    r"(?<!no )\bsuch (?!as\b|a\b|an\b)": "this kind of, or the noun again",
    r"\bbut (for|of|by|those)\b": "except",
    r"\b(neither|nor|, so|and so) (is|are|was|does|do|has|have|can)\b": "X is Y, too",
}
PACKAGE = ROOT / "gpuforest"
MODULES = sorted(PACKAGE.rglob("*.py"))


def check(text: str, banned: dict[str, str] = BANNED, flags: int = re.IGNORECASE) -> None:
    for pattern, instead in banned.items():
        found = re.search(pattern, text, flags)
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


@pytest.mark.parametrize("folder", sorted({path.parent for path in MODULES}), ids=lambda p: p.name)
def test_docstrings_and_comments_have_no_riddles(folder):
    for path in (path for path in MODULES if path.parent == folder):
        source = path.read_text()
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Module)):
                text = " ".join((ast.get_docstring(node) or "").split())
                check(text, IN_CODE, 0)
        comments = [
            token
            for token in tokenize.generate_tokens(io.StringIO(source).readline)
            if token.type == tokenize.COMMENT
        ]
        check(" ".join(comment.string.lstrip("# ") for comment in comments), IN_CODE, 0)
