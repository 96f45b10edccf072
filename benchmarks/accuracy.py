"""Are the forests as good as scikit-learn's?  python -m benchmarks.accuracy

Real data and several seeds. For a seed, both libraries get the same split and the same
parameters: unlimited depth, bootstrap, sqrt(F) features for classes, F/3 for numbers.
"""

from __future__ import annotations

import argparse
from itertools import product

from sklearn import ensemble
from sklearn.model_selection import train_test_split

import gpuforest
from benchmarks import public_data
from benchmarks.record import Log, options_of, show
from benchmarks.turns import Found, measured, take_turns

SETS = ("covtype", "letter", "spambase", "digits", "california", "bike")
COVTYPE_ROWS = 100_000  # for training, and as many for testing
METHODS = {  # the library and its parameters
    "scikit-learn": (ensemble, {}),
    "gpuforest": (gpuforest, {}),
    "gpuforest, 65535 bins": (gpuforest, {"max_bins": 65_535}),
}


def fit(name: str, seed: int, method: str, options: argparse.Namespace) -> Found:
    data = public_data.numbers(name, options.data)
    if data is None:
        return None
    numbers = public_data.BY_NAME[name].numbers
    rows = {"train_size": COVTYPE_ROWS, "test_size": COVTYPE_ROWS} if name == "covtype" else {}
    stratify = None if numbers else data[1]
    parts = train_test_split(*data, random_state=seed, stratify=stratify, **rows)
    library, more = METHODS[method]
    kind = getattr(library, f"RandomForest{'Regressor' if numbers else 'Classifier'}")
    tried = 1 / 3 if numbers else "sqrt"
    own = {"max_features": tried, "random_state": seed, "n_jobs": options.threads, **more}
    return {"trees": options.trees, **measured(kind(options.trees, **own), parts)}


def main() -> None:
    options = options_of(__doc__, sets=[*SETS], seeds=5, trees=100, threads=2)
    jobs = [
        job
        for job in product(options.sets, range(1, options.seeds + 1), METHODS)
        if job[0] != "covtype" or job[2] in ("scikit-learn", "gpuforest")
    ]
    lines = take_turns(Log("accuracy"), jobs, fit, options)
    show(lines, dict.fromkeys(("accuracy", "log_loss", "r2"), ("mean", "difference")))


if __name__ == "__main__":
    main()
