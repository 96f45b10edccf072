"""The map of CONTRIBUTING.md, from docstrings.  python tests/support/house_map.py  writes it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "CONTRIBUTING.md"
BLOCK = re.compile(r"(?<=^```text\n).*?(?=^```$)", re.M | re.S)
OTHERS = {
    "tests/": "the package's folders again, and tests of the whole",
    "tests/golden/": "forests and model files on record, and what wrote them",
    "tests/robustness/": "the rows of docs/robustness.md",
    "tests/support/": "what tests share; cuda_on_cpu/ runs CUDA C++ on the CPU",
    "benchmarks/": "scripts that measure, and their results",
    "docs/": "pages for users; docs/internals/ for contributors, docs/site/ for their site",
    "examples/": "the gallery of the site: short scripts with pictures",
    "data/": "the Spambase e-mails",
    "packaging/": "the recipe for conda",
    ".ci/": "the checks",
}


def sentence(path: Path) -> str:
    """The first sentence of a module's docstring."""
    text = " ".join((ast.get_docstring(ast.parse(path.read_text())) or "").split("\n\n")[0].split())
    first = re.split(r"(?<=[\w`)])\. ", text)[0].rstrip(".")
    return first[:1].upper() + first[1:]


def house_map() -> str:
    """Folders of the package, and the modules of those folders that are no collections."""
    lines: dict[str, str] = {}
    for folder in sorted(path.parent for path in (ROOT / "gpuforest").rglob("__init__.py")):
        inside = folder.relative_to(ROOT)
        if "shared" in inside.parts[:-1]:
            continue
        if text := sentence(folder / "__init__.py"):
            lines[f"{inside.as_posix()}/"] = text
        if "kernels" in inside.parts[:2]:
            continue
        for path in sorted(folder.glob("*.py")):
            if path.stem != "__init__":
                lines[f"{inside.as_posix()}/{path.name}"] = sentence(path)
    lines |= OTHERS
    width = max(map(len, lines)) + 2
    return "".join(f"{path:<{width}}{text}\n" for path, text in lines.items())


if __name__ == "__main__":
    PAGE.write_text(BLOCK.sub(lambda _: house_map(), PAGE.read_text(), count=1))
