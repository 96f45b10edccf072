// A quantile of the sizes of residuals by all blocks, as `quantile_of` is by one. What blocks must
// know of each other they learn from one step to the next: a launch for each, or, of one block, the
// steps of one launch.
#include "boosted_tree/quantiles.cuh"
#include "generated/DeltaSteps.cuh"
#include "generated/LossOf.cuh"

#define BYTES 8           // of a key
#define WORDS_KNOWN 24    // at least 5 + 2 * BYTES
#define ENDS (BYTES + 1)  // the steps: 0, one for each byte, ENDS, and one more for the quantile

// What is known of all rows: zeros before the first step, and after the last one.
struct Known {
  i64* cells;
  u64 *most_weight, *least, *upto, *next, *most, *keys, *wanted;

  __device__ __forceinline__ explicit Known(const DeltaSteps& own)
      : cells(own.cells), most_weight(own.words), least(own.words + 1), upto(own.words + 2),
        next(own.words + 3), most(own.words + 4), keys(own.words + 5),
        wanted(own.words + 5 + BYTES) {}
};

// Step 0: the sizes of the residuals of row_of(i), their weights, and the largest of these or 1.
template <class RowOf>
__device__ __forceinline__ void take_residuals(const LossOf& loss, const DeltaSteps& to,
                                               RowOf row_of, const Known& known, Places& shared) {
  u64 most = (u64)__double_as_longlong(1.0);
  for (i64 i = thread_number(); i < to.R; i += thread_count()) {
    i64 row = row_of(i);
    to.rest[i] = fabs(loss.y[row] - loss.raw[row]);
    if (!loss.weight) continue;
    to.weights[i] = loss.weight[row];
    u64 own = (u64)__double_as_longlong(to.weights[i]);
    most = own > most ? own : most;
  }
  most = block_most(most, shared);
  if (threadIdx.x == 0) atomicMax(known.most_weight, most);
}

// What is wanted: a weight, as of all rows and as a whole number; 0: the least residual.
struct Wanted {
  double all;
  i64 first;
};

__device__ __forceinline__ Wanted wanted_of(const Residuals& rest, double share, i64 total) {
  if (!rest.weight) return {0.0, (i64)(share * (double)(rest.n - 1)) + 1};
  double all = share * (double)total;
  return {all, (i64)ceil(all)};
}

// The bytes of the key that steps before this one have found. Block 0 notes them for the next step.
__device__ __forceinline__ u64 key_before(const Residuals& rest, const Known& known, int step,
                                          double share, Places& shared) {
  int byte = step - 2;  // that the last step has counted
  if (byte < 0) return 0;
  i64 total, own = known.cells[byte * THREADS + threadIdx.x];
  i64 upto = block_sum_to_here(own, shared.sums, total), wanted;
  u64 key = byte ? known.keys[byte - 1] : 0;
  if (byte) wanted = (i64)known.wanted[byte - 1];
  else wanted = wanted_of(rest, share, total).first;
  if (wanted == 0) {
    if (threadIdx.x == 0) shared.key = ~*known.least, shared.wanted = 0;
  } else if (upto >= wanted && upto - own < wanted) {
    shared.key = key | (u64)threadIdx.x << (56 - 8 * byte);
    shared.wanted = wanted - (upto - own);
  }
  __syncthreads();
  key = shared.key;
  if (threadIdx.x == 0 && blockIdx.x == 0 && byte < BYTES - 1) {
    known.keys[byte] = key;
    known.wanted[byte] = (u64)shared.wanted;
  }
  return key;
}

__device__ __forceinline__ double weight_unit(const Residuals& rest, const Known& known) {
  if (!rest.weight) return 1.0;
  int exponent = exponent_of(__longlong_as_double((i64)*known.most_weight));
  return ldexp(1.0, 52 - bit_length(rest.n) - exponent);
}

// Adds the weights of residuals that share the bytes found so far, for each value of the next one.
__device__ __forceinline__ void count_byte(const Residuals& rest, const Known& known, int step,
                                           u64 key, double unit, Places& shared) {
  int shift = 64 - 8 * step;
  u64 found = step > 1 ? ~0ull << (shift + 8) : 0, least = 0;
  shared.cells[2 * threadIdx.x] = shared.cells[2 * threadIdx.x + 1] = 0;
  __syncthreads();
  for (i64 i = thread_number(); i < rest.n; i += thread_count()) {
    u64 own = key_of(rest.rest[i]);
    if (step == 1) least = ~own > least ? ~own : least;
    if ((own ^ key) & found) continue;
    u32* cell = shared.cells + 2 * (own >> shift & 255);
    u32 high = add_low(cell, whole_weight(rest, i, unit));
    if (high) atomicAdd(cell + 1, high);
  }
  if (step == 1) {
    least = block_most(least, shared);
    if (threadIdx.x == 0) atomicMax(known.least, least);
  }
  __syncthreads();
  i64 sum = value_64(shared.cells + 2 * threadIdx.x);
  if (sum) add_global(known.cells + (step - 1) * THREADS + threadIdx.x, sum);
}

// The weights up to the key, the least one above, and the largest of all.
__device__ __forceinline__ void find_ends(const Residuals& rest, const Known& known, u64 key,
                                          double unit, Places& shared) {
  u64 next = 0, most = 0;
  i64 upto = 0;
  for (i64 i = thread_number(); i < rest.n; i += thread_count()) {
    u64 own = key_of(rest.rest[i]);
    i64 weight = whole_weight(rest, i, unit);
    if (own <= key) upto += weight;
    else if (weight > 0 && ~own > next) next = ~own;
    most = own > most ? own : most;
  }
  upto = block_sum(upto, shared.sums);
  next = block_most(next, shared);
  most = block_most(most, shared);
  if (threadIdx.x > 0) return;
  add_global((i64*)known.upto, upto);
  atomicMax(known.next, next);
  atomicMax(known.most, most);
}

// The quantile; and zeros for the next one. One block.
__device__ __forceinline__ double quantile_from(const Residuals& rest, const Known& known, u64 key,
                                                double share, Places& shared) {
  i64 total = block_sum(known.cells[threadIdx.x], shared.sums), upto = (i64)*known.upto;
  Wanted wanted = wanted_of(rest, share, total);
  bool ends = rest.weight ? (double)upto == wanted.all : upto == wanted.first && upto < rest.n;
  u64 next = *known.next, high = !ends ? key : next ? ~next : *known.most;
  double at = share * (double)(rest.n - 1), part = rest.weight ? 0.5 : at - (double)(i64)at;
  double low = of_key(key);
  __syncthreads();
  for (int i = threadIdx.x; i < BYTES * THREADS; i += blockDim.x) known.cells[i] = 0;
  if (threadIdx.x < WORDS_KNOWN) known.most_weight[threadIdx.x] = 0;
  return low + (of_key(high) - low) * part;
}
