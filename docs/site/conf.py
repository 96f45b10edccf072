"""Sphinx's settings of the site, which `.ci/site` builds from a copy of docs/.

Pages are plain Markdown; `on_the_site` makes tables of contents of lists of links."""

import inspect
import json
import re
import tomllib
from functools import cached_property
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from types import FunctionType

from docutils import nodes
from sphinx import addnodes

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

project, release, copyright = PROJECT["name"], PROJECT["version"], "the authors of gpuforest"
extensions = ["sphinx.ext.autodoc", "sphinx.ext.autosummary", "numpydoc", "myst_parser"]
extensions += ["sphinx_gallery.gen_gallery"]
exclude_patterns = ["site", "gallery/**/*.md5", "gallery/**/*.ipynb"]
templates_path = [str(Path(__file__).with_name("templates"))]
suppress_warnings = ["config.cache"]  # the gallery's settings have a function
nitpicky, smartquotes, numpydoc_show_class_members = True, False, False
default_role, highlight_language, autodoc_typehints = "literal", "none", "none"
toc_object_entries_show_parents = "hide"
myst_heading_anchors = 4

html_theme, html_title = "pydata_sphinx_theme", f"{project} {release}"
html_static_path, html_css_files = ["static"], ["site.css"]
html_show_sourcelink = html_copy_source = False
html_sidebars = {"index": [], "first_quarter": [], "install": []}
html_theme_options = {
    "logo": {"text": project},
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "show_toc_level": 2,
    "secondary_sidebar_items": {"**": ["page-toc"], "index": []},
    "footer_start": ["copyright"],
    "footer_end": [],
}

SECTIONS = ("forests", "boosting", "reading", "uncertainty", "data", "machines")
sphinx_gallery_conf = {
    "examples_dirs": str(ROOT / "examples"),
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "subsection_order": lambda folder: SECTIONS.index(Path(folder).name),
    "backreferences_dir": "gallery/uses",
    "doc_module": ("gpuforest",),
    "reference_url": {"gpuforest": None},
    "capture_repr": (),
    "download_all_examples": False,
    "show_signature": False,
    "write_computation_times": False,
}

# words that people search for, beyond titles and headings; the search lists their page first
SEARCH = {
    "anomalies": ["anomaly detection", "outlier detection", "isolation forest"],
    "blocks": ["time series", "time series split", "forecast", "concept drift"],
    "boosting": ["gradient boosting", "early stopping", "learning rate"],
    "categories": ["categorical features", "target statistics", "target encoding", "one-hot"],
    "causal": [
        "causal forest", "treatment effects", "heterogeneous treatment effects", "uplift",
        "instrumental variables", "double machine learning", "a/b test",
    ],
    "command_line": ["command line", "cli"],
    "deployment": ["save a model", "save model", "load a model", "onnx", "docker", "pickle"],
    "explanations": ["shap", "shap values", "explain a prediction"],
    "proof": ["proof of origin", "verify a model", "tampering", "digest", "provenance"],
    "gpu": ["gpu", "cuda", "cupy"],
    "rare_classes": ["imbalanced classes", "balanced random forest", "class weights", "priors"],
    "groups": ["grouped data", "clustered data", "repeated measures", "group k-fold", "groups"],
    "importances": ["feature importance", "variable importance", "permutation importance"],
    "learning": [
        "refit", "incremental learning", "merge forests", "prune an ensemble",
        "machine unlearning", "forget a row", "right to erasure", "influence",
    ],
    "install": ["install", "pip install", "python versions", "windows", "macos", "platforms"],
    "oblique": ["oblique splits", "oblique", "linear combinations"],
    "out_of_bag": ["out-of-bag", "oob", "number of trees"],
    "partial_dependence": ["partial dependence", "pdp", "ice curves"],
    "presets": ["presets", "hyperparameters", "tuning"],
    "reading": ["export text", "rules", "decision rules"],
    "report": ["report", "confusion matrix", "roc curve"],
    "ranking": ["learning to rank", "ranking", "lambdarank", "lambdamart", "ndcg"],
    "robustness": ["missing values", "nan", "infinity"],
    "scale": ["out of core", "dask", "cluster", "large data", "distributed"],
    "selection": ["feature selection", "boruta"],
    "survival": ["survival", "survival analysis", "censored", "competing risks", "kaplan-meier"],
    "uncertainty": [
        "confidence intervals", "prediction intervals", "quantile regression", "standard errors",
        "conformal prediction", "uncertainty",
    ],
    "which_estimator": ["which estimator", "forest or boosting"],
}  # fmt: skip

# pages that have a table of contents: every link that begins an item of a list
CONTENTS = ("index", "guide", "inside")
ITEM = re.compile(r"^- \[([^]]+)\]\(([\w./]+)\.(?:md|rst)\)", re.MULTILINE)


def on_the_site(app, docname, source):
    """Links out of docs/ lead to the site's pages or become code, and lists of links a contents."""
    text = re.sub(r"\]\((?:\.\./)*docs/", "](", source[0])
    text = re.sub(r"\]\((?:\.\./)+(?=(?:CONTRIBUTING|CHANGELOG|SECURITY)\.md)", "](/", text)
    text = re.sub(r"\]\((?:\.\./)?examples/README.rst", "](/gallery/index.rst", text)
    text = re.sub(r"\[`?([^]`]+)`?\]\((?:\.\./)*(?:benchmarks|tests|data)/[^)]*\)", r"`\1`", text)
    text = re.sub(r"\[[\w/]+\.md\]\(", "[](", text)  # the title of the page that it leads to
    if docname in CONTENTS:
        for heading, section in re.findall(r"^#+ (.*)\n((?:(?!#).*\n?)*)", text, re.MULTILINE):
            lines = [f"{title} <{page}>" for title, page in ITEM.findall(section)]
            if lines:
                caption = "" if docname == "index" else f":caption: {heading}\n"
                text += f"\n```{{toctree}}\n:hidden:\n{caption}\n" + "\n".join(lines) + "\n```\n"
    if docname in SEARCH:
        words = "\n".join(f"   ! {words}" for words in SEARCH[docname])
        text = f"```{{eval-rst}}\n.. index::\n{words}\n```\n\n{text}"
    source[0] = text


# what a type in a docstring begins with
TYPE = re.compile(
    r"""(?:or\ )?(?:an?\ )?(?:sparse\ |fitted\ )?(?:default=|[{("]|\w+\*|Array\b|arrays?\b
    |ndarrays?\b|array-like|bool|int|float|str|path|None(?!:)|list|tuple|dict|frame|Bunch|csr_
    |function|callable|one\ an\ output|by\ number|and\ `|RandomState|sequence|scikit-learn
    |(?:pyarrow|sklearn|gpuforest|dask|distributed|shap)\.|BinnedData|MemoryEstimate|BiasVariance|estimator
    |classifier|forest\ or|regressor|DecisionTree|self\b|any\ scikit|matplotlib)""",
    re.VERBOSE,
)
# what parts a type from a text, outside brackets
BREAK = re.compile(
    r"(, |; |(?<![;,] None): |\. )(?=(?:[^()\[\]{}]|[(\[{](?:[^()\[\]{}]|\[[^]]*\])*[)\]}])*$)"
)
INNER = re.compile(r"    (\w[\w, ]*) : ")


def entry(head, body):
    """The lines of an entry: `name : type, text` has its text below, as numpydoc wants it."""
    name, colon, rest = head.partition(" : ")
    if not colon:
        name, rest = "others" if head.startswith("As of") else "", head
    rest = re.sub(r"(?<![\w`])(\w+)_(?![\w`])", r"\1\\_", rest)  # no link
    pieces, end = BREAK.split(rest), 0
    while end < len(pieces) and TYPE.match(pieces[end]):
        end += 2
    kind, text = "".join(pieces[: max(end - 1, 0)]), "".join(pieces[end:])
    if not name and not kind:  # a name or a type alone
        kind, text = rest, ""
    if text:  # as a sentence, before those that follow
        stop = "." if body and re.match(r"\s*[A-Z]", body[0]) and text[-1] != "." else ""
        text = " ".join([text + stop, *(line.strip() for line in body)])
        body = [f"    {text[0].upper()}{text[1:]}{'' if text[-1] in '.:' else '.'}"]
    return [f"{name} : {kind}" if name and kind else name or kind, *body]


def entries(lines, wrapped):
    """The entries of a section; where they have no names, a line may go on with the last one's."""
    found = []
    for line in filter(None, lines):
        if line.startswith(" "):
            found[-1][1].append(line)
        elif wrapped and found and not found[-1][1] and " : " not in line:
            found[-1][0] += f" {line}"
        else:
            found.append([line, []])
    for head, body in found:
        if any(map(INNER.match, body)):  # entries inside become items
            body = [re.sub("^    (?!-) *", 6 * " ", INNER.sub(r"    - ``\1``: ", s)) for s in body]
        yield from entry(head, body)
    yield ""


def reshaped(app, what, name, obj, options, lines):
    """A docstring before numpydoc reads it: sections in its shape."""
    bare = next((i for i, line in enumerate(lines) if re.match(r"\w+ : ", line)), 0)
    if what == "class" and bare and not any(line.startswith("---") for line in lines[:bare]):
        lines[bare:bare] = ["Attributes", "----------"]
    heads = [i for i in range(len(lines) - 1) if lines[i + 1].startswith("---")]
    done = lines[: (heads or [len(lines)])[0]]
    for i, end in pairwise([*heads, len(lines)]):
        body = lines[i + 2 : end]
        if lines[i] in ("Parameters", "Attributes", "Returns", "Yields", "Raises"):
            body = entries(body, lines[i] in ("Returns", "Yields"))
        done += [*lines[i : i + 2], *body]
    lines[:] = re.sub(r"`?\bdocs/(\w+)\.md`?", r":doc:`/\1`", "\n".join(done)).split("\n")


NAMES = json.loads((ROOT / "tests" / "public_names.json").read_text())
PUBLIC = {full: full for full in NAMES}  # also by names alone that cannot mean something else
for full in reversed(NAMES):
    if ".impurity" not in full and re.search("[A-Z_]", name := full.rpartition(".")[2]):
        PUBLIC[name] = full


def linked(app, doctree):
    """Names of the package in code lead to their pages."""
    here = app.env.docname
    for node in list(doctree.findall(nodes.literal)):
        full = PUBLIC.get(node.astext())
        outer = (nodes.reference, nodes.title, addnodes.pending_xref)
        if full and not isinstance(node.parent, outer) and here not in ("ecosystem", f"api/{full}"):
            facts = {"refdomain": "py", "reftype": "obj", "reftarget": full, "refexplicit": True}
            link = addnodes.pending_xref("", node.deepcopy(), refdoc=here, refwarn=True, **facts)
            node.replace_self(link)


def members(full):
    """A class's public methods and properties; of one for dask what is not the local one's."""
    module, _, name = full.rpartition(".")
    kind, home = getattr(import_module(module), name), module.replace(".dask", ".tools.dask")
    methods, properties = [], []
    for name in sorted(set(NAMES[full]) - {"__init__"}):
        member = inspect.getattr_static(kind, name, None)
        if isinstance(member, FunctionType | classmethod) and member.__module__.startswith(home):
            methods.append(name)
        elif isinstance(member, property | cached_property) and home == "gpuforest":
            properties.append(name)
    return methods, properties


autosummary_context = {"public_members": members}


def setup(app):
    app.connect("source-read", on_the_site)
    app.connect("doctree-read", linked)
    app.connect("autodoc-process-docstring", reshaped, priority=400)  # numpydoc has 500
