// Sorts columns: a radix sort, from the lowest byte of the values to the highest. A block takes a
// column, so nothing passes between blocks, and every value's place follows from counts alone.
#include "shared/cuda.cuh"

template <int bytes> struct Word { typedef u32 type; };
template <> struct Word<8> { typedef u64 type; };
typedef Word<sizeof(VALUE)>::type BITS;  // of a value. Kernels move these, and compute with none

constexpr int DIGITS = 256, PLACES = sizeof(BITS);
constexpr int SORT_WARPS = SORT_THREADS / 32;
constexpr int SORT_ITEMS = SORT_BYTES / sizeof(BITS);  // of a thread
constexpr int SORT_TILE = SORT_THREADS * SORT_ITEMS;
constexpr int SORT_ROOM = SORT_THREADS * (SORT_BYTES > 32 ? SORT_BYTES : 32);  // bytes
constexpr BITS SIGN = (BITS)1 << (8 * PLACES - 1), PADDING = ~(BITS)0;  // the latter is a NaN
constexpr BITS INFINITE = PLACES == 4 ? (BITS)0x7f800000 : (BITS)(0x7ffull << 52);
static_assert(SORT_THREADS >= DIGITS && SORT_WARPS * DIGITS * 4 <= SORT_ROOM, "a thread a digit");

// A digit of the whole number in whose order the values are: NaN of either sign comes last.
__device__ __forceinline__ int digit(BITS x, int place) {
  BITS ordered = x & SIGN ? ~x : x | SIGN;
  if ((x & ~SIGN) > INFINITE) ordered = PADDING;
  return (int)(ordered >> 8 * place) & (DIGITS - 1);
}

// The lanes that have the same digit.
__device__ __forceinline__ u32 lanes_of(int digit) {
  u32 same = ALL_LANES;
  for (int bit = 1; bit < DIGITS; bit <<= 1) {
    u32 set = __ballot_sync(ALL_LANES, digit & bit);
    same &= digit & bit ? set : ~set;
  }
  return same;
}

// How many values of the column have each digit at each place.
__device__ __forceinline__ void count_digits(const BITS* from, int n, u32 (*counts)[DIGITS]) {
  for (int d = threadIdx.x; d < PLACES * DIGITS; d += SORT_THREADS)
    counts[d / DIGITS][d % DIGITS] = 0;
  __syncthreads();
#pragma unroll 4
  for (int i = threadIdx.x; i < n; i += SORT_THREADS) {
    BITS x = from[i];
    for (int p = 0; p < PLACES; p++) atomicAdd(&counts[p][digit(x, p)], 1);
  }
  __syncthreads();
}

// The sum over the digits before a thread's; thread d has digit d. All threads call it.
__device__ __forceinline__ u32 digits_before(u32 count, u32* parts) {
  u32 here = sum_to_here(count), before = here - count;
  if (lane() == 31) parts[warp()] = here;
  __syncthreads();
  for (int w = 0; w < DIGITS / 32; w++) before += w < warp() ? parts[w] : 0;
  return before;
}

// What a block sorts with. `room` holds counts [SORT_WARPS, DIGITS] of a tile's digits for each
// warp, and then the tile, sorted.
struct Sorter {
  __align__(16) unsigned char room[SORT_ROOM];
  u32 counts[PLACES][DIGITS];
  u32 next[DIGITS];   // where the next value of a digit goes
  u32 start[DIGITS];  // where those of a digit start in the tile,
  u32 shift[DIGITS];  // and how much farther on in the column
  u32 parts[SORT_WARPS];

  __device__ u32* warp_counts() { return (u32*)room + warp() * DIGITS; }

  // A warp takes SORT_ITEMS times 32 values in a row; beyond the column, padding.
  __device__ __forceinline__ void load(const BITS* from, int begin, int n, BITS* own) {
    int at = begin + warp() * 32 * SORT_ITEMS + lane();
    for (int j = 0; j < SORT_ITEMS; j++) own[j] = at + 32 * j < n ? from[at + 32 * j] : PADDING;
  }

  // How many values of the same digit come before each, in its warp.
  __device__ __forceinline__ void rank(const BITS* own, int place, u32* ranks) {
    u32* counted = warp_counts();
    for (int d = lane(); d < DIGITS; d += 32) counted[d] = 0;
    __syncwarp();
    for (int j = 0; j < SORT_ITEMS; j++) {
      int d = digit(own[j], place);
      u32 same = lanes_of(d), before = counted[d];
      __syncwarp();
      if (!(same & lanes_below())) counted[d] = before + __popc(same);
      __syncwarp();
      ranks[j] = before + __popc(same & lanes_below());
    }
    __syncthreads();
  }

  // Turns the counts of warps into those of the warps before, and sets `start` and `shift`.
  __device__ __forceinline__ void place_digits() {
    u32 total = 0, *counted = (u32*)room + threadIdx.x;
    if (threadIdx.x < DIGITS)
      for (int w = 0; w < SORT_WARPS; w++) {
        u32 here = counted[w * DIGITS];
        counted[w * DIGITS] = total;
        total += here;
      }
    u32 before = digits_before(total, parts);
    if (threadIdx.x < DIGITS) {
      start[threadIdx.x] = before;
      shift[threadIdx.x] = next[threadIdx.x] - before;
      next[threadIdx.x] += total;
    }
    __syncthreads();
  }

  // Puts the values of the tile in order.
  __device__ __forceinline__ void arrange(const BITS* own, int place, u32* ranks) {
    for (int j = 0; j < SORT_ITEMS; j++) {
      int d = digit(own[j], place);
      ranks[j] += start[d] + warp_counts()[d];
    }
    __syncthreads();
    for (int j = 0; j < SORT_ITEMS; j++) ((BITS*)room)[ranks[j]] = own[j];
    __syncthreads();
  }

  // One pass: in the order of one digit, and where it is equal, in their order.
  __device__ __forceinline__ void pass(const BITS* from, BITS* to, int n, int place) {
    u32 before = digits_before(threadIdx.x < DIGITS ? counts[place][threadIdx.x] : 0, parts);
    if (threadIdx.x < DIGITS) next[threadIdx.x] = before;
    BITS own[SORT_ITEMS];
    u32 ranks[SORT_ITEMS];
    load(from, 0, n, own);
    for (int begin = 0; begin < n; begin += SORT_TILE) {
      rank(own, place, ranks);
      place_digits();
      arrange(own, place, ranks);
      load(from, begin + SORT_TILE, n, own);  // these are under way while others are written
      int end = n - begin < SORT_TILE ? n - begin : SORT_TILE;
      for (int i = threadIdx.x; i < end; i += SORT_THREADS) {
        BITS x = ((BITS*)room)[i];
        to[shift[digit(x, place)] + i] = x;
      }
      __syncthreads();
    }
  }
};

// Sorts columns [F, n], NaN last; `spare` is as large. swapped[f]: is column f now in `spare`?
// A place at which all values of a column have the same digit is skipped.
extern "C" __global__ void __launch_bounds__(SORT_THREADS)
sort_columns(VALUE* columns, VALUE* spare, i64 n, i32* swapped) {
  __shared__ Sorter sorter;
  BITS* from = (BITS*)columns + blockIdx.x * n;
  BITS* to = (BITS*)spare + blockIdx.x * n;
  count_digits(from, (int)n, sorter.counts);
  int passes = 0;
  for (int place = 0; place < PLACES; place++) {
    u32 count = threadIdx.x < DIGITS ? sorter.counts[place][threadIdx.x] : 0;
    if (__syncthreads_or(count == n)) continue;
    sorter.pass(from, to, (int)n, place);
    BITS* sorted = to;
    to = from;
    from = sorted;
    passes++;
  }
  if (threadIdx.x == 0) swapped[blockIdx.x] = passes & 1;
}
