"""What do models cost outside of Python's training code?  python -m benchmarks.exports

Forests of 100 trees on three works (A16: 200,000 x 28, made; digits; adult, with its strings as
categories) in each form: gpuforest's own file read by `load`, ONNX in ONNX Runtime (versions 3 and
5 of its trees), treelite in GTIL, and C compiled by cc -O2. First each form's predictions are
compared with the model's; then one row and many rows are timed in one process, form after form,
round after round, and files are measured. At last a process is started for each form, which
reads the model and predicts one row. treelite and C take category codes, and their time is without
the coding of strings. Needs onnx, onnxruntime, treelite and a C compiler.
"""

from __future__ import annotations

import argparse
import ctypes
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import treelite

import gpuforest
from benchmarks import real, works
from benchmarks.categories import adult
from benchmarks.record import Log, spread, table

DRIVER = """
void many(const double *x, long n, double *out);
void many(const double *x, long n, double *out)
{
    int label;
    for (long i = 0; i < n; i++)
        predict(x + i * %d, out + i * %d, &label);
}
"""
MANY, ONE_ROW_CALLS = 20_000, 200
FORMS = ("gpuforest", "onnx 3", "onnx 5", "treelite", "c")
START = {
    "gpuforest": "import gpuforest; gpuforest.load(path).predict_proba(rows)",
    "onnx 3": "import onnxruntime as o\n"
    "s = o.InferenceSession(path, providers=['CPUExecutionProvider'])\n"
    "s.run(None, {'X': rows.astype('float32')})",
    "treelite": "import treelite; treelite.gtil.predict(treelite.Model.deserialize(path), rows)",
    "c": "import ctypes\nout = numpy.zeros(100)\n"
    "point = lambda a: a.ctypes.data_as(ctypes.POINTER(ctypes.c_double))\n"
    "ctypes.CDLL(path).many(point(rows), ctypes.c_long(1), point(out))",
}
START["onnx 5"] = START["onnx 3"]

Predict = Callable[[int, int], np.ndarray]  # probabilities of the rows begin .. end - 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--works", nargs="+", default=["A16", "digits", "adult"])
    parser.add_argument("--trees", type=int, default=100)
    parser.add_argument("--part", type=float, default=1.0, help="of the rows of made data")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--starts", type=int, default=5, help="processes of each form")
    parser.add_argument("--data", type=Path, default=None, help="folder of real data sets")
    parser.add_argument("--out", type=Path, default=None, help="another file for the results")
    arguments = parser.parse_args()
    versions = {name: version(name) for name in ("onnx", "onnxruntime", "treelite")}
    log = Log("exports", arguments.out, versions=versions, trees=arguments.trees)
    for name in arguments.works:
        loaded = load(name, arguments.part, arguments.data)
        if loaded is None:
            continue
        X, y, depth, rows = loaded
        model = gpuforest.RandomForestClassifier(
            arguments.trees, max_depth=depth, random_state=0, n_jobs=-1
        ).fit(X, y)
        with tempfile.TemporaryDirectory() as folder:
            files, predicts = written(model, rows, Path(folder))
            figures = measured(model, rows, predicts, arguments.rounds)
            starts = started(files, rows, arguments.starts, Path(folder))
            sizes = {form: path.stat().st_size / 1e6 for form, path in files.items()}
        log.add(work=name, nodes=model.forest_.n_nodes, mb=sizes, start_seconds=starts, **figures)
        show(name, sizes, starts, figures)


def load(name: str, part: float, folder: Path | None) -> Any:
    """Training rows, their classes, the depth, and rows to predict; None: they are not there."""
    if name == "adult":
        try:
            (X, y), (rows, _) = adult(folder or real.BESIDE)
        except FileNotFoundError:
            print("adult: skipped, there is no adult_train.csv.gz (--data DIR)")
            return None
        return X, y, None, rows.iloc[:MANY]
    work = next(work for work in works.WORKS if work.name == name)
    found = works.load(work, part, folder)
    if found is None:
        return None
    repeats = -(-min(MANY, 100 * len(found.X_test)) // len(found.X_test))
    rows = np.concatenate([found.X_test] * repeats)[:MANY]
    return found.X_train, found.y_train, work.depth, rows


def written(model: Any, rows: Any, folder: Path) -> tuple[dict[str, Path], dict[str, Predict]]:
    """The files of each form, by name, and what predicts from those that do."""
    names = {"gpuforest": "m.gpuforest", "c": "m.so", "c source": "m.c", "pickle": "m.pickle"}
    names |= {"onnx 3": "m3.onnx", "onnx 5": "m5.onnx", "treelite": "m.treelite"}
    files = {form: folder / name for form, name in names.items()}
    codes = np.ascontiguousarray(gpuforest.category_codes(model, rows), np.float64)
    has_strings = not isinstance(rows, np.ndarray)
    model.save(files["gpuforest"])
    files["pickle"].write_bytes(pickle.dumps(model))
    own = gpuforest.load(files["gpuforest"])
    own.set_params(n_jobs=-1)
    taken = rows.iloc.__getitem__ if has_strings else rows.__getitem__
    predicts: dict[str, Predict] = {"gpuforest": lambda a, b: own.predict_proba(taken(slice(a, b)))}
    for number in (3, 5):
        if has_strings and number == 3:
            del files["onnx 3"]
            continue
        path = files[f"onnx {number}"]
        model.to_onnx(path, ml_version=number)
        predicts[f"onnx {number}"] = by_onnx(path, columns(rows) if has_strings else {"X": rows})
    converted = model.to_treelite()
    converted.serialize(str(files["treelite"]))
    predicts["treelite"] = lambda a, b: treelite.gtil.predict(converted, codes[a:b])[:, 0]
    files["c source"].write_text(
        gpuforest.export_c(model) + DRIVER % (codes.shape[1], len(model.classes_))
    )
    command = ["cc", "-std=c99", "-O2", "-shared", "-fPIC", "-o", files["c"], files["c source"]]
    subprocess.run(command, check=True)
    predicts["c"] = by_c(files["c"], codes, len(model.classes_))
    return files, predicts


def columns(rows: Any) -> dict[str, np.ndarray]:
    """A frame as the inputs of an ONNX model: "" is a missing string."""
    return {
        name: (
            column.astype(np.float32).to_numpy()
            if column.dtype.kind in "iuf"
            else column.astype(object).fillna("").to_numpy(object)
        )[:, None]
        for name, column in rows.items()
    }


def by_onnx(path: Path, feeds: dict[str, np.ndarray]) -> Predict:
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])

    def predict(begin: int, end: int) -> np.ndarray:
        own = {name: values[begin:end] for name, values in feeds.items()}
        return np.asarray(session.run(["probabilities"], own)[0])

    return predict


def by_c(path: Path, codes: np.ndarray, n_classes: int) -> Predict:
    library = ctypes.CDLL(str(path))
    pointer = ctypes.POINTER(ctypes.c_double)

    def predict(begin: int, end: int) -> np.ndarray:
        own, out = codes[begin:end], np.empty((end - begin, n_classes))
        given = own.ctypes.data_as(pointer), ctypes.c_long(end - begin)
        library.many(*given, out.ctypes.data_as(pointer))
        return out

    return predict


def measured(
    model: Any, rows: Any, predicts: dict[str, Predict], rounds: int
) -> dict[str, dict[str, list[float]]]:
    """Of each form milliseconds for a row, and rows a second, round by round."""
    wanted = model.predict_proba(rows)
    for form, predict in predicts.items():
        found = predict(0, len(rows))
        assert np.array_equal(found, wanted.astype(found.dtype)), form
    one: dict[str, list[float]] = {form: [] for form in predicts}
    many: dict[str, list[float]] = {form: [] for form in predicts}
    for _ in range(rounds):
        for form, predict in predicts.items():
            times = []
            for i in range(ONE_ROW_CALLS):
                begin = time.perf_counter()
                predict(i, i + 1)
                times.append(time.perf_counter() - begin)
            one[form].append(1e3 * float(np.median(times)))
            begin = time.perf_counter()
            predict(0, len(rows))
            many[form].append(len(rows) / (time.perf_counter() - begin))
    return {"one_row_ms": one, "rows_per_second": many}


def started(files: dict[str, Path], rows: Any, n: int, folder: Path) -> dict[str, list[float]]:
    """Seconds from the start of Python to the prediction of a row; of rows of numbers alone."""
    if not isinstance(rows, np.ndarray):
        return {}
    np.save(folder / "rows.npy", rows[:1].astype(np.float64))
    found: dict[str, list[float]] = {form: [] for form in ("nothing", *FORMS)}
    for _ in range(n):
        for form in found:
            head = "import sys, numpy\npath, rows = sys.argv[1], numpy.load(sys.argv[2])\n"
            program = head + START.get(form, "")
            command = [sys.executable, "-c", program, files.get(form, "-"), folder / "rows.npy"]
            begin = time.perf_counter()
            subprocess.run(command, check=True)
            found[form].append(time.perf_counter() - begin)
    return found


def show(name: str, sizes: dict[str, float], starts: Any, figures: Any) -> None:
    one, many = figures["one_row_ms"], figures["rows_per_second"]
    lines = [
        [
            form,
            f"{sizes[form]:.2f}",
            spread(one[form], 3),
            spread([value / 1000 for value in many[form]], 1),
            spread(starts[form]) if starts else "",
        ]
        for form in one
    ]
    others = ", ".join(f"{form} {sizes[form]:.2f} MB" for form in ("c source", "pickle"))
    print(f"\n{name}: {others}")
    if starts:
        print("Python and NumPy alone start in", spread(starts["nothing"]), "s")
    header = ["form", "MB", "one row, ms", "1,000 rows a second", "start to first row, s"]
    print(table(header, lines))


if __name__ == "__main__":
    main()
