// Drawing the features that a level tries: the first k of each slot's order that vary among its
// rows. The specification is `Backend.level`, which learns from histograms which features vary.
#include "shared/hashing.cuh"
#include "shared/slots.cuh"
#include "generated/Codes.cuh"
#include "generated/Histograms.cuh"

#define SAMPLE 32  // rows of a slot in which features that vary are looked for first
#define LOADS 8    // codes that a thread reads at once where it compares rows

// Compares the codes of few rows of each slot, all over it. A thread takes a feature of a slot:
// neighbours read the same rows. Most features that vary show it here.
extern "C" __global__ void __launch_bounds__(THREADS, 4)
compare_samples(Codes codes, Frontier slots, i64 S, i32* varies) {
  int stride = (int)codes.stride;
  for (i64 i = thread_number(); i < S * codes.F; i += thread_count()) {
    i64 s = i / codes.F, low = slots.begin[s], n = slots.end[s] - low;
    const CODE* column = codes.at + (i - s * codes.F);
    const i32* rows = slots.rows + low;
    CODE first = column[(i64)rows[0] * stride];
    bool differs = false;
    for (int begin = 1; begin < SAMPLE && begin < n; begin += LOADS) {
      i32 row[LOADS];
#pragma unroll
      for (int u = 0; u < LOADS; u++) {
        i64 j = min(begin + u, SAMPLE - 1);
        row[u] = rows[n > SAMPLE ? j * n / SAMPLE : min(j, n - 1)];
      }
#pragma unroll
      for (int u = 0; u < LOADS; u++) differs |= column[(i64)row[u] * stride] != first;
    }
    varies[i] = differs;
  }
}

// The feature at a position of slot s's order; -1 past its end, and if the slot's tree did not
// draw it.
__device__ __forceinline__ int feature_at(const Frontier& slots, i64 F, i64 k, const Order& order,
                                          i64 s, i64 position) {
  if (position >= F) return -1;
  int f = (int)(k >= F ? position : order.at(position));
  return slots.allowed && !slots.allowed[slots.tree[s] * F + f] ? -1 : f;
}

// The first row of each tile, i32[n]; past the last tile 2^31 - 1.
extern "C" __global__ void __launch_bounds__(THREADS)
first_rows(Frontier slots, Tiles tiles, i64 n, i32* rows) {
  for (i64 p = thread_number(); p < n; p += thread_count())
    rows[p] = p < tiles.first[tiles.S] ? slots.rows[tile_of(slots, tiles, p).low] : 0x7fffffff;
}

// Notes which of n features vary in a tile, `own` in shared memory. Neighbouring threads take the
// features of one row. A feature is -1 as soon as it is known to vary.
__device__ __forceinline__ void compare_tile(const Codes& codes, const Frontier& slots,
                                             const Tile& tile, i32* own, int n, i32* varies) {
  int at_once = blockDim.x / n, j = threadIdx.x % n, f = own[j], stride = (int)codes.stride;
  int size = (int)(tile.high - tile.low), i = threadIdx.x / n;
  const CODE* column = codes.at + f;
  const i32* rows = slots.rows + tile.low;
  CODE first = column[(i64)slots.rows[slots.begin[tile.slot]] * stride];
  if (i >= at_once) i = size;
  __syncthreads();
  for (; i < size && atomicOr(own + j, 0) >= 0; i += LOADS * at_once) {
    i32 row[LOADS];
#pragma unroll
    for (int u = 0; u < LOADS; u++) row[u] = rows[min(i + u * at_once, size - 1)];
    bool differs = false;
#pragma unroll
    for (int u = 0; u < LOADS; u++) differs |= column[(i64)row[u] * stride] != first;
    if (differs && atomicExch(own + j, -1) >= 0) atomicExch(varies + f, 1);
  }
  __syncthreads();
}

// Compares all rows of a slot, where the sample leaves open which features are the first k that
// vary, i32[S, F]. A block takes a tile. What blocks of the same slot find meanwhile saves work
// only.
extern "C" __global__ void __launch_bounds__(THREADS, 4)
compare_rows(Codes codes, Frontier slots, Tiles tiles, i64 k, i32* all_varies) {
  __shared__ u32 counts[THREADS / 32];
  __shared__ i32 own[THREADS];
  for (i64 p = tiles.first[0] + blockIdx.x; p < tiles.first[tiles.S]; p += gridDim.x) {
    Tile tile = tile_of(slots, tiles, p);
    i64 s = tile.slot;
    if (slots.end[s] - slots.begin[s] <= SAMPLE) continue;
    Order order(slots.key[s], codes.F);
    i32* varies = all_varies + s * codes.F;
    i64 found = 0;
    for (i64 first = 0; first < codes.F && found < k; first += blockDim.x) {
      int f = feature_at(slots, codes.F, k, order, s, first + threadIdx.x), n_known, n;
      bool known = f >= 0 && atomicOr(varies + f, 0);  // other blocks may note it now
      i64 before = found + block_rank(known, counts, n_known);
      bool open = f >= 0 && !known && before < k;
      int at = block_rank(open, counts, n);
      if (open) own[at] = f;
      __syncthreads();
      if (n) compare_tile(codes, slots, tile, own, n, varies);
      found += n_known;
    }
  }
}

// Writes the first k features that vary in each slot, i32[S, k], then -1, and clears their
// histograms where rows are added to them: those of slots of one tile are written as a whole, unless
// `always`. A block takes a slot.
extern "C" __global__ void __launch_bounds__(THREADS)
draw_features(Histograms hist, Frontier slots, i64 F, const i32* all_varies, Tiles tiles, i64 always,
              i32* features) {
  __shared__ u32 counts[THREADS / 32];
  i64 k = hist.k;
  for (i64 s = blockIdx.x; s < hist.S; s += gridDim.x) {
    Order order(slots.key[s], F);
    i64 found = 0;
    for (i64 first = 0; first < F && found < k; first += blockDim.x) {
      int f = feature_at(slots, F, k, order, s, first + threadIdx.x), n;
      bool varies = f >= 0 && all_varies[s * F + f];
      i64 j = found + block_rank(varies, counts, n);
      if (varies && j < k) features[s * k + j] = f;
      found += n;
    }
    bool clear = always || tiles.first[s + 1] - tiles.first[s] != 1;
    i64 n = found < k ? found : k, width = (i64)hist.B * hist.channels;
    for (i64 j = n + threadIdx.x; j < k; j += blockDim.x) features[s * k + j] = -1;
    SUM* cells = hist.cells + s * k * width;
    for (i64 i = threadIdx.x; clear && i < n * width; i += blockDim.x) cells[i] = 0;
  }
}
