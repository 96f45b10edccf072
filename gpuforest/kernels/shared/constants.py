"""The numbers that CUDA kernels share with the host code that launches them."""

XLOGX_TABLE_SIZE = 4096  # n ln n of n below this comes from a table

THREADS = 256  # threads of a block in most kernels
SPLIT_THREADS = 128  # in best_split, whose warps work independently
DEEP_WARPS = 16  # of grow_subtrees on a multiprocessor, in two blocks or four
EDGE_THREADS = 1024  # in edges, where few blocks must fill a device, and each has much to read
SORT_THREADS = 1024  # of a block that sorts a column for it, 256 at the least
SORT_BYTES = 32  # of values that such a thread takes at once, 32 at the least

HISTOGRAM_THREADS = 512  # the most in histogram, where few blocks may fit a multiprocessor

GROUP_FEATURES = 60  # the most features whose histograms share a block's memory
FILL_FEATURES = 48  # the same in trees of boosting
# 32-bit words between histograms in shared memory. Features whose histograms begin in the same bank
# of 32 words make the lanes of a warp wait for each other. Odd in boosting, where bins have an even
# number of words. Where cells are cleared by fours, fours of words are odd
FILL_PAD, DEEP_PAD = 1, 4
GROUP_CHANNELS = 8  # channels that a thread of totals adds up in registers

LEAST_TILE, MOST_TILE = 1024, 16_384  # rows that a block takes in the kernels over slots

# number of arrays i64[C] of channel sums in shared memory that a warp needs
CUT_SUMS = 2  # to cut one feature: those of missing values, and those before an item
LIMITED = 2  # the macro SPECIAL of a deep phase whose cuts have limits of weight or of means
FEW_ROWS = 32  # of a node whose subtree one warp grows; the block splits those of more together
NO_NODE = 0xFFFF  # of nodes in the deep phase that wait: there is no other
NODE_SUMS = 4  # to split a node in the deep phase: also those of the node, and of its left side

# The kinds of slots. A wide slot whose split was refused becomes a leaf. NONE marks the two
# entries below such a leaf, which are no slots
NONE, LEAF, DEEP, WIDE = range(4)
