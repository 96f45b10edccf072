// The lanes of a warp: who runs, who waits for whom, and what comes of it.
#pragma once
#include "engine.hpp"

namespace cuda_on_cpu {

// lanes of one warp that wait for each other
struct Meeting {
    unsigned mask, here;
    Op op;
    unsigned generation;  // a lane may wait for the next meeting before all have left this one
    char token[2];        // by generation
};

struct Warp {
    unsigned members;       // lanes that exist
    unsigned runnable;      // that could run now
    unsigned left;          // that are through
    unsigned at_barrier;    // that wait at __syncthreads
    uint64_t turns;         // meetings since the last barrier of the block
    uint64_t clock;         // these, and those of others that it waited for at barriers of some warps
    Meeting meetings[32];   // by the lowest lane of the mask
    uint64_t given[32];     // what a lane brought to a meeting
    unsigned source[32];    // the lane that it wants to read from
    uint64_t outcome[32];   // what it leaves with
};

static Warp warps[32];  // of the block

static const char* name_of(Op op) {
    static const char* names[] = {"__syncwarp",       "__shfl_sync",      "__shfl_up_sync",
                                  "__shfl_down_sync", "__shfl_xor_sync", "a vote"};
    return names[static_cast<int>(op)];
}

// The last lane to come works out what each of them gets, so one rendezvous is enough.
static void conclude(Warp& warp, Op op, unsigned mask) {
    const uint64_t* given = warp.given;
    const auto each = [mask](auto action) {
        for (unsigned rest = mask; rest; rest &= rest - 1) action(__builtin_ctz(rest));
    };
    if (op == Op::sync) return;
    if (op == Op::ballot) {  // each lane gives its bit
        uint64_t all = 0;
        each([&](unsigned lane) { all |= given[lane]; });
        return each([&](unsigned lane) { warp.outcome[lane] = all; });
    }
    each([&](unsigned lane) {
        const unsigned source = warp.source[lane];
        // CUDA leaves undefined what is read from a lane outside the mask
        warp.outcome[lane] = mask >> source & 1 ? given[source] : 0xCDCDCDCDCDCDCDCDu;
    });
}

}  // namespace cuda_on_cpu
