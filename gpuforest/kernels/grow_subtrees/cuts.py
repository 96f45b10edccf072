"""The best cut of one feature in one node, in time proportional to the node's rows.

    many rows    fill a histogram; very many fill those of several features at once
    few rows     are sorted by code, and the cuts between them are scored
    random cuts  one cut between the lowest and the highest code is drawn and scored

The candidates, their order and their scores are the same in each way.
"""

import numpy as np

from gpuforest.compiler.decorators import device, rare
from gpuforest.kernels.best_split import cuts as of_bins
from gpuforest.kernels.best_split.cuts import NOTHING, by_rows, improved, split_of
from gpuforest.kernels.sets.numba import compact_bins, split_by_set
from gpuforest.kernels.shared import numba as shared
from gpuforest.kernels.shared.numba import U, goes_left, has_labels, moment_score
from gpuforest.kernels.shared.records import NO_BIN, Bin, Split

# A histogram is for nodes of more rows than a quarter of its cells, and than 24: against
# a sixteenth, two classes took 0.70 to 1.01 of the time and six 0.62 to 0.93 (three runs)
HIST_ROWS, HIST_SHARE = 24, 4
NEAR_ROWS = 1024
MOST_SORTED = 2**16  # rows, because a position takes half of a key of 32 bits
RANK_ROWS = 16  # up to this number of keys, each is compared with all others in one vector
TWENTY_FOUR = np.uint32(24)
POSITION, SIXTEEN, BYTE = np.uint32(0xFFFF), np.uint32(16), np.uint32(255)
NO_KEY = np.uint32(0xFFFFFFFF)


@device
def most_sorted(bins, channels):
    """Nodes of more rows than this fill histograms instead of sorting."""
    return min(MOST_SORTED, max(HIST_ROWS, bins * channels // HIST_SHARE))


@device
def clear(hist, feature):
    """Clear a feature's bins and the one for missing values; others stay as they are."""
    missing, width = feature.missing, feature.width
    for i in range(feature.bins * width):
        hist[U(i)] = 0
    for i in range(missing * width, (missing + 1) * width):
        hist[U(i)] = 0


@device
def add_two(hist, code, stats, i, C):
    """Add row i of the order to a histogram of class sums, or of two channels."""
    if has_labels(stats):
        hist[U(np.int64(code) * C + stats[U(i), 0])] += stats[U(i), 1]
    else:
        hist[U(np.int64(code) * 2)] += stats[U(i), 0]
        hist[U(np.int64(code) * 2 + 1)] += stats[U(i), 1]


@device
def add_all(hist, code, stats, i, C, width):
    """As add_two, for any number of channels; if width > C, the last channel counts rows."""
    b = np.int64(code) * width
    if has_labels(stats):
        hist[U(b + stats[U(i), 0])] += stats[U(i), 1]
    else:
        for c in range(C):
            hist[U(b + c)] += stats[U(i), U(c)]
    if width > C:
        hist[U(b + C)] += 1


@device
def add_counted(hist, code, stats, i, C):
    """As add_two, with a last channel that counts rows."""
    if has_labels(stats):
        at = np.int64(code) * (C + 1)
        hist[U(at + stats[U(i), 0])] += stats[U(i), 1]
        hist[U(at + C)] += 1
    else:
        at = np.int64(code) * 3
        hist[U(at)] += stats[U(i), 0]
        hist[U(at + 1)] += stats[U(i), 1]
        hist[U(at + 2)] += 1


@device
def fill(hist, column, order, begin, n, C, width):
    """Add n rows of the order to the histogram [B * width] of one feature."""
    positions, stats = order
    if not (has_labels(stats) or C == 2):
        for i in range(begin, begin + n):
            add_all(hist, column[U(positions[U(i)])], stats, i, C, width)
    elif width == C:  # loops without a branch
        for i in range(begin, begin + n):
            add_two(hist, column[U(positions[U(i)])], stats, i, C)
    else:
        for i in range(begin, begin + n):
            add_counted(hist, column[U(positions[U(i)])], stats, i, C)


@device
def fill_two(one, two, first, second, order, begin, n, C, width):
    """As fill, for two features at once, so that rows are read once."""
    positions, stats = order
    if not (has_labels(stats) or C == 2):
        fill(one, first, order, begin, n, C, width)
        fill(two, second, order, begin, n, C, width)
    elif width == C:
        for i in range(begin, begin + n):
            position = U(positions[U(i)])
            add_two(one, first[position], stats, i, C)
            add_two(two, second[position], stats, i, C)
    else:
        for i in range(begin, begin + n):
            position = U(positions[U(i)])
            add_counted(one, first[position], stats, i, C)
            add_counted(two, second[position], stats, i, C)


@device
def fill_batch(scratch, m, table, slot, C, width):
    """Fill histograms [m, B * width] of m features, in blocks of rows that keep them in L1."""
    hists, batch, order = scratch.hists, scratch.batch, scratch.order
    end = slot.begin + slot.n_rows
    for begin in range(slot.begin, end, NEAR_ROWS):
        n = min(NEAR_ROWS, end - begin)
        for j in range(0, m - 1, 2):
            fill_two(
                hists[j], hists[j + 1], table[batch[j]], table[batch[j + 1]], order, begin, n, C,
                width,
            )  # fmt: skip
        if m % 2 == 1:
            fill(hists[m - 1], table[batch[m - 1]], order, begin, n, C, width)


@rare
def radix_pass(source, result, n, shift, counts):
    """Sort keys u32[n] by the byte at `shift`; equal ones keep their order."""
    for d in range(256):
        counts[d] = 0
    for i in range(n):
        counts[(source[U(i)] >> shift) & BYTE] += 1
    total = 0
    for d in range(256):
        count = counts[d]
        counts[d] = total
        total += count
    for i in range(n):
        d = (source[U(i)] >> shift) & BYTE
        result[U(counts[d])] = source[U(i)]
        counts[d] += 1


@device
def sort_by_code(n, scratch):
    """Sort positions 0 .. n - 1 by `scratch.code` into `scratch.keys`: code << 16 | position."""
    code, keys, spare, counts = scratch.code, scratch.keys, scratch.spare_keys, scratch.counts
    if n <= RANK_ROWS:
        for i in range(n):
            spare[U(i)] = (np.uint32(code[U(i)]) << SIXTEEN) | np.uint32(i)
        for i in range(n, RANK_ROWS):
            spare[U(i)] = NO_KEY
        for i in range(n):
            key, rank = spare[U(i)], 0
            for j in range(RANK_ROWS):
                rank += spare[U(j)] < key
            keys[U(rank)] = key
    elif code.itemsize == 1:
        for i in range(n):
            spare[U(i)] = (np.uint32(code[U(i)]) << SIXTEEN) | np.uint32(i)
        radix_pass(spare, keys, n, SIXTEEN, counts)
    else:
        for i in range(n):
            keys[i] = (np.uint32(code[i]) << SIXTEEN) | np.uint32(i)
        radix_pass(keys, spare, n, SIXTEEN, counts)
        radix_pass(spare, keys, n, TWENTY_FOUR, counts)


@device
def compact_sorted(keys, n, stats, low, scan):
    """Fill the running totals of two channels at each distinct code (see `Scan`); returns m."""
    m, n_weight, a = 0, np.int64(0), np.int64(0)
    for i in range(n):
        key = keys[U(i)]
        at = low + np.int64(key & POSITION)
        first, second = np.int64(stats[U(at), 0]), np.int64(stats[U(at), 1])
        n_weight += second if has_labels(stats) else first
        a += first * second if has_labels(stats) else second
        code = key >> SIXTEEN
        scan.weight[U(m)], scan.second[U(m)] = n_weight, a
        scan.rows[U(m)], scan.code[U(m)] = i + 1, code
        # a position is kept behind the last row of its code
        m += (i + 1 == n) | (keys[U(i + 1)] >> SIXTEEN != code)
    return m


@device
def compact_sorted_channels(keys, slot, stats, criterion, side, n_missing, scan):
    """compact_channels from sorted rows, which move from the right to the left side in turn. With
    side 1 the last `n_missing` rows, with missing values, go left first."""
    left, sums, n, C = scan.left, slot.sums, slot.n_rows, len(slot.sums)
    n_left, left_sum, right_sum, m = np.int64(0), np.int64(0), np.int64(0), 0
    for c in range(C):
        left[c] = 0
        if has_labels(stats):
            right_sum += shared.grown(criterion, 0, sums[c])
    before = n_missing * side
    for step in range(-before, n - before):
        key = keys[U(step if step >= 0 else n + step)]
        row = slot.begin + np.int64(key & POSITION)
        if has_labels(stats):
            c, w = stats[U(row), 0], np.int64(stats[U(row), 1])
            n_left += w
            left_sum += shared.grown(criterion, left[U(c)], w)
            right_sum -= shared.grown(criterion, sums[U(c)] - left[U(c)] - w, w)
            left[U(c)] += w
        else:
            for c in range(C):
                left[U(c)] += stats[U(row), U(c)]
            n_left = left[0]
        code = key >> SIXTEEN
        if step < 0 or (step + 1 < n and keys[U(step + 1)] >> SIXTEEN == code):
            continue
        scan.weight[U(m)], scan.rows[U(m)], scan.code[U(m)] = n_left, step + 1 + before, code
        if has_labels(stats):
            scan.second[U(m)], scan.third[U(m)] = shared.class_sides(
                criterion, left_sum, right_sum, left, sums, C
            )
        else:
            scan.scores[m] = moment_score(criterion, left, sums, C) if n_left < sums[0] else -np.inf
        m += 1
    return m


@rare
def scan_sorted(keys, slot, stats, feature, criterion, limits, scan):
    """The best split by one feature, for more than two classes or for several outputs."""
    best, n_missing, last = NOTHING, 0, slot.n_rows - 1
    while n_missing <= last and np.int64(keys[last - n_missing] >> SIXTEEN) == feature.missing:
        n_missing += 1
    # first without the missing values, then with them
    for side in range(2 if n_missing > 0 else 1):
        m = compact_sorted_channels(keys, slot, stats, criterion, side, n_missing, scan)
        if has_labels(stats):
            shared.score_classes(criterion, scan, slot.weight, m - 1)
        whole = Bin(slot.weight, np.int64(0), slot.n_rows)
        best = improved(scan, m - 1, whole, NO_BIN, limits, side, best)
    return split_of(best, scan, slot.weight, feature, n_missing > 0, NO_BIN)


@device
def bins_or_keys(column, feature, slot, scratch, hist, is_filled):
    """Fill a feature's histogram from `column`, unless filled, or sort the node's rows. Returns
    whether there is a histogram, and if not, whether the rows vary."""
    order, n = scratch.order, slot.n_rows
    if is_filled or n > most_sorted(feature.bins, feature.width):
        if not is_filled:
            clear(hist, feature)
            fill(hist, column, order, slot.begin, n, feature.n_channels, feature.width)
        return True, True
    code, first, varies = scratch.code, column[U(order.positions[U(slot.begin)])], False
    for i in range(n):
        c = column[U(order.positions[U(slot.begin + i)])]
        code[U(i)] = c
        varies |= c != first
    if varies:
        sort_by_code(n, scratch)
    return False, varies


@device
def best_cut(feature, slot, criterion, limits, scratch, hist, in_bins):
    """Whether a feature varies in a node, and its best cut as a Split, after bins_or_keys."""
    stats, keys, scan = scratch.order.stats, scratch.keys, scratch.scan
    if feature.n_channels == 2:
        if in_bins:
            m = of_bins.compact_pairs(hist, feature, scan)
        else:
            m = compact_sorted(keys, slot.n_rows, stats, slot.begin, scan)
        return m > 1, of_bins.best_pair(m, feature, criterion, limits, scan)
    if in_bins:
        return of_bins.scan_channels(hist, feature, slot, criterion, limits, scan)
    return True, scan_sorted(keys, slot, stats, feature, criterion, limits, scan)


@device
def compact_set(feature, slot, scratch, hist, in_bins, categories):
    """Copy a node's categories and sums to a CategoryWork after bins_or_keys; their number."""
    if in_bins:
        return compact_bins(hist, feature, categories)
    return compact_rows(scratch.keys, slot, scratch.order.stats, feature, categories)


@device
def no_cut(feature):
    return Split(-np.inf, feature.number, np.int64(0), False, NO_BIN)


@device
def cut_or_set(column, feature, slot, rules, scratch, hist, is_filled, best, sets, is_set):
    """Whether a column varies in a node, and its best or random split, by a set if `is_set`, which
    goes to `sets.best` if its score is above `best`. The histogram is scratch, unless filled."""
    criterion, limits = rules.criterion.number, by_rows(rules, feature.width > feature.n_channels)
    if sets is not None:  # noqa: SIM102  # the compiler drops what needs it by this line alone
        if rules.random and not is_set:
            return random_cut(column, feature, slot, criterion, limits, scratch)
    in_bins, varies = bins_or_keys(column, feature, slot, scratch, hist, is_filled)
    if not varies:
        return False, no_cut(feature)
    if sets is not None:  # noqa: SIM102
        if is_set:
            work, scan = sets.work, scratch.scan
            m = compact_set(feature, slot, scratch, hist, in_bins, work)
            if m < 2:
                return False, no_cut(feature)
            return True, split_by_set(m, feature, slot, rules, limits, scan, work, best, sets.best)
    return best_cut(feature, slot, criterion, limits, scratch, hist, in_bins)


@device
def compact_rows(keys, slot, stats, feature, categories):
    """As compact_bins, from a node's rows sorted by code."""
    codes, some, m, width = categories.codes, categories.some, 0, feature.width
    for i in range(slot.n_rows):
        key = keys[U(i)]
        code, row = np.int64(key >> SIXTEEN), slot.begin + np.int64(key & POSITION)
        if m == 0 or codes[m - 1] != code:
            codes[m] = code
            for c in range(width):
                some[m * width + c] = 0
            m += 1
        add_all(some, m - 1, stats, row, feature.n_channels, width)
    return m


@device
def left_totals(column, order, slot, split, missing, words, left):
    """Fill the channel sums of the rows that go left."""
    (positions, stats), C = order, len(left)
    for c in range(C):
        left[c] = 0
    for i in range(slot.begin, slot.begin + slot.n_rows):
        code = np.int64(column[U(positions[U(i)])])
        if goes_left(code, split, missing, words, 0):
            add_all(left, 0, stats, i, C, C)


@device
def sum_left(code, stats, slot, split, missing, count_rows, left):
    """left_totals from a node's contiguous codes, without branches, which would be mispredicted.
    Returns how many rows go left if `count_rows`, else 1."""
    C, rows_left, n, low = len(left), np.int64(1), slot.n_rows, slot.begin
    # in the dtype of the codes, so that the compiler vectorises the loops
    last = code.dtype.type(split.bin)
    also = code.dtype.type(missing if split.missing_left else split.bin)  # goes left too
    if count_rows:
        rows_left = np.int64(0)
        for i in range(n):
            rows_left += (code[U(i)] <= last) | (code[U(i)] == also)
    for c in range(C):
        left[c] = 0
    if C == 2:
        a, b = np.int64(0), np.int64(0)
        for i in range(n):
            goes = -np.int64((code[U(i)] <= last) | (code[U(i)] == also))
            first, second = np.int64(stats[U(low + i), 0]), np.int64(stats[U(low + i), 1])
            if has_labels(stats):
                a += second & goes
                b += second & goes & -first  # of the second class
            else:
                a += first & goes
                b += second & goes
        left[0], left[1] = a - b if has_labels(stats) else a, b
        return rows_left
    for i in range(n):
        goes = -np.int64((code[U(i)] <= last) | (code[U(i)] == also))
        if has_labels(stats):
            left[U(stats[U(low + i), 0])] += np.int64(stats[U(low + i), 1]) & goes
        else:
            for c in range(C):
                left[U(c)] += stats[U(low + i), U(c)] & goes
    return rows_left


@device
def ends_of(code, n, missing):
    """The lowest and the highest of a node's codes that are not missing, and whether some are."""
    lowest = highest = code[0]
    for i in range(n):
        lowest = min(lowest, code[U(i)])
    for i in range(n):
        highest = max(highest, code[U(i)])
    if highest < missing:
        return np.int64(lowest), np.int64(highest), False
    top = np.int64(-1)
    for i in range(n):
        c = np.int64(code[U(i)])
        top = max(top, c if c < missing else np.int64(-1))
    return np.int64(lowest), top, True


@device
def random_cut(column, feature, slot, criterion, limits, scratch):
    """As best_cut, for the one cut that is drawn."""
    order, f, missing = scratch.order, feature.number, feature.missing
    left, code = scratch.scan.left, scratch.code
    for i in range(slot.n_rows):
        code[U(i)] = column[U(order.positions[U(slot.begin + i)])]
    lowest, highest, some_missing = ends_of(code, slot.n_rows, missing)
    if lowest == missing or (lowest == highest and not some_missing):
        return False, no_cut(feature)
    cut, side = of_bins.draw_cut(slot.key, f, lowest, highest, feature.bins)
    side &= some_missing
    drawn = Split(-np.inf, f, cut, side, NO_BIN)
    rows_left = sum_left(code, order.stats, slot, drawn, missing, limits.min_rows > 1, left)
    n_left = of_bins.weight_of(left, feature.is_classes)
    sums_left = Bin(n_left, left[len(left) - 1], rows_left)
    score = of_bins.score_parts(left, n_left, rows_left, slot, criterion, limits)
    heavier = n_left > slot.weight - n_left
    return True, Split(score, f, cut, side if some_missing else heavier, sums_left)
