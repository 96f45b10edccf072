"""Names that try to be something else than names, and a report that is full of them."""

import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd

import gpuforest

SCRIPT = "<script>alert(1)</script>"
NAMES = [
    SCRIPT, '" onmouseover="alert(1)', "</title></style><img src=x onerror=alert(1)>",
    "", "   ", "x" * 500, "👩 café", "שלום עולם", "a\nb\x00\u202ec", "'\"&amp;<>",
]  # fmt: skip
N = 140


def hostile_rows() -> tuple[pd.DataFrame, np.ndarray]:
    """Features, categories and classes of such names; one row in seven is missing."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, len(NAMES), N)
    X = pd.DataFrame({name: y * 0.3 + rng.normal(size=N) for name in NAMES})
    X = X.mask(X.gt(X.quantile(6 / 7)))
    X["kind"] = np.array(NAMES, object)[(y + rng.integers(0, 2, N)) % len(NAMES)]
    return X, np.array(NAMES, object)[y]


def hostile_report() -> str:
    X, y = hostile_rows()
    forest = gpuforest.RandomForestClassifier(
        6, min_category_frequency=1, random_state=0, backend="numpy"
    )
    forest.fit(X, y)
    forest.source_ = {"target": SCRIPT}
    found = forest.report(X[: N // 2], y[: N // 2])
    assert isinstance(found, str)
    return found


VOID = ("meta", "use", "path")  # elements without content


class Page(HTMLParser):
    """What a page consists of; reading it fails where its elements are not nested well.

    elements : names and attributes, in their order
    text : all that is to be read
    """

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text, self._open, self._skip = "", [], False
        self.feed(html)
        self.close()
        assert not self._open, self._open

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        assert tag in (*VOID, "g"), tag  # g: of a line without points
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        if self._open and self._open[-1] != "style":
            self.text += data + "\n"

    def all(self, name: str) -> list[dict[str, str | None]]:
        """The attributes of all elements of a name."""
        return [attributes for tag, attributes in self.elements if tag == name]

    def after(self, word: str) -> str:
        """The text that follows a word that stands by itself."""
        return re.split(rf"^{re.escape(word)}$", self.text, maxsplit=1, flags=re.M)[1].strip()
