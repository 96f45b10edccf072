"""Every dtype of the engine, declared once, each with its reason.

Letters used everywhere: N rows, F features, B bins (missing included), C channels,
T trees, S slots (open nodes), R rows held by slots, k features tried, M nodes,
V leaf rows, K outputs.
"""

from typing import Any

import numpy as np

Array = Any  # of the library whose functions are a backend's `xp`

CODE8 = np.uint8  # a bin code: up to 255 bins and one code for missing in one byte
CODE16 = np.uint16  # a bin code where more than 255 bins were asked for
ROW = np.int32  # a row number; half the traffic of int64, and N < 2**31 is checked
WEIGHT = np.int32  # a row's integer weight in a bag; a bag's total stays below 2**31
LABEL = np.int32  # a class code, which is also its channel
MOMENT = np.int64  # a fixed-point target; its sums stay below 2**62
STAT = np.int64  # a channel sum: integers add up the same in any order
OFFSET = np.int64  # an element offset: N * F may exceed 2**31
FEATURE = np.int32  # a feature number, -1 for none
KEY = np.uint64  # a node's random key
SCORE = np.float64  # a split's score, computed from integer sums
NODE = np.uint64  # a packed node, see nodes.py
VALUE = np.float64  # a bin edge, a leaf value, a prediction

MAX_ROWS = 2**31 - 1
MAX_FEATURES = 2**17 - 1  # a packed node holds 17 bits of feature number
MAX_TOTAL_WEIGHT = 2**31 - 1  # so that squares of channel sums fit 64 bits
MAX_BINS = 2**16 - 1
MOST_COORDINATE = 2**16 - 2  # see BinEdges.coordinates; one more means missing where rows walk

NUMERIC, CATEGORICAL = 0, 1  # kinds of features: bins are ranges, or a category each
