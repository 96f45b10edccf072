"""Columns sorted on a device: tiles, warps, and numbers of every kind."""

import numpy as np
import pytest

from gpuforest.kernels.shared.constants import SORT_BYTES, SORT_THREADS


def values_of(dtype: type, rng: np.random.Generator, n: int) -> np.ndarray:
    """Columns f[k, n]: numbers of all magnitudes and both signs, few of them, or one."""
    info, bits = np.finfo(dtype), np.dtype(f"u{np.dtype(dtype).itemsize}")
    special = [0.0, -0.0, np.nan, -np.nan, info.max, info.min, info.tiny, np.inf, -np.inf]
    special += [info.smallest_subnormal, -info.smallest_subnormal, 1, np.nextafter(dtype(1), 2)]
    few = np.array(special, dtype)
    any_bits = rng.integers(0, 2 ** (8 * bits.itemsize), n, bits, endpoint=False)
    columns = [
        any_bits.view(dtype),
        rng.normal(size=n),
        rng.integers(-3, 3, n),
        rng.choice(few, n),
        np.full(n, -1.5),
        np.full(n, -np.nan),
        np.arange(n, 0, -1),
        np.where(np.arange(n) == n // 2, 1.0, 2.0),
    ]
    return np.stack([c.astype(dtype) for c in columns])


def in_order(columns: np.ndarray) -> np.ndarray:
    """The bits of columns in the order of values; -0 before 0, and NaN last, in their order."""
    bits = columns.view(f"i{columns.itemsize}")
    order = np.where(bits < 0, ~bits ^ np.iinfo(bits.dtype).min, bits)
    order = np.where(np.isnan(columns), np.iinfo(bits.dtype).max, order)
    return np.take_along_axis(bits, np.argsort(order, axis=1, kind="stable"), axis=1)


def sorted_by(device, columns: np.ndarray, seed: int) -> np.ndarray:
    backend, (k, n) = device.backend(), columns.shape
    there, spare = backend.asarray(columns.copy()), backend.empty((k, n), columns.dtype)
    swapped = backend.empty(k, backend.xp.int32)
    macros = {"VALUE": "float" if columns.dtype == np.float32 else "double"}
    with device.order(seed):
        backend.launch(
            "edges", "sort_columns", (k,), (there, spare, n, swapped),
            macros=macros, threads=SORT_THREADS,
        )  # fmt: skip
    there, spare, swapped = (backend.asnumpy(a) for a in (there, spare, swapped))
    return np.where(swapped[:, None] == 1, spare, there)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_columns_are_sorted(cuda, dtype):
    tile = SORT_THREADS * SORT_BYTES // np.dtype(dtype).itemsize
    for n in (1, 2, 31, 33, 1000, tile - 1, tile, tile + 1, 3 * tile + 77):
        columns = values_of(dtype, np.random.default_rng(n), n)
        found = sorted_by(cuda, columns, seed=n)
        assert np.array_equal(found.view(f"i{found.itemsize}"), in_order(columns)), n
