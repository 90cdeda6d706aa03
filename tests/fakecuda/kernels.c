#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "kernels/builtin.h"
#include "kernels/host.h"
#include "tests/fakecuda/fake.h"

/* ---- the double's own ------------------------------------------------------------------------ */

/* Entries whose name holds one of these words, mangled or not. A test's module declares them in
 * CUDA C or PTX with any body; the code here runs instead. */

static CUresult fault(const char *entry, const struct grid *g, void *const *params, unsigned count)
{
    (void)g;
    (void)params;
    (void)count;
    return (CUresult)atoi(strstr(entry, "fake_fault_") + strlen("fake_fault_"));
}

/* Never comes back. */
static CUresult hang(const char *entry, const struct grid *g, void *const *params, unsigned count)
{
    const struct timespec hour = {3600, 0};
    (void)entry;
    (void)g;
    (void)params;
    (void)count;
    for (;;) {
        nanosleep(&hour, NULL);
    }
    return CUDA_SUCCESS;
}

/* (… address): writes there; without a parameter to the null page. The fault is wanted. */
__attribute__((no_sanitize("undefined"))) static CUresult
poke(const char *entry, const struct grid *g, void *const *params, unsigned count)
{
    volatile int *p = NULL;
    (void)entry;
    (void)g;
    if (count > 0) {
        memcpy(&p, params[count - 1], sizeof p);
    }
    *p = 1;
    return CUDA_SUCCESS;
}

/* (int milliseconds) */
static CUresult sleep_ms(const char *entry, const struct grid *g, void *const *params,
                         unsigned count)
{
    int ms = 0;
    (void)entry;
    (void)g;
    if (count > 0) {
        memcpy(&ms, params[0], sizeof ms);
    }
    pause_ns((uint64_t)ms * 1000 * NS_PER_US);
    return CUDA_SUCCESS;
}

/* Makes a file "waits" in the folder of FAKECUDA_STATE, and runs until there is another, "gate": a
 * kernel that a test ends. */
static CUresult gate(const char *entry, const struct grid *g, void *const *params, unsigned count)
{
    char path[4 * NAME_SIZE];
    (void)entry;
    (void)g;
    (void)params;
    (void)count;
    const char *dir = setting("_STATE") ? setting("_STATE") : ".";
    snprintf(path, sizeof path, "%s/waits", dir);
    close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0666));
    snprintf(path, sizeof path, "%s/gate", dir);
    while (access(path, F_OK) != 0) {
        pause_ns(1000 * NS_PER_US);
    }
    return CUDA_SUCCESS;
}

/* (int *p, u64 n): adds 1 to each */
static CUresult increment(const char *entry, const struct grid *g, void *const *params,
                          unsigned count)
{
    int *p = NULL;
    uint64_t n = 0;
    (void)entry;
    (void)g;
    if (count == 2) {
        memcpy(&p, params[0], sizeof p);
        memcpy(&n, params[1], sizeof n);
    }
    for (uint64_t i = 0; i < n; i++) {
        p[i]++;
    }
    return CUDA_SUCCESS;
}

/* (void *p, u64 *at): puts into *at where p lies, so that a kernel can be given it as a number */
static CUresult where(const char *entry, const struct grid *g, void *const *params, unsigned count)
{
    uint64_t p = 0;
    uint64_t *at = NULL;
    (void)entry;
    (void)g;
    if (count == 2) {
        memcpy(&p, params[0], sizeof p);
        memcpy(&at, params[1], sizeof at);
        *at = p;
    }
    return CUDA_SUCCESS;
}

/* Prints a line, as printf does in a kernel: the driver keeps it. */
static atomic_uint printed;

static CUresult print(const char *entry, const struct grid *g, void *const *params, unsigned count)
{
    (void)entry;
    (void)g;
    (void)params;
    (void)count;
    atomic_fetch_add(&printed, 1);
    return CUDA_SUCCESS;
}

void kernels_put_out(void)
{
    unsigned lines = atomic_exchange(&printed, 0);
    for (unsigned i = 0; i < lines; i++) {
        (void)puts("printed by a kernel");
    }
    if (lines > 0) {
        (void)fflush(stdout);
    }
}

static CUresult nothing(const char *entry, const struct grid *g, void *const *params,
                        unsigned count)
{
    (void)entry;
    (void)g;
    (void)params;
    (void)count;
    return CUDA_SUCCESS;
}

static const struct {
    const char *word;
    kernel_fn run;
} own[] = {
    {"fake_fault_", fault},   {"fake_hang", hang},           {"fake_poke", poke},
    {"fake_sleep", sleep_ms}, {"fake_increment", increment}, {"fake_nothing", nothing},
    {"fake_gate", gate},      {"fake_where", where},         {"fake_print", print},
};

/* ---- built-in kernels ------------------------------------------------------------------------ */

static bool member(const struct signature *s, const char *entry)
{
    char name[2 * SIG_NAME];
    unsigned count = s->type_count ? s->type_count : 1;
    for (unsigned i = 0; i < count; i++) {
        int dtype = s->type_count ? s->type[i] : 0;
        if (signature_entry(s, dtype, name, sizeof name, NULL) == 0 && strcmp(name, entry) == 0) {
            return true;
        }
    }
    return false;
}

static void builtins_parse(void)
{
    if (builtin_init(NULL) != 0) {
        abort();
    }
}

static const struct signature *signature_of(const char *entry)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    unsigned module = 0;
    pthread_once(&once, builtins_parse);
    for (unsigned i = 0; i < builtin_kernel_count(); i++) {
        const struct signature *s = builtin_kernel(i, &module);
        if (member(s, entry)) {
            return s;
        }
    }
    return NULL;
}

static CUresult builtin_run(const char *entry, const struct grid *g, void *const *params,
                            unsigned count)
{
    void *args[PARAMS_MAX];
    uint64_t global[3], local[3];
    const struct host_kernel *k = host_kernel_find(entry);
    const struct signature *s = signature_of(entry);
    for (unsigned i = 0; i < count; i++) {
        args[i] = params[i];
        if (i < s->arg_count && s->arg[i].kind == SIG_ARRAY) {
            memcpy(&args[i], params[i], sizeof args[i]);
        }
    }
    for (int i = 0; i < 3; i++) {
        local[i] = g->block[i];
        global[i] = (uint64_t)g->grid[i] * g->block[i];
    }
    return k->run(global, local, args, count, NULL) == 0 ? CUDA_SUCCESS : CUDA_ERROR_LAUNCH_FAILED;
}

kernel_fn kernel_find(const char *entry, unsigned param_count)
{
    const struct host_kernel *k = host_kernel_find(entry);
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        if (strstr(entry, own[i].word)) {
            return own[i].run;
        }
    }
    return k && k->arg_count == param_count && signature_of(entry) ? builtin_run : NULL;
}

uint64_t kernel_pointers(const char *entry)
{
    const struct signature *s = host_kernel_find(entry) ? signature_of(entry) : NULL;
    uint64_t bits = 0;
    for (unsigned i = 0; s && i < s->arg_count; i++) {
        bits |= s->arg[i].kind == SIG_ARRAY ? UINT64_C(1) << i : 0;
    }
    return s ? bits : ~UINT64_C(0);
}
