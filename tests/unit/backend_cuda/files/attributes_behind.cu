// kernels: moved
// Attributes behind a type's body are the type's, as with g++: nvcc's numbers.
#include <cstdio>

typedef struct {
    int a;
} __attribute__((aligned(16))) Vector;
typedef struct Quad_ {
    float a;
} __align__(16) Quad, *QuadPointer;
static_assert(sizeof(Vector) == 16 && sizeof(Quad) == 16 && sizeof(Quad_) == 16, "type");

template <class T> struct Padded {
    T value;
} __align__(16);
template <> struct Padded<char> {
    char value;
} __align__(4);
static_assert(sizeof(Padded<int>) == 16 && sizeof(Padded<char>) == 4, "template");

struct Dense {
    char c;
    int i;
} __attribute__((packed)) // in two
__attribute__((aligned(2)));
static_assert(sizeof(Dense) == 6, "two attributes");

#define ALIGNED(n) __attribute__((aligned(n)))
struct Outer {
    int i;
    struct {
        int q;
        union {
            float f;
            int k;
        } ALIGNED(8);
    } inner;
} ALIGNED(32);
static_assert(sizeof(Outer) == 32, "one inside of another, by a macro");

#define DECLARE(T) \
    struct T {     \
        int i;     \
    } __align__(16) T##_one;
struct Made {
    DECLARE(f) DECLARE(g)
};
static_assert(sizeof(Made::f) == 16 && sizeof(Made) == 32, "made by a macro");

struct Placed {
    int a;
} __device__ __align__(16) placed, other;
struct Constant {
    int a;
} __align__(8) __constant__ constant;
static_assert(sizeof(Placed) == 16 && sizeof(Constant) == 8, "variables");

enum Small { ONE } __attribute__((packed));
static_assert(sizeof(Small) == 1, "enum");

/* Not the type's */
typedef struct Plain {
    int a;
} Sixteen ALIGNED(16);
struct Still {
    int a;
} __constant__ still;
__device__ inline struct Plain make(int a)
{
    struct Plain p;
    p.a = a;
    return p;
}
__align__(16) __device__ int aligned;
static_assert(sizeof(Plain) == 4 && sizeof(Still) == 4 && alignof(Sixteen) == 16, "variable");

__global__ void moved(Vector v, int *out)
{
    *out = v.a + placed.a + constant.a + make(aligned).a + still.a;
}

int main()
{
    printf("%zu\n", sizeof(Vector));
    return 0;
}
