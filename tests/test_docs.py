"""Examples of README, the documents and docstrings run; the checks run all of README's code."""

import doctest
import os
import re
import shlex
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from paths import ROOT

from gpuforest.backends import registry
from gpuforest.backends.base import Backend
from gpuforest.tools.cli.main import parser

README = (ROOT / "README.md").read_text()
DOCUMENTS = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md"]
DOCUMENTS += sorted((ROOT / "docs").rglob("*.md"))
MODULES = [path for path in (ROOT / "gpuforest").rglob("*.py") if ">>> " in path.read_text()]


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def command(name: str) -> str:
    found = re.findall(
        rf"^<!-- command: {name} -->\n```\w+\n(.*?)^```$", README, re.MULTILINE | re.DOTALL
    )
    assert len(found) == 1
    return str(found[0])


@pytest.mark.parametrize(
    ("name", "does"), [("example", "gpuforest train data/spambase.csv.gz"), ("tests", "pytest")]
)
def test_commands_set_everything_up_themselves(name, does):
    line = command(name)
    assert line.count("\n") == 1
    assert line.startswith("python3 -m venv .venv && .venv/bin/pip install ")
    assert does in line
    assert ("[test]" in line) == (name == "tests")


def test_each_code_block_has_a_name_by_which_the_checks_run_it():
    names = re.findall(r"^<!-- command: (\w+) -->\n```(\w+)\n", README, re.MULTILINE)
    assert len(names) == len(re.findall(r"^```\w", README, re.MULTILINE))
    script = (ROOT / ".ci" / "run").read_text()
    for name, language in names:
        run = r"snippet=.*python" if language == "python" else f"readme {name}"
        assert re.search(rf"^ *{run}\b", script, re.MULTILINE), name
    assert ".ci/readme-command python" in script
    assert '.ci/readme-command "$1"' in script


def test_checks_name_tests_that_are_there():
    for script in sorted((ROOT / ".ci").iterdir()):
        for path in re.findall(r"tests/[\w/.]+", script.read_text()):
            assert (ROOT / path).exists(), f"{script.name}: {path}"


def test_the_checks_have_paths_for_every_deep_test():
    table = re.findall(r"^(tests/.*?):(.*)$", (ROOT / ".ci" / "run").read_text(), re.MULTILINE)
    tests, guarded = (" ".join(part).split() for part in zip(*table, strict=True))
    assert [path for path in guarded if not (ROOT / path).exists()] == []
    for path in (ROOT / "tests").rglob("test_*.py"):
        if re.search(r"mark\.(deep|emulated)|swept\(", path.read_text()):
            assert any(path.is_relative_to(ROOT / name) for name in tests), path


@pytest.mark.skipif(os.name != "posix", reason="a bash script")
@pytest.mark.parametrize("name", ["example", "tests", "python", "shell", "no"])
def test_checks_run_the_commands_of_the_readme(name):
    run = ["bash", ROOT / ".ci" / "readme-command", name]
    printed = subprocess.run(run, capture_output=True, text=True)
    assert (printed.returncode == 0) == (name != "no")
    assert name == "no" or printed.stdout == command(name)


def skip_without_dask(path: Path) -> None:
    if "import dask" in path.read_text():
        pytest.importorskip("distributed", reason="needs pip install 'gpuforest[checks]'")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_python_examples_run(document, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").symlink_to(ROOT / "data")
    monkeypatch.setattr(registry, "_factories", dict(registry._factories))  # they may add one
    names: dict[str, object] = {}
    skip_without_dask(document)
    for example in blocks(document.read_text(), "python"):
        exec(compile(example, document.name, "exec"), names)  # later ones may build on earlier


@pytest.mark.parametrize("module", sorted(MODULES), ids=lambda path: path.stem)
def test_examples_of_docstrings_run(module, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    skip_without_dask(module)
    name = ".".join(module.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    found = doctest.testmod(import_module(name))
    written = 0 if module.stem == "documentation" else module.read_text().count(">>> ")
    assert found.attempted >= written  # classes have more examples, from documentation.py
    assert found.failed == 0


def test_commands_of_documents_have_options_that_there_are():
    known, seen = parser(), 0
    for document in DOCUMENTS:
        for block in blocks(document.read_text(), "sh"):
            for line in block.replace("\\\n", " ").splitlines():
                words = shlex.split(re.split(" [|>] ", line)[0], comments=True)
                if words[:1] == ["gpuforest"]:
                    assert known.parse_args(words[1:]).command == words[1]
                    seen += 1
    assert seen > 25


def anchors(page: str) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", page, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document):
    for link in re.findall(r"\]\(([^)]+)\)", document.read_text()):
        path, _, anchor = link.partition("#")
        target = document.parent / path if path else document
        assert link.startswith("https://") or target.exists(), link
        if anchor and target.suffix == ".md":
            assert anchor in anchors(target.read_text()), link


def test_readme_shows_python_and_names_every_backend():
    assert blocks(README, "python")
    script = "import gpuforest; print(*gpuforest.available_backends())"  # tests register others
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert len(done.stdout.split()) > 2
    assert all(f"`{name}`" in README for name in done.stdout.split())


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_paths_that_are_named_exist(document):
    tops = "gpuforest|tests|benchmarks|docs|data"
    for path in re.findall(rf"`((?:{tops})/[\w./]+?)`", document.read_text()):
        if not re.search("NAME|OPERATION", path):
            assert (ROOT / path).exists(), path


def test_the_page_on_backends_has_every_member_of_the_protocol():
    page = (ROOT / "docs" / "backends.md").read_text()
    named = re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`.*?) \|", page, re.MULTILINE)))
    assert len(named) == len(set(named)) <= 22  # a member more has to be worth it
    members = {*vars(Backend), *Backend.__annotations__}
    assert set(named) == {name for name in members if not name.startswith("_")}
