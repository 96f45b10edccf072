"""The package's shape: imports run one way, implementations agree, files stay small."""

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

from paths import MOST_LINES, TESTS

import gpuforest

PACKAGE = Path(gpuforest.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))

# from the ground up: a folder imports what is below it, and its own modules
LAYERS = [
    "common", "impurity", "compiler", "core", "kernels", "backends", "splits", "growing", "data",
    "explain", "export", "tools.plot", "tools.report", "estimators", "loading", "proof",
    "tools.dask", "tools.cli",
]  # fmt: skip
# what users import lies above all; `engine` and `boosting` are names in old pickles
PUBLIC = {"", "__init__", "cli", "dask", "plot", "engine", "boosting", "tools"}
RANK = {name: rank for rank, name in enumerate(LAYERS)} | dict.fromkeys(PUBLIC, len(LAYERS))
COMPILERS = {"numba", "cupy", "cupyx", "cuda"}
COMPILING = ("kernels", "splits", "compiler", "backends", "data.arrays")

# arguments of the reference that another implementation names differently, or does not need (None)
RENAMED: dict[tuple[str, str, str], dict[str, str | None]] = {
    ("bag", "bag", "numba"): {"keys": "key", "N": None},  # one tree; N: length of its output
    ("edges", "edges", "numba"): {"weights": None},  # rows of weight one
    ("best_split", "best_split", "numba"): {"slots": "slot"},
    ("edges", "capped", "numba"): {"n": "G"},  # one of its callers has the number of groups
    ("totals", "totals", "numba"): {"C": None},  # a part of its output's shape
    ("shared", "has_code", "numba"): {"xp": None},  # one number at a time
    ("shared", "goes_left", "numba"): {"xp": None},
    # the columns of the matrix hold the stats, and the state the key
    ("boosted_tree", "grow_tree", "numba"): {"matrix": "data", "stats": None, "key": None},
}


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def module_of(path: Path) -> str:
    """A module's dotted name inside the package."""
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")


NAMES = {module_of(path): path for path in MODULES}


def layer_of(module: str) -> str:
    """A module's folder; of tools the folder inside."""
    parts = module.split(".")
    return ".".join(parts[: 1 + (parts[0] == "tools")])


def imported(tree: ast.AST) -> Iterator[str]:
    """Dotted names that a module imports: at its top, in functions, under TYPE_CHECKING, and by
    `deferred(module, name)`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("deferred"):
            yield ast.literal_eval(node.args[0])


def package_imports(path: Path) -> set[str]:
    """The other modules of this package that a module imports."""
    found = set()
    for name in imported(tree_of(path)):
        inside = name.removeprefix("gpuforest.")
        while inside != name and inside and inside not in NAMES:
            inside = inside.rpartition(".")[0]
        found |= {inside} & {*NAMES} - {module_of(path), ""}
    return found


def test_a_folder_imports_what_lies_below_it():
    wrong = []
    for path in MODULES:
        own = layer_of(module_of(path))
        for other in package_imports(path):
            if layer_of(other) != own and RANK[layer_of(other)] >= RANK[own]:
                wrong += [f"{module_of(path)} imports {other}"]
    assert not wrong


def test_no_modules_import_each_other_in_a_circle():
    graph = {module_of(path): package_imports(path) for path in MODULES}
    assert list(TopologicalSorter(graph).static_order())  # a circle is an error


def test_compilers_and_networks_are_left_to_those_whose_work_they_are():
    for path in MODULES:
        names = {name.split(".")[0] for name in imported(tree_of(path))}
        assert not names & COMPILERS or {module_of(path), layer_of(module_of(path))} & {
            *COMPILING
        }, path
        assert not names & {"socket", "socketserver", "ssl"}, path


def functions(path: Path) -> dict[str, list[str]]:
    """Arguments of a module's functions, by name."""
    return {
        node.name: [argument.arg for argument in node.args.args]
        for node in tree_of(path).body
        if isinstance(node, ast.FunctionDef)
    }


def test_implementations_take_the_arguments_of_the_specification_in_its_order():
    compared = 0
    for reference in PACKAGE.glob("*/*/numpy.py"):
        operation = reference.parent.name
        path = reference.with_name("numba.py")
        others = functions(path) if path.exists() else {}
        for name, arguments in functions(reference).items():
            if name not in others or name.startswith("_"):
                continue
            renamed = RENAMED.get((operation, name, path.stem), {})
            expected = [renamed.get(argument, argument) for argument in arguments]
            expected = [argument for argument in expected if argument is not None]
            # what an implementation adds (outputs, its share of the work) comes after
            assert others[name][: len(expected)] == expected, (operation, name)
            compared += 1
    assert compared >= 10


def test_files_are_short_and_say_what_they_are():
    for path in (*MODULES, *TESTS.rglob("test_*.py")):
        assert len(path.read_text().splitlines()) <= MOST_LINES, path
        assert not tree_of(path).body or ast.get_docstring(tree_of(path)), path


def test_no_test_imports_another():
    tests = {path.stem for path in TESTS.rglob("test_*.py")}
    for path in (*TESTS.rglob("test_*.py"), *TESTS.glob("support/*.py")):
        assert not {name.split(".")[0] for name in imported(tree_of(path))} & tests
