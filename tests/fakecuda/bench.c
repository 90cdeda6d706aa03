#include "tests/fakecuda/bench.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXIT_FAILED 99

const char test_ptx[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".const .align 4 .b8 table[8] = {1, 2, 3, 4, 5, 6, 7, 8};\n"
    ".global .align 4 .u32 counter = 7;\n"
    ".visible .entry fake_increment(.param .u64 p, .param .u64 n)\n{\n ret;\n}\n"
    ".visible .entry fake_sleep(.param .u32 ms)\n{\n ret;\n}\n"
    ".visible .entry fake_nothing()\n{\n ret;\n}\n"
    ".visible .entry fake_poke(.param .u64 p)\n{\n ret;\n}\n"
    ".visible .entry fake_hang()\n{\n ret;\n}\n"
    ".visible .entry fake_fault_716()\n{\n ret;\n}\n"
    ".visible .entry unknown_to_the_double()\n{\n ret;\n}\n"
    ".visible .entry shaped(.param .u64 a, .param .f32 b, .param .align 8 .b8 c[32],\n"
    "  .param .u8 d)\n.maxntid 128, 2, 1\n{\n"
    " .shared .align 4 .b8 tile[128];\n ret;\n}\n"
    ".visible .entry axpy_f32(.param .f32 a, .param .u64 x, .param .u64 y, .param .u64 n)\n"
    "{\n ret;\n}\n";

void scenario_fail(const char *file, int line, const char *what, int got, int want)
{
    fprintf(stderr, "%s:%d: %s: %d, not %d\n", file, line, what, got, want);
    _exit(EXIT_FAILED);
}

static void child(void (*work)(void), const char *script, bool strict, const char *path,
                  const char *extra)
{
    signal(SIGALRM, SIG_DFL); /* Check's own would end all of the test */
    setenv("FAKECUDA", script, 1);
    setenv("FAKECUDA_REPORT", path, 1);
    setenv("FAKECUDA_STRICT", strict ? "1" : "0", 1);
    if (extra) {
        putenv(strdup(extra));
    }
    work();
    exit(0);
}

struct outcome scenario(void (*work)(void), const char *script, bool strict, const char *extra)
{
    char path[] = "/tmp/fakecuda-XXXXXX";
    struct outcome o = {0};
    int status = 0;
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        child(work, script, strict, path, extra);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    o.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    ssize_t size = read(fd, o.report, sizeof o.report - 1);
    ck_assert_int_ge(size, 0);
    close(fd);
    unlink(path);
    ck_assert_msg(o.status != EXIT_FAILED, "the scenario failed, see above; report:\n%s", o.report);
    return o;
}

void scenario_clean(void (*work)(void), const char *script)
{
    struct outcome o = scenario(work, script, true, NULL);
    ck_assert_msg(o.status == 0, "ended with %d; report:\n%s", o.status, o.report);
    ck_assert_msg(strstr(o.report, "end: 0 leaks, 0 misuses") != NULL, "report:\n%s", o.report);
}

void scenario_reports(void (*work)(void), const char *script, const char *text)
{
    struct outcome o = scenario(work, script, false, NULL);
    ck_assert_msg(o.status == 0, "ended with %d; report:\n%s", o.status, o.report);
    ck_assert_msg(strstr(o.report, text) != NULL, "\"%s\" is not in the report:\n%s", text,
                  o.report);
}

void start(void)
{
    CUcontext c = NULL;
    ok(cuInit(0));
    ok(cuDevicePrimaryCtxRetain(&c, 0));
    ok(cuCtxSetCurrent(c));
}

void stop(void)
{
    ok(cuDevicePrimaryCtxRelease(0));
}

CUstream stream_new(void)
{
    CUstream s = NULL;
    ok(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    return s;
}

CUdeviceptr memory_new(size_t size)
{
    CUdeviceptr p = 0;
    ok(cuMemAlloc(&p, size));
    return p;
}

int *host_new(size_t size)
{
    void *p = NULL;
    ok(cuMemHostAlloc(&p, size, CU_MEMHOSTALLOC_PORTABLE));
    return p;
}

CUmodule module_new(const char *ptx)
{
    CUmodule m = NULL;
    ok(cuModuleLoadData(&m, ptx));
    return m;
}

CUfunction function_of(CUmodule m, const char *name)
{
    CUfunction f = NULL;
    ok(cuModuleGetFunction(&f, m, name));
    return f;
}

CUresult launch(CUfunction f, CUstream s, void **params)
{
    return cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, s, params, NULL);
}

int bench_main(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
