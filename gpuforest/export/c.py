"""A fitted model as one file of C99."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from math import isinf
from pathlib import Path
from typing import Any

import numpy as np

from gpuforest.common.elementary import FACTORIALS, LN2_HIGH, LN2_LOW, LOG2_E, MOST
from gpuforest.common.text import one_line
from gpuforest.core.bins import rounded
from gpuforest.export.container import replaced
from gpuforest.export.model_tables import Tables

LN2 = LN2_HIGH + LN2_LOW
WIDTH = 96  # of the lines of tables
NUMBERS = {"float64": ("double", np.float64), "float32": ("float", np.float32)}

HEAD = """\
/* {title}
 *
 * Predictions are those of gpuforest to the last bit{but}. Nothing is allocated, and only headers
 * of the language are needed. Compile it as ISO C99 (cc -std=c99); options such as -ffast-math,
 * which lose NaN and the order of sums, are refused.
 *
 * x: {n_features} features in this order; NaN: a missing value
{features}
 * out: {n_values} {what}
{labels} */
#include <math.h>
#include <stdint.h>

#ifdef __FAST_MATH__
#error "-ffast-math changes predictions: compile without it"
#endif
#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

"""
NODE = """\
/* A row goes to `next` where x[feature] <= THRESHOLDS[cut]{or_set}{or_sum}, else to the node
 * behind it; a missing value goes to `next` where the highest bit is set. A leaf has the feature
 * {leaf}, and `next` is its row of VALUES. */
typedef struct {{
    uint32_t next;
    {feature} feature;
    {cut} cut;
}} node;

"""
WALK = """\
static uint32_t walk(const {number} *x, {places}uint32_t at)
{{
    for (;;) {{
        const node *n = NODES + at;
        {number} value;
        int left;
        if (n->feature == {leaf})
            return n->next;
{of_sum}\
        value = x[n->feature];
        if (value != value)
            left = (int)(n->next >> 31);
{of_set}\
        else
            left = value <= THRESHOLDS[n->cut];
        at = (n->next & 0x7fffffff) + (uint32_t)!left;
    }}
}}

"""
OF_SET = """\
        else if (CATEGORIES[n->feature]) {{
            uint32_t most = CATEGORIES[n->feature];
            uint32_t code = value >= 0 && value < ({number})most ? (uint32_t)value : most;
            left = (int)(SETS[n->cut + code / 32] >> (code % 32) & 1);
        }}
"""
EXP = f"""\
/* The exponential out of the four operations: the last bit of a library's differs. */
static double exp_of(double x)
{{
    static const double series[{len(FACTORIALS)}] = {{
{{factors}}
    }};
    union {{ uint64_t bits; double value; }} power;
    double k, rest, sum = series[0];
    int64_t whole;
    x = x > {MOST!r} ? {MOST!r} : x < -{MOST!r} ? -{MOST!r} : x;
    k = x * {LOG2_E!r} + 0.5;
    whole = (int64_t)k;
    whole -= (double)whole > k;
    k = (double)whole;
    rest = (x - k * {LN2_HIGH!r}) - k * {LN2_LOW!r};
    for (int i = 1; i < {len(FACTORIALS)}; i++)
        sum = sum * rest + series[i];
    power.bits = (uint64_t)(whole + 1023) << 52; /* 2 to the power of whole */
    return sum * power.value;
}}

"""
SOFTMAX = """\
    double top = sum[0], total = 0.0;
    for (int k = 1; k < {K}; k++)
        top = sum[k] > top ? sum[k] : top;
    for (int k = 0; k < {K}; k++)
        total += out[k] = exp_of(sum[k] - top);
    for (int k = 0; k < {K}; k++)
        out[k] /= total;
"""
# decisions of AdaBoost from shares of the votes, see `AdaBoostClassifier.predict_proba`
VOTES_OF_TWO = """\
    sum[1] -= sum[0];
    sum[0] = -sum[1];
"""
VOTES = """\
    for (int k = 0; k < {K}; k++)
        sum[k] = ({K}.0 * sum[k] - 1.0) / {scale!r};
"""
PRIORS = """\
    static const double priors[{K}] = {{{priors}}};
    double of_all = 0.0;
    for (int k = 0; k < {K}; k++)
        of_all += sum[k] *= priors[k];
    for (int k = 0; k < {K}; k++)
        sum[k] /= of_all;
"""
# what `out` is by the sums, for each link of the tables
LINKS = {
    "identity": "    for (int k = 0; k < {K}; k++)\n        out[k] = sum[k];\n",
    "exp": "    out[0] = exp_of(sum[0]);\n",
    "isolation": f"    out[0] = -exp_of(sum[0] / {{length!r}} * -{LN2!r});\n",
    "logistic": "    out[1] = 1.0 / (1.0 + exp_of(-sum[0]));\n    out[0] = 1.0 - out[1];\n",
    "softmax": SOFTMAX,
    "votes": VOTES + SOFTMAX,
}
# A row's places are found once: where the bin of each feature that is added up lies between the
# feature's first and last bin, a whole number (`BinEdges.coordinates`). Sums of these are exact.
PLACES = """\
/* Where the bins of the features that are added up lie: UINT16_MAX for a missing value. */
static void find_places(const {number} *x, uint16_t *place)
{{
    uint32_t i;
    for (i = 0; i < {n}; i++) {{
        uint32_t low = EDGES_AT[i], high = EDGES_AT[i + 1];
        const {number} value = x[SUMMED[i]];
        while (low < high) {{
            const uint32_t middle = low + (high - low) / 2;
            if (value <= EDGES[middle])
                high = middle;
            else
                low = middle + 1;
        }}
        place[i] = (uint16_t)(value != value ? UINT16_MAX : BINS[low + i]);
    }}
}}

/* Whether a row goes left at the split that begins at `sum`: the number of terms, the most that
 * goes left, and a place and its weight for each term. With one missing, it is `missing`. */
static int sum_goes_left(const int32_t *sum, const uint16_t *place, int missing)
{{
    int32_t i, total = 0;
    int hole = 0;
    for (i = 0; i < sum[0]; i++) {{
        hole |= place[sum[2 + 2 * i]] == UINT16_MAX;
        total += place[sum[2 + 2 * i]] * sum[3 + 2 * i];
    }}
    return hole ? missing : total <= sum[1];
}}

"""
OF_SUM = """\
        if (n->feature == {leaf} - 1) {{
            left = sum_goes_left(SUMS + n->cut, place, (int)(n->next >> 31));
            at = (n->next & 0x7fffffff) + (uint32_t)!left;
            continue;
        }}
"""
# names that a function of the file cannot have: keywords, then names of the file itself
KEYWORDS = """
auto break case char const continue default do double else enum extern float for goto if inline int
long register restrict return short signed sizeof static struct switch typedef union unsigned void
volatile while
NODES ROOTS THRESHOLDS VALUES CATEGORIES SETS SUMS SUMMED EDGES EDGES_AT BINS node walk exp_of place
find_places sum_goes_left main
"""
# functions of math.h and complex.h, which come in three types
MATH = """
acos acosh asin asinh atan atan2 atanh cabs cacos cacosh carg casin casinh catan catanh cbrt ccos
ccosh ceil cexp cimag clog conj copysign cos cosh cpow cproj creal csin csinh csqrt ctan ctanh erf
erfc exp exp2 expm1 fabs fdim floor fma fmax fmin fmod frexp hypot ilogb ldexp lgamma llrint llround
log log10 log1p log2 logb lrint lround modf nan nearbyint nextafter nexttoward pow remainder remquo
rint round scalbln scalbn sin sinh sqrt tan tanh tgamma trunc
"""
# other functions and types that a program has once
LIBRARY = """
abort abs asctime assert atexit atof atoi atol atoll bsearch calloc clearerr clock ctime difftime
div double_t errno exit fclose feof ferror fflush fgetc fgetpos fgets float_t fopen fpclassify
fprintf fputc fputs fread free freopen fscanf fseek fsetpos ftell fwrite getc getchar getenv gets
gmtime isalnum isalpha isblank iscntrl isdigit isfinite isgraph isgreater isgreaterequal isinf
isless islessequal islessgreater islower isnan isnormal isprint ispunct isspace isunordered isupper
iswalnum iswalpha iswblank iswcntrl iswdigit iswgraph iswlower iswprint iswpunct iswspace iswupper
iswxdigit isxdigit labs ldiv llabs lldiv localeconv localtime longjmp malloc math_errhandling mblen
mbstowcs mbtowc memchr memcmp memcpy memmove memset mktime perror printf putc putchar puts qsort
raise rand realloc remove rename rewind scanf setbuf setjmp setlocale setvbuf signal signbit
snprintf sprintf srand sscanf strcat strchr strcmp strcoll strcpy strcspn strerror strftime strlen
strncat strncmp strncpy strpbrk strrchr strspn strstr strtod strtof strtok strtol strtold strtoll
strtoul strtoull strxfrm system time tmpfile tmpnam tolower toupper towlower towupper ungetc va_arg
vfprintf vfscanf vprintf vscanf vsnprintf vsprintf vsscanf wcstombs wctomb
"""
TAKEN = {*KEYWORDS.split(), *LIBRARY.split()}
TAKEN |= {name + kind for name in MATH.split() for kind in ("", "f", "l")}
# types and macros of stdint.h and math.h
FAMILIES = re.compile(
    r"u?int(_least|_fast)?\d+_t|u?int(max|ptr)_t|U?INT\w*_(MIN|MAX|C)|SIZE_MAX"
    r"|(PTRDIFF|SIG_ATOMIC|WCHAR|WINT)_(MIN|MAX)|(FP|MATH|M)_\w+|HUGE_VAL[FL]?|INFINITY|NAN"
)


def export_c(
    estimator: Any, path: str | os.PathLike[str] | None = None, *, dtype: str = "float64",
    name: str = "predict", feature_names: Sequence[str] | None = None,
) -> str:  # fmt: skip
    """A fitted estimator as one file of C99 that needs no library and allocates nothing.

    Its function `void predict(const double *x, double *out)` writes means, or `score_samples`. For
    classes, `void predict(const double *x, double *out, int *label)` writes the probabilities of
    all classes, output after output, and for each output the number of the class in `classes_`.
    Results are equal to those here to the last bit, except the probabilities of AdaBoost and the
    scores of isolation forests, whose exponentials are rounded otherwise. Infinities go the way of
    the largest numbers. For categorical features x has the codes of `gpuforest.category_codes`.

    Parameters
    ----------
    estimator : fitted classifier, regressor or isolation forest of gpuforest
    path : str or path, default=None
        A file to write as well, whole or not at all.
    dtype : {"float64", "float32"}, default="float64"
        The type of x and of the rounded thresholds. Sums and results are of type double.
    name : str, default="predict"
        The name of the function, with which the names of its tables of labels begin.
    feature_names : names of all features; None: those of the fit, or feature_0, feature_1, ...

    Returns
    -------
    str, the source text

    Raises
    ------
    ValueError : not fitted; no name in C; a median of trees
    TypeError : an estimator of another kind
    OSError : the file cannot be written
    """
    if dtype not in NUMBERS:
        raise ValueError(f'dtype={dtype!r} is unknown: pass "float64" or "float32"')
    if not is_free(name):
        raise ValueError(f"name={name!r} is no name of a function in C: pass another")
    source = "".join(_parts(Tables(estimator, "C", feature_names), dtype, name))
    if path is not None:
        with replaced(Path(path)) as file:
            file.write_text(source, encoding="ascii", newline="\n")
    return source


def _parts(tables: Tables, dtype: str, name: str) -> Iterator[str]:
    """The file, part by part."""
    number, numpy_type = NUMBERS[dtype]
    # what leaves have as their feature; splits by sums have the number below
    most = 2**16 - 1 if tables.n_features < 2**16 - 2 else 2**32 - 1
    leaf = f"UINT{most.bit_length()}_MAX"
    summed, begins = _sums_of(tables, numpy_type)
    nodes, thresholds, sets = _nodes(tables, numpy_type, most, begins)
    cuts = max(len(thresholds), len(sets), len(summed["SUMS"]))
    yield _head(tables)
    yield from _labels(tables, name)
    yield NODE.format(
        or_set=",\n * or, of categories, where its bit in SETS is set" if sets else "",
        or_sum=f",\n * or, with the feature {leaf} - 1, as SUMS[cut] says" if begins else "",
        leaf=leaf,
        feature=leaf.lower().replace("max", "t"),
        cut="uint16_t" if cuts <= 2**16 else "uint32_t",
    )
    rows = (f"{{{following},{feature},{cut}}}" for following, feature, cut in nodes)
    yield from _table(f"static const node NODES[{len(tables.feature)}]", rows)
    yield from _numbers("uint32_t", "ROOTS", tables.offsets[:-1].tolist())
    yield from _numbers(number, "THRESHOLDS", thresholds or [0.0])
    yield from _numbers("double", "VALUES", tables.values.ravel().tolist())
    if sets:
        counts = [len(tables.categories.get(f, ())) for f in range(tables.n_features)]
        yield from _numbers("uint32_t", "CATEGORIES", counts)
        yield from _numbers("uint32_t", "SETS", sets)
    if begins:
        types = "uint32_t", "uint32_t", number, "uint16_t", "int32_t"
        for type_name, (table, values) in zip(types, summed.items(), strict=True):
            yield from _numbers(type_name, table, values)
        yield PLACES.format(number=number, n=len(summed["SUMMED"]))
    yield WALK.format(
        number=number,
        leaf=leaf,
        of_set=OF_SET.format(number=number) if sets else "",
        of_sum=OF_SUM.format(leaf=leaf) if begins else "",
        places="const uint16_t *place, " if begins else "",
    )
    if tables.link != "identity":
        yield EXP.replace("{factors}", ",\n".join(f"        {f!r}" for f in reversed(FACTORIALS)))
    yield from _function(tables, number, name, len(summed["SUMMED"]))


def _nodes(
    tables: Tables, dtype: Any, most: int, begins: dict[int, int]
) -> tuple[Iterator[Any], list[float], list[int]]:
    """Rows for the nodes, and the distinct thresholds and the words of sets that they refer to;
    `most` is the feature of leaves, and `begins` where in SUMS a node's split by a sum begins."""
    is_leaf, categorical = tables.feature < 0, np.isin(tables.feature, [*tables.categories])
    feature = np.where(is_leaf, most, tables.feature)
    feature[[*begins]] = most - 1
    by_threshold = (feature < most - 1) & ~categorical
    thresholds, at = np.unique(rounded(tables.threshold, dtype)[by_threshold], return_inverse=True)
    cut = np.zeros(len(is_leaf), np.int64)
    cut[by_threshold] = at
    cut[[*begins]] = [*begins.values()]
    first_words, words = dict[bytes, int](), list[int]()
    for node in np.flatnonzero(categorical).tolist():
        n = len(tables.categories[int(tables.feature[node])])
        bits = np.zeros((n // 32 + 1) * 32, bool)
        bits[tables.members.get(node, [])] = True
        packed = np.packbits(bits, bitorder="little").tobytes()
        if packed not in first_words:
            first_words[packed] = len(words)
            words += np.frombuffer(packed, "<u4").tolist()
        cut[node] = first_words[packed]
    following = tables.left + (tables.missing_left.astype(np.int64) << 31)
    if max(len(is_leaf), len(tables.values)) >= 2**31:
        raise ValueError("the model has more than 2^31 nodes, too many for a file of C")
    columns = np.where(is_leaf, tables.leaf, following), feature, cut
    return zip(*(c.tolist() for c in columns), strict=True), thresholds.tolist(), words


def _head(tables: Tables) -> str:
    """The comment at the beginning, and the headers."""
    lines = []
    for f, feature in enumerate(tables.names):
        lines.append(f"    {f} {feature}")
        if f in tables.edges.statistics:
            lines.append("        the mean target of its category, as category_codes gives it")
        if categories := tables.categories.get(f, ()):
            codes = ", ".join(f"{code} {category!r}" for code, category in enumerate(categories))
            lines.append(f"        {codes}, {len(categories)} any other")
    what = "probabilities of the classes" if tables.classes else "numbers"
    inexact = tables.link in ("votes", "isolation")
    return HEAD.format(
        title=f"{tables.kind} of gpuforest, {tables.n_trees} trees",
        but=", but for the rounding of exponentials" if inexact else "",
        n_features=tables.n_features,
        features="\n".join(f" * {_in_comment(line)}" for line in lines),
        n_values=max(2, tables.n_values) if tables.link == "logistic" else tables.n_values,
        what="number, score_samples" if tables.link == "isolation" else what,
        labels=" * label: for each output the number of its class\n" if tables.classes else "",
    )


def _labels(tables: Tables, name: str) -> Iterator[str]:
    """A table of the labels of each output; that of labels of other kinds is left out."""
    for i, classes in enumerate(tables.classes):
        ending = f"_{i}" if len(tables.classes) > 1 else ""
        table = f"{name}_classes{ending}[{len(classes)}]"
        values = classes.tolist()
        if all(isinstance(value, str) for value in values):
            yield from _table(f"const char *const {table}", map(_string, values))
        elif all(isinstance(v, int) and -(2**31) <= v < 2**31 for v in values):
            yield from _table(f"const int32_t {table}", (str(int(value)) for value in values))


def _function(tables: Tables, number: str, name: str, n_places: int) -> Iterator[str]:
    """The function that predicts; n_places is how many features the splits by sums use."""
    walk = "walk(x, place, ROOTS[t])" if n_places else "walk(x, ROOTS[t])"
    K, link = tables.n_sums, tables.link
    begin = [0.0] * K if tables.baseline is None else tables.baseline.tolist()
    yield f"void {name}(const {number} *x, double *out{', int *label' if tables.classes else ''})\n"
    yield f"{{\n    double sum[{K}] = {{{', '.join(map(repr, begin))}}};\n"
    if n_places:
        yield f"    uint16_t place[{n_places}];\n    find_places(x, place);\n"
    yield f"    for (int t = 0; t < {tables.n_trees}; t++) {{\n"
    if tables.values.shape[1] == 1:
        yield f"        sum[{'0' if K == 1 else f't % {K}'}] += VALUES[{walk}];\n    }}\n"
    else:
        yield f"        const double *added = VALUES + (uint64_t){walk} * {K};\n"
        yield f"        for (int k = 0; k < {K}; k++)\n            sum[k] += added[k];\n    }}\n"
    if tables.divisor is not None:
        yield f"    for (int k = 0; k < {K}; k++)\n        sum[k] /= {tables.divisor!r};\n"
    if tables.priors is not None:
        yield PRIORS.format(K=K, priors=", ".join(map(repr, tables.priors.tolist())))
    yield from _decisions(tables)
    closing = VOTES_OF_TWO + SOFTMAX if link == "votes" and K == 2 else LINKS[link]
    yield closing.format(K=K, length=tables.length, scale=float(max(K - 1, 1) ** 2)) + "}\n"


def _decisions(tables: Tables) -> Iterator[str]:
    """The labels of the highest sums, the first among equals."""
    if tables.link == "logistic":
        yield "    label[0] = sum[0] > 0;\n"
        return
    first = 0
    for i, classes in enumerate(tables.classes):
        yield f"    label[{i}] = 0;\n"
        if len(classes) > 1:
            best = f"sum[{first} + label[{i}]]"
            yield f"    for (int k = 1; k < {len(classes)}; k++)\n"
            yield f"        label[{i}] = sum[{first} + k] > {best} ? k : label[{i}];\n"
        first += len(classes)


def _numbers(kind: str, name: str, values: Sequence[float]) -> Iterator[str]:
    """A table of numbers of a type of C; floats are those of the number's shortest decimal form."""

    def written(value: float) -> str:
        if isinf(value):
            return "INFINITY" if value > 0 else "-INFINITY"
        return f"{value!r}f" if kind == "float" else repr(value)

    yield from _table(f"static const {kind} {name}[{len(values)}]", map(written, values))


def _table(head: str, items: Iterable[str]) -> Iterator[str]:
    """A table, as many items on a line as fit."""
    yield f"{head} = {{\n"
    line = "   "
    for item in items:
        if len(line) + len(item) > WIDTH:
            yield line + "\n"
            line = "   "
        line += f" {item},"
    yield line + "\n};\n\n"


def _string(text: str) -> str:
    """A string of C, of UTF-8 in plain ASCII."""
    safe = {*b" !#$%&'()*+,-./:;<=>@[]^_`{|}~"} | {c for c in range(128) if chr(c).isalnum()}
    return '"' + "".join(chr(b) if b in safe else f"\\{b:03o}" for b in text.encode()) + '"'


def _in_comment(text: str) -> str:
    """Text that neither ends a comment nor begins another."""
    shown = one_line(text.encode("ascii", "backslashreplace").decode())
    shown = shown.replace("*/", "* /").replace("/*", "/ *").rstrip("\\")
    return re.sub(r"\?(?=\?)", "? ", shown)  # no trigraphs


def _sums_of(tables: Tables, dtype: Any) -> tuple[dict[str, list[Any]], dict[int, int]]:
    """The tables by name, and where in SUMS each split by a sum begins."""
    used = sorted({f for features, _, _ in tables.sums.values() for f in features})
    edges, bins, ends = list[float](), list[int](), [0]
    for f in used:
        begin, end = tables.edges.offsets[f : f + 2]
        edges += rounded(tables.edges.values[begin:end], dtype).tolist()
        bins += tables.edges.coordinates[f, : end - begin + 1].tolist()
        ends.append(len(edges))
    position = {f: i for i, f in enumerate(used)}
    begins, sums = dict[int, int](), list[int]()
    for node, (features, weights, threshold) in tables.sums.items():
        begins[node] = len(sums)
        sums += [len(features), threshold]
        for f, weight in zip(features, weights, strict=True):
            sums += [position[f], weight]
    summed: dict[str, list[Any]] = {"SUMMED": used, "EDGES_AT": ends, "EDGES": edges or [0.0]}
    return {**summed, "BINS": bins, "SUMS": sums}, begins


def is_free(name: str) -> bool:
    """Whether a function can have the name. C keeps all that begin with "_" for itself."""
    is_name = re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII) is not None
    return is_name and name not in TAKEN and not FAMILIES.fullmatch(name)
