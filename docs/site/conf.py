"""Sphinx's settings of the site, which `.ci/site` builds from a copy of docs/.

The pages are plain Markdown. Lists of links on the pages in `CONTENTS` become the tables of
contents, and links out of docs/ become links of the site.
"""

import inspect
import re
import tomllib
from importlib import import_module
from itertools import pairwise
from pathlib import Path

from docutils import nodes
from sklearn.base import BaseEstimator
from sphinx import addnodes

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

project, release = PROJECT["name"], PROJECT["version"]
copyright = "the authors of gpuforest"
extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["site", "gallery/**/*.md5", "gallery/**/*.ipynb"]
templates_path = [str(Path(__file__).with_name("templates"))]
nitpicky = True
default_role = "literal"
smartquotes = False
highlight_language = "none"
toc_object_entries_show_parents = "hide"
autodoc_typehints = "none"
numpydoc_show_class_members = False
myst_heading_anchors = 4
suppress_warnings = ["config.cache", "myst.xref_missing_lang"]

html_theme = "pydata_sphinx_theme"
html_title = f"{project} {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sourcelink = html_copy_source = False
html_sidebars = {"index": [], "first_quarter": []}
html_theme_options = {
    "logo": {"text": project},
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "navigation_with_keys": False,
    "show_nav_level": 1,
    "show_toc_level": 2,
    "secondary_sidebar_items": {"**": ["page-toc"], "index": []},
    "footer_start": ["copyright"],
    "footer_end": [],
}

sphinx_gallery_conf = {
    "examples_dirs": str(ROOT / "examples"),
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "backreferences_dir": "gallery/uses",
    "doc_module": ("gpuforest",),
    "reference_url": {"gpuforest": None},
    "capture_repr": (),
    "download_all_examples": False,
    "show_signature": False,
    "write_computation_times": False,
    "remove_config_comments": True,
    "subsection_order": lambda folder: SECTIONS.index(Path(folder).name),
}
SECTIONS = ("forests", "boosting", "reading", "uncertainty", "data", "machines")

# pages that have a table of contents: every link that begins an item of a list
CONTENTS = ("index", "guide", "inside")
ITEM = re.compile(r"^- \[([^]]+)\]\(([\w./]+)\.(?:md|rst)\)", re.MULTILINE)


def on_the_site(app, docname, source):
    """Links out of docs/ lead to the site's pages or become code, and lists of links a contents."""
    text = source[0]
    text = re.sub(r"\]\((?:\.\./)*docs/", "](", text)
    text = re.sub(r"\]\((?:\.\./)+(?=(?:CONTRIBUTING|CHANGELOG)\.md)", "](/", text)
    text = text.replace("](../examples/README.rst)", "](gallery/index.rst)")
    text = re.sub(r"\[`?([^]`]+)`?\]\((?:\.\./)*(?:benchmarks|tests|data)/[^)]*\)", r"`\1`", text)
    text = re.sub(r"\[[\w/]+\.md\]\(", "[](", text)  # the title of the page that it leads to
    if docname in CONTENTS:
        for heading, section in re.findall(r"^#+ (.*)\n((?:(?!#).*\n?)*)", text, re.MULTILINE):
            lines = [f"{title} <{page}>" for title, page in ITEM.findall(section)]
            if lines:
                caption = "" if docname == "index" else f":caption: {heading}\n"
                text += f"\n```{{toctree}}\n:hidden:\n{caption}\n" + "\n".join(lines) + "\n```\n"
    source[0] = text


# what a type in a docstring begins with
TYPE = re.compile(
    r"""(?:or\ )?(?:an?\ )?(?:sparse\ |fitted\ )?(?:default=|[{("]|\w+\*|Array\b|arrays?\b
    |ndarrays?\b|array-like|bool|int|float|str|path|None(?!:)|list|tuple|dict|frame|Bunch|csr_
    |function|callable|one\ an\ output|and\ `|RandomState|sequence|scikit-learn|matplotlib
    |(?:pyarrow|sklearn|gpuforest|dask|shap)\.|BinnedData|MemoryEstimate|BiasVariance|estimator
    |classifier|forest\ or|regressor|DecisionTree|self\b|any\ scikit)""",
    re.VERBOSE,
)
# what parts a type from a text, outside brackets
BREAK = re.compile(
    r"(, |; |(?<![;,] None): |\. )(?=(?:[^()\[\]{}]|[(\[{](?:[^()\[\]{}]|\[[^]]*\])*[)\]}])*$)"
)


RULE = re.compile("-{3,}")
INNER = re.compile(r"    (\w[\w, ]*) : ")


def sentence(text):
    """Text as a sentence: with a capital and a stop."""
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", ":")) else ".")


def entry(head, body):
    """The lines of an entry: `name : type, text` has its text below, as numpydoc wants it."""
    name, colon, rest = head.partition(" : ")
    if not colon:
        name, rest = "", head
    rest = re.sub(r"(?<![\w`])(\w+)_(?![\w`])", r"\1\\_", rest)  # no link
    pieces, end = BREAK.split(rest), 0
    while end < len(pieces) and TYPE.match(pieces[end]):
        end += 2
    kind, text = "".join(pieces[: max(end - 1, 0)]), "".join(pieces[end:])
    if not colon and not kind:  # a name alone, or "As of ..."
        kind, text = rest, ""
    if text:
        begins = bool(body) and re.match(r"\s*[A-Z]", body[0])
        first = f"{text}{'' if text.endswith('.') else '.'}" if begins else text
        inner = [line.strip() for line in body]
        words = sentence(" ".join([first, *inner]).strip())
        body = [f"    {words}"]
    return [f"{name} : {kind}" if name and kind else name or kind, *body]


def entries(title, lines):
    """The entries of a section of a docstring, in the shape that numpydoc expects."""
    found = []
    for line in lines:
        if line.startswith(" ") or not line:
            found[-1][1].append(line) if found else None
        elif (
            found and not any(found[-1][1]) and title in ("Returns", "Yields") and " : " not in line
        ):
            found[-1][0] += f" {line}"  # it goes on
        else:
            found.append([line, []])
    for head, body in found:
        if any(map(INNER.match, body)):  # entries inside become items
            body = [
                INNER.sub(r"    - ``\1``: ", line) if INNER.match(line) else f"      {line.strip()}"
                for line in body
            ]
        yield from entry(head, [line for line in body if line])
    yield ""


def reshaped(app, what, name, obj, options, lines):
    """A docstring before numpydoc reads it: sections in its shape."""
    bare = next((i for i, line in enumerate(lines) if re.match(r"\w+ : ", line)), 0)
    if what == "class" and bare and not any(map(RULE.fullmatch, lines[:bare])):
        lines[bare:bare] = ["Attributes", "----------"]
    heads = [i for i in range(len(lines) - 1) if RULE.fullmatch(lines[i + 1])]
    done = lines[: (heads or [len(lines)])[0]]
    for i, end in pairwise([*heads, len(lines)]):
        title, body = lines[i], lines[i + 2 : end]
        if title in ("Parameters", "Attributes", "Returns", "Yields", "Raises"):
            body = list(entries(title, body))
        done += [title, lines[i + 1], *body]
    lines[:] = re.sub(r"`?\bdocs/(\w+)\.md`?", r":doc:`/\1`", "\n".join(done)).split("\n")


PUBLIC: dict[str, str] = {}  # full names, also by names alone that cannot mean something else
for module in ("gpuforest", "gpuforest.dask", "gpuforest.plot"):
    for name in import_module(module).__all__:
        if not name.startswith("_"):
            PUBLIC[f"{module}.{name}"] = f"{module}.{name}"
            if re.search("[A-Z_]", name):  # `load` alone may be another's
                PUBLIC.setdefault(name, f"{module}.{name}")


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
    """The public methods of a class that this package defines, and its properties.

    Those for dask have pages for what differs from the local estimators.
    """
    module, _, name = full.rpartition(".")
    home = "gpuforest.tools.dask" if module == "gpuforest.dask" else "gpuforest"
    kind, methods, properties = getattr(import_module(module), name), [], []
    for name in dir(kind):
        member = inspect.getattr_static(kind, name)
        if name.startswith(("_", "set_")) or hasattr(BaseEstimator, name):  # scikit-learn's
            continue
        function = getattr(member, "__func__", member)
        if inspect.isfunction(function):
            if function.__module__.startswith(home):
                methods.append(name)
        elif type(member).__name__ in ("property", "cached_property") and home == "gpuforest":
            properties.append(name)
    return methods, properties


autosummary_context = {"public_members": members}


def setup(app):
    app.connect("source-read", on_the_site)
    app.connect("doctree-read", linked)
    app.connect("autodoc-process-docstring", reshaped, priority=400)  # numpydoc has 500
