// What kernels ask of memory, counted by warps: in builds of the kind "traced".
//
// g++ puts a call of __tsan_read4(address) or the like before each access, for ThreadSanitizer.
// Here these calls count instead. A warp access is what the lanes of a warp access at one place in
// the text, each for the n-th time since all lanes of the warp met last. Between two such meetings
// a warp reads a sector of global memory from beyond its first cache once.
//
// Stacks, parameters and the engine's own variables are registers on a GPU: they do not count.
#pragma once
#include <stdint.h>

#include "stacks.hpp"
#include "warp.hpp"

#ifdef CUDA_ON_CPU_TRACED
#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace cuda_on_cpu {

constexpr unsigned SECTOR = 32, LINE = 64, BANKS = 32, WORD = 4;  // bytes, but for BANKS

enum Way { READ, GATHER, WRITE, ATOMIC, SHARED_READ, SHARED_WRITE, SHARED_ATOMIC, WAYS };

// module.py explains these fields.
struct Accesses {
    uint64_t lanes, warps, parts, least, worst, equal, worst_equal, sectors, lines;
};

struct Group {  // a warp access
    unsigned lanes, bytes;
    uintptr_t at[32];
};

struct Place {  // in the text
    Way way;
    unsigned times[32];  // by lane
    std::vector<Group> groups;
};

struct Traced {  // of a warp since its last meeting
    std::unordered_map<uintptr_t, Place> places;
    std::vector<Place*> used;
};

static Traced traced[32];
static Accesses accesses[WAYS];  // of the last launch
static uintptr_t shared_begin, shared_end;  // dynamic
static uintptr_t static_begin, static_end;

// the linker's names for the ends of this library
extern "C" __attribute__((visibility("hidden"))) char __ehdr_start[], _end[];

static inline bool within(uintptr_t at, const void* begin, const void* end) {
    return at >= uintptr_t(begin) && at < uintptr_t(end);
}

static void note(void* place, const volatile void* address, unsigned bytes, Way way) {
    const uintptr_t at = uintptr_t(address);
    if (!current || on_a_stack(at) || within(at, __ehdr_start, _end)) return;
    const bool dynamic = at >= shared_begin && at < shared_end;
    const bool is_shared = dynamic || (at >= static_begin && at < static_end);
    if (is_shared) way = way == READ ? SHARED_READ : way == WRITE ? SHARED_WRITE : SHARED_ATOMIC;
    Traced& warp = traced[current->warp - warps];
    Place& own = warp.places[uintptr_t(place) * 2 + is_shared];
    if (own.groups.empty()) {
        own.way = way;
        warp.used.push_back(&own);
    }
    const unsigned lane = current->lane, n = own.times[lane]++;
    if (n >= own.groups.size()) own.groups.push_back({0, bytes, {}});
    Group& group = own.groups[n];
    group.lanes |= 1u << lane;
    // banks are counted from where the memory begins
    group.at[lane] = is_shared ? at - (dynamic ? shared_begin : static_begin) : at;
}

template <class F>
static void each_lane(const Group& group, F action) {
    for (unsigned rest = group.lanes; rest; rest &= rest - 1) action(__builtin_ctz(rest));
}

// the most lanes that access one address
static unsigned equal_lanes(const Group& group) {
    uintptr_t at[32];
    unsigned n = 0, most = 0;
    each_lane(group, [&](unsigned lane) { at[n++] = group.at[lane]; });
    std::sort(at, at + n);
    for (unsigned i = 0, run = 0; i < n; i++) {
        run = i && at[i] == at[i - 1] ? run + 1 : 1;
        most = std::max(most, run);
    }
    return most;
}

// Passes over the banks: a bank gives one word in each, to all lanes that want it. Atomics on one
// word take a pass each. Lanes that want 8 or 16 bytes are served by halves or quarters of the warp.
static void count_passes(const Group& group, bool atomic, Accesses& count) {
    const unsigned shares = group.bytes <= 4 ? 1 : group.bytes <= 8 ? 2 : 4, width = 32 / shares;
    for (unsigned share = 0; share < shares; share++) {
        std::vector<uintptr_t> words;
        each_lane(group, [&](unsigned lane) {
            if (lane / width != share) return;
            for (uintptr_t w = group.at[lane] / WORD;
                 w <= (group.at[lane] + group.bytes - 1) / WORD; w++)
                words.push_back(w);
        });
        if (words.empty()) continue;
        std::sort(words.begin(), words.end());
        if (!atomic) words.erase(std::unique(words.begin(), words.end()), words.end());
        uint64_t by_bank[BANKS] = {}, most = 0;
        for (uintptr_t word : words) most = std::max(most, ++by_bank[word % BANKS]);
        count.parts += most;
        count.least++;
        count.worst = std::max(count.worst, most);
    }
}

static std::vector<uintptr_t> units_of(const Group& group, unsigned size) {
    std::vector<uintptr_t> units;
    each_lane(group, [&](unsigned lane) {
        for (uintptr_t u = group.at[lane] / size; u <= (group.at[lane] + group.bytes - 1) / size;
             u++)
            if (units.empty() || units.back() != u) units.push_back(u);
    });
    std::sort(units.begin(), units.end());
    units.erase(std::unique(units.begin(), units.end()), units.end());
    return units;
}

// All lanes of a warp have met: what it accessed so far is counted.
static void count_traffic(unsigned warp) {
    static std::unordered_set<uintptr_t> sectors[2], lines[2];  // read, written
    for (int i = 0; i < 2; i++) sectors[i].clear(), lines[i].clear();
    for (Place* place : traced[warp].used) {
        for (const Group& group : place->groups) {
            const unsigned n = __builtin_popcount(group.lanes), equal = equal_lanes(group);
            Way way = place->way;
            std::vector<uintptr_t> parts;
            if (way < SHARED_READ) {
                parts = units_of(group, SECTOR);
                if (way == READ && parts.size() > 1 && 2 * parts.size() > n) way = GATHER;
            }
            Accesses& count = accesses[way];
            count.lanes += n;
            count.warps++;
            count.equal += equal;
            count.worst_equal = std::max<uint64_t>(count.worst_equal, equal);
            if (way >= SHARED_READ) {
                count_passes(group, way == SHARED_ATOMIC, count);
                continue;
            }
            count.parts += parts.size();
            count.least += (n * group.bytes + SECTOR - 1) / SECTOR;
            count.worst = std::max<uint64_t>(count.worst, parts.size());
            const int set = way == WRITE || way == ATOMIC;
            for (uintptr_t s : parts) count.sectors += sectors[set].insert(s).second;
            for (uintptr_t l : units_of(group, LINE)) count.lines += lines[set].insert(l).second;
        }
        std::fill(place->times, place->times + 32, 0);
        place->groups.clear();
    }
    traced[warp].used.clear();
}

static void begin_traffic(char** statics) {
    static_begin = uintptr_t(statics[0]);
    static_end = uintptr_t(statics[1]);
    for (Traced& warp : traced) warp.places.clear(), warp.used.clear();
    for (Accesses& count : accesses) count = {};
}

static void place_shared(unsigned char* begin, size_t bytes) {
    shared_begin = uintptr_t(begin);
    shared_end = shared_begin + bytes;
}

// of the last launch, by Way
extern "C" const Accesses* cuda_on_cpu_traffic() { return accesses; }

}  // namespace cuda_on_cpu

// ---- what g++ calls -----------------------------------------------------------------------------

#define NOTE(bytes, way) \
    cuda_on_cpu::note(__builtin_return_address(0), p, bytes, cuda_on_cpu::way)
#define PLAIN(name, bytes)                                            \
    extern "C" void __tsan_read##name(void* p) { NOTE(bytes, READ); } \
    extern "C" void __tsan_write##name(void* p) { NOTE(bytes, WRITE); }
#define UNALIGNED(bytes)                                                            \
    extern "C" void __tsan_unaligned_read##bytes(void* p) { NOTE(bytes, READ); }    \
    extern "C" void __tsan_unaligned_write##bytes(void* p) { NOTE(bytes, WRITE); }
PLAIN(1, 1) PLAIN(2, 2) PLAIN(4, 4) PLAIN(8, 8) PLAIN(16, 16)
UNALIGNED(2) UNALIGNED(4) UNALIGNED(8) UNALIGNED(16)
extern "C" void __tsan_read_range(void* p, unsigned long bytes) { NOTE(bytes, READ); }
extern "C" void __tsan_write_range(void* p, unsigned long bytes) { NOTE(bytes, WRITE); }
extern "C" void __tsan_vptr_update(void**, void*) {}
extern "C" void __tsan_func_entry(void*) {}
extern "C" void __tsan_func_exit() {}
extern "C" void __tsan_init() {}

// Blocks run one after another and threads switch elsewhere: plain operations are atomic. What has
// no instruction of its own here is a load and an exchange on the CPU, and counts with the exchange.
#define ATOMIC_ON(bits, T)                                                                       \
    extern "C" T __tsan_atomic##bits##_load(const volatile T* p, int) { return *p; }             \
    extern "C" void __tsan_atomic##bits##_store(volatile T* p, T v, int) { *p = v; }             \
    extern "C" T __tsan_atomic##bits##_exchange(volatile T* p, T v, int) {                       \
        NOTE(bits / 8, ATOMIC);                                                                  \
        const T old = *p;                                                                        \
        *p = v;                                                                                  \
        return old;                                                                              \
    }                                                                                            \
    extern "C" T __tsan_atomic##bits##_fetch_add(volatile T* p, T v, int) {                      \
        NOTE(bits / 8, ATOMIC);                                                                  \
        const T old = *p;                                                                        \
        *p = old + v;                                                                            \
        return old;                                                                              \
    }                                                                                            \
    static inline int replace_##bits(volatile T* p, T* expected, T v) {                          \
        const T old = *p;                                                                        \
        const bool same = old == *expected;                                                      \
        if (same) *p = v;                                                                        \
        else *expected = old;                                                                    \
        return same;                                                                             \
    }                                                                                            \
    extern "C" int __tsan_atomic##bits##_compare_exchange_strong(volatile T* p, T* e, T v, int,  \
                                                                 int) {                          \
        NOTE(bits / 8, ATOMIC);                                                                  \
        return replace_##bits(p, e, v);                                                          \
    }                                                                                            \
    extern "C" int __tsan_atomic##bits##_compare_exchange_weak(volatile T* p, T* e, T v, int,    \
                                                               int) {                            \
        NOTE(bits / 8, ATOMIC);                                                                  \
        return replace_##bits(p, e, v);                                                          \
    }
ATOMIC_ON(32, uint32_t)
ATOMIC_ON(64, uint64_t)

#else

namespace cuda_on_cpu {
static inline void count_traffic(unsigned) {}
static inline void begin_traffic(char**) {}
static inline void place_shared(unsigned char*, size_t) {}
}  // namespace cuda_on_cpu

#endif
