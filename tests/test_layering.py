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

# from the ground up: a folder (or a module that lies lower than its folder) imports what is below
# or beside it
LAYERS = [
    {"common"},
    {"compiler", "engine.criteria", "engine.nodes", "impurity"},
    {"backends.base", "engine", "kernels", "splits", "compiler.source"},
    {"boosting"},
    {"backends"},
    {"data"},
    {"explain"},
    {"estimators"},
    {"export"},
    {"gpuforest"},  # what users import
    {"tools"},
    {"cli", "dask", "plot"},
]
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
UPWARD: dict[tuple[str, str], str] = {
    ("estimators", "export"): "an estimator's to_sklearn(), save() and picture in a notebook",
    ("estimators", "tools"): "an estimator's report()",
    ("splits", "backends"): "kinds that grow on the CPU alone ask for its backend",
    ("backends.base", "backends"): "subtrees that grow on the CPU for every backend",
}
LONG = {  # modules of more lines than others, and why
    "export.model_file": 670  # one file format: its fields, its writer and its checks
}
COMPILERS = {"numba", "cupy", "cupyx", "cuda"}
COMPILING = ("kernels", "splits", "compiler", "compiler.source", "backends", "data.arrays")
MOST_HIDDEN = 20  # imports of this package under TYPE_CHECKING

# arguments of the reference that another implementation names differently, or does not need (None)
RENAMED: dict[tuple[str, str, str], dict[str, str | None]] = {
    # one tree a call, for threads over trees; N is the length of its output
    ("bag", "bag", "numba"): {"keys": "key", "N": None},
    # rows of weight one
    ("edges", "edges", "numba"): {"weights": None},
    ("best_split", "best_split", "numba"): {"slots": "slot"},
    # one of its callers has the number of groups
    ("edges", "capped", "numba"): {"n": "G"},
    # C is a part of its output's shape
    ("totals", "totals", "numba"): {"C": None},
    # one number at a time
    ("shared", "has_code", "numba"): {"xp": None},
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
    return module if module in RANK else module.split(".")[0].replace("__init__", "gpuforest")


def is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def runtime_imports(tree: ast.AST, functions: bool = True) -> Iterator[str]:
    """Dotted names imported anywhere but under TYPE_CHECKING, and maybe in functions."""
    for node in ast.iter_child_nodes(tree):
        if is_for_types(node) or (not functions and isinstance(node, ast.FunctionDef)):
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        yield from runtime_imports(node, functions)


def package_imports(path: Path, functions: bool = True) -> Iterator[str]:
    """The modules of this package that a module imports at run time."""
    for name in runtime_imports(tree_of(path), functions):
        if name.startswith("gpuforest."):
            inside = name.removeprefix("gpuforest.")
            yield inside if inside in NAMES else inside.rpartition(".")[0] or "__init__"


def test_imports_run_one_way():
    wrong = []
    for path in MODULES:
        module = module_of(path)
        layer = layer_of(module)
        assert layer in RANK, f"{layer} has no layer yet: add it to the table"
        for other in map(layer_of, package_imports(path)):
            if RANK[other] > RANK[layer] and (layer, other) not in UPWARD:
                wrong += [f"{module} imports {other}"]
    assert not wrong


def test_no_modules_import_each_other_in_a_circle():
    graph = {module_of(path): {*package_imports(path, functions=False)} for path in MODULES}
    graph = {module: names - {module, "__init__"} for module, names in graph.items()}
    assert list(TopologicalSorter(graph).static_order())  # a circle is an error
    hidden = sum(
        isinstance(node, ast.ImportFrom) and str(node.module).startswith("gpuforest")
        for path in MODULES
        for block in ast.walk(tree_of(path))
        if is_for_types(block)
        for node in block.body  # type: ignore[attr-defined]
    )
    assert hidden <= MOST_HIDDEN


def test_compilers_and_networks_are_left_to_those_whose_work_they_are():
    for path in MODULES:
        names = {name.split(".")[0] for name in runtime_imports(tree_of(path))}
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
        most = LONG.get(module_of(path), 0) if path in MODULES else 0
        assert len(path.read_text().splitlines()) <= max(MOST_LINES, most), path
        assert not tree_of(path).body or ast.get_docstring(tree_of(path)), path


def test_no_test_imports_another():
    tests = {path.stem for path in TESTS.rglob("test_*.py")}
    for path in (*TESTS.rglob("test_*.py"), *TESTS.glob("support/*.py")):
        assert not {name.split(".")[0] for name in runtime_imports(tree_of(path))} & tests
