// Bags, and samples of rows, on the device. The specifications are numpy.py beside this file and
// binning.draw_rows and binning.rows_below.
#include "shared/cuda.cuh"
#include "shared/hashing.cuh"

// A thread for each draw; blockIdx.y counts trees. cumulative i64[N], or null if all rows have
// equal weights. `weights` i32[T, N] holds zeros.
extern "C" __global__ void __launch_bounds__(THREADS)
bag(const u64* keys, i64 N, i64 n_draws, const i64* cumulative, i64 T, i32* weights) {
  u64 total = cumulative ? cumulative[N - 1] : N;
  for (i64 t = blockIdx.y; t < T; t += gridDim.y)
    for (i64 j = thread_number(); j < n_draws; j += thread_count()) {
      // 1. a point in the total weight
      i64 row = (i64)__umul64hi(hash_at(keys[t], j), total);
      // 2. the row whose share it falls in: the first whose running total is above it
      if (cumulative) {
        i64 point = row;
        row = first_of((i64)0, N - 1, [&](i64 r) { return cumulative[r] > point; });
      }
      // 3. count
      atomicAdd(&weights[t * N + row], 1);
    }
}

// Counts i64[T * tiles] the rows of positive weight in each tile of bags i32[T, N]. A block takes
// a tile.
extern "C" __global__ void __launch_bounds__(THREADS)
count_in_bag(const i32* bags, i64 N, i64 T, i64 tile, i64 tiles, i64* counts) {
  for (i64 p = blockIdx.x; p < T * tiles; p += gridDim.x) {
    i64 t = p / tiles, first = (p - t * tiles) * tile, last = first + tile < N ? first + tile : N;
    int count = 0;
    for (i64 r = first; r < last; r += blockDim.x) {
      i64 own = r + threadIdx.x;
      count += __syncthreads_count(own < last && bags[t * N + own] > 0);
    }
    if (threadIdx.x == 0) counts[p] = count;
  }
}

// Writes the rows of positive weight of each tile p from first_position[p] on, i64[T * tiles + 1];
// and where those of each tree begin, offsets i64[T + 1].
extern "C" __global__ void __launch_bounds__(THREADS)
in_bag(const i32* bags, i64 N, i64 T, i64 tile, i64 tiles, const i64* first_position, i32* rows,
       i32* weights, i64* offsets) {
  __shared__ u32 counts[THREADS / 32];
  for (i64 t = thread_number(); t <= T; t += thread_count()) offsets[t] = first_position[t * tiles];
  for (i64 p = blockIdx.x; p < T * tiles; p += gridDim.x) {
    i64 t = p / tiles, first = (p - t * tiles) * tile, last = first + tile < N ? first + tile : N;
    i64 position = first_position[p];
    for (i64 r = first; r < last; r += blockDim.x) {
      i64 own = r + threadIdx.x;
      i32 weight = own < last ? bags[t * N + own] : 0;
      int total, rank = block_rank(weight > 0, counts, total);
      if (weight > 0) {
        rows[position + rank] = (i32)own;
        weights[position + rank] = weight;
      }
      position += total;
    }
  }
}

// The first `count` rows of a random order of n_rows, not yet sorted.
extern "C" __global__ void __launch_bounds__(THREADS)
draw_rows(u64 key, i64 n_rows, i64 count, i64* rows) {
  Order order(key, n_rows);
  for (i64 i = thread_number(); i < count; i += thread_count()) rows[i] = order.at(i);
}

// The rows whose hash is below `limit`, of which there may be more than `room`, in no order.
extern "C" __global__ void __launch_bounds__(THREADS)
rows_below(u64 key, i64 n_rows, u64 limit, i64 room, i64* rows, u32* found) {
  for (i64 row = thread_number(); row < n_rows; row += thread_count()) {
    if (hash_at(key, row) >= limit) continue;
    i64 position = atomicAdd(found, 1u);
    if (position < room) rows[position] = row;
  }
}
