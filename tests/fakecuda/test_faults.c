/* What FAKECUDA asks for happens, once or for good, and stays where the driver's stays. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/fakecuda/bench.h"

#define UNIT (2u << 20)

static const int codes[] = {700, 716, 710, 715, 719, 226, 214};
static int code; /* of the scenario; read in the child */

static void nth_call(void)
{
    CUdeviceptr p = 0;
    start();
    for (int i = 0; i < 2; i++) {
        ok(cuMemAlloc(&p, 64));
        ok(cuMemFree(p));
    }
    ck_cu(cuMemAlloc(&p, 64), CUDA_ERROR_OUT_OF_MEMORY);
    ok(cuMemAlloc(&p, 64));
    ok(cuMemFree(p));
    stop();
}

static void from_then_on(void)
{
    CUdeviceptr p = 0;
    start();
    ok(cuMemAlloc(&p, 64));
    ok(cuMemFree(p));
    for (int i = 0; i < 3; i++) {
        ck_cu(cuMemAlloc(&p, 64), CUDA_ERROR_OUT_OF_MEMORY);
    }
    stop();
}

/* Every call gives it from then on. */
static void poisoned(CUresult want)
{
    CUdeviceptr p = 0;
    CUstream s = NULL;
    CUevent e = NULL;
    size_t a = 0, b = 0;
    ck_cu(cuCtxSynchronize(), want);
    ck_cu(cuMemAlloc(&p, 64), want);
    ck_cu(cuStreamCreate(&s, 0), want);
    ck_cu(cuEventCreate(&e, 0), want);
    ck_cu(cuMemGetInfo(&a, &b), want);
}

static void kernel_faults(void)
{
    start();
    CUstream s = stream_new();
    CUevent e = NULL;
    ok(cuEventCreate(&e, 0));
    ok(launch(function_of(module_new(test_ptx), "fake_nothing"), s, NULL));
    CUresult r = cuEventRecord(e, s); /* it may have failed by now */
    must(r == CUDA_SUCCESS || r == (CUresult)code);
    ck_cu(cuStreamSynchronize(s), (CUresult)code);
    ck_cu(cuEventQuery(e), (CUresult)code);
    poisoned((CUresult)code);
}

static void call_faults(void)
{
    start();
    ck_cu(launch(function_of(module_new(test_ptx), "fake_nothing"), NULL, NULL), (CUresult)code);
    poisoned((CUresult)code);
}

static void own_kernel_faults(void)
{
    start();
    ok(launch(function_of(module_new(test_ptx), "fake_fault_716"), NULL, NULL));
    ck_cu(cuCtxSynchronize(), CUDA_ERROR_MISALIGNED_ADDRESS);
    poisoned(CUDA_ERROR_MISALIGNED_ADDRESS);
}

/* A store to where nothing is. */
static void poke_null(void)
{
    start();
    CUdeviceptr p = 0;
    void *params[1] = {&p};
    ok(launch(function_of(module_new(test_ptx), "fake_poke"), stream_new(), params));
    ck_cu(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    poisoned(CUDA_ERROR_ILLEGAL_ADDRESS);
}

/* A built-in kernel whose argument is mapped no more. */
static void builtin_reads_freed(void)
{
    start();
    CUdeviceptr x = memory_new(UNIT), y = memory_new(UNIT);
    uint64_t n = 64;
    float a = 1.0f;
    void *params[4] = {&a, &x, &y, &n};
    ok(cuMemFree(x));
    ok(launch(function_of(module_new(test_ptx), "axpy_f32"), NULL, params));
    ck_cu(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

/* One that runs over the end of its memory. */
static void builtin_runs_over(void)
{
    start();
    CUdeviceptr x = memory_new(UNIT), y = memory_new(4096);
    uint64_t n = 4096;
    float a = 1.0f;
    void *params[4] = {&a, &x, &y, &n};
    CUfunction f = function_of(module_new(test_ptx), "axpy_f32");
    ok(cuLaunchKernel(f, 4, 1, 1, 1024, 1, 1, 0, NULL, params, NULL));
    ck_cu(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void other_devices_live(void)
{
    CUcontext other = NULL;
    start();
    ok(launch(function_of(module_new(test_ptx), "fake_fault_716"), NULL, NULL));
    ck_cu(cuCtxSynchronize(), CUDA_ERROR_MISALIGNED_ADDRESS);
    ok(cuDevicePrimaryCtxRetain(&other, 1));
    ok(cuCtxSetCurrent(other));
    ok(cuMemFree(memory_new(64)));
    ok(cuCtxSynchronize());
    ok(cuDevicePrimaryCtxRelease(1));
}

static void never_ends(void)
{
    start();
    CUstream s = stream_new();
    CUevent e = NULL;
    ok(cuEventCreate(&e, 0));
    ok(launch(function_of(module_new(test_ptx), "fake_nothing"), s, NULL));
    ok(cuEventRecord(e, s));
    usleep(20000);
    ck_cu(cuStreamQuery(s), CUDA_ERROR_NOT_READY);
    ck_cu(cuEventQuery(e), CUDA_ERROR_NOT_READY);
    alarm(1); /* the end of this process: it would wait for ever */
    (void)cuStreamSynchronize(s);
    must(false);
}

static void hangs(void)
{
    start();
    CUstream s = stream_new();
    ok(launch(function_of(module_new(test_ptx), "fake_hang"), s, NULL));
    usleep(20000);
    ck_cu(cuStreamQuery(s), CUDA_ERROR_NOT_READY);
    _exit(0);
}

static void blocks(void)
{
    CUdeviceptr p = 0;
    start();
    alarm(1);
    (void)cuMemAlloc(&p, 64);
    must(false);
}

static void is_lost(void)
{
    CUdeviceptr p = 0;
    int count = 0;
    start();
    ck_cu(cuMemAlloc(&p, 64), CUDA_ERROR_UNKNOWN);
    ck_cu(cuMemAlloc(&p, 64), CUDA_ERROR_UNKNOWN);
    ck_cu(cuDevicePrimaryCtxRelease(0), CUDA_ERROR_UNKNOWN);
    ok(cuDeviceGetCount(&count));
    must(count == 2);
}

static void one_is_left(void)
{
    int count = 0;
    ok(cuInit(0));
    ok(cuDeviceGetCount(&count));
    must(count == 1);
}

static void no_device(void)
{
    ck_cu(cuInit(0), CUDA_ERROR_NO_DEVICE);
}

static void old_driver(void)
{
    int version = 0;
    ok(cuDriverGetVersion(&version));
    must(version == 11080);
}

static void init_fails(void)
{
    ck_cu(cuInit(0), CUDA_ERROR_SYSTEM_DRIVER_MISMATCH);
}

static void no_context(void)
{
    CUcontext c = NULL;
    ok(cuInit(0));
    ck_cu(cuDevicePrimaryCtxRetain(&c, 0), CUDA_ERROR_OUT_OF_MEMORY);
    ok(cuDevicePrimaryCtxRetain(&c, 1));
    ok(cuDevicePrimaryCtxRelease(1));
}

static void by_entry(void)
{
    start();
    CUmodule m = module_new(test_ptx);
    ok(launch(function_of(m, "fake_nothing"), NULL, NULL));
    ok(cuCtxSynchronize());
    ck_cu(launch(function_of(m, "fake_nothing"), NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    ok(cuModuleUnload(m));
    stop();
}

static void does_nothing(void)
{
    start();
    CUmodule m = module_new(test_ptx);
    ok(launch(function_of(m, "unknown_to_the_double"), NULL, NULL));
    ok(cuCtxSynchronize());
    ok(cuModuleUnload(m));
    stop();
}

static const struct {
    void (*work)(void);
    const char *script;
    int status;
} faults[] = {
    {nth_call, "cuMemAlloc@3=2", 0},
    {from_then_on, "cuMemAlloc@2+=CUDA_ERROR_OUT_OF_MEMORY", 0},
    {own_kernel_faults, "", 0},
    {poke_null, "", 0},
    {builtin_reads_freed, "", 0},
    {builtin_runs_over, "", 0},
    {other_devices_live, "devices=2", 0},
    {never_ends, "cuLaunchKernel@1=stall", 128 + 14},
    {hangs, "", 0},
    {blocks, "cuMemAlloc@1=block", 128 + 14},
    {no_device, "devices=0", 0},
    {old_driver, "driver=11080", 0},
    {init_fails, "init=803", 0},
    {no_context, "devices=2;0:cuDevicePrimaryCtxRetain@1=2", 0},
    {by_entry, "entry.fake_nothing@2=1", 0},
    {does_nothing, "unknown=noop", 0},
    {nth_call, "cuMemAlloc@0=2", 67},
    {nth_call, "cuMemAlloc@1", 67},
    {nth_call, "colour=red", 67},
    {nth_call, "memory=8X", 67},
    {nth_call, "cuMemAlloc@1=CUDA_ERROR_NONE_SUCH", 67},
};

START_TEST(happens)
{
    struct outcome o = scenario(faults[_i].work, faults[_i].script, false, NULL);
    ck_assert_msg(o.status == faults[_i].status, "%s: ended with %d; report:\n%s",
                  faults[_i].script, o.status, o.report);
}
END_TEST

START_TEST(sticks)
{
    char script[64];
    code = codes[_i];
    snprintf(script, sizeof script, "cuLaunchKernel@1=fault:%d", code);
    ck_assert_int_eq(scenario(kernel_faults, script, true, NULL).status, 0);
    snprintf(script, sizeof script, "cuLaunchKernel@1=%d", code);
    ck_assert_int_eq(scenario(call_faults, script, true, NULL).status, 0);
}
END_TEST

static void state_new(char *ret_variable, char *dir)
{
    ck_assert_ptr_nonnull(mkdtemp(dir));
    sprintf(ret_variable, "FAKECUDA_STATE=%s", dir);
}

static void state_remove(const char *dir)
{
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", dir);
    ck_assert_int_eq(system(command), 0);
}

static void one_fails(void)
{
    CUdeviceptr p = 0;
    start();
    ck_cu(cuMemAlloc(&p, 64), CUDA_ERROR_OUT_OF_MEMORY);
    stop();
}

static void none_fails(void)
{
    start();
    ok(cuMemFree(memory_new(64)));
    stop();
}

START_TEST(fires_once_in_all)
{
    char dir[] = "/tmp/fakecuda-XXXXXX", variable[64];
    state_new(variable, dir);
    ck_assert_int_eq(scenario(one_fails, "cuMemAlloc@1=2", true, variable).status, 0);
    ck_assert_int_eq(scenario(none_fails, "cuMemAlloc@1=2", true, variable).status, 0);
    state_remove(dir);
}
END_TEST

START_TEST(stays_lost)
{
    char dir[] = "/tmp/fakecuda-XXXXXX", variable[64];
    state_new(variable, dir);
    const char *script = "devices=2;cuMemAlloc@1=lost";
    ck_assert_int_eq(scenario(is_lost, script, false, variable).status, 0);
    ck_assert_int_eq(scenario(one_is_left, script, true, variable).status, 0);
    state_remove(dir);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fakecuda_faults");
    TCase *tcase = tcase_create("faults");
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, happens, 0, (int)(sizeof faults / sizeof faults[0]));
    tcase_add_loop_test(tcase, sticks, 0, (int)(sizeof codes / sizeof codes[0]));
    tcase_add_test(tcase, fires_once_in_all);
    tcase_add_test(tcase, stays_lost);
    suite_add_tcase(suite, tcase);
    return bench_main(suite);
}
