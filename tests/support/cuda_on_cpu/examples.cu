// Kernels by which the runner itself is tested: one a feature, then some with mistakes.
#ifndef DYNAMIC_SHARED
#define DYNAMIC_SHARED(name) extern __shared__ __align__(16) unsigned char name[]
#endif
#define ALL 0xffffffffu
typedef unsigned long long u64;

// ---- features -----------------------------------------------------------------------------------

__device__ __forceinline__ unsigned thread_number() { return blockIdx.x * blockDim.x + threadIdx.x; }

// y[i] = x[0] + ... + x[i], for one block of whole warps
extern "C" __global__ void __launch_bounds__(1024) scan(const int* x, int* y, int n) {
    __shared__ int warps[32];
    const unsigned t = threadIdx.x, lane = t & 31;
    int sum = t < n ? x[t] : 0;
    for (int d = 1; d < 32; d <<= 1) {
        const int before = __shfl_up_sync(ALL, sum, d);
        if (lane >= d) sum += before;
    }
    if (lane == 31) warps[t / 32] = sum;
    __syncthreads();
    for (int w = 0; w < t / 32; w++) sum += warps[w];
    if (t < n) y[t] = sum;
}

extern "C" __global__ void histogram(const unsigned char* codes, const u64* values, u64* out, int n,
                                     int n_bins) {
    DYNAMIC_SHARED(bytes);
    u64* own = (u64*)bytes;
    for (int b = threadIdx.x; b < n_bins; b += blockDim.x) own[b] = 0;
    __syncthreads();
    for (int i = thread_number(); i < n; i += gridDim.x * blockDim.x) atomicAdd(&own[codes[i]], values[i]);
    __syncthreads();
    for (int b = threadIdx.x; b < n_bins; b += blockDim.x) atomicAdd(&out[b], own[b]);
}

// y[10, threads]
extern "C" __global__ void votes(const int* x, unsigned* y) {
    const unsigned t = threadIdx.x, n = blockDim.x;
    const int v = x[t];
    y[t] = __ballot_sync(ALL, v > 0);
    y[n + t] = __any_sync(ALL, v > 8);
    y[2 * n + t] = __all_sync(ALL, v > -9);
    y[3 * n + t] = __match_any_sync(ALL, v);
    y[4 * n + t] = __reduce_add_sync(ALL, v);
    y[5 * n + t] = __reduce_min_sync(ALL, v);
    y[6 * n + t] = __reduce_max_sync(ALL, v);
    y[7 * n + t] = __reduce_min_sync(ALL, (unsigned)v);
    y[8 * n + t] = __reduce_or_sync(ALL, (unsigned)v);
    y[9 * n + t] = __reduce_xor_sync(ALL, (unsigned)v);
}

// lanes with the same key sum among themselves, each group at its own pace
extern "C" __global__ void groups(const int* keys, const int* x, int* y) {
    const unsigned t = threadIdx.x, group = __match_any_sync(ALL, keys[t]);
    int sum = 0;
    for (unsigned rest = group; rest; rest &= rest - 1) {
        sum += __shfl_sync(group, x[t], __ffs(rest) - 1);
        for (int i = 0; i < keys[t]; i++) __syncwarp(group);
    }
    y[t] = sum;
}

extern "C" __global__ void barriers(const int* x, int* y) {
    const unsigned t = threadIdx.x, n = blockDim.x;
    for (int level = 0; level < 3; level++) {
        y[(3 * level) * n + t] = __syncthreads_count(x[t] > level);
        y[(3 * level + 1) * n + t] = __syncthreads_or(x[t] > level);
        y[(3 * level + 2) * n + t] = __syncthreads_and(x[t] > level);
    }
}

// Each thread adds what its mirror image in its team has, some rounds: later teams take more.
extern "C" __global__ void teams(const int* x, int* y, int warps) {
    __shared__ int own[256];
    const unsigned t = threadIdx.x, size = 32 * warps, team = t / size, first = team * size;
    int v = x[t];
    for (int round = 0; round < 2 + team; round++) {
        own[t] = v;
        __barrier_sync_count(1 + team, size);
        v += own[first + size - 1 - (t - first)] + round;
        __barrier_sync_count(1 + team, size);
    }
    y[t] = v;
}

// each thread's number in a grid and block of three dimensions
extern "C" __global__ void thread_numbers(int* y) {
    const int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    const int thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    y[block * blockDim.x * blockDim.y * blockDim.z + thread] += 1000 * block + thread;
}

// whole warps leave; those that stay go on together
extern "C" __global__ void early_exit(int* y, int n_warps) {
    if (threadIdx.x / 32 >= n_warps) return;
    y[thread_number()] = __reduce_add_sync(ALL, threadIdx.x);
}

// who came when: threads and blocks in one line
extern "C" __global__ void turns(int* line, unsigned* taken, int step) {
    for (int i = 0; i < 2; i++) {
        line[atomicAdd(taken, 1u)] = step * thread_number() + i;
        __syncwarp();
    }
}

// what CUDA leaves undefined: y[2, all threads]
extern "C" __global__ void garbage(unsigned* y) {
    DYNAMIC_SHARED(bytes);
    y[thread_number()] = ((unsigned*)bytes)[threadIdx.x];
    const unsigned half = threadIdx.x & 16 ? 0xffff0000u : 0xffffu;
    y[gridDim.x * blockDim.x + thread_number()] = __shfl_sync(half, 1, 31);
    ((unsigned*)bytes)[threadIdx.x] = 0;
}

extern "C" __global__ void atomics(const int* x, int* y, unsigned* z, u64* w, double* d) {
    const int v = x[thread_number()];
    atomicAdd(&y[0], v);
    atomicMin(&y[1], v);
    atomicMax(&y[2], v);
    atomicSub(&y[3], v);
    atomicAdd(&z[0], (unsigned)v);
    atomicOr(&z[1], 1u << (v & 31));
    atomicAnd(&z[2], ~(1u << (v & 31)));
    atomicXor(&z[3], 1u << (v & 31));
    atomicMax(&w[0], (u64)v);
    atomicMin(&w[1], (u64)(v + 1000));
    atomicAdd(&w[2], (u64)(long long)v);
    u64 old = atomicMax(&w[3], 0ull), seen;  // the largest square, by compare and swap
    do {
        seen = old;
        if (seen >= (u64)(v * v)) break;
        old = atomicCAS(&w[3], seen, (u64)(v * v));
    } while (old != seen);
    if (v == 7) atomicExch(&y[4], v);
    atomicAdd(d, (double)v);
}

extern "C" __global__ void arithmetic(const double* x, double* y, u64* z, u64 a, unsigned b,
                                      int zero) {
    y[0] = x[0] * x[1] + x[2];
    y[1] = fma(x[0], x[1], x[2]);
    y[2] = floor(x[2]);
    y[3] = isnan(x[3]) ? 1.0 : 0.0;
    y[4] = min(x[0], x[3]);
    y[5] = max(2.0f, x[0]);
    y[6] = __longlong_as_double(__double_as_longlong(x[0]) + 1);
    z[0] = __umul64hi(a, a);
    z[1] = __popc(b) + 100 * __popcll(a) + 10000 * __clz(b) + 1000000 * __clzll(a);
    z[2] = __ffs(b) + 100 * __ffsll(a) + 10000 * __ffs(zero) + 1000000 * __clz(zero);
    z[3] = min(-1, b);  // of unsigned numbers, as a + b would be
    z[4] = max(-1, (int)b);
    z[5] = min(5ull, a);
}

extern "C" __global__ void vectors(const uint4* x, uint2* y, const void* null) {
    const uint4 v = __ldg(&x[threadIdx.x]);
    y[threadIdx.x] = make_uint2(v.x + v.y, null ? 0 : v.z + v.w);
}

extern "C" __global__ void constants(bool a, unsigned char b, short c, int d, long long e, u64 f,
                                     float g, double h, double* y) {
    const double all[] = {(double)a, (double)b, (double)c, (double)d,
                          (double)e, (double)f, g,         h};
    for (int i = 0; i < 8; i++) y[i] = all[i];
}

// ---- with a mistake each, unless `careful` ------------------------------------------------------

extern "C" __global__ void missing_barrier(int* y, bool careful) {
    __shared__ int own[64];
    own[threadIdx.x] = threadIdx.x;
    if (careful) __syncthreads();
    y[threadIdx.x] = own[63 - threadIdx.x];
    if (careful) __syncthreads();
    own[threadIdx.x] = -1;
}

extern "C" __global__ void missing_team_barrier(int* y, bool careful) {
    __shared__ int own[64];
    own[threadIdx.x] = threadIdx.x;
    if (careful) __barrier_sync_count(1, 64);
    y[threadIdx.x] = own[63 - threadIdx.x];
}

extern "C" __global__ void plain_add(int* y, bool careful) {
    if (careful) atomicAdd(y, 1);
    else y[0] += 1;
}

// one thread a block adds: blocks race, threads do not
extern "C" __global__ void blocks_add(int* y, bool careful) {
    if (threadIdx.x) return;
    if (careful) atomicAdd(y, 1);
    else y[0] += 1;
}

// a shuffle does not order memory
extern "C" __global__ void shuffle_as_barrier(int* y, bool careful) {
    __shared__ int own[32];
    own[threadIdx.x] = threadIdx.x;
    if (careful) __syncwarp();
    else __shfl_sync(ALL, 0, 0);
    y[threadIdx.x] = own[31 - threadIdx.x];
}

extern "C" __global__ void read_past_global(int* y, bool careful) {
    const int value = y[careful ? threadIdx.x : threadIdx.x + 1];
    __syncthreads();
    y[threadIdx.x] = value;
}

extern "C" __global__ void write_past_global(int* y, bool careful) {
    y[careful ? threadIdx.x : threadIdx.x + 1] = 1;
}

extern "C" __global__ void read_past_shared(int* y, bool careful) {
    DYNAMIC_SHARED(bytes);
    y[threadIdx.x] = ((int*)bytes)[careful ? threadIdx.x : threadIdx.x + 1];
}

extern "C" __global__ void write_past_shared(int* y, bool careful) {
    DYNAMIC_SHARED(bytes);
    ((int*)bytes)[careful ? threadIdx.x : threadIdx.x + 1] = y[0];
}

extern "C" __global__ void write_past_static(int* y, bool careful) {
    __shared__ int own[64];
    own[careful ? threadIdx.x : threadIdx.x + 1] = y[0];
}

extern "C" __global__ void two_barriers(int* y, bool careful) {
    if (careful || threadIdx.x < 40)
        __syncthreads();
    else
        __syncthreads();
}

extern "C" __global__ void left_before_barrier(int* y, bool careful) {
    if (!careful && threadIdx.x < 40) return;
    __syncthreads();
}

extern "C" __global__ void half_a_warp_waits(int* y, bool careful) {
    if (!careful && threadIdx.x % 32 < 16) __syncthreads();
    else __syncwarp();
    __syncthreads();
}

extern "C" __global__ void barrier_zero(int* y, bool careful) {
    __barrier_sync_count(careful ? 1 : 0, 64);
}

extern "C" __global__ void barrier_sixteen(int* y, bool careful) {
    __barrier_sync_count(careful ? 15 : 16, 64);
}

extern "C" __global__ void half_a_warp_counts(int* y, bool careful) {
    __barrier_sync_count(1, careful ? 64 : 48);
}

extern "C" __global__ void two_counts(int* y, bool careful) {
    __barrier_sync_count(1, careful || threadIdx.x < 32 ? 64 : 96);
}

extern "C" __global__ void a_warp_never_comes(int* y, bool careful) {
    if (careful || threadIdx.x < 32) __barrier_sync_count(1, 64);
}

extern "C" __global__ void not_in_mask(int* y, bool careful) {
    y[thread_number()] = __shfl_sync(careful ? ALL : 0xffffu, 1, 0);
}

extern "C" __global__ void other_masks(int* y, bool careful) {
    y[thread_number()] = __any_sync(careful || threadIdx.x & 1 ? ALL : 0xfffffffdu, 1);
}

extern "C" __global__ void other_calls(int* y, bool careful) {
    if (careful || threadIdx.x & 1) y[thread_number()] = __any_sync(ALL, 1);
    else y[thread_number()] = __shfl_sync(ALL, 1, 0);
}

// in a block of 50 threads
extern "C" __global__ void lanes_beyond(int* y, bool careful) {
    y[thread_number()] = __any_sync(careful && threadIdx.x >= 32 ? 0x3ffffu : ALL, 1);
}

// ---- accesses to memory, to be counted ----------------------------------------------------------

extern "C" __global__ void strided(const int* x, int* y, int stride) {
    y[thread_number()] = x[thread_number() * stride];
}

extern "C" __global__ void strided_wide(const uint4* x, u64* y, int stride) {
    const uint4 four = x[threadIdx.x * stride];
    y[threadIdx.x] = four.x + four.y + four.z + four.w;
}

// reads the same sectors twice, with or without a meeting in between
extern "C" __global__ void read_twice(const int* x, int* y, bool meets) {
    int sum = x[threadIdx.x * 16];
    if (meets) __syncwarp();
    sum += x[threadIdx.x * 16 + 1];
    y[threadIdx.x] = sum;
}

// the same where the meeting is a barrier of two warps
extern "C" __global__ void read_twice_by_team(const int* x, int* y, bool meets) {
    int sum = x[threadIdx.x * 16];
    if (meets) __barrier_sync_count(1, 64);
    sum += x[threadIdx.x * 16 + 1];
    y[threadIdx.x] = sum;
}

// lane i reads i elements, so that the n-th read is one of those lanes that come so far
extern "C" __global__ void stairs(const int* x, int* y) {
    int sum = 0;
    for (int i = 0; i < threadIdx.x; i++) sum += x[i];
    y[threadIdx.x] = sum;
}

extern "C" __global__ void shared_stride(int* y, int stride) {
    DYNAMIC_SHARED(bytes);
    ((volatile int*)bytes)[threadIdx.x * stride] = 1;
    y[threadIdx.x] = 0;
}

extern "C" __global__ void shared_stride_wide(u64* y, int stride) {
    __shared__ u64 own[32 * 32];
    ((volatile u64*)own)[threadIdx.x * stride] = 1;
    y[threadIdx.x] = 0;
}

extern "C" __global__ void shared_broadcast(int* y) {
    __shared__ int own[2];
    if (threadIdx.x < 2) own[threadIdx.x] = 5;
    __syncthreads();
    y[threadIdx.x] = own[threadIdx.x & 1];
}

// `equal` lanes each add to one cell
extern "C" __global__ void add_cells(unsigned* y, int equal) {
    __shared__ unsigned own[32];
    atomicAdd(&own[threadIdx.x / equal], 1u);
    __syncthreads();
    atomicAdd(&y[8 * (threadIdx.x / equal)], own[threadIdx.x / equal]);
}
