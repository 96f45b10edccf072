"""Checks of the data that users pass, before any work; errors name the parameter or column."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from numbers import Number
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import is_classifier
from sklearn.utils import assert_all_finite, check_array, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, validate_data

from gpuforest.backends.base import Array, Backend
from gpuforest.backends.rows import value_dtype
from gpuforest.common.dtypes import MAX_FEATURES, MAX_ROWS, ROW, VALUE
from gpuforest.common.parallel import parallel_map
from gpuforest.core.bins import Categories
from gpuforest.core.criteria import Criterion
from gpuforest.core.target import CheckedTarget
from gpuforest.data import arrays
from gpuforest.data.categories import CategoryReader
from gpuforest.data.labels import Labels
from gpuforest.data.target_statistics import may_have_statistics
from gpuforest.growing.edges import DEVICE_VALUES

# text that sorts in the order of time, each digit as 0: a number, or a year and what follows
SORTED_TEXT = re.compile(r"\D*(0+|0000\D.*)")
LARGEST = 1e304  # of a target's values: sums over 10,000 trees stay finite


def learn_table(
    estimator: Any, X: Any, backend: Backend, weights: Any = None
) -> tuple[Array, Categories, list[Any] | None]:
    """`check_table` in a fit: X, the categories that it learns, and the names of the columns.

    weights : [N], on the host, unchecked; rows of weight zero add no categories"""
    if hasattr(X, "by_feature"):  # BinnedData
        learn_binned(estimator, X)
        return X, X.edges.categories, X.feature_names
    wanted, fewest = estimator.categorical_features, estimator.min_category_frequency
    reader = CategoryReader(wanted, None, fewest, weights, split=estimator.categorical_split)
    X, names = read_table(estimator, X, backend, reader, reset=True)
    return X, reader.categories, names


def refuse_signs(signs: Any, categories: Categories, names: list[Any] | None) -> None:
    """Raise a ValueError if a categorical feature has a monotonic constraint."""
    signs = np.asarray(signs)
    for f in sorted(categories) if signs.ndim == 1 else ():
        if f < len(signs) and signs[f]:
            raise ValueError(
                "Categorical features cannot have monotonic constraints: set that of "
                f"{column_name(f, names)} in monotonic_cst to 0"
            )


def check_table(
    estimator: Any, X: Any, backend: Backend, known: dict[int, Any] | None = None
) -> Array:
    """X as a real array [N, F] of any layout; NaN is missing, infinities as the estimator takes
    them. The result is on the host, or on the backend's device if X was there without categories.
    known : categories learned from other rows in this fit, see `BinEdges.known`"""
    if known is None:
        known = estimator.forest_.edges.known
    return read_table(estimator, X, backend, CategoryReader(known=known), reset=False)[0]


def learn_binned(estimator: Any, data: Any) -> None:
    """`learn_table` of binned data; an error if they were binned by other parameters."""
    names = "max_bins", "categorical_features", "min_category_frequency", "categorical_split"
    for name in names if data.edges.known else names[:1]:
        asked, binned = getattr(estimator, name), getattr(data, name)
        pair = [asked, binned]
        if name == "categorical_split":  # without statistics, bins are the same
            pair = [split if may_have_statistics(split) else "subset" for split in pair]
        if not np.array_equal(*pair):
            raise ValueError(
                f"{name}={asked!r} of the estimator, but the data were binned with "
                f"{name}={binned!r}: pass the same to both"
            )
    if data.by_class not in (None, is_classifier(estimator)):
        raise ValueError(
            f"the target statistics are of {'classes' if data.by_class else 'numbers'}, and the "
            f"estimator predicts {'numbers' if data.by_class else 'classes'}: bin with y of floats "
            "for numbers, and of integers or strings for classes"
        )
    shown = np.broadcast_to(np.float32(0), data.shape)
    validate_data(estimator, shown, reset=True, skip_check_array=True)
    if data.feature_names is not None:
        estimator.feature_names_in_ = np.array(data.feature_names, object)


def read_table(
    estimator: Any, X: Any, backend: Backend, categories: CategoryReader, reset: bool
) -> tuple[Array, list[Any] | None]:
    """X as numbers, and the names of its columns."""
    if hasattr(X, "by_feature"):
        raise TypeError("X is BinnedData, which only fit takes: pass the table, or its blocks")
    if issparse(X):
        return _check_sparse(estimator, X, categories, reset), None
    names: list[Any] | None = None
    if arrays.is_frame(X):
        X, names = _read_frame(estimator, X, categories, reset)
    X = _real_array(arrays.bring(X, backend, "X"))
    if X.ndim != 2 and not isinstance(X, np.ndarray):
        raise ValueError(f"Expected 2D array, got {X.ndim}D array instead: X has shape {X.shape}")
    shown = _shadow(X)
    if shown.ndim != 2 or shown.size == 0 or shown.dtype.kind == "O":
        # a table of numbers passes; asked about one row, scikit-learn would take longer than we
        check_array(shown, dtype=None, ensure_all_finite=False, estimator=estimator, input_name="X")
    _refuse_large(X.shape)
    if names is None:
        # it finds nothing in an array like that of fit, in a fifth of the time of predicting a row
        same = type(shown) is np.ndarray and X.shape[1] == getattr(estimator, "n_features_in_", -1)
        if reset or not same or hasattr(estimator, "feature_names_in_"):
            validate_data(estimator, shown, reset=reset, skip_check_array=True)
        categories.choose(X.shape[1])
        X = _as_numbers(X, categories)
    return without_infinities(estimator, X, names, backend), names


def _read_frame(
    estimator: Any, X: Any, categories: CategoryReader, reset: bool
) -> tuple[Array, list[Any]]:
    """The numbers of a frame, where it is, and its names; categories are found on the host."""
    frame = arrays.open_frame(X)
    X, names = frame.to_native(), list(frame.columns)
    if not reset:
        _refuse_other_order(names, getattr(estimator, "feature_names_in_", ()))
    validate_data(estimator, X, reset=reset, skip_check_array=True)
    categories.choose(len(names), frame)
    if arrays.is_on_device(X) and not categories.features:
        return arrays.stack_columns(frame, arrays.frame_dtype(frame)), names
    return arrays.frame_to_array(arrays.to_host(X, "X"), categories)


def _check_sparse(estimator: Any, X: Any, categories: CategoryReader, reset: bool) -> Any:
    """A sparse X by rows, in which each entry stands once."""
    X = validate_data(
        estimator, X, reset=reset, accept_sparse="csr", dtype="numeric", ensure_all_finite=False
    )
    _refuse_large(X.shape)
    categories.choose(X.shape[1])
    if categories.features:
        raise ValueError(
            "categorical features of sparse X are not supported: pass X.toarray(), or a frame"
        )
    if not X.has_canonical_format:
        X = X.copy()  # the user's stays as it is
        X.sum_duplicates()
    if X.dtype.kind == "f" and (infinite := np.isinf(X.data)).any():
        most = _most(estimator, X.dtype, column_name(int(X.indices[infinite.argmax()]), None))
        X = X.copy()
        np.clip(X.data, -most, most, out=X.data)
    return X


def _refuse_large(shape: tuple[int, ...]) -> None:
    if shape[0] > MAX_ROWS:
        raise ValueError(f"X has {shape[0]} rows; at most {MAX_ROWS} are supported")
    if shape[1] > MAX_FEATURES:
        raise ValueError(f"X has {shape[1]} features; at most {MAX_FEATURES} are supported")


def _refuse_other_order(names: list[Any], fitted: Iterable[Any]) -> None:
    """Refuse columns in another order, and name the first; scikit-learn would not name it."""
    fitted = list(fitted)
    if names == fitted or {*names} != {*fitted}:
        return
    i = next(i for i, name in enumerate(names) if name != fitted[i])
    raise ValueError(
        "The feature names should match those that were passed during fit.\n"
        "Feature names must be in the same order as they were in fit.\n"
        f"The first out of place is {names[i]!r}: it is column {i}, where {fitted[i]!r} belongs, "
        f"and belongs to column {fitted.index(names[i])}."
    )


def _shadow(X: Array) -> np.ndarray:
    """The array for scikit-learn's checks: host X, or a device X's shape without memory."""
    if isinstance(X, np.ndarray):
        return X
    return np.broadcast_to(np.zeros((), X.dtype), X.shape)


def _real_array(X: Any) -> Any:
    """X as bool, int, float (up to 64 bits) or objects (strings), copied only if necessary."""
    if hasattr(X, "toarray"):
        raise TypeError("of sparse X only SciPy's is supported: pass that, or a dense array")
    if isinstance(X, np.ma.MaskedArray) and X.dtype.kind in "biufOU":
        # what is masked is missing; float16 widens no float
        wide = object if X.dtype.kind == "U" else np.result_type(X, np.float16)
        X = np.ma.filled(X.astype(wide), np.nan)
    listed = not hasattr(X, "dtype")
    passed = X
    if type(X) is not np.ndarray and not arrays.is_on_device(X):
        X = np.asarray(X)
    if X.dtype.kind == "c":
        raise ValueError("Complex data not supported: X must hold real numbers")
    if X.dtype.kind in "UST":
        # NumPy makes strings of the numbers in a list
        return np.array(passed, dtype=object) if listed else X.astype(object)
    if X.dtype.kind not in "biufO":
        advice = f"; {arrays.DATES}" if X.dtype.kind in "mM" else ""
        raise ValueError(f"X has the dtype {X.dtype}: only real numbers are supported{advice}")
    return X.astype(VALUE) if X.dtype.itemsize > 8 and X.dtype.kind == "f" else X


def _as_numbers(X: Array, categories: CategoryReader) -> Array:
    """An array without names as numbers; categories are found on the host."""
    if X.dtype.kind != "O" and not categories.features:
        return X
    X = arrays.to_host(X, "X")
    if X.dtype.kind == "O":
        out = np.empty(X.shape, VALUE)
        for f in sorted({*range(X.shape[1])} - categories.features):
            out[:, f] = arrays.object_numbers(X[:, f], column_name(f, None), text=True)
    else:
        out = X.astype(value_dtype(X))
    for f in sorted(categories.features):
        out[:, f] = categories.codes(f, X[:, f], column_name(f, None))
    return out


def _targets(y: Any, backend: Backend) -> Array:
    """y [N] or [N, n_outputs], where it came; a column vector is flattened with a warning."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    if hasattr(y, "toarray"):
        raise TypeError(
            "Sparse data was passed for y, but dense data is required. Use '.toarray()' to "
            "convert to a dense numpy array."
        )
    y = arrays.bring(y, backend, "y")
    on_device = type(y) is not np.ndarray and arrays.is_on_device(y)
    y = y if on_device else arrays.host_array(y, "y")
    if getattr(y.dtype, "names", None):
        raise ValueError(
            "y has fields, such as an event and a time, which survival forests take (a frame of "
            "two columns in a block is taken for them): pass several outputs as a plain array"
        )
    if y.dtype.kind == "c":
        raise ValueError("Complex data not supported: y must hold labels or real numbers")
    if y.ndim == 2 and y.shape[1] > 1:
        return y
    shown = column_or_1d(_shadow(y), warn=True)
    return backend.xp.reshape(y, (-1,)) if on_device else shown


def _check_length(y: Array, n_rows: int) -> None:
    if len(y) != n_rows:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: X has {n_rows} "
            f"rows, y has {len(y)}"
        )


def _refuse_not_finite(y: Array, backend: Backend) -> None:
    if isinstance(y, np.ndarray) or not bool(backend.xp.all(backend.xp.isfinite(y))):
        assert_all_finite(y if isinstance(y, np.ndarray) else backend.asnumpy(y), input_name="y")


def check_labels(y: Any, n_rows: int, backend: Backend) -> CheckedTarget:
    """Class codes [N] of each output, where y is, and the sorted classes, on the host."""
    if isinstance(y, Labels):
        _check_length(y, n_rows)
        return CheckedTarget([y.codes], [y.classes])
    y = _targets(y, backend)
    _check_length(y, n_rows)
    columns = [y] if y.ndim == 1 else [y[:, i] for i in range(y.shape[1])]
    codes, classes = zip(*[_labels_of(column, backend) for column in columns], strict=True)
    return CheckedTarget(list(codes), list(classes))


def _labels_of(y: Array, backend: Backend) -> tuple[Array, np.ndarray]:
    if y.dtype.kind == "f":
        _refuse_not_finite(y, backend)
    if not isinstance(y, np.ndarray):
        return _labels_on_device(y, backend)
    if y.dtype.kind in "biuf":
        check_classification_targets(y)
    missing = "Input y contains NaN or None: every row needs a label"
    codes, classes = _distinct(y, "Unknown label type: y", missing)
    if y.dtype.kind == "O" and not any(isinstance(label, str) for label in classes):
        plain = np.array(classes.tolist())  # Python numbers are numbers
        if plain.dtype.kind in "biuf" and plain.shape == classes.shape:
            check_classification_targets(plain[codes])
            classes = plain
    return codes, classes


def _distinct(labels: np.ndarray, name: str, missing: str) -> tuple[np.ndarray, np.ndarray]:
    """The number i64[N] of each label, and the sorted labels; the error `missing` if there is none
    for a row."""
    try:
        distinct, numbers = np.unique(labels, return_inverse=True)
        is_missing = bool((distinct != distinct).any()) or None in distinct[:1]
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name} mixes labels without an order, or misses some (NaN, None): {error}"
        ) from error
    if is_missing:
        raise ValueError(missing)
    return numbers, distinct


def _labels_on_device(y: Array, backend: Backend) -> tuple[Array, np.ndarray]:
    """The codes and classes of y on a device, sorted there; only the classes are copied."""
    xp, kind = backend.xp, y.dtype.kind
    if kind not in "biuf":
        raise ValueError(f"Unknown label type: y has the dtype {y.dtype}")
    values, codes = xp.unique_inverse(xp.astype(y, xp.uint8) if kind == "b" else y)
    classes = backend.asnumpy(values)
    fractions = classes[classes != np.floor(classes)]
    if len(fractions):
        check_classification_targets(fractions[:1])  # "continuous": raises
    return codes, classes.astype(np.bool_) if kind == "b" else classes


def check_numbers(y: Any, n_rows: int, criterion: Criterion, backend: Backend) -> CheckedTarget:
    """Targets f64[N] or f64[N, n_outputs] of a regression, where y is."""
    if isinstance(y, Labels):
        raise ValueError("y must hold real numbers, but the data have labels")
    y = _targets(y, backend)
    if y.dtype.kind not in "biufO":
        raise ValueError(f"y must hold real numbers, not {y.dtype}")
    y = _as_reals(y, "y")
    xp = np if isinstance(y, np.ndarray) else backend.xp
    if bool(xp.any((xp.abs(y) > LARGEST) & xp.isfinite(y))):
        raise ValueError("y has values beyond 1e304, whose sums overflow: divide y by a constant")
    _refuse_not_finite(y, backend)
    if criterion.check is not None:
        criterion.check(y)
    _check_length(y, n_rows)
    return CheckedTarget(y)


def _as_reals(values: Array, name: str) -> Array:
    try:
        return values.astype(VALUE)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must hold real numbers: {error}") from error


def check_weights(sample_weight: Any, n_rows: int) -> np.ndarray | None:
    """Weights f64[N] >= 0 on the host; None: all equal."""
    if sample_weight is None:
        return None
    weights = arrays.to_host(sample_weight, "sample_weight")
    weights = arrays.host_array(weights, "sample_weight")
    if isinstance(sample_weight, Number):
        weights = np.full(n_rows, weights)
    if weights.dtype.kind == "c":
        raise ValueError("Complex data not supported: sample_weight must hold real numbers")
    weights, rows = _as_reals(weights, "sample_weight"), np.broadcast_to(0.0, (n_rows, 1))
    weights = _check_sample_weight(weights, rows, dtype=VALUE, ensure_non_negative=True)
    if not (weights > 0).any():  # scikit-learn asks from 1.9 on
        raise ValueError("Sample weights must contain at least one non-zero number.")
    return np.asarray(weights)


def read_labels(labels: Any, n_rows: int, name: str) -> tuple[np.ndarray, tuple[Any, ...]]:
    """Labels [N] on the host, as ordered numbers if their type has an order; its values."""
    labels = arrays.to_host(labels, name)
    codes, ordered = arrays.ordered_codes(labels)
    values = np.where(codes < 0, np.nan, codes) if ordered else arrays.host_array(labels, name)
    if values.dtype.kind == "U" and isinstance(labels, list | tuple):
        values = np.array(labels, object)  # NumPy makes strings of the numbers among them
    if values.dtype.kind == "c":
        raise ValueError(f"{name} holds complex numbers, which have no order: pass real ones")
    if values.ndim != 1:
        raise ValueError(f"{name} has the shape {values.shape}: pass one label for each row")
    if len(values) != n_rows:
        raise ValueError(f"X has {n_rows} rows, {name} has {len(values)}")
    return values, ordered


def check_groups(groups: Any, n_rows: int, name: str = "groups") -> np.ndarray | None:
    """The number i32[N] of each row's group or block, in the order of labels; None: no groups."""
    if groups is None:
        return None
    numbers, distinct = number_labels(read_labels(groups, n_rows, name)[0], name)
    if name == "blocks":
        warn_of_text(distinct)
    return numbers


def check_ids(row_ids: Any, n_rows: int) -> np.ndarray | None:
    """Ids of rows i64[N] or u64[N] on the host, all different; None: the rows' numbers."""
    if row_ids is None:
        return None
    ids = arrays.host_array(arrays.to_host(row_ids, "row_ids"), "row_ids")
    if ids.dtype.kind not in "iu" or ids.shape != (n_rows,):
        raise ValueError(
            f"row_ids must be {n_rows} integers, one for each row of X: they have the dtype "
            f"{ids.dtype} and the shape {ids.shape}"
        )
    distinct, counts = np.unique(ids, return_counts=True)
    if len(distinct) < n_rows:
        raise ValueError(
            f"row_ids must all differ: {distinct[counts.argmax()]} stands for {counts.max()} rows"
        )
    return ids.astype(np.uint64 if ids.dtype.kind == "u" else np.int64)


def number_labels(labels: np.ndarray, name: str) -> tuple[np.ndarray, np.ndarray]:
    """The number i32[N] of each label, and the sorted labels; an error if one is missing."""
    missing = f"{name} contains NaN: every row needs the label of its {name.removesuffix('s')}"
    numbers, distinct = _distinct(labels, name, missing)
    return numbers.astype(ROW), distinct


def warn_of_text(distinct: np.ndarray) -> None:
    """Warn if sorted labels of blocks of time are text that does not sort as numbers or dates."""
    texts = [label for label in distinct.tolist() if isinstance(label, str)]
    shapes = {re.sub(r"\d", "0", text) for text in texts}
    if texts and not (len(shapes) == 1 and SORTED_TEXT.fullmatch(min(shapes))):
        shown = ", ".join(map(repr, texts[:4])) + (", ..." if len(texts) > 4 else "")
        warnings.warn(
            f"blocks are text, which sorts by its letters, so time runs as {shown}: if that is "
            "wrong, pass dates, numbers, or an ordered categorical",
            UserWarning,
            stacklevel=2,
        )


BLOCK_VALUES = 2**22  # values that are checked at once, so that a copy of them stays small


def without_infinities(
    estimator: Any, X: Array, names: list[Any] | None, backend: Backend
) -> Array:
    """X [N, F], with infinities replaced if the estimator takes them; else they are an error."""
    if X.dtype.kind != "f":
        return X
    on_host = isinstance(X, np.ndarray)
    xp = np if on_host else backend.xp
    size = max(1, (BLOCK_VALUES if on_host else DEVICE_VALUES) // X.shape[1])

    def infinities(begin: int) -> Any:
        """Where they are, or None."""
        block = X[begin : begin + size]
        if on_host:  # the quickest look at many: if their sum is finite, they are
            wide = np.float32 if block.dtype == np.float16 else None  # float16 soon overflows
            with np.errstate(over="ignore", invalid="ignore"):
                if np.isfinite(block.sum(dtype=wide)):
                    return None
        infinite = xp.isinf(block)
        return infinite if bool(xp.any(infinite)) else None

    begins = range(0, X.shape[0], size)
    n_threads = backend.n_threads if on_host else 1
    several = len(begins) > 1  # predicting a row takes no threads
    blocks = parallel_map(infinities, begins, n_threads) if several else [infinities(0)]
    for begin, infinite in zip(begins, blocks, strict=True):
        if infinite is not None:
            row, column = (int(indices[0]) for indices in xp.nonzero(infinite))
            where = f"{column_name(column, names)}, row {begin + row}"
            most = _most(estimator, X.dtype, where)
            return xp.clip(X, -most, most)
    return X


def column_name(i: int, names: list[Any] | None) -> str:
    """How errors name a column."""
    return f"column {i}" if names is None else f"column {names[i]!r}"


def _most(estimator: Any, dtype: Any, where: str) -> Any:
    """The largest number."""
    if not getattr(estimator, "_takes_infinities", False):
        raise ValueError(
            f"Input X contains infinity: {where}; NaN means missing, infinities must be replaced"
        )
    return np.finfo(dtype).max
