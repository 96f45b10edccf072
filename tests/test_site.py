"""The site's sources: every public name has a page, every example a picture, every page a place.

`.ci/site` builds the site, and with it the gallery's pictures.
"""

import ast
import json
import re
import subprocess
import sys
import tomllib

import pytest
from paths import ROOT

DOCS, EXAMPLES = ROOT / "docs", sorted((ROOT / "examples").glob("*/*.py"))
CONTENTS = [DOCS / f"{name}.md" for name in ("index", "guide", "inside")]


def test_every_public_name_has_its_page():
    public = json.loads((ROOT / "tests" / "public_names.json").read_text())
    listed = re.findall(r"^   (gpuforest\.[\w.]+)$", (DOCS / "api.rst").read_text(), re.M)
    assert len(listed) == len(set(listed))
    assert set(listed) == set(public)


def test_the_site_says_which_extras_it_needs(tmp_path):
    bare = tmp_path / "python"  # without site-packages
    bare.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')
    bare.chmod(0o755)
    run = [ROOT / ".ci" / "site", bare, tmp_path / "site"]
    made = subprocess.run(run, capture_output=True, text=True, timeout=60)
    assert made.returncode == 1
    assert f"{bare} -m pip install -e '.[test,docs]'" in made.stderr
    assert not (tmp_path / "site").exists()


def test_every_page_is_in_a_table_of_contents():
    found = {path.resolve() for path in CONTENTS[:1]}
    for page in CONTENTS:  # docs/site/conf.py makes a toctree of such lists
        links = re.findall(r"^- \[[^]]+\]\(([\w./]+)\)", page.read_text(), re.MULTILINE)
        targets = [(DOCS / link).resolve() for link in links]
        assert len(targets) == len(set(targets))
        assert not found.intersection(targets)
        found.update(targets)
    pages = {path.resolve() for path in DOCS.rglob("*.md")}
    names = ("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "examples/README.rst")
    others = {ROOT / name for name in names}
    assert found == pages | others | {DOCS / "api.rst"}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_short_has_a_title_and_shows_something(example):
    source = example.read_text()
    title, line, *text = (ast.get_docstring(ast.parse(source)) or "").split("\n")
    assert line == "=" * len(title)
    assert any(text)
    assert re.search(r"\b(plt\.|plot_\w+\()", source)
    code = [line for line in source.split('"""')[2].splitlines() if line.strip()]
    assert len(code) <= 45


def test_there_are_examples_in_every_section():
    assert len(EXAMPLES) >= 15
    sections = {path.parent for path in EXAMPLES}
    assert all((section / "README.rst").exists() for section in sections)
    listed = re.search(r"^SECTIONS = (\(.*?\))", (DOCS / "site" / "conf.py").read_text(), re.M)
    assert listed is not None
    assert {section.name for section in sections} == set(ast.literal_eval(listed[1]))


def test_the_checks_build_the_site():
    assert re.search(r"^\S*\.ci/site\"", (ROOT / ".ci" / "run").read_text(), re.M)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert all(re.search(">=.*<", line) for line in project["optional-dependencies"]["docs"])
