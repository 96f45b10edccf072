"""The page of a report, from its parts."""

from __future__ import annotations

import os
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

from gpuforest.export.container import replaced
from gpuforest.export.report import model_part, rows_part
from gpuforest.export.report.checks import checks
from gpuforest.export.report.html import Html, h, interval, name, scored, section
from gpuforest.inspection.report.results import Results

# a browser then loads nothing and runs nothing, whatever the page holds
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
NOTHING = (
    "None of what this report looks for was found: features that predict the target by themselves, "
    "rows unlike those of the training, classes of few rows, scores that do not fit together."
)
NOTHING_ALONE = (
    "Nothing about the model alone: no feature has nearly all of the importance. Most checks need "
    "rows that were not in the training."
)


def write_report(estimator: Any, X: Any, y: Any, path: str | os.PathLike[str] | None) -> str | None:
    """The report as text, or, where there is a path, as a file."""
    local = getattr(estimator, "to_local", None)  # of an estimator that was trained on a cluster
    text = report_html(estimator if local is None else local(), X, y)
    if path is None:
        return text
    with replaced(Path(path)) as file:
        file.write_text(text, "utf-8", newline="\n")
    return None


def report_html(estimator: Any, X: Any = None, y: Any = None) -> str:
    """The report of a fitted estimator, and of rows, as HTML; errors as of `Results.of`."""
    found = Results.of(estimator, X, y)
    told = checks(found)
    nothing = NOTHING if found.rows is not None else NOTHING_ALONE
    first = h("ul", *told, class_="checks") if told else h("p", nothing)
    sections = [
        section("checks", "Checks", first),
        model_part.model_section(estimator),
        rows_part.score_section(found),
        *rows_part.result_sections(found),
        model_part.importance_section(found),
        rows_part.dependence_section(found),
        rows_part.drift_section(found),
        model_part.trees_section(found),
    ]
    return _page(found, [part for part in sections if part is not None])


def _page(found: Results, sections: list[Html]) -> str:
    title = f"Report: {type(found.estimator).__name__}"
    links = [h("li", h("a", word, href=f"#{key}")) for key, word in map(_title, sections)]
    by = f"Made by gpuforest {version('gpuforest')}. The page loads nothing and runs nothing."
    style = files("gpuforest.export.report").joinpath("style.css").read_text("utf-8")
    head = h(
        "head",
        h("meta", charset="utf-8"),
        h("meta", name="viewport", content="width=device-width, initial-scale=1"),
        h("meta", http_equiv="Content-Security-Policy", content=POLICY),
        h("title", title),
        h("style", Html(style)),
    )
    body = h(
        "body",
        h("header", h("h1", title), h("p", *_about(found))),
        h("dl", *_tiles(found), class_="tiles"),
        h("nav", h("ul", *links), aria_label="Contents"),
        h("main", *sections),
        h("footer", h("p", by)),
    )
    return "<!DOCTYPE html>\n" + h("html", head, body, lang="en") + "\n"


def _about(found: Results) -> list[Any]:
    source = getattr(found.estimator, "source_", {})
    predicts = ["It predicts ", name(source["target"]), ". "] if "target" in source else []
    if found.rows is None:
        return [*predicts, "Of the model alone: no rows were given to test it with."]
    return [*predicts, f"With the results of {found.rows.n:,} rows that were given."]


def _tiles(found: Results) -> list[Html]:
    """The most important numbers."""
    estimator, told = found.estimator, []
    if found.scores:
        score = found.scores[0]
        told.append((f"{score.name}, rows given", scored(score.value), interval(score)))
    if found.oob is not None:
        told.append((found.oob.name, scored(found.oob.value), interval(found.oob)))
    told.append(("trees", f"{estimator.forest_.n_trees:,}", ""))
    told.append(("features", f"{estimator.n_features_in_:,}", ""))
    if (known := getattr(estimator, "_training_", {}).get("rows")) is not None:
        told.append(("training rows", f"{known:,}", ""))
    if found.rows is not None:
        told.append(("rows given", f"{found.rows.n:,}", ""))
    return [
        h("div", h("dt", key), h("dd", value, h("small", ends) if ends else None))
        for key, value, ends in told
    ]


def _title(part: Html) -> tuple[str, Html]:
    """The id and the title of a section."""
    key = part.split('id="', 1)[1].split('"', 1)[0]
    return key, Html(part.split("<h2>", 1)[1].split("</h2>", 1)[0])
