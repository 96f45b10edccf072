"""What an installation takes: MB of site-packages, and seconds to the first forest.

    python -m benchmarks.install_size dist/gpuforest-*.whl scikit-learn lightgbm xgboost xgboost-cpu

Each package goes into a fresh environment from wheels that are fetched before, so no network is in
the times. MB are those of all files, compiled modules of Python among them, with dependencies.
"""

import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

FITS = {
    "lightgbm": "lightgbm.train({'num_iterations': 10, 'verbose': -1}, lightgbm.Dataset(X, y))",
    "xgboost": "xgboost.train({}, xgboost.DMatrix(X, y), 10)",
    "sklearn.ensemble": "sklearn.ensemble.RandomForestClassifier(10).fit(X, y)",
    "gpuforest": "gpuforest.RandomForestClassifier(10).fit(X, y)",
}
FIRST = """
import numpy, {module}
X = numpy.arange(4000.0).reshape(1000, 4) * 37 % 101
y = (X[:, 0] > X[:, 1]).astype(int)
{fit}
"""


def module_of(package: str) -> str:
    """The module that makes forests."""
    name = Path(package).name.split("-")[0]
    return {"scikit": "sklearn.ensemble"}.get(name, name)


def timed(*command: str) -> float:
    begin = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begin


def measured(package: str, folder: Path) -> tuple[float, float, float, str]:
    """MB, seconds of installing, seconds to the first forest, and what was installed."""
    venv.create(folder / "venv", with_pip=False)
    python = str(folder / "venv" / "bin" / "python")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    timed(*pip, "download", "--dest", str(folder / "wheels"), package)
    found = ["--no-index", "--find-links", str(folder / "wheels")]
    seconds = timed(*pip, "--python", python, "install", *found, package)
    (site,) = (folder / "venv").glob("lib/python*/site-packages")
    size = sum(path.stat().st_size for path in site.rglob("*") if path.is_file()) / 1e6
    module = module_of(package)
    first = timed(python, "-P", "-c", FIRST.format(module=module, fit=FITS[module]))
    names = sorted(path.name.removesuffix(".dist-info") for path in site.glob("*.dist-info"))
    return size, seconds, first, " ".join(names).replace("-", " ")


def main() -> None:
    print("| package | MB | s to install | s to the first forest | installed |")
    print("|---|---|---|---|---|")
    for package in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as folder:
            size, seconds, first, names = measured(package, Path(folder))
        name = Path(package).name.split("-0")[0]
        print(f"| {name} | {size:.0f} | {seconds:.1f} | {first:.1f} | {names} |", flush=True)


if __name__ == "__main__":
    main()
