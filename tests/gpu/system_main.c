/* gpu-system faults|speed|parts|programs|demo: the items that go through the daemon, whose programs
 * lie in bin/.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/gpu/direct.h"
#include "tests/gpu/system.h"

/* Seconds of an item: it waits for two things at most. */
#define ITEM_S (3 * (unsigned)(PATIENCE / SECOND))

void gpu_add(Suite *s, const char *item, const TTest *test, int i)
{
    TCase *tc = tcase_create(item);
    tcase_set_timeout(tc, ITEM_S);
    tcase_add_loop_test(tc, test, i, i + 1);
    suite_add_tcase(s, tc);
}

gpud_client *gpu_begin(struct daemon *d)
{
    return daemon_begin(d, "--backend", "cuda", "--devices", "0", NULL);
}

gpud_module gpu_module(gpud_client *c)
{
    gpud_module module = {0};
    size_t size = 0;
    void *fatbin = direct_fatbin(&size);
    const gpud_module_options options = {.size = sizeof options, .file = "kernels.fatbin"};
    ck_gpud_ok(gpud_module_load(c, GPUD_LANG_CUBIN, fatbin, size, &options, &module));
    free(fatbin);
    return module;
}

gpud_kernel gpu_kernel(gpud_client *c, gpud_module module, const char *name)
{
    gpud_kernel kernel = {0};
    ck_gpud_ok(gpud_module_kernel(c, module, name, &kernel));
    return kernel;
}

gpud_job *gpu_launch(gpud_client *c, gpud_kernel k, const gpud_arg *args, uint32_t count,
                     uint64_t time_limit_ns)
{
    const gpud_grid one = {.size = sizeof one, .global = {1, 1, 1}, .local = {1, 1, 1}};
    const gpud_submit_options options = {.size = sizeof options, .time_limit_ns = time_limit_ns};
    gpud_job *job = NULL;
    ck_gpud_ok(gpud_launch(c, k, args, count, &one, &options, &job));
    return job;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        Suite *(*suite)(void);
    } items[] = {{"faults", faults_suite},
                 {"speed", speed_suite},
                 {"parts", parts_suite},
                 {"programs", programs_suite},
                 {"demo", demo_suite}};
    for (size_t i = 0; argc == 2 && i < sizeof items / sizeof items[0]; i++) {
        if (strcmp(argv[1], items[i].name) == 0) {
            return system_main(items[i].suite());
        }
    }
    (void)fputs("usage: gpu-system faults|speed|parts|programs|demo\n", stderr);
    return 2;
}
