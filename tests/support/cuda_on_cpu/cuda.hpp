// What the text of a CUDA kernel sees when g++ compiles it for the CPU: included before its first
// line. Only what CUDA's own compiler would take is taken here, as far as types can tell.
#pragma once
#include "engine.hpp"

#include <math.h>
#include <stdint.h>
#include <string.h>
#include <type_traits>
#include <utility>

#define CUDA_ON_CPU 1

#define __global__ __attribute__((noinline))
#define __device__
#define __shared__ static  // one copy will do: blocks run one after another
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define DYNAMIC_SHARED(name) unsigned char* name = cuda_on_cpu::dynamic_shared

#define threadIdx (cuda_on_cpu::current->index)
#define blockIdx (cuda_on_cpu::block_index)
#define blockDim (cuda_on_cpu::block_dim)
#define gridDim (cuda_on_cpu::grid_dim)

// ---- vectors ------------------------------------------------------------------------------------

struct alignas(8) int2 { int x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
inline int2 make_int2(int x, int y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

// ---- bits and arithmetic ------------------------------------------------------------------------

namespace cuda_on_cpu {

template <class To, class From>
inline To bits(From value) {
    static_assert(sizeof(From) <= sizeof(To) || sizeof(From) == 8, "values of up to 8 bytes");
    To result{};
    memcpy(&result, &value, sizeof(To) < sizeof(From) ? sizeof(To) : sizeof(From));
    return result;
}

}  // namespace cuda_on_cpu

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __clz(int x) { return x ? __builtin_clz(x) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll(x) : 64; }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return static_cast<unsigned __int128>(a) * b >> 64;
}

inline long long __double_as_longlong(double x) { return cuda_on_cpu::bits<long long>(x); }
inline double __longlong_as_double(long long x) { return cuda_on_cpu::bits<double>(x); }

using std::isfinite;
using std::isinf;
using std::isnan;

// Mixed types meet as in a + b; a NaN loses against a number.
#define CUDA_ON_CPU_EXTREME(name, of_floats, first_wins)                                          \
    template <class A, class B>                                                                   \
    inline auto name(A a, B b) {                                                                  \
        static_assert(std::is_floating_point_v<A> == std::is_floating_point_v<B>,                 \
                      "CUDA has no " #name " of an integer and a floating-point number");         \
        using C = decltype(true ? +a : +b);                                                       \
        if constexpr (std::is_floating_point_v<C>) return C(of_floats(C(a), C(b)));               \
        else return C(a) first_wins C(b) ? C(a) : C(b);                                           \
    }
CUDA_ON_CPU_EXTREME(min, fmin, <)
CUDA_ON_CPU_EXTREME(max, fmax, >)

// ---- memory -------------------------------------------------------------------------------------

namespace cuda_on_cpu {

template <class T>
constexpr bool integer = std::is_integral_v<T> && (sizeof(T) == 4 || sizeof(T) == 8);

// replaces by compare and swap: also for what has no instruction of its own
template <class T, class F>
inline T replace(T* p, F next) {
    if (shuffled) step_aside();
    T old, fresh;
    __atomic_load(p, &old, __ATOMIC_RELAXED);
    do fresh = next(old);
    while (!__atomic_compare_exchange(p, &old, &fresh, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return old;
}

}  // namespace cuda_on_cpu

template <class T>
inline T atomicAdd(T* p, std::decay_t<T> value) {
    static_assert(std::is_floating_point_v<T> ||
                  (cuda_on_cpu::integer<T> && (sizeof(T) == 4 || std::is_unsigned_v<T>)),
                  "CUDA has no atomicAdd of this type");
    if constexpr (std::is_integral_v<T>) {
        if (cuda_on_cpu::shuffled) cuda_on_cpu::step_aside();
        return __atomic_fetch_add(p, value, __ATOMIC_RELAXED);
    } else {
        return cuda_on_cpu::replace(p, [=](T old) { return old + value; });
    }
}

#define CUDA_ON_CPU_ATOMIC(name, expression)                                                      \
    template <class T>                                                                            \
    inline T name(T* p, std::decay_t<T> value) {                                                  \
        static_assert(cuda_on_cpu::integer<T>, "CUDA has no " #name " of this type");             \
        return cuda_on_cpu::replace(p, [=](T old) -> T { return expression; });                   \
    }
CUDA_ON_CPU_ATOMIC(atomicMin, old < value ? old : value)
CUDA_ON_CPU_ATOMIC(atomicMax, old < value ? value : old)
CUDA_ON_CPU_ATOMIC(atomicAnd, old & value)
CUDA_ON_CPU_ATOMIC(atomicOr, old | value)
CUDA_ON_CPU_ATOMIC(atomicExch, (void(old), value))

// ---- barriers -----------------------------------------------------------------------------------

#define CUDA_ON_CPU_SITE const char *file = __builtin_FILE(), int line = __builtin_LINE()
inline void __syncthreads(CUDA_ON_CPU_SITE) { cuda_on_cpu::block_barrier(false, file, line); }
inline void __barrier_sync_count(unsigned id, unsigned count) {
    cuda_on_cpu::part_barrier(id, count);
}
inline int __syncthreads_count(int predicate, CUDA_ON_CPU_SITE) {
    return cuda_on_cpu::block_barrier(predicate != 0, file, line);
}
inline int __syncthreads_or(int predicate, CUDA_ON_CPU_SITE) {
    return cuda_on_cpu::block_barrier(predicate != 0, file, line) != 0;
}
inline void __threadfence() {  // by one word that all share, which ThreadSanitizer understands
    static unsigned fences;
    __atomic_fetch_add(&fences, 1u, __ATOMIC_SEQ_CST);
}
inline void __syncwarp(unsigned mask = ~0u) {
    cuda_on_cpu::meet(cuda_on_cpu::Op::sync, mask, 0, 0);
}

// ---- the lanes of a warp ------------------------------------------------------------------------

namespace cuda_on_cpu {

template <class T>
inline auto shuffle(Op op, unsigned mask, T value, unsigned source) {
    static_assert(std::is_arithmetic_v<T>, "CUDA shuffles numbers only");
    return bits<decltype(+value)>(meet(op, mask, bits<uint64_t>(+value), source));
}

inline unsigned segment(int width) { return current->lane & ~(width - 1); }

}  // namespace cuda_on_cpu

template <class T>
inline auto __shfl_sync(unsigned mask, T value, int source, int width = 32) {
    return cuda_on_cpu::shuffle(cuda_on_cpu::Op::shuffle, mask, value,
                                cuda_on_cpu::segment(width) + (source & (width - 1)));
}
template <class T>
inline auto __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32) {
    const unsigned lane = cuda_on_cpu::current->lane;
    return cuda_on_cpu::shuffle(cuda_on_cpu::Op::shuffle_up, mask, value,
                                lane - cuda_on_cpu::segment(width) < delta ? lane : lane - delta);
}
template <class T>
inline auto __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32) {
    const unsigned lane = cuda_on_cpu::current->lane, end = cuda_on_cpu::segment(width) + width;
    return cuda_on_cpu::shuffle(cuda_on_cpu::Op::shuffle_down, mask, value,
                                delta < end - lane ? lane + delta : lane);
}
template <class T>
inline auto __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32) {
    const unsigned lane = cuda_on_cpu::current->lane, other = lane ^ lanes;
    return cuda_on_cpu::shuffle(cuda_on_cpu::Op::shuffle_xor, mask, value,
                                other < cuda_on_cpu::segment(width) + width ? other : lane);
}

inline unsigned __ballot_sync(unsigned mask, int predicate) {
    const uint64_t bit = uint64_t(predicate != 0) << cuda_on_cpu::current->lane;
    return cuda_on_cpu::meet(cuda_on_cpu::Op::ballot, mask, bit, 0);
}
inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
inline int __all_sync(unsigned mask, int predicate) {
    return __ballot_sync(mask, predicate) == mask;
}
// ---- how Python finds and calls a kernel --------------------------------------------------------

namespace cuda_on_cpu {

template <class T>
constexpr int kind_of() {
    if (std::is_same_v<std::remove_cv_t<T>, bool>) return 'b';
    if (std::is_floating_point_v<T>) return 'f';
    if (std::is_integral_v<T>) return std::is_signed_v<T> ? 'i' : 'u';
    return 'V';
}
template <class T>
constexpr int size_of() {
    if constexpr (std::is_void_v<T>) return 0;
    else return sizeof(T);
}

// a parameter: its kind and size, or those of what it points to, and whether that may be written
struct Parameter {
    int kind, size, pointer, writable;
};
template <class T>
constexpr Parameter parameter() {
    using P = std::remove_pointer_t<T>;
    return {kind_of<P>(), size_of<P>(), std::is_pointer_v<T>, !std::is_const_v<P>};
}

template <auto kernel>
struct Entry;
template <class... A, void (*kernel)(A...)>
struct Entry<kernel> {
    static constexpr int count = sizeof...(A);
    static constexpr Parameter parameters[sizeof...(A) + 1] = {parameter<A>()...};
    template <size_t... i>
    __attribute__((no_sanitize("thread"))) static void call(void** values, std::index_sequence<i...>) {
        kernel(*static_cast<std::remove_const_t<A>*>(values[i])...);
    }
};

}  // namespace cuda_on_cpu

// the linker's names for the ends of this library's own zeroed variables, __shared__ ones too
extern "C" __attribute__((visibility("hidden"))) char __bss_start[], _end[];
extern "C" __attribute__((visibility("default"))) void cuda_on_cpu_statics(char** ends) {
    ends[0] = __bss_start;
    ends[1] = _end;
}

#define CUDA_ON_CPU_ENTRY(name)                                                                   \
    extern "C" __attribute__((visibility("default"))) void cuda_on_cpu_call_##name(void** v) {    \
        using Entry = cuda_on_cpu::Entry<&name>;                                                  \
        Entry::call(v, std::make_index_sequence<Entry::count>{});                                 \
    }                                                                                             \
    extern "C" __attribute__((visibility("default"))) int cuda_on_cpu_parameters_##name(          \
        const cuda_on_cpu::Parameter** parameters) {                                              \
        *parameters = cuda_on_cpu::Entry<&name>::parameters;                                      \
        return cuda_on_cpu::Entry<&name>::count;                                                  \
    }
