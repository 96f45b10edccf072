"""The numbers that CUDA kernels share with the host code that launches them."""

XLOGX_TABLE_SIZE = 4096  # n ln n of smaller n comes from a table

THREADS = 256  # of most kernels' blocks
SPLIT_THREADS = 128  # of best_split's: its warps work alone
EDGE_THREADS = 1024  # of edges': few columns must fill a device, and each has much to read

GROUP_FEATURES = 64  # at most, of a group whose histograms share a block's memory
GROUP_CHANNELS = 8  # that a thread of totals adds up in registers

# arrays i64[C] in shared memory that a warp works with
CUT_SUMS = 2  # to cut one feature: the missing values', and those before an item
NODE_SUMS = 3  # to split a node of the deep phase: the node's besides
