"""A kernel is stale when a source that it is compiled from has changed, and no other is."""

import ast
import shutil

import pytest

from gpuforest.compiler import decorators, families, objects

PACKAGE = objects.PACKAGE


def clear():
    for cached in (objects.sources, objects.modules_of, objects.stamp):
        cached.cache_clear()


@pytest.fixture
def copied(monkeypatch, tmp_path):
    """A copy of the package's sources, whose stamps are asked for."""
    ignore = shutil.ignore_patterns("__pycache__", "compiled", "*.cu", "*.cuh")
    shutil.copytree(PACKAGE, tmp_path / "gpuforest", ignore=ignore)
    monkeypatch.setattr(objects, "PACKAGE", tmp_path / "gpuforest")
    clear()
    yield tmp_path / "gpuforest"
    clear()


def all_stamps():
    clear()
    return {name: objects.stamp(name) for name in (*families.variants(), objects.ALL)}


EVERY = {f"{module}." for module in objects.MODULES}
SHARED = {name for name in EVERY if not name.startswith(("kernels.gradients.", "kernels.edges."))}
SUBTREES = {
    "kernels.grow_subtrees.", "splits.effects.", "splits.interactions.", "splits.kept.",
    "splits.logrank.", "splits.multiway.", "splits.oblique.numba.",
}  # fmt: skip


STALE = {
    "kernels/encode/numba.py": {"kernels.encode."},
    "kernels/edges/numpy.py": {"kernels.edges."},  # its constants
    "kernels/grow_subtrees/cuts.py": SUBTREES,
    "kernels/sets/numba.py": {*SUBTREES, "kernels.best_split.", "kernels.boosted_tree."},
    "common/elementary.py": {"kernels.gradients."},
    "core/terms.py": {"splits.oblique.", "kernels.traverse.oblique."},
    **dict.fromkeys(("kernels/shared/numba.py", "core/criteria.py"), SHARED),
    **{f"compiler/{name}.py": EVERY for name in ("compile", "intrinsics", "types")},
}  # fmt: skip
FRESH = (
    "compiler/code.py", "kernels/traverse/numpy.py", "kernels/shared/structs.py",
    "common/parallel.py", "growing/grow.py",
)  # fmt: skip


@pytest.mark.parametrize(("path", "stale"), [*STALE.items(), *((path, set()) for path in FRESH)])
def test_an_edit_makes_the_kernels_stale_that_could_change(copied, path, stale):
    before = all_stamps()
    with (copied / path).open("a") as file:
        file.write("# edited\n")
    after = all_stamps()
    changed = {name for name in before if after[name] != before[name]}
    expected = {name for name in before if name.startswith(tuple(stale))}
    assert changed == expected | ({objects.ALL} if stale else set())


def test_stamps_are_the_same_wherever_the_package_lies(copied):
    there = all_stamps()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(objects, "PACKAGE", PACKAGE)
        assert all_stamps() == there
    modules = {kernel.__module__ for kernel, _ in families.variants().values()}
    assert len({*there.values()}) == len(modules) + 1


def imports_by_python(tree):
    """Modules of the package that Python imports when it imports a module."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("gpuforest"))
        if isinstance(node, ast.ImportFrom) and node.module.startswith("gpuforest"):
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                there = PACKAGE.parent.joinpath(*name.split(".")).with_suffix(".py").exists()
                yield name if there else node.module
        yield from imports_by_python(node)


def test_imports_are_those_that_python_makes():
    for module, (_, imports) in objects.sources().items():
        path = PACKAGE.joinpath(*module.split(".")).with_suffix(".py")
        expected = {*imports_by_python(ast.parse(path.read_text()))}
        expected -= {f"gpuforest.{name}" for name in objects.NO_PART}
        assert {f"gpuforest.{name}" for name in imports} == expected, module


def helpers_of(function, seen):
    """All functions of the package that a function may call."""
    for name in function.__code__.co_names:
        value = function.__globals__.get(name)
        value = value.function if isinstance(value, decorators.Helper) else value
        if hasattr(value, "__code__") and value not in seen:
            seen.add(value)
            helpers_of(value, seen)
    return seen


def test_all_that_a_kernel_calls_is_in_its_stamp():
    n_helpers = 0
    for kernel, _ in families.variants().values():
        own = objects.modules_of(kernel.__module__.removeprefix("gpuforest."))
        own |= objects.modules_of(objects.COMPILER)
        found = helpers_of(kernel.function, set())
        assert {helper.__module__.removeprefix("gpuforest.") for helper in found} <= own
        n_helpers += len(found)
    assert n_helpers > 500
