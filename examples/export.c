/* Passes a result to other software that uses CUDA, such as PyTorch, without leaving the device. */
#include <cudaTypedefs.h>
#include <dlfcn.h>

#include "example.h"

#define N 1024u
static void *cuda;
#define CALL(name, abi, ...)                                                                       \
    do {                                                                                           \
        PFN_cu##name##_v##abi call;                                                                \
        *(void **)&call =                                                                          \
            dlsym(cuda, abi == 3020 || abi == 11000 ? "cu" #name "_v2" : "cu" #name);              \
        CUresult code = call != NULL ? call(__VA_ARGS__) : CUDA_ERROR_NOT_FOUND;                   \
        if (code != CUDA_SUCCESS) {                                                                \
            (void)fprintf(stderr, "cu%s gave %d\n", #name, (int)code);                             \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static float last_of(const gpud_export_desc *x)
{
    CUcontext context;
    float value = 0;
    CUmemGenericAllocationHandle memory;
    CUdeviceptr at = 0;
    CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CALL(Init, 2000, 0);
    CALL(DevicePrimaryCtxRetain, 7000, &context, 0); /* of the GPU x->device, here GPU 0 */
    CALL(CtxSetCurrent, 4000, context);
    CALL(MemImportFromShareableHandle, 10020, &memory, (void *)(intptr_t)x->fd,
         CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    CALL(MemAddressReserve, 10020, &at, x->bytes, 0, 0, 0);
    CALL(MemMap, 10020, at, x->bytes, 0, memory, 0);
    CALL(MemSetAccess, 10020, at, x->bytes, &access, 1);
    CALL(MemcpyDtoH, 3020, &value, at + (N - 1) * sizeof value, sizeof value);
    CALL(MemUnmap, 10020, at, x->bytes);
    CALL(MemAddressFree, 10020, at, x->bytes);
    CALL(MemRelease, 10020, memory);
    CALL(DevicePrimaryCtxRelease, 11000, 0);
    return value;
}

int main(void)
{
    gpud_client *c;
    gpud_buffer b;
    gpud_export_desc x = {.size = sizeof x};
    must(gpud_open(NULL, NULL, &c));
    cuda = dlopen("libcuda.so.1", RTLD_NOW);
    int rc = gpud_buffer_create(c, gpud_shape_1d(GPUD_F32, N), GPUD_BUFFER_EXPORT, "shared", &b);
    if (cuda != NULL && rc != GPUD_ERR_UNSUPPORTED) { /* otherwise this machine has no CUDA */
        must(rc != 0 ? rc : gpud_fill(c, gpud_out(b), gpud_f32(42)));
        must(gpud_buffer_export(c, b, &x));
    }
    gpud_close(c); /* the memory lives while x.fd is open */
    (void)puts(x.bytes == 0 ? "there is no CUDA here" : "its memory goes to CUDA");
    return x.bytes == 0 || last_of(&x) == 42 ? 0 : 1;
}
