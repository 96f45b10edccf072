// Sums of features as columns of codes, on the device. The specification is `Backend.project`.
//
// Two passes over tiles of rows: the first finds the least and the greatest sum of each slot and
// combination, the second writes codes. blockIdx.y counts combinations.
#include "shared/goes_left.cuh"
#include "shared/slots.cuh"
#include "generated/Codes.cuh"
#include "generated/Combined.cuh"

// The sum of combination j of slot s for row r.
__device__ __forceinline__ int sum_of(const Codes& codes, const Combined& c, i64 s, i64 j, i64 r) {
  const i32 *features = c.features + (s * c.k + j) * c.L, *weights = c.weights + (s * c.k + j) * c.L;
  int total = 0;
  for (i64 i = 0; i < c.L && features[i] >= 0; i++) {
    i64 f = features[i];
    int code = codes.at[r * codes.stride + f];
    if (code == (int)codes.B - 1) return HOLE;
    total += weights[i] * c.coordinates[f * codes.B + code];
  }
  return total;
}

// least i32[S, k] holds the greatest number, greatest i32[S, k] HOLE.
extern "C" __global__ void __launch_bounds__(THREADS, 4)
ends(Codes codes, Frontier slots, Tiles tiles, Combined c, i32* least, i32* greatest) {
  for (i64 p = blockIdx.x; p < tiles.first[tiles.S]; p += gridDim.x) {
    Tile tile = tile_of(slots, tiles, p);
    for (i64 j = blockIdx.y; j < c.k; j += gridDim.y) {
      int low = 2147483647, high = HOLE;
      for (i64 i = tile.low + threadIdx.x; i < tile.high; i += blockDim.x) {
        int sum = sum_of(codes, c, tile.slot, j, slots.rows[i]);
        if (sum != HOLE && sum < low) low = sum;
        if (sum > high) high = sum;
      }
      low = -warp_max(-low);
      high = warp_max(high);
      if (lane() == 0 && high != HOLE) {
        atomicMin(&least[tile.slot * c.k + j], low);
        atomicMax(&greatest[tile.slot * c.k + j], high);
      }
    }
  }
}

// first i64[S]: where the codes of each slot begin in out [R, k]; low, shift i64[S, k].
extern "C" __global__ void __launch_bounds__(THREADS)
columns(Codes codes, Frontier slots, Tiles tiles, Combined c, const i64* first, const i64* low,
        const i64* shift, CODE* out) {
  for (i64 p = blockIdx.x; p < tiles.first[tiles.S]; p += gridDim.x) {
    Tile tile = tile_of(slots, tiles, p);
    i64 s = tile.slot, start = first[s] + tile.before;
    for (i64 j = blockIdx.y; j < c.k; j += gridDim.y) {
      i64 at = s * c.k + j, f = c.features[at * c.L];
      bool alone = c.L == 1 || c.features[at * c.L + 1] < 0;
      for (i64 i = tile.low + threadIdx.x; i < tile.high; i += blockDim.x) {
        i64 r = slots.rows[i];
        int code = 0;
        if (f >= 0 && alone) {
          code = codes.at[r * codes.stride + f];
          if (code == (int)codes.B - 1) code = (int)c.n_bins;
        } else if (f >= 0) {
          int sum = sum_of(codes, c, s, j, r);
          code = sum == HOLE ? (int)c.n_bins : (int)((sum - low[at]) >> shift[at]);
        }
        out[(start + i - tile.low) * c.k + j] = (CODE)code;
      }
    }
  }
}
