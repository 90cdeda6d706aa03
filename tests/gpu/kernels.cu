// Device code of the GPU suite: work to measure with, and one kernel for each kind of fault. What a
// compiler could see through is written in PTX.
#undef NDEBUG
#include <assert.h>

static __device__ unsigned long long now_ns()
{
    unsigned long long t;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
    return t;
}

static __device__ void pass(unsigned long long ns)
{
    for (unsigned long long begin = now_ns(); now_ns() - begin < ns;) {
    }
}

// Long enough that other jobs are under way when the fault comes.
static __device__ void lead_in()
{
    pass(50000000);
}

extern "C" {

__global__ void nothing()
{
}

// Occupies one thread for so long.
__global__ void spin(unsigned long long ns)
{
    pass(ns);
}

// The same, and counts in memory as it goes: an access to those addresses at any time.
__global__ void spin_at(unsigned long long ns, unsigned long long *count)
{
    volatile unsigned long long *at = count;
    for (unsigned long long begin = now_ns(); now_ns() - begin < ns;) {
        *at = *at + 1;
    }
}

// So much arithmetic, whoever else runs. The sum is never stored, which only we know.
__global__ void work(unsigned long long rounds)
{
    float x = (float)threadIdx.x;
    for (unsigned long long i = 0; i < rounds; i++) {
        x = x * 0.999f + 1.0f;
    }
    if (x == -1.0f) {
        asm volatile("trap;");
    }
}

// 1: illegal address
__global__ void null_store()
{
    lead_in();
    asm volatile("st.global.u32 [%0], %1;" ::"l"(0ull), "r"(1));
}

// 2: misaligned
__device__ unsigned int words[4];
__global__ void misaligned()
{
    lead_in();
    asm volatile("st.global.u32 [%0], %1;" ::"l"((unsigned long long)words + 1), "r"(1));
}

// 3: device assert, trap
__global__ void device_assert()
{
    lead_in();
    assert(0);
}

__global__ void device_trap()
{
    lead_in();
    asm volatile("trap;");
}

// 4: an instruction where there is none, beyond the addresses of code (40 bits). Low addresses are
// relative to the code: a jump to 0x30 began the kernel anew, for ever.
__global__ void bad_jump()
{
    lead_in();
    unsigned long long there = 0xfffffffffff0ull;
    asm volatile("" : "+l"(there));
    ((void (*)())there)();
}

// 5: an address of shared memory that no block has
__global__ void shared_out()
{
    __shared__ unsigned int tile[4];
    lead_in();
    unsigned int at = (unsigned int)__cvta_generic_to_shared(tile) + 0x7ffff000u;
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(at), "r"(1));
}

// 8: never ends
__global__ void endless()
{
    for (;;) {
        asm volatile("");
    }
}
}
