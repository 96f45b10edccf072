"""Where a CUDA device reads the targets of rows."""

from __future__ import annotations

from threading import Lock
from typing import Any

from gpuforest.engine.training import Training
from gpuforest.kernels.shared import structs

Array = Any

_claims = Lock()  # held while the padding of any matrix is claimed


def own_targets(training: Training, y: Array) -> structs.Targets:
    """Targets [N, K] in an array of their own."""
    return structs.Targets(y, 0, y.shape[1], training.n_channels)


def target_type(training: Training, y: structs.Targets) -> str:
    """The macro TARGET. Moments have one type, and a launch refuses another."""
    of_size = {1: "u8", 2: "u16", 4: "i32"}
    return of_size[y.at.itemsize] if training.target.coding.is_classes else "i64"


def target_macros(training: Training, y: structs.Targets) -> dict[str, str]:
    is_classes = training.target.coding.is_classes
    return {"LABELS": str(int(is_classes)), "TARGET": target_type(training, y)}


def label_fits(training: Training) -> bool:
    """Whether a row's class code fits the padding of its codes, and is read along with them.

    A read takes a sector of 32 bytes. That of the padding should hold one of the features that a
    node tries, on average. Else the code is better off in an array of its own: it is small, and
    more of it stays in the cache.
    """
    codes, F = training.matrix.codes, training.n_features
    beside = F % (32 // codes.itemsize)  # features in the sector of the padding
    room = codes.shape[1] > F and training.n_channels <= 256**codes.itemsize
    return bool(room and training.rules.n_tried * beside >= F)


def targets_of(xp: Any, training: Training) -> structs.Targets:
    """The targets where random rows are best read; class codes in few bytes, in the rows of
    codes if they fit (see `label_fits`).

    They are kept as long as the target. The padding holds the codes of one target at a time:
    if other trees still grow from the same matrix, a second target has its own array.
    """
    target, matrix = training.target, training.matrix
    if not target.coding.is_classes:
        return own_targets(training, target.y)
    with _claims:  # threads may grow trees from one matrix
        kept = matrix.targets.get(target)
        if kept is None:
            free = all(other.at is not matrix.codes for other in list(matrix.targets.values()))
            kept = _labels(xp, training, label_fits(training) and free)
            matrix.targets[target] = kept
    return kept


def _labels(xp: Any, training: Training, in_rows: bool) -> structs.Targets:
    """Class codes, copied to the rows of codes, or to an array of as few bytes as suffice."""
    y, codes, C = training.target.y, training.matrix.codes, training.n_channels
    if not in_rows:
        small = xp.uint8 if C <= 2**8 else xp.uint16 if C <= 2**16 else xp.int32
        return own_targets(training, xp.astype(y, small))
    F = training.n_features
    codes[:, F : F + 1] = xp.astype(y, codes.dtype)
    return structs.Targets(codes, F, codes.shape[1], C)
