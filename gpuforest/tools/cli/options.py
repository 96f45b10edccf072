"""Options of the commands, made from tables of text, and from the parameters of the estimators."""

from __future__ import annotations

import argparse
import ast
import contextlib
import inspect
import re
from collections import Counter
from collections.abc import Callable
from functools import cache
from numbers import Integral, Real
from typing import Any

from sklearn.utils._param_validation import RealNotInt

import gpuforest
from gpuforest.common.arguments import byte_count
from gpuforest.estimators.params import BYTES
from gpuforest.explain.model_facts import task_of

MODELS = {
    "forest": "RandomForestClassifier RandomForestRegressor RandomSurvivalForest CausalForest",
    "quantile_forest": "RandomForestQuantileRegressor",
    "tree": "DecisionTreeClassifier DecisionTreeRegressor",
    "extra_trees": "ExtraTreesClassifier ExtraTreesRegressor ExtraSurvivalTrees",
    "bagging": "BaggingClassifier BaggingRegressor",
    "adaboost": "AdaBoostClassifier AdaBoostRegressor",
    "boosting": "HistGradientBoostingClassifier HistGradientBoostingRegressor",
}
ESTIMATORS: dict[tuple[str, str], Any] = {  # by model and task
    (model, task_of(estimator())): estimator
    for model, names in MODELS.items()
    for estimator in (getattr(gpuforest, name) for name in names.split())
}
# options that have another name in other models
INSTEAD = {"n_estimators": "max_iter", "max_iter": "n_estimators"}
# help for parameters that mean something else in each model
SAYS = {
    "loss": "What a row loses by its error: linear, square or exponential in adaboost; the others "
    "in boosting, log_loss for classes",
    "learning_rate": "What each tree's weight (adaboost) or the values of its leaves (boosting) "
    "are multiplied by",
}
DEFAULTS = {"n_jobs": "all processors", "oob_score": "on for a bootstrapped forest"}  # here
NO_OPTION = "estimator"  # of bagging and adaboost: their trees take the options of a tree

# what some words of the tables stand for
WORDS: dict[str, dict[str, Any]] = {word: {"type": int} for word in ("N", "D")}
WORDS |= {word: {"action": "append"} for word in ("COLS", "WORDS")}
WORDS["RATE"] = {"type": float}

MODEL = "MODEL  a file that `gpuforest train` wrote"
FILE = (
    "CSV with a header line (also .gz, .bz2, .xz, .zst), Parquet, a folder of Parquet files, or - "
    "for standard input"
)
DATA = f"DATA  {FILE}"
JSON = "--json  print one JSON object instead of the summary"
EVENT = "--event COLUMN  the column of whether the event came (default: as in training)"
DROP_MISSING = "--drop-missing-target  leave out rows without a target"
READING = """\
--decimal C  the decimal mark of numbers (default: .)
--thousands C  the mark between groups of digits
--missing WORDS  markers of missing values, separated by commas, besides empty fields, NA, ? and \
others; may be repeated (write --missing=- for -)
--units CHARS  characters to ignore around numbers, such as '$%%'
--dates COLS  columns of dates, separated by commas: each becomes four columns of numbers, \
COL_year, COL_month, COL_weekday (0 is Monday) and COL_seconds (since 1970)
--date-format F  how dates are written, such as %%d/%%m/%%Y (default: as 2020-12-31, with a time \
or without)"""
# options for parameters of functions; {} is the parameter's default
PARAMETERS = {
    "X": f"--data FILE  rows: {FILE}",
    "y": "--target COLUMN  the column that the model predicts (default: as in training)",
    "background": "--background FILE  rows whose values features have while they are not known "
    "(default: the shares of the training rows in the trees' nodes)",
    "output": "--class CLASS  the class (default: the second of two)",
    "tree": "--tree N  tree N (default: 0, the first)",
    "max_depth": "--max-depth D  levels to show (default: all)",
    "top": "--top N  features to show (default: {})",
    "row": "--row N  row N (default: {}, the first)",
    "groups": "--groups N  groups of equal size (default: {})",
    "n_groups": "--n-groups N  groups of equal size (default: {})",
    "feature": "--feature A  its name (default, where there is one: that of most importance)",
    "features": "--features A,B  two, separated by a comma (default: the two of most importance)",
    "color_by": "--color-by B  the feature that gives the colour (default: the one that interacts "
    "most)",
    "dtype": "--dtype float32|float64  of the numbers that it takes (default: {})",
    "ml_version": "--ml-version 3|5  of the operators ai.onnx.ml (default: 3; with categories 5)",
    "name": "--name NAME  of the function (default: {})",
}


def declare(command: Any, *tables: str | Callable[[Any], None]) -> None:
    """Add options from text tables, one per line (option, value, two spaces, help), or by
    functions. A word in capitals is an argument without a flag; an option without a value is a
    switch. "!" marks a required option, "|" separates choices."""
    for table in tables:
        if callable(table):
            table(command)
        else:
            for line in table.splitlines():
                _declare_line(command, line)


def _declare_line(command: Any, line: str) -> None:
    head, _, text = line.partition("  ")
    flag, _, takes = head.partition(" ")
    how: dict[str, Any] = {"help": text}
    if flag.isupper():
        command.add_argument(flag.lower(), metavar=flag, **how)
        return
    if takes.endswith("!"):
        how["required"], takes = True, takes[:-1]
    if not takes:
        how["action"] = "store_true"
    elif "|" in takes:
        words = takes.split("|")
        is_number = words[0].isdigit()
        how |= {"choices": [*map(int, words)], "type": int} if is_number else {"choices": words}
    else:
        how |= {"metavar": takes} | WORDS.get(takes, {})
    command.add_argument(flag, **how)


def declare_reading(command: Any, kept: bool = True) -> None:
    """Add the options that say how a file is written; `kept`: a model has them from training."""
    text = "In place of what the model was trained with." if kept else None
    declare(command.add_argument_group("how the data are written", text), READING)


def declare_function(command: Any, function: Callable[..., Any]) -> None:
    """Add an option for each parameter of a function that has one, and how its data are read."""
    parameters = inspect.signature(function).parameters
    for name, parameter in parameters.items():
        if name in PARAMETERS:
            head, _, text = PARAMETERS[name].format(parameter.default).partition("  ")
            is_required = parameter.default is parameter.empty and name != "y"
            declare(command, f"{head}{'!' * is_required}  {text}")
    if "X" in parameters:
        declare_reading(command)


def declare_runtime(command: Any) -> None:
    """Add threads and backend."""
    add_parameter(command, "n_jobs", Kinds(int), "threads (default: all processors)")
    add_parameter(command, "backend", Kinds(str), "a backend's name (default: auto)")


def options_of(arguments: argparse.Namespace, *names: str) -> dict[str, Any]:
    """The named options that the command has and the user gave, as keyword arguments."""
    values = vars(arguments)
    return {name: values[name] for name in names if values.get(name) is not None}


class Kinds:
    """The types and words that a parameter takes, by scikit-learn's constraints."""

    def __init__(self, *constraints: Any) -> None:
        words = {word for constraint in constraints for word in getattr(constraint, "options", ())}
        kinds = {getattr(c, "type", c) for c in constraints if not hasattr(c, "options")}
        self.types = {text: to for text, (to, *known) in TYPES.items() if kinds & {*known}}
        self.is_boolean = "boolean" in kinds
        self.words: dict[str, Any] = {"true": True, "false": False} if self.is_boolean else {}
        self.is_switch = not self.types and not words and None not in kinds
        self.words |= {word: word for word in sorted(words)}
        if {None, "random_state"} & kinds:
            self.words["none"] = None

    def __call__(self, text: str) -> Any:
        """The value that `text` stands for."""
        if text.lower() in self.words:
            return self.words[text.lower()]
        for convert in self.types.values():
            with contextlib.suppress(ValueError, SyntaxError):
                return convert(text)
        raise argparse.ArgumentTypeError(f"{text!r} is not {self}")

    def __str__(self) -> str:
        *names, last = [*self.types, *self.words]
        return f"{', '.join(names)} or {last}" if names else last


# types of parameters: what converts text to a value, and how scikit-learn's constraints name it
TYPES: dict[str, tuple[Any, ...]] = {
    "bytes as 500MB or 2GiB": (byte_count, BYTES),
    "an integer": (int, Integral, int, "verbose", "random_state"),
    "a number": (float, Real, RealNotInt),
    "a list or dict as in Python": (ast.literal_eval, dict, list, tuple, "array-like"),
    "a name": (str, str),
}


def declare_parameters(command: argparse.ArgumentParser) -> None:
    """Give a command one option for every parameter of any estimator."""
    group = command.add_argument_group(
        "the estimator's parameters", "As in Python, with - for _ in their names."
    )
    for name, defaults in parameters().items():
        users = [ESTIMATORS[pair] for pair in defaults]
        kinds = Kinds(*(c for user in users for c in user._parameter_constraints[name]))
        add_parameter(group, name, kinds, describe(name, users[0], kinds))


def add_parameter(group: Any, name: str, kinds: Kinds, text: str) -> None:
    """Add one parameter's option to a group or parser; absent unless it is given."""
    how: dict[str, Any] = {"type": kinds, "metavar": "X"}
    if kinds.is_switch:
        how = {"action": argparse.BooleanOptionalAction}
    elif kinds.is_boolean:  # or a word: without one, the flag is a switch
        how |= {"nargs": "?", "const": True}
        no = {"action": "store_false", "dest": name, "default": argparse.SUPPRESS}
        group.add_argument(f"--no-{flag_of(name)[2:]}", help=argparse.SUPPRESS, **no)
    how |= {"help": text.replace("%", "%%"), "default": argparse.SUPPRESS}
    group.add_argument(flag_of(name), **how)


def flag_of(name: str) -> str:
    """The option of a parameter."""
    return "--" + name.replace("_", "-")


@cache
def parameters() -> dict[str, dict[tuple[str, str], Any]]:
    """Every parameter, in the order of the signatures, with its default by model and task."""
    found: dict[str, dict[tuple[str, str], Any]] = {}
    for pair, estimator in ESTIMATORS.items():
        for name, parameter in inspect.signature(estimator).parameters.items():
            if name != NO_OPTION:
                found.setdefault(name, {})[pair] = parameter.default
    return found


def given_parameters(arguments: argparse.Namespace) -> dict[str, Any]:
    """The parameters that the user gave."""
    return {name: value for name, value in vars(arguments).items() if name in parameters()}


def make_estimator(model: str, task: str, params: dict[str, Any], preset: str | None = None) -> Any:
    """An estimator of a preset and the parameters given; all cores, and out-of-bag if it can be."""
    if (model, task) not in ESTIMATORS:
        raise ValueError(f"--model {model} is not for {task}")
    estimator = ESTIMATORS[model, task]
    signature = inspect.signature(estimator).parameters
    if NO_OPTION in signature:
        tree = ESTIMATORS["tree", task]
        only_trees = inspect.signature(tree).parameters.keys() - signature.keys()
        of_tree = {name: value for name, value in params.items() if name in only_trees}
        params = {name: value for name, value in params.items() if name not in only_trees}
        # what is not given stays as in the tree that None stands for, such as its depth
        params[NO_OPTION] = estimator().estimator_.set_params(**of_tree) if of_tree else None
    for name in params:
        if name not in signature:
            other = INSTEAD.get(name, "")
            hint = f"; there it is {flag_of(other)}" if other in signature else ""
            raise ValueError(f"{flag_of(name)} is no option of a {task} {model}{hint}")
    if preset is not None and not hasattr(estimator, "preset"):
        raise ValueError(f"--preset is for forest, extra_trees and boosting, not for {model}")
    made = estimator(**params) if preset is None else estimator.preset(preset, **params)
    if "bootstrap" in signature and "oob_score" in signature and "oob_score" not in params:
        made.set_params(oob_score=bool(made.bootstrap))
    return made


def describe(name: str, estimator: Any, kinds: Kinds) -> str:
    """First sentence of a parameter's documentation, what it takes, and who has it."""
    sentences = re.split(r"(?<=[^.]\.) (?=[A-Z`])", estimator._parameter_texts[name])
    text = SAYS.get(name) or sentences[0].rstrip(".")
    notes = [] if kinds.is_switch else [str(kinds)]
    notes.append(f"default: {DEFAULTS.get(name) or defaults_of(name)}")
    for words in map(set, zip(*parameters()[name], strict=True)):  # models, tasks
        notes += [f"{word} only" for word in words if len(words) == 1]
    return f"{text} ({'; '.join(notes)})".strip()


def defaults_of(name: str) -> str:
    """A parameter's default: the usual one, then exceptions by task and model."""
    defaults = {pair: str(default) for pair, default in parameters()[name].items()}
    usual, *others = [value for value, _ in Counter(defaults.values()).most_common()]
    texts = list[str]()
    for value in others:
        left, names = {pair for pair in defaults if defaults[pair] == value}, list[str]()
        for word in (word for words in [*zip(*defaults, strict=True)][::-1] for word in words):
            pairs = {pair for pair in defaults if word in pair}
            if pairs & left and all(defaults[pair] == value for pair in pairs):
                names, left = [*names, word], left - pairs
        texts.append(f"{value} for {' and '.join([*names, *sorted(map(' '.join, left))])}")
    return usual + ", but " * bool(texts) + ", ".join(texts)
