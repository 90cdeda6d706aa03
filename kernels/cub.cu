// libgpud-cub.so: one C function that runs CUB's device-wide algorithms. See cub.h.
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_scan.cuh>

#include <limits>
#include <type_traits>

#include "common/shape.h"
#include "kernels/cub.h"

namespace {

// As in gpud's own minimum and maximum: NaN is ignored, and if no other value is left the result is
// the operation's identity.
template <class T, bool is_least> struct choose {
    __host__ __device__ T operator()(const T &a, const T &b) const
    {
        if (a != a) {
            return b;
        }
        return (is_least ? b < a : b > a) ? b : a;
    }
};

template <class T> constexpr T identity(bool is_least)
{
    using limits = std::numeric_limits<T>;
    if (limits::has_infinity) {
        return is_least ? limits::infinity() : -limits::infinity();
    }
    return is_least ? limits::max() : limits::lowest();
}

// Integers only: CUB's scan of floats can round differently each time.
template <class T>
cudaError_t scan(const gpud_cub_call *c, void *workspace, size_t &bytes, cudaStream_t s)
{
    const T *in = static_cast<const T *>(c->in);
    T *out = static_cast<T *>(c->out);
    const long long n = static_cast<long long>(c->count);
    return c->operation == GPUD_CUB_SCAN_INCLUSIVE
               ? cub::DeviceScan::InclusiveSum(workspace, bytes, in, out, n, s)
               : cub::DeviceScan::ExclusiveSum(workspace, bytes, in, out, n, s);
}

template <class T>
cudaError_t run_typed(const gpud_cub_call *c, void *workspace, size_t &bytes, cudaStream_t s)
{
    const T *in = static_cast<const T *>(c->in);
    T *out = static_cast<T *>(c->out);
    const long long n = static_cast<long long>(c->count);
    switch (c->operation) {
    case GPUD_CUB_SUM:
        return cub::DeviceReduce::Sum(workspace, bytes, in, out, n, s);
    case GPUD_CUB_MIN:
        return cub::DeviceReduce::Reduce(workspace, bytes, in, out, n, choose<T, true>(),
                                         identity<T>(true), s);
    case GPUD_CUB_MAX:
        return cub::DeviceReduce::Reduce(workspace, bytes, in, out, n, choose<T, false>(),
                                         identity<T>(false), s);
    case GPUD_CUB_SCAN_INCLUSIVE:
    case GPUD_CUB_SCAN_EXCLUSIVE:
        if constexpr (std::is_integral_v<T>) {
            return scan<T>(c, workspace, bytes, s);
        }
        return cudaErrorNotSupported;
    default:
        return cudaErrorInvalidValue;
    }
}

// In place: the workspace begins with the other half of the double buffer; CUB's own part follows.
cudaError_t sort(const gpud_cub_call *c, void *workspace, size_t &bytes, cudaStream_t s)
{
    const size_t room = (c->count * sizeof(uint32_t) + 255) / 256 * 256;
    uint32_t *keys = static_cast<uint32_t *>(c->out);
    uint32_t *other = static_cast<uint32_t *>(workspace);
    void *own = workspace != nullptr ? static_cast<char *>(workspace) + room : nullptr;
    size_t needed = bytes - (workspace != nullptr ? room : 0);
    cub::DoubleBuffer<uint32_t> buffer(keys, other);
    const long long n = static_cast<long long>(c->count);
    cudaError_t rc = cub::DeviceRadixSort::SortKeys(own, needed, buffer, n, 0, 32, s);
    if (workspace == nullptr) {
        bytes = needed + room;
    } else if (rc == cudaSuccess && buffer.Current() != keys) {
        rc = cudaMemcpyAsync(keys, buffer.Current(), c->count * sizeof(uint32_t),
                             cudaMemcpyDeviceToDevice, s);
    }
    return rc;
}

} // namespace

extern "C" __attribute__((visibility("default"))) int
gpud_cub_run(const gpud_cub_call *call, void *workspace, size_t *bytes, void *stream)
{
    cudaStream_t s = static_cast<cudaStream_t>(stream);
    (void)cudaGetLastError(); // clears an earlier call's error, which CUB would return as its own
    if (call->operation == GPUD_CUB_SORT) {
        return sort(call, workspace, *bytes, s);
    }
    switch (call->dtype) {
    case DTYPE_F32:
        return run_typed<float>(call, workspace, *bytes, s);
    case DTYPE_F64:
        return run_typed<double>(call, workspace, *bytes, s);
    case DTYPE_I32:
        return run_typed<int32_t>(call, workspace, *bytes, s);
    case DTYPE_U32:
        return run_typed<uint32_t>(call, workspace, *bytes, s);
    default:
        return cudaErrorInvalidValue;
    }
}
