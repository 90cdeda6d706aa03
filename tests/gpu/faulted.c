/* After each fault of a kernel: what every call of the driver returns in the process that had it. A
 * process each, as a context that has faulted is of no more use. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/gpu/direct.h"
#include "tests/gpu/items.h"
#include "tests/gpu/record.h"

/* What a process has before its kernel faults. */
struct held {
    struct direct d;
    CUdeviceptr memory;
    CUevent event;
    CUfunction nothing; /* an empty kernel */
    int called;         /* by the driver, from a host function */
    unsigned char host[64];
};

static void host_called(void *data)
{
    *(int *)data += 1;
}

static void result(struct record *r, const char *call, CUresult code)
{
    record_figure(r, call, (double)code, "");
}

/* Calls that release resources come last. */
static void calls_try(struct held *h, struct record *r)
{
    struct direct *d = &h->d;
    CUdeviceptr more = 0;
    size_t unused = 0;
    size_t total = 0;
    uint64_t zero = 0;
    void *args[] = {&zero};
    result(r, "cuStreamSynchronize", d->cu.StreamSynchronize(d->stream));
    result(r, "cuEventQuery", d->cu.EventQuery(h->event));
    result(r, "cuEventRecord", d->cu.EventRecord(h->event, d->stream));
    result(r, "cuCtxSynchronize", d->CtxSynchronize());
    result(r, "cuLaunchKernel",
           d->cu.LaunchKernel(h->nothing, 1, 1, 1, 1, 1, 1, 0, d->stream, args, NULL));
    if (d->cu.LaunchHostFunc != NULL) {
        result(r, "cuLaunchHostFunc", d->cu.LaunchHostFunc(d->stream, host_called, &h->called));
    }
    result(r, "cuMemcpyHtoDAsync",
           d->cu.MemcpyHtoDAsync(h->memory, h->host, sizeof h->host, d->stream));
    result(r, "cuMemsetD8Async", d->cu.MemsetD8Async(h->memory, 0, sizeof h->host, d->stream));
    result(r, "cuMemGetInfo", d->cu.MemGetInfo(&unused, &total));
    result(r, "cuMemAlloc", d->cu.MemAlloc(&more, sizeof h->host));
    result(r, "cuMemFree", d->cu.MemFree(h->memory));
    result(r, "cuEventDestroy", d->cu.EventDestroy(h->event));
    result(r, "cuModuleUnload", d->cu.ModuleUnload(d->module));
    result(r, "cuStreamDestroy", d->cu.StreamDestroy(d->stream));
    result(r, "cuDevicePrimaryCtxRelease", d->cu.DevicePrimaryCtxRelease(d->device));
    record_figure(r, "host functions called", h->called, "");
}

/* The child: 0 if all of it is recorded. */
static int fault(const char *kernel, const char *item)
{
    struct held h = {.called = 0};
    struct record r;
    record_begin(&r, item);
    direct_open(&h.d);
    must(h.d.cu.MemAlloc(&h.memory, sizeof h.host));
    must(h.d.cu.EventCreate(&h.event, CU_EVENT_DISABLE_TIMING));
    h.nothing = direct_kernel(&h.d, "nothing");
    direct_launch(&h.d, direct_kernel(&h.d, kernel), 0, 0);
    (void)h.d.cu.EventRecord(h.event, h.d.stream); /* the fault may be there before */
    if (h.d.cu.LaunchHostFunc != NULL) {
        (void)h.d.cu.LaunchHostFunc(h.d.stream, host_called, &h.called);
    }
    CUresult code = h.d.cu.StreamSynchronize(h.d.stream);
    result(&r, "the fault", code);
    calls_try(&h, &r);
    record_note(&r, "CUresult of each call behind the fault, in this order; 0: no error");
    if (code == CUDA_SUCCESS) {
        record_failed(&r, "the kernel did not fault");
    } else {
        (void)record_end(&r);
    }
    return 0;
}

void item_faulted(void)
{
    static const struct {
        const char *kernel, *item;
    } rows[] = {{"null_store", "after a null store"}, {"misaligned", "after a misaligned one"},
                {"device_assert", "after an assert"}, {"device_trap", "after a trap"},
                {"bad_jump", "after a bad jump"},     {"shared_out", "after shared memory"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int status = 0;
        (void)fflush(NULL);
        pid_t pid = fork(); /* nothing of CUDA is open in this process */
        if (pid == 0) {
            int rc = fault(rows[i].kernel, rows[i].item);
            (void)fflush(NULL);
            _exit(rc);
        }
        if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0) {
            struct record r;
            char why[64];
            (void)snprintf(why, sizeof why, "its process ended with status %d", status);
            record_begin(&r, rows[i].item);
            record_failed(&r, why);
        }
    }
}
