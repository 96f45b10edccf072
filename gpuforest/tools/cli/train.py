"""`train`: a model of a file, saved."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from importlib.metadata import version
from inspect import signature
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils import Bunch

from gpuforest import estimate_memory
from gpuforest.common.progress import progress_bar, stage
from gpuforest.common.text import did_you_mean
from gpuforest.data import frames, labels
from gpuforest.data.text import Reading, nearly_numbers
from gpuforest.estimators import boosting_fit, presets
from gpuforest.explain.model_facts import changed_settings, finite, model_facts
from gpuforest.proof import prove, require_regrowable
from gpuforest.tools.cli import files, inspect, options, output
from gpuforest.tools.report.rows import HASHES, Rows, row_hashes

OPTIONS = f"""\
--target COLUMN!  the column to predict
--out MODEL!  the model file to write
--task auto|classification|regression  auto: classification if the target holds strings, booleans, \
or at most {frames.MAX_CLASSES} distinct whole numbers that occur twice on average (default: \
auto)
--preset {"|".join(presets.BOOSTING)}  what parameters begin with, of a forest, extra_trees or \
boosting: accurate is best without a search (default: scikit-learn)
--event COLUMN  the column of whether an event came (1, or the number of its cause) or not (0): \
the target is its time, or until when a row is known, and the model a survival forest
--treatment COLUMN  the column of a treatment: the model is a causal forest, which predicts what \
one more of it (or 1 in place of 0) does to the target
--instrument COLUMN  with --treatment: a column that moves the treatment, and the target by that \
alone
--weight COLUMN  the column of sample weights
--groups COLUMN  the column of the groups that rows belong to, such as patients: bags, early \
stopping and --test FRACTION take whole groups
--time COLUMN  the column of the rows' blocks of time, whose labels sort, such as 2020-12: \
out-of-bag scores, early stopping and --test FRACTION judge later blocks by earlier ones
--drop COLS  columns to leave out, separated by commas; may be repeated
--categorical COLS  columns of numbers that are categories, separated by commas; may be repeated \
(columns of strings are categories by themselves)
--test FILE_OR_FRACTION  score the model on another file, or on a random fraction held out of DATA \
(with --time on the last blocks)
--test-out FILE  a .csv or .parquet file for the rows that --test FRACTION holds out, to evaluate \
and report the model on
--drop-missing-target  leave out rows without a target, in place of refusing them
--proof  keep digests of the data and the model in the file, which `gpuforest verify` checks"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    command.set_defaults(task="auto", model="forest")
    how: dict[str, Any] = {"type": model_word, "choices": tuple(options.MODELS)}
    command.add_argument("--model", help="(default: forest)", **how)
    options.declare(command, options.DATA, OPTIONS, options.JSON)
    options.declare_reading(command, kept=False)
    options.declare_parameters(command)


def model_word(word: str) -> str:
    """The word of `--model`; one for isolation forests is answered."""
    if word.lower().startswith("isolation"):
        raise argparse.ArgumentTypeError(
            "isolation forests have no target, and train needs one: in Python, "
            "gpuforest.IsolationForest().fit(frame).save(path) writes a model that predict reads"
        )
    return word


def run(arguments: argparse.Namespace) -> None:
    """Load, train, save, score and show."""
    fraction = as_fraction(arguments.test)
    test: Any = arguments.test if fraction is None else None  # a file
    task, target = target_of(arguments)
    out = output.writable(arguments.out, arguments.data, test)
    reading, params = files.reading_of(arguments), options.given_parameters(arguments)
    held_out = held_out_path(arguments.test_out, arguments, reading)
    with progress_bar() as seconds, ExitStack() as stack:
        names: dict[str, Any] = {"target": target, "weight": arguments.weight, "reading": reading}
        word, labels = files.labels_of_rows(arguments)
        grouped = {"groups": getattr(arguments, word)}
        how = names | {"drop_missing_target": arguments.drop_missing_target}
        drop, blocks = files.names_of(arguments.drop), None
        whole = fraction or arguments.drop_missing_target or task == "effects" or arguments.proof
        if not whole and files.streams(arguments.data):
            blocks = files.TableBlocks(arguments.data, labels, **names, **grouped, drop=drop)
            table: Any = blocks.first
        else:
            table = frames.load_table(arguments.data, **how, **grouped, drop=drop)
        require("--dates", reading.dates, [name.removesuffix("_year") for name in table.names])
        strings = frames.string_columns(table.frame)
        notes = [*table.notes, *nearly_numbers(table.frame, strings, reading)]
        for note in notes:
            output.say(note)
        params |= categories(table, files.names_of(arguments.categorical), params)
        if fraction is not None:
            table, test = split(table, fraction, params.get("random_state"), labels)
        elif test is not None:
            text = [*strings, arguments.target] if table.y.dtype.kind == "U" else strings
            test = frames.load_table(test, **how, features=table.names, text=text)
        if blocks is not None:
            folder = None
            if "memory_limit" in params:
                folder = Path(stack.enter_context(TemporaryDirectory(prefix="gpuforest-")))
            likely = likely_estimator(arguments, task, params)
            table = files.binned(blocks, likely, task, params, folder)
        if task == "auto":
            task = "classification" if frames.is_class_target(table.y) else "regression"
        estimator = options.make_estimator(arguments.model, task, params, arguments.preset)
        grouped = {} if table.groups is None else {labels: table.groups}
        check_estimator(estimator, arguments, labels if grouped else None)
        memory = memory_of(estimator, table)
        if sys.stderr.isatty():  # before the work, so that it can be ended
            output.say(f"training takes about {memory['total'] / 1e6:,.1f} MB of memory")
        of_rows = {"sample_weight": table.weight, **grouped}
        estimator.fit(table.X, **frames.parts_of(table.y, task), **of_rows)
        estimator.source_ = files.source_of(reading, arguments)
        estimator.source_["row_hashes"] = kept_hashes(estimator, table)
        if arguments.proof:
            prove(estimator, table.X, table.y, **of_rows)
        save_both(estimator, out, test, held_out, arguments)
        if test is not None:
            weight = None if task == "survival" else test.weight  # concordance has none
            score = finite(estimator.score(test.X, test.y, sample_weight=weight))
    facts = describe(estimator) | {"data": arguments.data, "target": arguments.target}
    facts |= {"rows": len(table.y), "memory": memory, "notes": notes}
    if test is not None:
        facts |= {"test_rows": len(test.y), "test_score": score}
    facts |= {"seconds": seconds, "file": str(out), "bytes": out.stat().st_size}
    output.print_facts(facts, arguments.json, summary)


def target_of(arguments: argparse.Namespace) -> tuple[str, Any]:
    """The task that the columns or --task say, and the column or columns of the target."""
    if arguments.proof and as_fraction(arguments.test) is not None:
        raise ValueError("--proof is of all rows of DATA: give --test another file, no fraction")
    target, event, *arms = (
        vars(arguments)[name] for name in ("target", "event", "treatment", "instrument")
    )
    kinds = {"event": "survival forests", "treatment": "causal forests"}
    given = [name for name in kinds if vars(arguments)[name]]
    if given and (arguments.task != "auto" or len(given) > 1):
        other = arguments.task if len(given) == 1 else kinds["treatment"]
        raise ValueError(f"--{given[0]} is for {kinds[given[0]]}, not for {other}")
    if event:
        return "survival", (target, event)
    if arms[1] and not arms[0]:
        raise ValueError("--instrument moves a treatment: add --treatment COLUMN")
    if not arms[0]:
        return arguments.task, target
    if arguments.test:
        raise ValueError("--test: no row shows the effect on it, so that there is no score")
    return "effects", frames.Treated([target, *filter(None, arms)])


def check_estimator(estimator: Any, arguments: argparse.Namespace, labels: str | None) -> None:
    """Raise a ValueError if its fit takes no groups or blocks, or it can have no proof."""
    if labels is not None and labels not in signature(estimator.fit).parameters:
        word = "time" if labels == "blocks" else labels
        raise ValueError(f"--{word}: --model {arguments.model} takes no {labels}")
    if arguments.proof:
        require_regrowable(estimator)


def held_out_path(path: str | None, asked: argparse.Namespace, reading: Reading) -> Path | None:
    """Where the rows held out are written, once it is sure that they can be; None: nowhere."""
    if path is None:
        return None
    if as_fraction(asked.test) is None:
        raise ValueError("--test-out is for rows that --test FRACTION holds out of DATA: add it")
    held_out = output.table_path(path, asked.data, flag="--test-out")
    if held_out is None or held_out.resolve() == Path(asked.out).resolve():
        raise ValueError(f"--test-out {path}: name a file of its own")
    if held_out.suffix.lower() == ".csv" and (reading.decimal, reading.thousands) != (".", ""):
        raise ValueError(
            f"--test-out {path}: numbers are written as 1234.5, which --decimal and --thousands "
            "would read as another number; name a .parquet file"
        )
    return held_out


def save_both(
    estimator: Any, out: Path, table: Any, held_out: Path | None, arguments: argparse.Namespace
) -> None:
    """Save the model and, if `held_out` is given, the table of the test rows."""
    with stage("saving"):
        save(estimator, out)
    if held_out is None:
        return
    y, event = table.y, arguments.event
    parts = {arguments.target: y["time"], event: y["event"]} if event else {arguments.target: y}
    parts |= {arguments.weight: table.weight, arguments.groups or arguments.time: table.groups}
    columns = output.columns_of(table.frame, table.names)
    columns |= {name: part for name, part in parts.items() if name is not None}
    output.write_table(held_out, iter([columns]))


def save(estimator: Any, out: Path) -> None:
    """Save the model; on failure save it among temporary files, and say where in an OSError."""
    try:
        estimator.save(out)
    except OSError as error:
        try:
            spare = Path(mkdtemp(prefix="gpuforest-"), out.name)
            estimator.save(spare)
        except OSError:
            raise error from None
        said = f"{error.strerror}; the trained model is in {spare}"
        raise OSError(error.errno, said, os.fspath(out)) from error


def likely_estimator(arguments: argparse.Namespace, task: str, params: dict[str, Any]) -> Any:
    """An estimator of these parameters, before the target says what the task is."""
    first = "classification" if task == "auto" else task
    try:
        return options.make_estimator(arguments.model, first, params, arguments.preset)
    except ValueError:
        if task != "auto":
            raise
        # an option of regressions only
        return options.make_estimator(arguments.model, "regression", params, arguments.preset)


def categories(table: frames.Table, named: list[str], params: dict[str, Any]) -> dict[str, Any]:
    """`categorical_features` for the named columns of numbers, besides the columns of strings."""
    if not named:
        return {}
    if "categorical_features" in params:
        raise ValueError("--categorical and --categorical-features say the same: give one of them")
    require("--categorical", named, table.names)
    strings = frames.string_columns(table.frame)
    return {"categorical_features": [n for n in table.names if n in {*named, *strings}]}


def require(flag: str, names: Sequence[str], known: Sequence[str]) -> None:
    """Raise a ValueError if an option names features that there are not."""
    if other := [name for name in names if name not in known]:
        hint = did_you_mean(other[0], known)
        raise ValueError(f"{flag}: no feature of the name {frames.listed(other)}{hint}")


def kept_hashes(estimator: Any, table: frames.Table | Bunch) -> list[int]:
    """Hashes of training rows, by which reports know these again."""
    rows = table.X if isinstance(table, Bunch) else Rows.read(estimator, table.X, None)
    return list(row_hashes(estimator, rows)[:HASHES].tolist())


def describe(estimator: Any) -> dict[str, Any]:
    """Facts about the trained estimator, for a script."""
    facts = {"version": version("gpuforest"), **model_facts(estimator)}
    facts |= {"settings": changed_settings(estimator), "parameters": estimator.get_params()}
    facts |= effect_facts(estimator) if facts["task"] == "effects" else {}
    return facts | {"backend": estimator.backend_}


def effect_facts(estimator: Any) -> dict[str, Any]:
    """The average effect, and whether effects are right on average and differ as predicted."""
    tested, words = estimator.calibration_test(), ("value", "std_error", "p_value")
    rows = zip(tested.coef, tested.std_error, tested.p_value, strict=True)
    parts = [dict(zip(words, map(finite, row), strict=True)) for row in rows]
    ends = {key: finite(value) for key, value in estimator.ate().items()}
    return {"average_effect": ends, "calibration": dict(zip(tested.names, parts, strict=True))}


def memory_of(estimator: Any, table: frames.Table | Bunch) -> dict[str, int]:
    """The memory that training will take, in bytes."""
    y = table.y.codes if isinstance(table.y, labels.Labels) else table.y
    n_classes = len(np.unique(y)) if is_classifier(estimator) else 1
    n_rows, n_features = len(y), table.frame.shape[1]
    memory = estimate_memory(estimator, n_rows, n_features, n_classes=n_classes, dtype=np.float64)
    return {**vars(memory), "total": memory.total}


def summary(facts: dict[str, Any]) -> output.Rows:
    """The facts as lines for a reader."""
    score, seconds = facts.get("test_score"), facts["seconds"].items()
    rows: output.Rows = {
        "data": f"{facts['data']}: {facts['rows']:,} rows, {facts['features']:,} features",
        "target": facts["target"],
        **inspect.model_rows(facts),
        "backend": facts["backend"],
        "memory": f"about {facts['memory']['total'] / 1e6:,.1f} MB, as estimated before",
        "seconds": ", ".join(f"{name} {s:.2f}" for name, s in seconds),
        "file": f"{facts['file']}, {facts['bytes']:,} bytes",
    }
    if "average_effect" in facts:
        words = "{estimate:.6g}, 95% interval {low:.6g} to {high:.6g}"
        rows["average effect"] = words.format(**facts["average_effect"])
        words = "{value:.4g} ± {std_error:.2g}, p = {p_value:.2g}: "
        tested = [pair for pair in facts["calibration"].items() if None not in pair[1].values()]
        rows["calibration"] = [words.format(**part) + name for name, part in tested]
    if score is not None:
        rows[f"test {facts['score']}"] = f"{score:.4f} on {facts['test_rows']:,} rows"
    return rows


def split(
    table: frames.Table, fraction: float, seed: int | None, what: str = "groups"
) -> tuple[frames.Table, frames.Table]:
    """Training and test rows, or groups, by random draw; of blocks the last are the test."""
    if table.groups is None:
        what, units = "rows", np.arange(len(table.y))
    else:
        units = np.unique(table.groups, return_inverse=True)[1]
    n = int(units.max()) + 1
    if what == "blocks":
        in_test = boosting_fit.last_blocks(units, fraction)
    else:
        drawn = np.random.default_rng(seed).permutation(n)[: round(n * fraction)]
        in_test = np.isin(units, drawn)
    if not in_test.any() or in_test.all():
        raise ValueError(f"--test {fraction} of {n} {what} leaves one side without {what}")
    return table.take(np.flatnonzero(~in_test)), table.take(np.flatnonzero(in_test))


def as_fraction(text: str | None) -> float | None:
    """The fraction that `--test` names, or None if it names a file or nothing."""
    try:
        fraction = float(text or "")
    except ValueError:
        return None
    if not 0 < fraction < 1:
        raise ValueError(f"--test {text}: a fraction lies between 0 and 1")
    return fraction
