// Drawing features on the device. The specification is frontier.draw_features.
#include "cuda.cuh"
#include "hashing/cuda.cuh"

// Elements first .. first + k - 1 of each slot's order, i32[S, k]; -1 past its end, and
// for slots that need no more.
extern "C" __global__ void __launch_bounds__(256)
draw_features(const u64* keys, i64 first, i64 k, i64 F, i64 S, const i64* need, i32* features) {
  for (i64 i = thread_number(); i < S * k; i += thread_count()) {
    i64 s = i / k, position = first + i - s * k;
    bool none = need[s] <= 0 || position >= F;
    features[i] = none ? -1 : (i32)(k >= F ? position : Order(keys[s], F).at(position));
  }
}
