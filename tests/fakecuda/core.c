#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tests/fakecuda/fake.h"

/* A symbol that identifies the double: a report must never take it for a driver. */
__attribute__((visibility("default"))) const char fakecuda_is_a_double[] = "tests/fakecuda";

struct fake fake = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static _Thread_local const char *running = "";
static _Thread_local struct action wanted;
static _Thread_local bool in_callback;

static void script_load(void)
{
    const char *wrong = "";
    if (!script_parse(setting(""), &fake.script, &wrong)) {
        fprintf(stderr, "fakecuda: FAKECUDA is wrong at \"%s\"\n", wrong);
        _exit(EXIT_SCRIPT);
    }
}

const char *call_name(void)
{
    return running;
}

struct action call_action(void)
{
    struct action a = wanted;
    wanted = (struct action){.act = ACT_NONE};
    return a;
}

void call_set_action(struct action a)
{
    wanted = a;
}

void host_callback(bool inside)
{
    in_callback = inside;
}

uint64_t clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * NS_PER_SECOND + (uint64_t)t.tv_nsec;
}

void pause_ns(uint64_t ns)
{
    struct timespec t = {(time_t)(ns / NS_PER_SECOND), (long)(ns % NS_PER_SECOND)};
    while (ns > 0 && nanosleep(&t, &t) != 0) {
    }
}

void block_forever(void)
{
    pthread_mutex_unlock(&fake.lock);
    for (;;) {
        pause();
    }
}

/* As cuda.h lists what leaves a context in a state that only the process's end repairs. */
bool code_poisons(CUresult code)
{
    switch ((int)code) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case 226: /* CONTAINED, which older headers lack */
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case 721: /* TENSOR_MEMORY_LEAK, likewise */
    case CUDA_ERROR_EXTERNAL_DEVICE:
        return true;
    default:
        return false;
    }
}

struct device *device_at(CUdevice index)
{
    return index >= 0 && index < fake.device_count ? &fake.device[index] : NULL;
}

/* Of tests/torture, where a process is under torture: whether it wants this call to fail. */
__attribute__((weak, visibility("default"))) bool torture_driver_fails(const char *call);

static CUresult script_act(const char *name, struct device *d)
{
    if (torture_driver_fails != NULL && torture_driver_fails(name)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    struct context *c = context_current();
    struct action a = script_next(name, d ? d->index : -1);
    switch (a.act) {
    case ACT_CODE:
        if (c && code_poisons(a.code)) {
            context_poison(c, a.code);
        }
        return a.code;
    case ACT_BLOCK:
        block_forever();
    case ACT_LOST:
        if (d) {
            device_lose(d);
        }
        return CUDA_ERROR_UNKNOWN;
    default:
        wanted = a;
        return CUDA_SUCCESS;
    }
}

static CUresult init_check(unsigned needs)
{
    if (in_callback) {
        misuse("%s: called from a host callback", running);
        return CUDA_ERROR_NOT_PERMITTED;
    }
    if ((needs & NEED_INIT) == 0) {
        return CUDA_SUCCESS;
    }
    if (!fake.initialized) {
        misuse("%s: called before cuInit", running);
        return CUDA_ERROR_NOT_INITIALIZED;
    }
    if (fake.pid != getpid()) {
        misuse("%s: called in a child of the process that called cuInit", running);
        return CUDA_ERROR_NOT_INITIALIZED;
    }
    return CUDA_SUCCESS;
}

/* Calls that may take long, or wait for what the device runs. */
static bool may_linger(const char *name)
{
    static const char *const names[] = {
        "cuMemAlloc",         "cuMemAllocManaged",     "cuMemCreate",         "cuMemFree",
        "cuMemHostAlloc",     "cuMemHostRegister",     "cuMemHostUnregister", "cuMemMap",
        "cuMemRelease",       "cuMemSetAccess",        "cuMemUnmap",          "cuModuleLoadData",
        "cuModuleLoadDataEx", "cuModuleLoadFatBinary", "cuModuleUnload",      "cuFuncLoad"};
    size_t i = 0;
    while (i < sizeof names / sizeof names[0] && strcmp(names[i], name) != 0) {
        i++;
    }
    return i < sizeof names / sizeof names[0];
}

static CUresult call_begin(const char *name, unsigned needs, struct device *d)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, script_load);
    if (fake.script.main_notes && getpid() == (pid_t)syscall(SYS_gettid) && may_linger(name)) {
        note("%s: called by the first thread", name);
    }
    struct context *c = context_current();
    bool own = (needs & NEED_CONTEXT) == NEED_CONTEXT; /* it is about the current context */
    CUresult r = init_check(needs);
    r = r || !d ? r : d->lost;
    r = r || !c || !own ? r : c->device->lost;
    d = d ? d : c ? c->device : NULL;
    if (r == CUDA_SUCCESS && own) {
        if (!c) {
            misuse("%s: no current context", running);
            return CUDA_ERROR_INVALID_CONTEXT;
        }
        r = c->poison;
    }
    return r == CUDA_SUCCESS ? script_act(name, d) : r;
}

CUresult call_enter(const char *name, unsigned needs)
{
    running = name;
    wanted = (struct action){.act = ACT_NONE};
    pthread_mutex_lock(&fake.lock);
    return call_begin(name, needs, NULL);
}

CUresult call_enter_device(const char *name, unsigned needs, CUdevice device)
{
    running = name;
    wanted = (struct action){.act = ACT_NONE};
    pthread_mutex_lock(&fake.lock);
    CUresult r = call_begin(name, needs, device_at(device));
    if (r == CUDA_SUCCESS && !device_at(device)) {
        r = CUDA_ERROR_INVALID_DEVICE;
    }
    return r;
}

CUresult call_leave(CUresult r)
{
    pthread_mutex_unlock(&fake.lock);
    return r;
}
