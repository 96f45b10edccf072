// Drawing features and rows on the device. The specifications are frontier.draw_features
// and binning.draw_rows.
#include "shared/cuda.cuh"
#include "shared/hashing/cuda.cuh"
#include "generated/Histograms.cuh"

// Writes the elements first .. first + k - 1 of each slot's order, i32[S, k]; -1 past its end, for
// slots that need no more, and for features that the slot's tree did not draw (`allowed`
// bool[T, F], or null: trees have all). A warp takes an element, and clears its histogram.
extern "C" __global__ void __launch_bounds__(THREADS)
draw_features(Histograms hist, const u64* keys, i64 first, i64 F, const i64* need,
              const i32* tree, const bool* allowed, i32* features) {
  i64 warps = thread_count() >> 5, k = hist.k, width = (i64)hist.B * hist.channels;
  for (i64 i = thread_number() >> 5; i < hist.S * k; i += warps) {
    i64 s = i / k, position = first + i - s * k;
    bool none = need[s] <= 0 || position >= F;
    int f = none ? -1 : (i32)(k >= F ? position : Order(keys[s], F).at(position));
    none = none || (allowed && !allowed[tree[s] * F + f]);
    if (lane() == 0) features[i] = none ? -1 : f;
    for (i64 cell = lane(); !none && cell < width; cell += 32) hist.cells[i * width + cell] = 0;
  }
}

// The first `count` rows of a random order of n_rows, not yet sorted.
extern "C" __global__ void __launch_bounds__(THREADS)
draw_rows(u64 key, i64 n_rows, i64 count, i64* rows) {
  Order order(key, n_rows);
  for (i64 i = thread_number(); i < count; i += thread_count()) rows[i] = order.at(i);
}
