// The hash and the permutation of gpuforest/common/hashing.py, one number at a time.
#include "shared/cuda.cuh"

__device__ __forceinline__ u64 mix(u64 z) {
  z = (z ^ (z >> 30)) * MIX_1;
  z = (z ^ (z >> 27)) * MIX_2;
  return z ^ (z >> 31);
}

__device__ __forceinline__ u64 hash_at(u64 key, u64 position) {
  return mix(key + (position + 1) * GOLDEN);
}

// The random order of range(n), n <= 2^32, that a key determines; elements are computed one by
// one. It uses only the lowest bits of the reference's 64-bit products, so 32 bits are enough.
struct Order {
  u64 rounds[HASHES];
  u32 last, mask;
  int shift;

  __device__ Order(u64 key, i64 n) : last((u32)(n - 1)) {
    int bits = 64 - __clzll(n - 1);
    mask = (u32)((1ull << bits) - 1);
    shift = (bits + 1) / 2;
#pragma unroll
    for (int r = 0; r < HASHES; r++) rounds[r] = hash_at(key, PERMUTATION + r);
  }

  __device__ i64 at(u32 position) const {
    if (mask == 0) return 0;
    u32 x = position;
    do {
#pragma unroll
      for (int r = 0; r < HASHES; r++) {
        u64 h = rounds[r];
        x = ((x + (u32)h) * ((u32)(h >> 32) | 1)) & mask;
        x ^= x >> shift;
        x = ((x + (u32)(h >> 16)) * ((u32)(h >> 48) | 1)) & mask;
        x ^= x >> shift;
      }
    } while (x > last);
    return x;
  }
};
