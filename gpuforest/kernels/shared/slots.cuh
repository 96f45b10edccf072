// Tiles of slots' rows. A block takes one tile at a time.
#include "shared/scans.cuh"
#include "generated/Frontier.cuh"
#include "generated/Tiles.cuh"

// The rows at the positions low .. high - 1, which follow `before` other rows of their slot.
struct Tile {
  i64 slot, before, low, high;
};

// The place of a row's position in its half.
__device__ __forceinline__ i64 in_half(i64 i, i64 half) { return i < half ? i : i - half; }

// The p-th tile that blocks take. By their first rows, those of all trees that are taken at the
// same time read the same part of the codes, and find it in the cache.
__device__ __forceinline__ i64 in_order(const Tiles& tiles, i64 p) {
  return tiles.order ? tiles.order[p] : p;
}

// Tile p of all slots. Its slot is the last s with first[s] <= p among those that have tiles.
__device__ __forceinline__ Tile tile_of(const Frontier& slots, const Tiles& tiles, i64 p) {
  i64 s = part_of(tiles.first, tiles.S, p);
  i64 before = (p - tiles.first[s]) * tiles.size, low = slots.begin[s] + before;
  return {s, before, low, low + tiles.size < slots.end[s] ? low + tiles.size : slots.end[s]};
}
