"""Fixtures shared by all tests."""

import ast
import os
import sys
from collections import Counter
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

# scikit-learn's threads of OpenMP wait asleep: where several processes test, those that spin take
# the cores from what they wait for. The library reads it when it is loaded
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
# modules are compiled once, not again in every process that a test starts (0.6 s each)
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

from paths import SHARED, has_numba

from gpuforest.backends import base, registry

SHARED_DATA = SHARED / "data"
sys.dont_write_bytecode = False


# libraries that tests can do without, as .ci/floors does
OPTIONAL = ("array_api_strict", "hypothesis", "matplotlib", "pandas", "pyarrow", "safetensors")
ABSENT = {name for name in OPTIONAL if find_spec(name) is None}
left_out: dict[str, set[str]] = {}  # files of tests: the libraries that they need and are absent


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out what imports a library that is not here, when it is imported itself."""
    if not ABSENT or collection_path.suffix != ".py":
        return None
    imported = {
        name.split(".")[0]
        for node in ast.parse(collection_path.read_text()).body
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module]
        )
    }
    if absent := imported & ABSENT:
        left_out[collection_path.name] = absent
    return True if absent else None


DEEP = os.environ.get("GPUFOREST_TESTS") == "deep"  # all tests, with many examples each
if "hypothesis" not in ABSENT:
    from hypothesis import HealthCheck, settings

    common: dict[str, Any] = {"derandomize": True, "deadline": None}
    common["suppress_health_check"] = [HealthCheck.too_slow, HealthCheck.data_too_large]
    settings.register_profile("quick", max_examples=20, **common)
    settings.register_profile("deep", max_examples=150, **common)
    settings.load_profile("deep" if DEEP else "quick")


@pytest.hookimpl(tryfirst=True)  # before `-m deep` chooses
def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """Deep tests run where they are asked for: by GPUFOREST_TESTS=deep, `-m deep` or their file.

    A test with the mark emulated(every=n) has n - 1 of n of its emulated items there.
    """
    seen: Counter[Any] = Counter()
    for item in items:
        if (mark := item.get_closest_marker("emulated")) and "emulated" in item.callspec.id:
            if seen[item.function] % mark.kwargs["every"]:
                item.add_marker("deep")
            seen[item.function] += 1
    if DEEP or config.option.markexpr:
        return
    asked = {Path(argument.split("::")[0]).name for argument in config.args}
    left = {i for i in items if i.get_closest_marker("deep") and i.path.name not in asked}
    config.hook.pytest_deselected(items=[*left])
    items[:] = [item for item in items if item not in left]


def pytest_configure(config: Any) -> None:
    """Where several processes test, all kernels are compiled first: together that takes less time
    than when processes wait for each other."""
    several = getattr(config.option, "numprocesses", None) and not hasattr(config, "workerinput")
    if several and has_numba and os.environ.get("GPUFOREST_BACKEND") != "numpy":
        from gpuforest.compiler import build, families

        build.warm_up([*families.TITLES], os.cpu_count() or 1)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: Any, log: Any) -> Any:
    """Neighbouring tests run in one process, because they need the same compiled kernels."""
    from xdist.scheduler import WorkStealingScheduling

    return WorkStealingScheduling(config, log)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    for name, absent in sorted(left_out.items()):
        terminalreporter.write_line(f"left out: {name}, which needs {', '.join(sorted(absent))}")


@pytest.fixture(
    params=[
        "numpy",
        pytest.param("numba", marks=pytest.mark.skipif(not has_numba, reason="no numba here")),
    ]
)
def backend(request: pytest.FixtureRequest) -> str:
    """The name of each backend that runs on a CPU."""
    return str(request.param)


@pytest.fixture(autouse=True)
def closed_figures() -> Iterator[None]:
    """No test leaves figures to the next one."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture
def engine(backend: str) -> base.Backend:
    """The backend itself, on one thread."""
    return registry.get_backend(backend)


@pytest.fixture(params=["numpy", "wide", "wide, threads", "deep"])
def grower(request: pytest.FixtureRequest) -> base.Backend:
    """Each way to grow a forest on a CPU: the reference, wide levels, the deep phase."""
    from laws import GROWERS

    return GROWERS[request.param]


@pytest.fixture(scope="module", params=["emulated", "GPU"])
def cuda(request: pytest.FixtureRequest) -> Any:
    """Each device of devices.py that is here; asked late, because the question initialises
    CUDA, and of a module, because Hypothesis takes no narrower ones."""
    from devices import DEVICES

    device = DEVICES[request.param]
    if (reason := device.why_not()) is not None:
        pytest.skip(reason)
    return device


@pytest.fixture
def shared_data() -> Path:
    """The folder of real data sets beside the checkout."""
    if not SHARED_DATA.is_dir():
        pytest.skip(f"the data sets are not in {SHARED_DATA}")
    return SHARED_DATA
