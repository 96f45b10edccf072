"""CSV files to be read, and what was read of them."""

import csv
import io
import re
from contextlib import suppress
from pathlib import Path

import narwhals.stable.v2 as nw
import numpy as np

from gpuforest.data.frames import is_missing
from gpuforest.data.text import FALSE, MISSING, TRUE, Reading

TEXT = "text"
CSV = "a,b,w,y\n1,?,1,no\n2.5,NA,2,yes\n-3,,3,no\n"


def write(folder: Path, content: str | bytes, name: str = "data.csv") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def column(frame, name):
    """A column as a list, None where it is missing."""
    missing = is_missing(frame[name])
    found = zip(frame[name].to_list(), missing, strict=True)
    return [None if absent else value for value, absent in found]


def plain(frame):
    """A frame as lists by name, with the kind of each column."""

    def kind(dtype):
        is_text = isinstance(dtype, nw.String | nw.Categorical | nw.Object)
        return TEXT if is_text else str(dtype)

    return {name: (kind(dtype), column(frame, name)) for name, dtype in frame.schema.items()}


def by_python(content, reading):
    """As `plain`, what a file of this content holds, as Python takes it."""
    text = io.StringIO(content.removeprefix("\ufeff"), newline="")
    first, *rows = csv.reader(text, delimiter=max(",;", key=content.split("\n")[0].count))
    rows = [row for row in rows if len(row) == len(first)]  # others are blank
    columns = zip(*rows, strict=True)
    return {n.strip(): values_of(c, reading) for n, c in zip(first, columns, strict=True)}


def values_of(texts, reading):
    """The kind and the values of a column of text."""
    held = [text.strip(" \t") not in {*MISSING, *reading.missing} for text in texts]
    there = [text for text, known in zip(texts, held, strict=True) if known]
    bare = [reading.in_python(text.strip(reading.around)) for text in there]
    kind, found = TEXT, there
    if {*bare} <= {*TRUE, *FALSE}:
        kind, found = "Boolean", [text in TRUE for text in bare]
    odd = reading.no_number and any(re.search(reading.no_number, text.strip()) for text in there)
    if not odd and all(re.fullmatch(r"[0-9eE+\-. \tinfatyINFATY]*", text) for text in bare):
        with suppress(ValueError):
            kind, found = "Float64", [*map(float, bare)]
        if all(held) and all(re.fullmatch("-?[0-9]+", text) for text in bare):
            with suppress(OverflowError):
                kind, found = "Int64", np.array([*map(int, bare)], np.int64).tolist()
    values = iter(found)
    return kind, [next(values) if known else None for known in held]


READINGS = {
    "decimal commas": ("a;b;c\n1,5;1.5;-,5\n2;2;1,5e3\n", Reading(decimal=",")),
    "thousands": ('a,b\n"1,234",1\n"-12,345,678.5","1,0"\n', Reading(thousands=",")),
    "both": ("a;b;c\n1.234,5;1.000;x\n2;2.000;1.5\n", Reading(decimal=",", thousands=".")),
    "thousands of blanks": ("a,b\n1 234,1\n12 345 678, 2\n", Reading(thousands=" ")),
    "markers": ("a,b\n-,n.a.\n1, - \n-2,x\n", Reading(missing=("-", "n.a."))),
}
BATTERY = {
    "plain": CSV,
    "missing markers": "a,b,c\nNA,null,?\n1,nan,x\n-nan,None,N/A\n2,<NA>, ? \n",
    "whole numbers with gaps": "a,b\n1,\n,2\n3,9007199254740993\n",
    "large whole numbers": "a,b\n9007199254740993,9223372036854775807\n-1,-9223372036854775808\n",
    "too large whole numbers": "a\n1\n9223372036854775808\n",
    "booleans": "a,b,c,d\ntrue,False,TRUE,True\nFalse,,0,yes\n",
    "booleans and numbers": "a\ntrue\n1\n",
    "signs, points and exponents": "a,b,c,d\n+1,.5,1.,1e5\n-2,-.5,-0,-1E-5\n",
    "leading zeros": "a,b\n007,00\n012,0.10\n",
    "infinities": "a,b,c\ninf,Infinity,1e400\n-inf,-INF,-1e400\n",
    "tiny and long": "a\n1e-400\n0.1000000000000000055511151231257827\n2.2250738585072011e-308\n",
    "no numbers": "a,b,c,d,e,f\n0x1F,1_000,1e,--1,٣,1 2\n1,1,1,1,1,1\n",
    "no numbers but almost": "a,b,c,d\n-,12 %,$1,1.2.3\n1,1,1,1\n",
    "blanks around": "a, b,c\n 1,2 , x\n3 , 4,x \n\t5,\t , ?\n",
    "quotes": 'a,"b, c","d""e"\n"1","x, y","say ""no"""\n"2",z,"line\nbreak"\n',
    "odd quotes": 'a,b\nx"y"z,5"\n"x"y,""\n',
    "a line break among numbers": 'a,b\n"1\n2",1\n3,1\n',
    "quoted numbers and empty": 'a,b\n"1.5",""\n"",""\n',
    "blank lines": "a,b\n\n1,2\n\n\n3,4\n\n",
    "lines of blanks": "a,b\n  \n1,2\n",
    "one column": "a\n1\n\n2\n  \n",
    "windows": "a,b\r\n1,x\r\n2,y\r\n",
    "old mac": "a,b\r1,x\r2,y\r",
    "no last line break": "a,b\n1,2",
    "byte order mark": "\ufeffa,b\n1,2\n",
    "unicode": "größe,名\n1,ö\n2,東京\n",
    "strings like numbers": "a\n1\nx\n2\n",
    "all missing": "a,b\n,1\n?,2\n",
    "nothing but a number": "a,b\nnan,x\nNaN,1\n",
    "blanks in the header": "a , b,\tc\t\n1,2,3\n",
    "control characters": "a,b\n1,\x1b[31m\n2,\x00\n",
}
