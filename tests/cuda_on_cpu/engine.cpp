// Runs the threads of a kernel on one CPU thread.
//
// A CUDA thread gets a stack of its own when it first has to wait; one that never waits runs on the
// stack of the thread before it, as in a loop. Whoever waits picks the next thread and jumps there
// itself. A block is at most 32 warps of 32 lanes, so one word holds what may run in a warp and one
// word the warps in which something may run: to pick is a bit operation, and barriers only count.
#include "engine.hpp"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <vector>

#if !defined(__x86_64__) && !defined(__aarch64__)
#include <ucontext.h>
#endif
#ifdef CUDA_ON_CPU_ASAN
#include <sanitizer/asan_interface.h>
#endif
#ifdef CUDA_ON_CPU_TSAN
#include <sanitizer/tsan_interface.h>
#endif

namespace cuda_on_cpu {

Thread* current;
uint3 block_index, block_dim, grid_dim;
unsigned char* dynamic_shared;
bool shuffled;

// ---- what the sanitizers are told ---------------------------------------------------------------

// Barriers order memory: what was written before `release` is seen after `acquire` of one token.
static inline void release(char* token) {
#ifdef CUDA_ON_CPU_TSAN
    __tsan_release(token);
#endif
    (void)token;
}

static inline void acquire(char* token) {
#ifdef CUDA_ON_CPU_TSAN
    __tsan_acquire(token);
#endif
    (void)token;
}

#if defined(CUDA_ON_CPU_ASAN) || defined(CUDA_ON_CPU_TSAN)
constexpr size_t STACK_BYTES = 256 << 10;  // reports are written on the stack of the culprit
#else
constexpr size_t STACK_BYTES = 64 << 10;
#endif

// ---- stacks -------------------------------------------------------------------------------------

struct Stack {
    void* top = nullptr;  // while nobody runs on it
    char* bottom = nullptr;
    const void* known_bottom = nullptr;  // as AddressSanitizer knows it, also of the caller's stack
    size_t known_size = 0;
    void* fake = nullptr;
    Stack* next_idle = nullptr;
#if !defined(__x86_64__) && !defined(__aarch64__)
    ucontext_t context;
#endif
};

static void work();

static Stack callers;              // the stack of whoever launches
static Stack* here = &callers;     // the one we are on
static Stack* idle;                // a list, last in first out: warm caches
static std::vector<Stack*> stacks;  // all that were made
static char* arena;

#if defined(__x86_64__)
// Saves what a call must keep, and jumps. No `ret`: the predictor of returns knows but one stack.
static __attribute__((noinline)) void jump(Stack& from, Stack& to) {
    void** save = &from.top;
    void* load = to.top;
    asm volatile(
        "pushq %%rbp\n\t"
        "pushq %%rbx\n\t"
        "leaq 1f(%%rip), %%rax\n\t"
        "pushq %%rax\n\t"
        "movq %%rsp, (%0)\n\t"
        "movq %1, %%rsp\n\t"
        "popq %%rax\n\t"
        "jmp *%%rax\n"
        "1:\n\t"
        "popq %%rbx\n\t"
        "popq %%rbp\n\t"
        : "+D"(save), "+S"(load)
        :
        : "rax", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "memory",
          "cc");
}

static void prepare(Stack& stack, char* top) {
    void** slot = reinterpret_cast<void**>(top);
    *--slot = nullptr;  // where work() would return to
    *--slot = reinterpret_cast<void*>(&work);
    stack.top = slot;
}
#elif defined(__aarch64__)
static __attribute__((noinline)) void jump(Stack& from, Stack& to) {
    register void** save asm("x0") = &from.top;
    register void* load asm("x1") = to.top;
    asm volatile(
        "adr x2, 1f\n\t"
        "stp x29, x2, [sp, #-16]!\n\t"
        "mov x2, sp\n\t"
        "str x2, [x0]\n\t"
        "mov sp, x1\n\t"
        "ldp x29, x2, [sp], #16\n\t"
        "br x2\n"
        "1:\n\t"
        : "+r"(save), "+r"(load)
        :
        : "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15",
          "x16", "x17", "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "x30",
          "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", "memory", "cc");
}

static void prepare(Stack& stack, char* top) {
    void** slot = reinterpret_cast<void**>(top);
    *--slot = reinterpret_cast<void*>(&work);
    *--slot = nullptr;  // the frame before
    stack.top = slot;
}
#else
static void jump(Stack& from, Stack& to) { swapcontext(&from.context, &to.context); }

static void prepare(Stack& stack, char* top) {
    getcontext(&stack.context);
    stack.context.uc_stack.ss_sp = stack.bottom;
    stack.context.uc_stack.ss_size = top - stack.bottom;
    stack.context.uc_link = nullptr;
    makecontext(&stack.context, work, 0);
}
#endif

static Stack* came_from;

// to be called first thing on a stack that was jumped to
static inline void arrived(void* fake) {
#ifdef CUDA_ON_CPU_ASAN
    __sanitizer_finish_switch_fiber(fake, &came_from->known_bottom, &came_from->known_size);
#endif
    (void)fake;
}

static inline void go(Stack& to) {
    Stack& from = *here;
    here = &to;
#ifdef CUDA_ON_CPU_ASAN
    came_from = &from;
    __sanitizer_start_switch_fiber(&from.fake, to.known_bottom, to.known_size);
#endif
    jump(from, to);
    arrived(from.fake);
}

static void make_ready(Stack& stack, size_t number) {
    // tops at different places of a page: else all of them would share a few lines of the cache
    prepare(stack, stack.bottom + STACK_BYTES - (number * 9 % 32) * 64);
    stack.fake = nullptr;
    stack.next_idle = idle;
    idle = &stack;
}

static Stack* take_stack() {
    constexpr size_t guard = 4096, apart = STACK_BYTES + guard;
    if (!idle) {
        if (!arena) {
            void* all = mmap(nullptr, 1024 * apart, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
            if (all == MAP_FAILED) fail("no memory for stacks");
            arena = static_cast<char*>(all);
        }
        Stack* made = new Stack;
        char* place = arena + stacks.size() * apart;
        mprotect(place, guard, PROT_NONE);
        made->bottom = place + guard;
        made->known_bottom = made->bottom;
        made->known_size = STACK_BYTES;
        make_ready(*made, stacks.size());
        stacks.push_back(made);
    }
    Stack* taken = idle;
    idle = taken->next_idle;
    return taken;
}

// ---- the block that runs ------------------------------------------------------------------------

// lanes of one warp that wait for each other
struct Meeting {
    unsigned mask, here;
    Op op;
    unsigned generation;
    char token[2];
};

struct Warp {
    unsigned members;   // lanes that exist
    unsigned runnable;  // that could run now
    unsigned left;      // that are through
    unsigned at_barrier;
    Meeting meetings[32];  // by the lowest lane of the mask
    uint64_t given[32], got[32];
    unsigned source[32];
};

static Thread threads[1024];
static Warp warps[32];
static unsigned n_threads, n_warps;
static unsigned ready;    // warps with something runnable
static unsigned at;       // the warp in which something ran last
static unsigned n_left;   // threads that are through

static struct {
    unsigned arrived, held, outcome, generation;
    const char* file;
    int line;
    char token[2];
} barrier;

static std::vector<unsigned> order;  // of the blocks, if shuffled
static unsigned n_blocks, next_block;
static size_t shared_bytes;
static void (*body)(void**);
static void** arguments;

static char started, ended, fenced;  // tokens
static void* callers_fiber;
static char error[1024];
static uint64_t random_state;

static unsigned random_bits() {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state * 0x9E3779B97F4A7C15u >> 32;
}

// the first bit that is set, counted from a random one on
static unsigned some_bit(unsigned bits, unsigned from) {
    from &= 31;
    return (__builtin_ctz(bits >> from | bits << (-from & 31)) + from) & 31;
}

static inline void become(Thread* thread) {
    current = thread;
#ifdef CUDA_ON_CPU_TSAN
    __tsan_switch_to_fiber(thread ? thread->fiber : callers_fiber,
                           __tsan_switch_to_fiber_no_sync);
#endif
}

void fail(const char* format, ...) {
    int length = 0;
    if (current)
        length = snprintf(error, sizeof error, "block (%u, %u, %u), thread (%u, %u, %u): ",
                          block_index.x, block_index.y, block_index.z, current->index.x,
                          current->index.y, current->index.z);
    va_list list;
    va_start(list, format);
    vsnprintf(error + length, sizeof error - length, format, list);
    va_end(list);
    become(nullptr);
    go(callers);
    abort();  // nobody comes back here
}

static void begin_block() {
    const unsigned block = shuffled ? order[next_block] : next_block;
    next_block++;
    block_index = {block % grid_dim.x, block / grid_dim.x % grid_dim.y,
                   block / grid_dim.x / grid_dim.y};
    n_left = 0;
    barrier.arrived = barrier.held = 0;
    for (unsigned w = 0; w < n_warps; w++) {
        Warp& warp = warps[w];
        const unsigned lanes = n_threads - 32 * w;
        warp.members = warp.runnable = lanes < 32 ? (1u << lanes) - 1 : ~0u;
        warp.left = warp.at_barrier = 0;
    }
    ready = n_warps < 32 ? (1u << n_warps) - 1 : ~0u;
    at = 0;
    if (shared_bytes) memset(dynamic_shared, 0xCD, shared_bytes);
    acquire(&ended);
    release(&started);
}

static const char* name_of(Op op) {
    static const char* names[] = {
        "__syncwarp",        "__shfl_sync",       "__shfl_up_sync",    "__shfl_down_sync",
        "__shfl_xor_sync",   "a vote",            "__match_any_sync",  "__reduce_add_sync",
        "__reduce_min_sync", "__reduce_min_sync", "__reduce_max_sync", "__reduce_max_sync",
        "__reduce_and_sync", "__reduce_or_sync",  "__reduce_xor_sync"};
    return names[static_cast<int>(op)];
}

// Nothing can run, yet threads are left. They wait in some meeting: else the barrier had opened.
[[noreturn]] static void explain_deadlock() {
    for (unsigned w = 0; w < n_warps; w++)
        for (const Meeting& meeting : warps[w].meetings)
            if (meeting.here) {
                const unsigned missing = meeting.mask & ~meeting.here;
                current = nullptr;
                fail("deadlock in block (%u, %u, %u), warp %u: lanes %08x wait in %s for lanes "
                     "%08x (of these %08x have left the kernel, %08x wait at __syncthreads)",
                     block_index.x, block_index.y, block_index.z, w, meeting.here,
                     name_of(meeting.op), missing, missing & warps[w].left,
                     missing & warps[w].at_barrier);
            }
    fail("deadlock");
}

// who runs when the current thread cannot: null when the launch is over
static Thread* pick() {
    if (!ready) {
        if (n_left < n_threads) explain_deadlock();
        if (next_block == n_blocks) return nullptr;
        begin_block();
    }
    if (!shuffled) {
        if (!warps[at].runnable) at = __builtin_ctz(ready);
        return &threads[32 * at + __builtin_ctz(warps[at].runnable)];
    }
    const unsigned random = random_bits();
    // mostly a warp goes on for a while, as nothing else shows how far one may run ahead
    if (!warps[at].runnable || random >> 29 == 0) at = some_bit(ready, random >> 5);
    return &threads[32 * at + some_bit(warps[at].runnable, random)];
}

static inline void pause(Warp& warp, unsigned lanes) {
    warp.runnable &= ~lanes;
    if (!warp.runnable) ready &= ~(1u << (&warp - warps));
}

static inline void resume(Warp& warp, unsigned lanes) {
    warp.runnable |= lanes;
    ready |= 1u << (&warp - warps);
}

static inline void run_another() {
    Thread* next = pick();
    if (next == current) return;
    if (!next->stack) next->stack = take_stack();
    become(next);
    go(*next->stack);
}

static void leave() {
    Warp& warp = warps[current->warp];
    if (barrier.arrived)
        fail("leaves the kernel while others wait at __syncthreads, line %d", barrier.line);
    current->stack = nullptr;
    warp.left |= 1u << current->lane;
    n_left++;
    pause(warp, 1u << current->lane);
    release(&ended);
}

// what runs on a stack: one thread after the other
static void work() {
    arrived(nullptr);
    for (;;) {
        Stack& mine = *here;
        acquire(&started);
        body(arguments);
        leave();
        Thread* next = pick();
        if (next && !next->stack) {
            next->stack = &mine;
            become(next);
            continue;
        }
        mine.next_idle = idle;
        idle = &mine;
        become(next);
        go(next ? *next->stack : callers);
    }
}

// ---- what kernels call --------------------------------------------------------------------------

unsigned block_barrier(bool condition, const char* file, int line) {
    Warp& warp = warps[current->warp];
    const unsigned bit = 1u << current->lane;
    if (n_left) fail("waits at __syncthreads, line %d, but %u threads left", line, n_left);
    if (!barrier.arrived) {
        barrier.file = file;
        barrier.line = line;
    } else if (barrier.line != line || strcmp(barrier.file, file) != 0) {
        fail("divergent barrier: it waits at __syncthreads, line %d, others at line %d", line,
             barrier.line);
    }
    const unsigned generation = barrier.generation & 1;
    release(&barrier.token[generation]);
    barrier.held += condition;
    warp.at_barrier |= bit;
    pause(warp, bit);
    if (++barrier.arrived == n_threads) {
        barrier.outcome = barrier.held;
        barrier.arrived = barrier.held = 0;
        barrier.generation++;
        for (unsigned w = 0; w < n_warps; w++) {
            warps[w].at_barrier = 0;
            resume(warps[w], warps[w].members);
        }
        at = 0;
    }
    run_another();
    acquire(&barrier.token[generation]);
    return barrier.outcome;  // the next barrier cannot open before all have read this one's
}

// The last lane to come works out what each of them gets: so one rendezvous is enough.
static void conclude(Warp& warp, Op op, unsigned mask) {
    const uint64_t* given = warp.given;
    uint64_t all = given[__builtin_ctz(mask)];
    auto each = [&](auto action) {
        for (unsigned rest = mask; rest; rest &= rest - 1) action(__builtin_ctz(rest));
    };
    switch (op) {
        case Op::sync:
            return;
        case Op::shuffle:
        case Op::shuffle_up:
        case Op::shuffle_down:
        case Op::shuffle_xor:
            each([&](unsigned lane) {
                const unsigned source = warp.source[lane];
                // CUDA leaves undefined what a lane gets from one outside the mask
                warp.got[lane] = mask >> source & 1 ? given[source] : 0xCDCDCDCDCDCDCDCDu;
            });
            return;
        case Op::match:
            each([&](unsigned lane) {
                uint64_t same = 0;
                each([&](unsigned other) {
                    same |= uint64_t(given[other] == given[lane]) << other;
                });
                warp.got[lane] = same;
            });
            return;
        case Op::ballot:
            all = 0;
            each([&](unsigned lane) { all |= given[lane] << lane; });
            break;
        case Op::add:
            all = 0;
            each([&](unsigned lane) { all += given[lane]; });
            break;
        case Op::least_signed:
            each([&](unsigned i) { if (int(given[i]) < int(all)) all = given[i]; });
            break;
        case Op::most_signed:
            each([&](unsigned i) { if (int(given[i]) > int(all)) all = given[i]; });
            break;
        case Op::least_unsigned:
            each([&](unsigned i) { if (given[i] < all) all = given[i]; });
            break;
        case Op::most_unsigned:
            each([&](unsigned i) { if (given[i] > all) all = given[i]; });
            break;
        case Op::bit_and:
            each([&](unsigned lane) { all &= given[lane]; });
            break;
        case Op::bit_or:
            each([&](unsigned lane) { all |= given[lane]; });
            break;
        case Op::bit_xor:
            all = 0;
            each([&](unsigned lane) { all ^= given[lane]; });
            break;
    }
    each([&](unsigned lane) { warp.got[lane] = all; });
}

uint64_t meet(Op op, unsigned mask, uint64_t value, unsigned source) {
    const unsigned lane = current->lane, bit = 1u << lane;
    Warp& warp = warps[current->warp];
    if (!(mask & bit)) fail("%s: the calling lane is not in its mask %08x", name_of(op), mask);
    if (mask & ~warp.members)
        fail("%s: the mask %08x names lanes beyond the block", name_of(op), mask);
    Meeting& meeting = warp.meetings[__builtin_ctz(mask)];
    if (!meeting.here) {
        meeting.mask = mask;
        meeting.op = op;
    } else if (meeting.mask != mask || meeting.op != op) {
        fail("%s with mask %08x, while other lanes of the warp wait in %s with mask %08x",
             name_of(op), mask, name_of(meeting.op), meeting.mask);
    }
    const unsigned generation = meeting.generation & 1;
    // only __syncwarp orders memory: shuffles and votes promise nothing
    if (op == Op::sync) release(&meeting.token[generation]);
    warp.given[lane] = value;
    warp.source[lane] = source;
    meeting.here |= bit;
    pause(warp, bit);
    if (meeting.here == mask) {
        conclude(warp, op, mask);
        meeting.here = 0;
        meeting.generation++;
        resume(warp, mask);
    }
    run_another();
    if (op == Op::sync) acquire(&meeting.token[generation]);
    return warp.got[lane];
}

void step_aside() {
    if (random_bits() >> 29 == 0) run_another();
}

void fence() {
    acquire(&fenced);
    release(&fenced);
}

// ---- launch -------------------------------------------------------------------------------------

// after an error: what stood on the stacks is forgotten
static void clear_stacks() {
    idle = nullptr;
    for (size_t i = stacks.size(); i-- > 0;) {
#ifdef CUDA_ON_CPU_ASAN
        __asan_unpoison_memory_region(stacks[i]->bottom, STACK_BYTES);
#endif
        make_ready(*stacks[i], i);
    }
    for (Thread& thread : threads) {
        thread.stack = nullptr;
#ifdef CUDA_ON_CPU_TSAN
        if (thread.fiber) __tsan_destroy_fiber(thread.fiber);
        thread.fiber = nullptr;
#endif
    }
    for (Warp& warp : warps)
        for (Meeting& meeting : warp.meetings) meeting.here = 0;
}

static void arrange(const unsigned* grid, const unsigned* block, uint64_t seed) {
    grid_dim = {grid[0], grid[1], grid[2]};
    block_dim = {block[0], block[1], block[2]};
    n_threads = block[0] * block[1] * block[2];
    n_warps = (n_threads + 31) / 32;
    for (unsigned i = 0; i < n_threads; i++) {
        Thread& thread = threads[i];
        thread.index = {i % block[0], i / block[0] % block[1], i / block[0] / block[1]};
        thread.warp = i / 32;
        thread.lane = i % 32;
#ifdef CUDA_ON_CPU_TSAN
        if (!thread.fiber) thread.fiber = __tsan_create_fiber(0);
#endif
    }
    n_blocks = grid[0] * grid[1] * grid[2];
    next_block = 0;
    shuffled = seed != 0;
    if (shuffled) {
        random_state = seed;
        order.resize(n_blocks);
        for (unsigned i = 0; i < n_blocks; i++) {
            const unsigned j = random_bits() % (i + 1);
            order[i] = order[j];
            order[j] = i;
        }
    }
}

// Null if all went well, else what was wrong.
extern "C" const char* cuda_on_cpu_launch(void (*kernel)(void**), void** values,
                                          const unsigned* grid, const unsigned* block,
                                          size_t shared, uint64_t seed) {
    error[0] = 0;
    current = nullptr;
    body = kernel;
    arguments = values;
#ifdef CUDA_ON_CPU_TSAN
    callers_fiber = __tsan_get_current_fiber();
#endif
    arrange(grid, block, seed);
    shared_bytes = shared;
    dynamic_shared = static_cast<unsigned char*>(malloc(shared));  // exactly, so overruns are seen
    release(&ended);
    begin_block();
    Thread* first = pick();
    first->stack = take_stack();
    become(first);
    go(*first->stack);
    acquire(&ended);
    free(dynamic_shared);
    if (!error[0]) return nullptr;
    clear_stacks();
    return error;
}

}  // namespace cuda_on_cpu
