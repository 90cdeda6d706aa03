#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/backend/opencl/opencl.h"
#include "daemon/backend/options.h"

static int enumerate(const char *options, unsigned *ret_count, struct err *e)
{
    struct opencl_api cl;
    struct opencl_choice choice[OPENCL_DEVICES_MAX];
    int rc = opencl_load(&cl, e);
    return rc != 0 ? rc : opencl_devices(&cl, options, choice, ret_count, e);
}

static bool svm_usable(const struct backend_device *d)
{
    uint64_t caps = opencl_device_number(&d->cl, d->id.device, CL_DEVICE_SVM_CAPABILITIES);
    bool entries = true;
#define X(name) entries = entries && d->cl.name;
    OPENCL_SVM_ENTRIES(X)
#undef X
    return entries && (caps & CL_DEVICE_SVM_COARSE_GRAIN_BUFFER) != 0;
}

static int wake_create(backend_wake_fn wake, void *data, struct opencl_wake **ret_wake,
                       struct err *e)
{
    struct opencl_wake *w = calloc(1, sizeof *w);
    if (!w) {
        return err_set(e, ERR_NOMEM, "no memory for a device");
    }
    pthread_mutex_init(&w->lock, NULL);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&w->idle, &attr);
    pthread_condattr_destroy(&attr);
    w->wake = wake;
    w->data = data;
    *ret_wake = w;
    return 0;
}

/* Callbacks may come after their events have ended, and the callback of a failed event may never
 * come. The small struct is then leaked. */
static void wake_destroy(struct opencl_wake *w)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += 2;
    pthread_mutex_lock(&w->lock);
    w->wake = NULL;
    int rc = 0;
    while (atomic_load(&w->pending) > 0 && rc != ETIMEDOUT) {
        rc = pthread_cond_timedwait(&w->idle, &w->lock, &until);
    }
    bool idle = atomic_load(&w->pending) == 0;
    pthread_mutex_unlock(&w->lock);
    if (idle) {
        pthread_cond_destroy(&w->idle);
        pthread_mutex_destroy(&w->lock);
        free(w);
    }
}

static int device_choose(struct backend_device *d, unsigned index, const char *options,
                         struct err *e)
{
    struct opencl_choice choice[OPENCL_DEVICES_MAX];
    unsigned count = 0;
    int rc = opencl_load(&d->cl, e);
    if (rc == 0) {
        rc = opencl_devices(&d->cl, options, choice, &count, e);
    }
    if (rc != 0) {
        return rc;
    }
    if (index >= count) {
        return err_set(e, ERR_NO_DEVICE, "no OpenCL device %u: there are %u", index, count);
    }
    d->id = choice[index];
    return 0;
}

/* NVIDIA's OpenCL (driver 580, H200): shared memory is managed memory, of which clSVMAlloc gives
 * more than the device has, and offsets of sub-buffers are multiples of 512 bytes. */
static int served(const struct backend_device *d, struct err *e)
{
    return strncmp(d->info.vendor, "NVIDIA", strlen("NVIDIA")) != 0
               ? 0
               : err_set(e, ERR_UNSUPPORTED,
                         "%s: devices of NVIDIA are not served by OpenCL: start gpud with "
                         "--backend cuda, which needs the driver of CUDA 13 (580 or newer)",
                         d->info.name);
}

static int device_configure(struct backend_device *d, const char *options, struct err *e)
{
    opencl_describe(&d->cl, d->id, &d->info);
    /* CL_DEVICE_MEM_BASE_ADDR_ALIGN is in bits */
    d->base_align = opencl_device_number(&d->cl, d->id.device, CL_DEVICE_MEM_BASE_ADDR_ALIGN) / 8;
    if (d->base_align < 1) {
        d->base_align = BACKEND_ALIGN;
    }
    bool svm = true, huge_pages = true;
    d->limit = d->info.memory;
    int rc = served(d, e);
    if (rc == 0) {
        rc = options_check(options, "platform svm memory huge_pages", e);
    }
    if (rc == 0) {
        rc = option_bool(options, "svm", &svm, e);
    }
    if (rc == 0) {
        rc = option_bool(options, "huge_pages", &huge_pages, e);
    }
    if (rc == 0) {
        rc = option_u64(options, "memory", 1, UINT64_MAX, &d->limit, e);
    }
    d->svm = svm && svm_usable(d);
    d->huge_pages = d->svm && d->info.cpu && huge_pages;
    d->limit = d->limit < d->info.memory ? d->limit : d->info.memory;
    d->info.memory = d->limit;
    d->info.max_alloc = d->info.max_alloc < d->limit ? d->info.max_alloc : d->limit;
    uint64_t align = d->huge_pages ? OPENCL_HUGE_PAGE : BACKEND_ALIGN;
    if (d->svm && d->info.max_alloc > align) {
        d->info.max_alloc -= align; /* bytes that aligning a block may waste */
    }
    return rc;
}

static int device_open(unsigned index, const char *options, backend_wake_fn wake, void *wake_data,
                       struct backend_device **ret_device, struct err *e)
{
    struct backend_device *d = calloc(1, sizeof *d);
    if (!d) {
        return err_set(e, ERR_NOMEM, "no memory for a device");
    }
    char note[sizeof d->info.note];
    int rc = opencl_cache_choose(note, sizeof note, e);
    rc = rc == 0 ? device_choose(d, index, options, e) : rc;
    if (rc == 0) {
        rc = device_configure(d, options, e);
        (void)snprintf(d->info.note, sizeof d->info.note, "%s", note);
    }
    if (rc == 0) {
        rc = wake_create(wake, wake_data, &d->wake, e);
    }
    if (rc == 0) {
        cl_int cl = CL_SUCCESS;
        d->context = d->cl.CreateContext(NULL, 1, &d->id.device, NULL, NULL, &cl);
        rc = cl == CL_SUCCESS ? 0 : opencl_error(cl, "clCreateContext", e);
    }
    if (rc != 0) {
        if (d->wake) {
            wake_destroy(d->wake);
        }
        free(d);
        return rc;
    }
    *ret_device = d;
    return 0;
}

static void device_close(struct backend_device *d)
{
    if (!d) {
        return;
    }
    wake_destroy(d->wake);
    d->cl.ReleaseContext(d->context);
    free(d);
}

static void device_info(struct backend_device *d, struct backend_info *ret_info)
{
    *ret_info = d->info;
}

static bool device_wakes(struct backend_device *d)
{
    (void)d;
    return true;
}

static const struct backend_device_ops device_ops = {
    .open = device_open,
    .close = device_close,
    .info = device_info,
    .wakes = device_wakes,
};

const struct backend backend_opencl = {
    .name = "opencl",
    .abi = BACKEND_ABI,
    .auto_choice = true,
    .dialect = BACKEND_LANG_OPENCL,
    .enumerate = enumerate,
    .programs = true, /* PoCL runs the linker */
    .early = true,
    .folder = opencl_cache_folder,
    .device = &device_ops,
    .memory = &opencl_memory_ops,
    .stream = &opencl_stream_ops,
    .marker = &opencl_marker_ops,
    .module = &opencl_module_ops,
    .compile = opencl_compile,
};
