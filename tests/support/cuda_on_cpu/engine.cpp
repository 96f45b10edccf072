// Runs the threads of a kernel on one CPU thread.
//
// A CUDA thread gets a stack of its own when it first has to wait; one that never waits runs on the
// stack of the thread before it, as in a loop. Whoever waits picks the next thread and jumps there
// itself. A block is at most 32 warps of 32 lanes, so one word holds what may run in a warp and one
// word the warps in which something may run: to pick is a bit operation, and barriers only count.
//
// For ThreadSanitizer the blocks are the work of two crews in turn, with stacks and dynamic shared
// memory of their own. No order holds between the crews, so races between blocks are seen as well.
#include "engine.hpp"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "stacks.hpp"
#include "traffic.hpp"
#include "warp.hpp"

namespace cuda_on_cpu {

struct Crew {
    Thread threads[1024];
    unsigned char* shared;  // dynamic
    char started, ended;    // tokens
};

// seen by kernels
Thread* current;
uint3 block_index, block_dim, grid_dim;
unsigned char* dynamic_shared;
bool shuffled;

// the block
static Crew crews[TSAN ? 2 : 1];
static Crew* crew;
static unsigned n_threads, n_warps;
static unsigned ready;   // warps with something runnable
static Warp* at;         // the warp in which something ran last
static unsigned n_left;  // threads that are through

// the launch
static void (*body)(void**);
static void** arguments;
static std::vector<unsigned> order;  // of the blocks, if shuffled
static unsigned n_blocks, next_block;
static size_t shared_bytes;
static char *statics_begin, *statics_end;
static void* callers_fiber;
static char launched;  // a token
static uint64_t random_state;
static char error[1024];
static uint64_t turns[2];  // of all warps; and of as many that all did as much as the busiest

// ---- who runs -----------------------------------------------------------------------------------

static unsigned random_bits() {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state * 0x9E3779B97F4A7C15u >> 32;
}

// the first bit that is set, counted from a random one on
static inline unsigned some_bit(unsigned bits, unsigned from) {
    from &= 31;
    return (__builtin_ctz(bits >> from | bits << (-from & 31)) + from) & 31;
}

static inline void pause(Warp& warp, unsigned lanes) {
    warp.runnable &= ~lanes;
    if (!warp.runnable) ready &= ~(1u << (&warp - warps));
}

static inline void resume(Warp& warp, unsigned lanes) {
    warp.runnable |= lanes;
    ready |= 1u << (&warp - warps);
}

static inline void become(Thread* thread) {
    current = thread;
#ifdef CUDA_ON_CPU_TSAN
    __tsan_switch_to_fiber(thread ? thread->fiber : callers_fiber,
                           __tsan_switch_to_fiber_no_sync);
#endif
}

void fail(const char* format, ...) {
    int length = snprintf(error, sizeof error, "block (%u, %u, %u)", block_index.x, block_index.y,
                          block_index.z);
    if (current)
        length += snprintf(error + length, sizeof error - length, ", thread (%u, %u, %u)",
                           current->index.x, current->index.y, current->index.z);
    length += snprintf(error + length, sizeof error - length, ": ");
    va_list list;
    va_start(list, format);
    vsnprintf(error + length, sizeof error - length, format, list);
    va_end(list);
    become(nullptr);
    go(callers);
    abort();  // nobody comes back here
}

static inline __attribute__((always_inline)) void run_another();
#include "barriers.hpp"

static void begin_block() {
    const unsigned turn = next_block++, block = shuffled ? order[turn] : turn;
    block_index = {block % grid_dim.x, block / grid_dim.x % grid_dim.y,
                   block / grid_dim.x / grid_dim.y};
    crew = &crews[turn % std::size(crews)];
    dynamic_shared = crew->shared;
    place_shared(dynamic_shared, shared_bytes);
    barrier.arrived = barrier.held = 0;
    n_left = 0;
    for (unsigned w = 0; w < n_warps; w++) {
        const unsigned lanes = n_threads - 32 * w;
        warps[w].members = warps[w].runnable = lanes < 32 ? (1u << lanes) - 1 : ~0u;
        warps[w].left = warps[w].at_barrier = 0;
        warps[w].turns = warps[w].clock = 0;
    }
    ready = n_warps < 32 ? (1u << n_warps) - 1 : ~0u;
    at = warps;

    become(crew->threads);  // in whose name the shared memory is overwritten
    acquire(launched);
    acquire(crew->ended);
    if (shared_bytes) memset(dynamic_shared, 0xCD, shared_bytes);
    forget_accesses(statics_begin, statics_end);
    release(crew->started);
}

// Nothing can run, yet threads are left. They wait in some meeting: else the barrier had opened.
[[noreturn]] static void explain_deadlock() {
    current = nullptr;
    for (unsigned w = 0; w < n_warps; w++)
        for (const Meeting& meeting : warps[w].meetings) {
            if (!meeting.here) continue;
            const unsigned missing = meeting.mask & ~meeting.here;
            fail("deadlock in warp %u: lanes %08x wait in %s for lanes %08x (of which %08x left "
                 "the kernel and %08x wait at __syncthreads)",
                 w, meeting.here, name_of(meeting.op), missing, missing & warps[w].left,
                 missing & warps[w].at_barrier);
        }
    for (const PartBarrier& part : parts)
        if (part.arrived)
            fail("deadlock: %u threads wait at barrier %u for %u", part.arrived,
                 unsigned(&part - parts), part.count);
    fail("deadlock");
}

// who runs when the current thread cannot: null when the launch is over
static inline Thread* pick() {
    if (!ready) {
        if (n_left < n_threads) explain_deadlock();
        if (next_block == n_blocks) return nullptr;
        begin_block();
    }
    unsigned lane;
    if (shuffled) {
        const unsigned random = random_bits();
        // mostly a warp goes on for a while: that is how far one can run ahead of the others
        if (!at->runnable || random >> 28 == 0) at = &warps[some_bit(ready, random >> 5)];
        lane = some_bit(at->runnable, random);
    } else {
        if (!at->runnable) at = &warps[__builtin_ctz(ready)];
        lane = __builtin_ctz(at->runnable);
    }
    return &crew->threads[32 * (at - warps) + lane];
}

static void give_stack(Thread& thread) {
    // for ThreadSanitizer always the same one: two threads on one stack would race for it
    if (!TSAN || !thread.own_stack) thread.own_stack = &take_stack();
    thread.stack = thread.own_stack;
}

static inline __attribute__((always_inline)) void run_another() {
    Thread* next = pick();
    if (next == current) return;
    if (!next->stack) give_stack(*next);
    become(next);
    go(*next->stack);
}

static void leave() {
    if (barrier.arrived)
        fail("leaves the kernel while others wait at __syncthreads, line %d", barrier.line);
    current->warp->left |= 1u << current->lane;
    if (++n_left == n_threads) count_turns();
    pause(*current->warp, 1u << current->lane);
    release(crew->ended);
}

// what runs on a stack: one thread after another
static void work() {
    arrived(nullptr);
    for (;;) {
        Stack& mine = *here;
        acquire(crew->started);
        body(arguments);
        leave();
        current->stack = nullptr;
        Thread* next = pick();
        if (!TSAN && next && !next->stack) {
            next->stack = &mine;
            become(next);
            continue;
        }
        if (!TSAN) put_back(mine);
        if (next && !next->stack) give_stack(*next);
        become(next);
        go(next ? *next->stack : callers);
    }
}

// ---- what kernels call --------------------------------------------------------------------------

uint64_t meet(Op op, unsigned mask, uint64_t value, unsigned source) {
    Warp& warp = *current->warp;
    const unsigned lane = current->lane, bit = 1u << lane;
    if (!(mask & bit)) fail("%s: the calling lane is not in its mask %08x", name_of(op), mask);
    if (mask & ~warp.members)
        fail("%s: the mask %08x names lanes that the block has not", name_of(op), mask);
    Meeting& meeting = warp.meetings[__builtin_ctz(mask)];
    if (!meeting.here) {
        meeting.mask = mask;
        meeting.op = op;
    } else if (meeting.mask != mask || meeting.op != op) {
        fail("%s with mask %08x, while other lanes of the warp wait in %s with mask %08x",
             name_of(op), mask, name_of(meeting.op), meeting.mask);
    }
    char& token = meeting.token[meeting.generation & 1];
    if (op == Op::sync) release(token);  // shuffles and votes promise no order of memory
    warp.given[lane] = value;
    warp.source[lane] = source;
    meeting.here |= bit;
    pause(warp, bit);
    if (meeting.here == mask) {
        conclude(warp, op, mask);
        meeting.here = 0;
        meeting.generation++;
        warp.turns++;
        warp.clock++;
        if (!(warp.members & ~warp.left & ~mask)) count_traffic(&warp - warps);
        resume(warp, mask);
        // warps take turns, as on a GPU: else the first to ask would do all work that they share
        if (!shuffled) at = &warps[some_bit(ready, at - warps + 1)];
    }
    run_another();
    if (op == Op::sync) acquire(token);
    return warp.outcome[lane];  // still there: the next meeting cannot end without this lane
}

void step_aside() {
    if (random_bits() >> 29 == 0) run_another();
}

// ---- launch -------------------------------------------------------------------------------------

static void arrange(const unsigned* grid, const unsigned* block, uint64_t seed) {
    grid_dim = {grid[0], grid[1], grid[2]};
    block_dim = {block[0], block[1], block[2]};
    n_blocks = grid[0] * grid[1] * grid[2];
    n_threads = block[0] * block[1] * block[2];
    n_warps = (n_threads + 31) / 32;
    for (Crew& crew : crews)
        for (unsigned i = 0; i < n_threads; i++) {
            Thread& thread = crew.threads[i];
            thread.index = {i % block[0], i / block[0] % block[1], i / block[0] / block[1]};
            thread.warp = &warps[i / 32];
            thread.lane = i % 32;
#ifdef CUDA_ON_CPU_TSAN
            // dear: the second crew only if it is needed
            if (!thread.fiber && (&crew == crews || n_blocks > 1))
                thread.fiber = __tsan_create_fiber(0);
#endif
        }
    next_block = 0;
    shuffled = seed != 0;
    random_state = seed;
    order.resize(shuffled ? n_blocks : 0);
    for (unsigned i = 0; i < order.size(); i++) {
        const unsigned j = random_bits() % (i + 1);
        order[i] = order[j];
        order[j] = i;
    }
}

// after an error: nobody finishes what stands on the stacks
static void clear_away() {
    idle = nullptr;
    for (size_t i = stacks.size(); i-- > 0;) {
        clear(*stacks[i], i);
        put_back(*stacks[i]);
    }
    for (Crew& crew : crews)
        for (Thread& thread : crew.threads) {
            thread.stack = thread.own_stack = nullptr;
#ifdef CUDA_ON_CPU_TSAN
            if (!thread.fiber) continue;
            become(&thread);
            release(crews->ended);  // later launches do not race with it
            become(nullptr);
            __tsan_destroy_fiber(thread.fiber);
            thread.fiber = nullptr;
#endif
        }
    acquire(crews->ended);
    for (PartBarrier& part : parts) part = {};
    for (Warp& warp : warps)
        for (Meeting& meeting : warp.meetings) meeting.here = 0;
}

// `statics`: where the kernels' static memory begins and ends. Null if all went well, else what
// was wrong.
extern "C" const char* cuda_on_cpu_launch(void (*kernel)(void**), void** values, char** statics,
                                          const unsigned* grid, const unsigned* block,
                                          size_t shared, uint64_t seed) {
    body = kernel;
    arguments = values;
    statics_begin = statics[0];
    statics_end = statics[1];
    error[0] = 0;
    turns[0] = turns[1] = 0;
    begin_traffic(statics);
    current = nullptr;
#ifdef CUDA_ON_CPU_TSAN
    callers_fiber = __tsan_get_current_fiber();
#endif
    arrange(grid, block, seed);
    shared_bytes = shared;
    // not a byte more, so that AddressSanitizer sees overruns
    for (Crew& crew : crews) crew.shared = static_cast<unsigned char*>(malloc(shared));
    release(launched);
    begin_block();
    Thread* first = pick();
    give_stack(*first);
    become(first);
    go(*first->stack);
    for (Crew& crew : crews) acquire(crew.ended);
    if (error[0]) clear_away();
    for (Crew& crew : crews) free(crew.shared);
    return error[0] ? error : nullptr;
}

// of the last launch
extern "C" const uint64_t* cuda_on_cpu_turns() { return turns; }

}  // namespace cuda_on_cpu
