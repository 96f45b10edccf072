"""Text for people, from names of any kind."""

from __future__ import annotations

from collections.abc import Iterable


def one_line(name: object) -> str:
    """A name of any kind, with escapes instead of line ends and all else that cannot be seen."""
    text = str(name)
    if text.isprintable():  # most are, and a tree asks for each many times
        return text
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def shortened(text: object, most: int = 60) -> str:
    """A name on one line, in at most `most` characters: the middle of a longer one is left out."""
    line, end = one_line(text), (most - 1) // 2
    return line if len(line) <= most else f"{line[: most - 1 - end]}…{line[len(line) - end :]}"


def did_you_mean(word: str, words: Iterable[str]) -> str:
    """The end of an error about an unknown word: suggestions, or "" if no word is near."""
    from difflib import get_close_matches  # only errors need it

    known = list(words)
    begun = [other for other in known if other.startswith(word)][:3]
    close = begun or get_close_matches(word, known, n=1, cutoff=0.65)
    return f": did you mean {' or '.join(map(repr, close))}?" if close else ""
