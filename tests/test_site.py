"""The site's sources: every public name has a page, every example a picture, every page a place.

`.ci/site` builds the site, and with it the gallery's pictures. The test of its search runs in a
browser, where there is one and the site has been built.
"""

import ast
import json
import re
import shutil
import subprocess
import sys
import tomllib

import pytest
from paths import ROOT

DOCS, EXAMPLES = ROOT / "docs", sorted((ROOT / "examples").glob("*/*.py"))
CONTENTS = [DOCS / f"{name}.md" for name in ("index", "guide", "inside")]
BUILT = ROOT / "build" / "site" / "html" / "search.html"
# what people search for, and the page that they should find
SEARCHED = {
    "oblique splits": "oblique", "grouped data": "groups", "time series": "blocks",
    "confidence intervals": "uncertainty", "prediction intervals": "uncertainty",
    "feature importance": "importances", "save a model": "deployment",
    "survival analysis": "survival", "competing risks": "survival", "SHAP": "explanations",
    "target statistics": "categories", "missing values": "robustness", "install": "install",
    "GPU": "gpu",
}  # fmt: skip


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
    assert f"{bare} -m pip install -e '.[test,dask,docs]'" in made.stderr
    assert not (tmp_path / "site").exists()


def test_the_side_bar_of_the_api_has_its_headings_and_the_bar_has_the_release_notes():
    api = (DOCS / "api.rst").read_text()
    headings = re.findall(r"^(\w.*)\n-+$", api, re.MULTILINE)
    assert len(headings) > 8
    assert re.findall(r"^   :caption: (.*)$", api, re.MULTILINE) == headings
    start = (DOCS / "index.md").read_text()
    for title, page in (("Install", "install.md"), ("Release notes", "../CHANGELOG.md")):
        assert f"\n- [{title}]({page})" in start


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


def test_words_that_people_search_for_lead_to_one_page_that_has_them():
    [found] = re.findall(
        r"^SEARCH = (\{.*?^\})", (DOCS / "site" / "conf.py").read_text(), re.M | re.S
    )
    pages = ast.literal_eval(found)
    words = [word for page in pages.values() for word in page]
    assert len(words) == len(set(words))
    for query, page in SEARCHED.items():
        assert query.lower() in pages[page]
        text = " ".join((DOCS / f"{page}.md").read_text().lower().split())
        assert query.lower() in text, query


def test_the_search_of_the_site_lists_the_right_page_first(tmp_path):
    pytest.importorskip("selenium", reason="needs pip install 'gpuforest[checks]'")
    from selenium import webdriver

    driver, browser = shutil.which("chromedriver"), shutil.which("chromium")
    if driver is None or browser is None:
        pytest.skip("chromium and chromedriver are not installed")
    if not BUILT.exists():
        pytest.skip("the site has not been built by .ci/site")
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for flag in ("headless", "no-sandbox", "disable-gpu", f"user-data-dir={tmp_path}"):
        options.add_argument(f"--{flag}")
    with webdriver.Chrome(options, webdriver.ChromeService(driver)) as chrome:
        for query, page in SEARCHED.items():
            chrome.get(f"{BUILT.as_uri()}?q={query.replace(' ', '+')}")
            chrome.implicitly_wait(20)
            first = chrome.find_element("css selector", "ul.search li a")
            path = first.get_attribute("href").partition("?")[0].partition("#")[0]
            assert path == f"{BUILT.parent.as_uri()}/{page}.html", query


def test_readme_and_the_first_page_name_what_is_strong():
    pages = ("survival", "groups", "blocks", "uncertainty", "explanations", "importances")
    pages += ("oblique", "categories", "gpu", "scale", "deployment", "report")
    for start, folder in ((DOCS / "index.md", ""), (ROOT / "README.md", "docs/")):
        text = start.read_text()
        assert all(f"]({folder}{page}.md" in text for page in pages), start
        assert all(word in text for word in ("competing risks", "target statistics", "SHAP"))
    assert len((ROOT / "README.md").read_text().split()) < 900  # read in some two minutes


def test_the_page_on_installation_has_every_extra_and_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    page, benchmarks = (DOCS / "install.md").read_text(), {"ecosystem", "presets", "rivals"}
    extras = set(project["optional-dependencies"]) - benchmarks - {"parquet"}
    assert extras <= set(re.findall(r"`([\w-]+)`", page))
    for name, library in (("NumPy", "numpy"), ("SciPy", "scipy"), ("scikit-learn", "scikit-learn")):
        [least] = [
            re.split("[<,]", line.partition(">=")[2])[0]
            for line in project["dependencies"]
            if line.startswith(f"{library}>")
        ]
        assert f"| {name} | {least} or newer |" in page
    releases = [line.rpartition(" ")[2] for line in project["classifiers"] if ":: 3." in line]
    assert f"| Python | {releases[0]} to {releases[-1]};" in page


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
