"""Presets beside defaults, a search and other libraries.  python -m benchmarks.presets

Sets of public_data.py, five splits: three quarters of the rows to train on, stratified by class.
All methods get the same splits, one after another with two threads, or OMP_NUM_THREADS; each has a
process that has fitted before, and split 0 of all sets comes before split 1 of any. Threads of
OpenMP do not spin. Compare seconds only if the machine was idle otherwise (`load` is its load
average). Log loss keeps probabilities 2e-16 from 0 and 1, as scikit-learn's does. Encoding of
categories is a part of fit and of predict: gpuforest and YDF get strings, CatBoost strings and
"missing"; LightGBM gets pandas' `category`, as does scikit-learn's boosting up to 255 values;
beyond, and for its forest, they are ordinal codes: -1 for a value that is not in the training
rows, NaN where it is missing. `lightgbm-tuned` has the tuned defaults of arXiv 2407.04491, as
pytabkit's LGBM_TD: of the training
rows, 20 % decide by their log loss (in pytabkit by default by their accuracy) when to stop.

Each result is a line of results/presets.jsonl as soon as it is known. What is there is skipped:
methods of gpuforest if --label (by default the commit) is the same, others in any case. A method
that is not there yet or not installed is skipped with a message.

`gpuforest-forest-search` is the best of 50 forests of 300 trees by their out-of-bag rows.
`--part many_values` runs simulated columns of thousands of categories instead.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable
from fnmatch import fnmatch
from pathlib import Path

from benchmarks import public_data, record
from benchmarks.presets.methods import METHODS, OF_MANY_VALUES, THREADS, ours_is
from benchmarks.presets.run import lines_of, run
from benchmarks.presets.sets import SIMULATED
from benchmarks.presets.summary import PAIRS, summary


def chosen(text: str | None, names: Iterable[str]) -> list[str]:
    """Of the names, those that one of the patterns fits; "rivals" are all but ours."""
    patterns = (text or "*").split(",")
    names = list(names)
    unknown = [p for p in patterns if p != "rivals" and not any(fnmatch(n, p) for n in names)]
    if unknown:
        raise SystemExit(f"unknown: {', '.join(unknown)}; there are {', '.join(names)}")
    return [n for n in names if any(fnmatch(n, p) or (p == "rivals" and not ours_is(n))
                                    for p in patterns)]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.presets", description=__doc__)
    parser.add_argument("--part", choices=("public", "many_values"), default="public")
    parser.add_argument("--sets", help="names or patterns (a,b*); by default those not sealed")
    parser.add_argument("--methods", help='names or patterns, or "rivals"; by default all')
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--limit", type=float, default=300, help="seconds of a fit, at most")
    parser.add_argument("--data", type=Path, help="folder of the real data sets")
    parser.add_argument("--sealed", action="store_true", help="the sealed sets, and only these")
    parser.add_argument("--label", help="of results of gpuforest; by default the commit")
    parser.add_argument("--again", action="store_true", help="also what is there")
    parser.add_argument("--summary", action="store_true", help="print tables, measure nothing")
    parser.add_argument("--results", type=Path, default=record.RESULTS / "presets.jsonl")
    parser.add_argument("--pairs", help="of methods, for the summary: a:b,c:d")
    options = parser.parse_args()
    options.pairs = [p.split(":") for p in options.pairs.split(",")] if options.pairs else PAIRS
    simulation = options.part == "many_values"
    options.methods = chosen(options.methods, OF_MANY_VALUES if simulation else METHODS)
    names = [n for n in public_data.BY_NAME if (n in public_data.SEALED) == options.sealed]
    options.sets = chosen(options.sets, SIMULATED if simulation else names)
    # of the processes to come; threads that spin as they wait would count as work
    os.environ |= {"OMP_NUM_THREADS": str(THREADS), "OMP_WAIT_POLICY": "passive"}
    if options.summary:
        print(summary(lines_of(options.results), options))
    else:
        run(options, record.Log("presets", options.results))


if __name__ == "__main__":
    main()
