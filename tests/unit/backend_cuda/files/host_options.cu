// kernels: by_options
// options: -U__NVCC__ -D __GNUC__=3 -DCOMPILER=__GNUC__
// Options change what the host's compiler has defined, too.
#ifdef __NVCC__
#error "taken back"
#endif
static_assert(__GNUC__ == 3 && COMPILER == 3, "given");

__global__ void by_options(int *x) { x[0] = COMPILER; }
