/*
 * Declarations that the files of the CUDA back end share. Only this folder includes it.
 *
 * A worker opens one device through its primary context, which is current on the worker's thread
 * from open to close. Thread: as backend.h says.
 */
#ifndef BACKEND_CUDA_DRIVER_DEVICE_H
#define BACKEND_CUDA_DRIVER_DEVICE_H

#include <stdatomic.h>

#include "daemon/backend/backend.h"
#include "daemon/backend/cuda/driver/clock.h"
#include "daemon/backend/cuda/driver/driver.h"
#include "daemon/backend/cuda/driver/error.h"

#define CUDA_DEVICES_MAX 64u
#define CUDA_EVENTS_KEPT 256u
#define CUDA_PLANS_MAX   64u

struct backend_device {
    struct cuda_driver cu;
    CUdevice id;
    CUcontext context; /* the primary context, retained; NULL before */
    struct backend_info info;
    uint64_t max_grid[3]; /* limit of groups by dimension */
    unsigned major;       /* major number of its compute capability */
    bool alone;           /* opened by name; otherwise the driver may show other devices, too */
    uint64_t warp;        /* work items that run in lockstep */
    uint64_t unit_items;  /* limit of work items that a compute unit runs at once */
    uint64_t page; /* bytes of a page of the virtual-memory API; 0: cuMemAlloc is used instead */
    CUmemAllocationProp page_prop;
    bool host_pointers; /* registered host memory has the same address on host and device */
    bool exports;       /* pages can be exported as descriptors */
    bool register_read; /* read-only host memory can be registered */
    /* Bytes, a power of two. Larger host memory is registered in pieces that begin at multiples
     * of it. A copy from or to the host is split there, because drivers refuse a copy that
     * crosses two registrations. Kernels may cross them. Fills of imported memory and copies
     * within it may not, but no job has any. */
    uint64_t host_piece;
    /* threads that are registering memory: the driver may hold its lock for long */
    atomic_uint registering;
    uint64_t room;         /* bytes free at the last query */
    int priority_least;    /* numerically the largest */
    int priority_greatest; /* numerically the smallest */
    struct cuda_clock clock;
    bool launched;        /* a kernel was launched since printed output was written out */
    backend_wake_fn wake; /* may be NULL; called on a thread of the driver */
    void *wake_data;
    CUevent event[CUDA_EVENTS_KEPT]; /* free events for the next markers */
    unsigned event_count;
    /* State of the libraries (library_call.h), made by the thread that prepares them. */
    CUstream
        prepare_stream;  /* for the first small call of each library; NULL: no library may serve */
    CUdeviceptr scratch; /* memory for those calls; 0: none yet */
    void *blas;          /* cuBLAS's handle; NULL: none yet */
    void (*stream_ends)(
        struct backend_stream *s); /* frees what libraries keep for an idle stream */
    /* cuFFT's retired plans, to be destroyed when nothing is in flight */
    int plan[CUDA_PLANS_MAX];
    unsigned plan_count;
};

struct backend_block {
    CUdeviceptr address;
    uint64_t size;                       /* bytes */
    CUmemGenericAllocationHandle shared; /* set if other processes can map the block */
    bool host;                           /* imported memory of the host */
};

/* Lists the devices in the order of their positions on the PCI bus, only those that the option
 * "uuid" names. ERR_NO_DEVICE. */
int cuda_devices(const struct cuda_driver *cu, const char *options,
                 CUdevice ret_device[CUDA_DEVICES_MAX], unsigned *ret_count, struct err *e);

extern const struct backend backend_cuda;
extern const struct backend_memory_ops cuda_memory_ops;
extern const struct backend_page_ops cuda_page_ops;
extern const struct backend_stream_ops cuda_stream_ops;
extern const struct backend_marker_ops cuda_marker_ops;
extern const struct backend_module_ops cuda_module_ops;

/* How many bytes of [host, host + size) one call may copy. */
uint64_t cuda_host_piece(const struct backend_device *d, const void *host, uint64_t size);

/* Memory that other processes can map; see backend_memory_ops. */
int cuda_alloc_shared(struct backend_device *d, uint64_t size, struct backend_block **ret_block,
                      struct err *e);
void cuda_free_shared(struct backend_device *d, struct backend_block *b);
int cuda_share(struct backend_device *d, struct backend_block *b, int *ret_fd, uint64_t *ret_bytes,
               struct err *e);

#endif
