// Stacks, the jump from one to another, and what the sanitizers are informed of.
#pragma once
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <iterator>
#include <vector>

#if !defined(__x86_64__)
#define USE_UCONTEXT  // portable; a jump costs a system call
#include <ucontext.h>
#endif
#ifdef CUDA_ON_CPU_ASAN
#include <sanitizer/asan_interface.h>
#endif
#ifdef CUDA_ON_CPU_TSAN
#include <sanitizer/tsan_interface.h>
extern "C" void __tsan_java_alloc(unsigned long begin, unsigned long bytes);
extern "C" void __tsan_java_free(unsigned long begin, unsigned long bytes);
#endif

namespace cuda_on_cpu {

#ifdef CUDA_ON_CPU_TSAN
constexpr bool TSAN = true;
#else
constexpr bool TSAN = false;
#endif
#if defined(CUDA_ON_CPU_ASAN) || defined(CUDA_ON_CPU_TSAN)
constexpr size_t STACK_BYTES = 256 << 10;  // reports are written on the stack of the culprit
#else
constexpr size_t STACK_BYTES = 64 << 10;
#endif
constexpr size_t GUARD_BYTES = 4096;
constexpr size_t MOST_STACKS = TSAN ? 2048 : 1024;

struct Stack {
    void* top = nullptr;  // while no fiber runs on it
    char* bottom = nullptr;
    Stack* next_idle = nullptr;
    // AddressSanitizer's: also of the caller's stack
    const void* known_bottom = nullptr;
    size_t known_bytes = 0;
    void* fake = nullptr;
#ifdef USE_UCONTEXT
    ucontext_t context;
#endif
};

static void work();  // what runs on each stack

static Stack callers;                // the stack of whoever launches
static Stack* here = &callers;       // the one we are on
static Stack* came_from = &callers;  // the one before
static Stack* idle;                  // a list, last in first out: warm caches
static std::vector<Stack*> stacks;   // all that were made

// jump() saves little: it is inlined, and declared to clobber all registers, so that the compiler saves
// what is in use. It does not `ret`, as the predictor of returns knows but one stack.
#if defined(__x86_64__)
static inline __attribute__((always_inline)) void jump(Stack& from, Stack& to) {
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
        : "rax", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "xmm0",
          "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11",
          "xmm12", "xmm13", "xmm14", "xmm15", "memory", "cc");
}

static void prepare(Stack& stack, char* top) {
    void** slot = reinterpret_cast<void**>(top);
    *--slot = nullptr;  // where work() would return to
    *--slot = reinterpret_cast<void*>(&work);
    stack.top = slot;
}
#else
static inline void jump(Stack& from, Stack& to) { swapcontext(&from.context, &to.context); }

static void prepare(Stack& stack, char* top) {
    getcontext(&stack.context);
    stack.context.uc_stack.ss_sp = stack.bottom;
    stack.context.uc_stack.ss_size = top - stack.bottom;
    stack.context.uc_link = nullptr;
    makecontext(&stack.context, work, 0);
}
#endif

// to be called first thing on a stack that was jumped to
static inline void arrived(void* fake) {
#ifdef CUDA_ON_CPU_ASAN
    __sanitizer_finish_switch_fiber(fake, &came_from->known_bottom, &came_from->known_bytes);
#endif
    (void)fake;
}

static inline __attribute__((always_inline)) void go(Stack& to) {
    Stack& from = *here;
    here = &to;
#ifdef CUDA_ON_CPU_ASAN
    came_from = &from;
    __sanitizer_start_switch_fiber(&from.fake, to.known_bottom, to.known_bytes);
#endif
    jump(from, to);
    arrived(from.fake);
}

static void put_back(Stack& stack) {
    stack.next_idle = idle;
    idle = &stack;
}

// forgets what stands on a stack
static void clear(Stack& stack, size_t number) {
#ifdef CUDA_ON_CPU_ASAN
    __asan_unpoison_memory_region(stack.bottom, STACK_BYTES);
#endif
    stack.fake = nullptr;
    // tops at different offsets in a page: else all of them would share a few lines of the cache
    prepare(stack, stack.bottom + STACK_BYTES - number * 9 % 32 * 64);
}

constexpr size_t apart = GUARD_BYTES + STACK_BYTES;
static char* arena;  // all stacks

static inline bool on_a_stack(uintptr_t at) {
    const uintptr_t begin = reinterpret_cast<uintptr_t>(arena);
    return at >= begin && at < begin + MOST_STACKS * apart;
}

static Stack& take_stack() {
    if (!idle) {
        if (!arena) {
            void* all = mmap(nullptr, MOST_STACKS * apart, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
            if (all == MAP_FAILED) abort();
            arena = static_cast<char*>(all);
        }
        Stack& made = *new Stack;
        char* guard = arena + stacks.size() * apart;
        mprotect(guard, GUARD_BYTES, PROT_NONE);
        made.known_bottom = made.bottom = guard + GUARD_BYTES;
        made.known_bytes = STACK_BYTES;
        clear(made, stacks.size());
        put_back(made);
        stacks.push_back(&made);
    }
    Stack& taken = *idle;
    idle = taken.next_idle;
    return taken;
}

// ---- memory order, for ThreadSanitizer ----------------------------------------------------------

// what was done before `release` is seen after `acquire` of the same token
static inline void release(char& token) {
#ifdef CUDA_ON_CPU_TSAN
    __tsan_release(&token);
#endif
    (void)token;
}

static inline void acquire(char& token) {
#ifdef CUDA_ON_CPU_TSAN
    __tsan_acquire(&token);
#endif
    (void)token;
}

// Accesses to this memory so far are no part of any race. The only call that clears history is
// the one by which a Java machine says that it gives memory to a new object.
static inline void forget_accesses(char* begin, char* end) {
#ifdef CUDA_ON_CPU_TSAN
    const unsigned long first = reinterpret_cast<unsigned long>(begin) / 8 * 8;
    const unsigned long bytes = (reinterpret_cast<unsigned long>(end) - first + 7) / 8 * 8;
    if (!bytes) return;
    __tsan_java_alloc(first, bytes);
    __tsan_java_free(first, bytes);
#endif
    (void)begin, (void)end;
}

}  // namespace cuda_on_cpu
