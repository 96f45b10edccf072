"""Text for people, from names of any kind."""

from __future__ import annotations


def one_line(name: object) -> str:
    """A name of any kind, with escapes instead of line ends and all else that cannot be seen."""
    text = str(name)
    if text.isprintable():  # most are, and a tree asks for each many times
        return text
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
