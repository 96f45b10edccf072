// Barriers: of a block, and of some of its warps. A part of engine.cpp.

struct Barrier {
    unsigned arrived, held;  // threads that wait; of these, with a condition that holds
    unsigned outcome;
    unsigned generation;
    char token[2];
    const char* file;
    int line;
};

// of some warps
struct PartBarrier {
    unsigned arrived, count;
    unsigned waiting[32];  // lanes of each warp
    unsigned generation;
    char token[2];
};

static Barrier barrier;
static PartBarrier parts[16];

// Between two barriers a block takes as long as the warp that comes last.
static void count_turns() {
    uint64_t most = 0;
    for (unsigned w = 0; w < n_warps; w++) {
        count_traffic(w);
        turns[0] += warps[w].turns;
        if (warps[w].clock > most) most = warps[w].clock;
        warps[w].turns = warps[w].clock = 0;
    }
    turns[1] += most * n_warps;
}

unsigned block_barrier(bool condition, const char* file, int line) {
    const unsigned bit = 1u << current->lane;
    if (n_left) fail("waits at __syncthreads, line %d, but %u threads have left", line, n_left);
    if (!barrier.arrived) {
        barrier.file = file;
        barrier.line = line;
    } else if (barrier.line != line || strcmp(barrier.file, file) != 0) {
        fail("divergent barrier: __syncthreads in line %d, while others wait in line %d", line,
             barrier.line);
    }
    char& token = barrier.token[barrier.generation & 1];
    release(token);
    barrier.held += condition;
    current->warp->at_barrier |= bit;
    pause(*current->warp, bit);
    if (++barrier.arrived == n_threads) {
        barrier.outcome = barrier.held;
        barrier.arrived = barrier.held = 0;
        barrier.generation++;
        count_turns();
        for (unsigned w = 0; w < n_warps; w++) {
            warps[w].at_barrier = 0;
            resume(warps[w], warps[w].members);
        }
        at = warps;
    }
    run_another();
    acquire(token);
    return barrier.outcome;  // the next barrier cannot open before all have read this one's
}

void part_barrier(unsigned id, unsigned count) {
    if (id >= std::size(parts)) fail("barrier %u of 16", id);
    if (id == 0) fail("barrier 0 is that of __syncthreads");
    if (!count || count % 32) fail("%u threads at a barrier are no whole warps", count);
    PartBarrier& part = parts[id];
    if (part.arrived && part.count != count)
        fail("%u threads at barrier %u, where others wait for %u", count, id, part.count);
    part.count = count;
    char& token = part.token[part.generation & 1];
    release(token);
    part.waiting[current->warp - warps] |= 1u << current->lane;
    pause(*current->warp, 1u << current->lane);
    if (++part.arrived == count) {
        part.arrived = 0;
        part.generation++;
        uint64_t latest = 0;
        for (unsigned w = 0; w < n_warps; w++)
            if (part.waiting[w] && warps[w].clock > latest) latest = warps[w].clock;
        for (unsigned w = 0; w < n_warps; w++) {
            if (!part.waiting[w]) continue;
            warps[w].clock = latest;
            if (!(warps[w].members & ~warps[w].left & ~part.waiting[w])) count_traffic(w);
            resume(warps[w], part.waiting[w]);
            part.waiting[w] = 0;
        }
    }
    run_another();
    acquire(token);
}
