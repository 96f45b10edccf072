"""The package's shape: imports run one way, implementations agree, files stay small."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from paths import MOST_LINES, TESTS

import gpuforest

PACKAGE = Path(gpuforest.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))

# from the ground up: a module imports from lower layers, or from its own package
LAYERS = [
    {"common", "impurity"},
    {"criteria", "nodes"},
    {"combinations"},
    {"kernels"},
    {"binning", "frontier", "reweighting", "sampling", "target"},
    {"forest_check", "memory", "slots"},
    {"forest"},
    {"assembly"},
    {"boosting"},
    {"backends"},
    {"training"},
    {"data", "multiway", "oblique", "predict"},
    {"grow"},
    {"cluster", "inspection"},
    {"pruning"},
    {"estimators"},
    {"export"},
    {"plot"},
    {"gpuforest"},  # what users import
    {"cli", "dask"},
]
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
UPWARD = {
    ("estimators", "export"): "an estimator's to_sklearn(), save() and picture in a notebook",
}
COMPILERS = {"numba", "cupy", "cupyx", "cuda"}
LONG: dict[str, str] = {}  # a module's path in the package: why it is longer

# modules without a test file of their name: what tests them
TESTED_IN = {
    "common/dtypes": "test_layering.py",  # names alone; mypy and the kernels hold them
    "common/arguments": "estimators/test_like_sklearn.py",  # n_jobs and random_state there
    "common/sums": "test_reweighting.py",  # and test_target.py
    "data/infinities": "data/test_validation.py",  # and in the tables of robustness
    "data/passes": "data/test_binned.py",  # what makes binned data
    "data/tallies": "data/test_categories.py",  # the lists of categories that come of them
    "inspection/node_medians": "kernels/test_absolute_split.py",  # beside scikit-learn's
    "kernels/gradients": "boosting/test_losses.py",  # beside the losses
    "kernels/grow_subtrees": "kernels/test_small_nodes.py",  # and test_grow.py, test_parity.py
    "kernels/level": "backends/test_parity.py",  # the same as its default, in every forest
    "kernels/slots": "test_slots.py",  # beside the host's
    "kernels/leaf_rows": "test_assembly.py",
    "kernels/shap": "explain/test_shap.py",  # beside the definition
    "kernels/shap_background": "explain/test_shap_background.py",  # the same
    "kernels/shared/hashing": "common/test_hashing.py",  # beside the hashes of the host
}
TESTED = ("", "common", "pruning", "inspection", "export", "data")  # folders whose modules are
TEST_FILES = sorted(TESTS.rglob("test_*.py"))
LONG_TESTS: dict[str, str] = {}  # a test file: why it is longer

# arguments of the reference that another implementation names differently, or does not need (None)
RENAMED: dict[tuple[str, str, str], dict[str, str | None]] = {
    # one tree a call, for threads over trees; N is the length of its output
    ("bag", "bag", "numba"): {"keys": "key", "N": None},
    # rows of weight one, several columns
    ("edges", "edges", "numba"): {"column": "columns", "weights": None},
    # C is a part of its output's shape
    ("totals", "totals", "numba"): {"C": None},
}


def path_in_package(path: Path) -> str:
    """A module's path inside the package."""
    return path.relative_to(PACKAGE).as_posix()


def layer_of(path: Path) -> str:
    first = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    return "gpuforest" if first == "__init__" else first


def runtime_imports(tree: ast.AST) -> Iterator[str]:
    """Dotted names imported anywhere but under TYPE_CHECKING."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        yield from runtime_imports(node)


def imports_of(path: Path) -> list[str]:
    return list(runtime_imports(ast.parse(path.read_text())))


@pytest.mark.parametrize("path", MODULES, ids=path_in_package)
def test_imports_run_one_way(path):
    own = layer_of(path)
    assert own in RANK, f"{own} has no layer yet: add it to the table"
    for name in imports_of(path):
        parts = name.split(".")
        if parts[0] != "gpuforest":
            continue
        other = parts[1] if len(parts) > 1 and parts[1] in RANK else "gpuforest"
        if other != own and (own, other) not in UPWARD:
            assert RANK[other] < RANK[own], f"{path_in_package(path)} imports {name}"


def test_upward_imports_are_not_made_when_the_module_is_imported():
    for path in MODULES:
        top = ast.Module(
            [n for n in ast.parse(path.read_text()).body if not isinstance(n, ast.ClassDef)], []
        )
        for node in ast.walk(top):
            if isinstance(node, ast.ImportFrom) and node.module:
                other = node.module.removeprefix("gpuforest.").split(".")[0]
                assert (layer_of(path), other) not in UPWARD


@pytest.mark.parametrize("path", MODULES, ids=path_in_package)
def test_only_kernels_and_backends_import_a_compiler(path):
    found = {name.split(".")[0] for name in imports_of(path)} & COMPILERS
    assert not found or layer_of(path) in ("kernels", "backends")


def test_what_goes_over_a_network_is_left_to_a_cluster():
    for path in MODULES:
        names = {name.split(".")[0] for name in imports_of(path)}
        assert not names & {"socket", "socketserver", "ssl"}, path_in_package(path)


def functions(path: Path) -> dict[str, list[str]]:
    """Arguments of a module's functions, by name."""
    return {
        node.name: [a.arg for a in node.args.args]
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef)
    }


def kernels() -> list[tuple[str, str]]:
    """Operation and function of every kernel that is called in the reference implementation."""
    found = []
    for module in ("backends/numpy.py", "backends/boosters.py", "binning.py"):
        for name in imports_of(PACKAGE / module):
            match name.split("."):
                case ["gpuforest", "kernels", operation, "numpy", function]:
                    found.append((operation, function))
    return found


def test_the_reference_is_complete():
    operations = {path.parent.name for path in PACKAGE.glob("kernels/*/numpy.py")}
    assert operations == {operation for operation, _ in kernels()}


@pytest.mark.parametrize(("operation", "function"), kernels())
def test_implementations_take_the_reference_arguments_in_its_order(operation, function):
    folder = PACKAGE / "kernels" / operation
    reference = functions(folder / "numpy.py")[function]
    for path in folder.glob("*.py"):
        if path.stem not in ("numba", "numba_cuda"):
            continue
        renamed = RENAMED.get((operation, function, path.stem), {})
        expected = [renamed.get(name, name) for name in reference]
        expected = [name for name in expected if name is not None]
        # what an implementation adds (outputs, its share of the work) comes after
        assert functions(path)[function][: len(expected)] == expected


@pytest.mark.parametrize("path", MODULES, ids=path_in_package)
def test_no_module_is_long_without_a_reason(path):
    n_lines = len(path.read_text().splitlines())
    assert (n_lines > MOST_LINES) == (path_in_package(path) in LONG)


@pytest.mark.parametrize("path", MODULES, ids=path_in_package)
def test_every_module_says_what_it_is(path):
    tree = ast.parse(path.read_text())
    assert not tree.body or ast.get_docstring(tree)


def test_every_module_has_a_test_file_of_its_name():
    modules = [
        path_in_package(p).removesuffix(".py")
        for folder in TESTED
        for p in (PACKAGE / folder).glob("*.py")
    ]
    for kernel in (PACKAGE / "kernels", PACKAGE / "kernels" / "shared"):
        modules += [path_in_package(p) for p in kernel.iterdir() if (p / "__init__.py").exists()]
    modules = [m for m in modules if not m.endswith("__init__") and m != "kernels/shared"]
    lacking = {
        m for m in modules if not (TESTS / f"{m}.py").with_stem("test_" + Path(m).name).exists()
    }
    assert lacking == set(TESTED_IN)
    assert all((TESTS / path).is_file() for path in TESTED_IN.values())


@pytest.mark.parametrize("path", TEST_FILES, ids=lambda path: path.name)
def test_no_test_file_is_long_without_a_reason(path):
    n_lines = len(path.read_text().splitlines())
    assert n_lines <= MOST_LINES or path.relative_to(TESTS).as_posix() in LONG_TESTS


def test_no_test_imports_another():
    others = {path.stem for path in TEST_FILES}
    for path in (*TEST_FILES, *TESTS.glob("support/*.py")):
        assert not {name.split(".")[0] for name in imports_of(path)} & others
