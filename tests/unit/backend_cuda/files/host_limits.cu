// kernels: whole
// nvcc brings limits and constants to every source, also where nothing is the host's.
#ifndef M_PI
#define M_PI 3.0f
#endif
#if !defined ULONG_MAX || ULONG_MAX != 18446744073709551615UL || !defined INFINITY
#error "limits"
#endif
#if !__GNUC_PREREQ(4, 8) || __GLIBC__ < 2 || RAND_MAX != 2147483647 || EXIT_FAILURE != 1
#error "the C library's"
#endif
#ifdef __CHAR_UNSIGNED__
#error "signed"
#endif

template <class A, class B> struct same {
    static const bool value = false;
};
template <class A> struct same<A, A> {
    static const bool value = true;
};
static_assert(same<decltype(M_PI), double>::value && M_PI > 3.14, "constant");
static_assert(same<decltype(LONG_MAX), long>::value && same<decltype(LONG_MIN), long>::value, "");
static_assert(same<decltype(ULLONG_MAX), unsigned long long>::value, "");

__global__ void whole(double *out) { out[0] = M_PI * INT_MAX; }
