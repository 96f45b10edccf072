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

// what CUDA leaves undefined: y[2, all threads]
extern "C" __global__ void garbage(unsigned* y) {
    DYNAMIC_SHARED(bytes);
    y[thread_number()] = ((unsigned*)bytes)[threadIdx.x];
    const unsigned half = threadIdx.x & 16 ? 0xffff0000u : 0xffffu;
    y[gridDim.x * blockDim.x + thread_number()] = __shfl_sync(half, 1, 31);
    ((unsigned*)bytes)[threadIdx.x] = 0;
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

// one thread a block adds: blocks race, threads do not
extern "C" __global__ void blocks_add(int* y, bool careful) {
    if (threadIdx.x) return;
    if (careful) atomicAdd(y, 1);
    else y[0] += 1;
}

extern "C" __global__ void write_past_global(int* y, bool careful) {
    y[careful ? threadIdx.x : threadIdx.x + 1] = 1;
}

extern "C" __global__ void read_past_shared(int* y, bool careful) {
    DYNAMIC_SHARED(bytes);
    y[threadIdx.x] = ((int*)bytes)[careful ? threadIdx.x : threadIdx.x + 1];
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

extern "C" __global__ void a_warp_never_comes(int* y, bool careful) {
    if (careful || threadIdx.x < 32) __barrier_sync_count(1, 64);
}

extern "C" __global__ void not_in_mask(int* y, bool careful) {
    y[thread_number()] = __shfl_sync(careful ? ALL : 0xffffu, 1, 0);
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

// reads the same sectors twice, with or without a meeting in between
extern "C" __global__ void read_twice(const int* x, int* y, bool meets) {
    int sum = x[threadIdx.x * 16];
    if (meets) __syncwarp();
    sum += x[threadIdx.x * 16 + 1];
    y[threadIdx.x] = sum;
}

extern "C" __global__ void shared_stride(int* y, int stride) {
    DYNAMIC_SHARED(bytes);
    ((volatile int*)bytes)[threadIdx.x * stride] = 1;
    y[threadIdx.x] = 0;
}

// `equal` lanes each add to one cell
extern "C" __global__ void add_cells(unsigned* y, int equal) {
    __shared__ unsigned own[32];
    atomicAdd(&own[threadIdx.x / equal], 1u);
    __syncthreads();
    atomicAdd(&y[8 * (threadIdx.x / equal)], own[threadIdx.x / equal]);
}
