// What the kernels' side (cuda.hpp) and the engine know of each other.
#pragma once
#include <stdint.h>

struct uint3 {
    unsigned x, y, z;
};

namespace cuda_on_cpu {

struct Stack;
struct Warp;

struct Thread {
    uint3 index;  // threadIdx
    unsigned lane;
    Warp* warp;
    Stack* stack;      // where it sleeps; null before its first step and after its last
    Stack* own_stack;  // the one that it had last
    void* fiber;       // ThreadSanitizer's name for it
};

// what the lanes of a warp do together
enum class Op {
    sync,
    shuffle,
    shuffle_up,
    shuffle_down,
    shuffle_xor,
    ballot
};

// of the launch that runs now
extern Thread* current;
extern uint3 block_index, block_dim, grid_dim;
extern unsigned char* dynamic_shared;
extern bool shuffled;

// All lanes in the mask bring a value and leave with their part of the outcome. `source`: the lane
// that a shuffle reads from.
uint64_t meet(Op op, unsigned mask, uint64_t value, unsigned source);

// All threads of the block bring a condition and leave with how many held.
unsigned block_barrier(bool condition, const char* file, int line);

// Some warps of the block wait for each other: `count` threads, at one of 16 barriers.
void part_barrier(unsigned id, unsigned count);

// May let another thread go first. Atomics call it, so that shuffled runs differ there too.
void step_aside();

[[noreturn]] void fail(const char* format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace cuda_on_cpu
