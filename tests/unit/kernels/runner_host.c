#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/host.h"
#include "runner.h"

static int host_init(void)
{
    return 0;
}

static void host_finish(void)
{
}

static void *host_create(const void *data, size_t size)
{
    void *memory = malloc(size);
    ck_assert_ptr_nonnull(memory);
    memcpy(memory, data, size);
    return memory;
}

static void host_read(void *memory, void *data, size_t size)
{
    memcpy(data, memory, size);
}

static void host_write(void *memory, const void *data, size_t size)
{
    memcpy(memory, data, size);
}

static void host_launch(unsigned module, const char *entry, const struct sig_binding *binding,
                        const struct runner_arg *args, unsigned count)
{
    void *pointers[SIG_ARGS + SIG_DIMS];
    struct err e = ERR_INIT;
    uint64_t value[SIG_ARGS + SIG_DIMS];
    (void)module;
    const struct host_kernel *k = host_kernel_find(entry);
    ck_assert_msg(k != NULL, "no host kernel %s", entry);
    for (unsigned a = 0; a < count; a++) {
        if (!args[a].array) {
            memcpy(&value[a], args[a].value, sizeof(value[a]));
        }
        pointers[a] = args[a].array ? args[a].memory : &value[a];
    }
    int r = k->run(binding->global, binding->local, pointers, count, &e);
    ck_assert_msg(r == 0, "%s: %s", entry, e.text);
}

const struct runner_target runner_target = {
    .name = "host",
    .size_max = 70001, /* a prime */
    .init = host_init,
    .finish = host_finish,
    .mem_create = host_create,
    .mem_read = host_read,
    .mem_write = host_write,
    .mem_free = free,
    .launch = host_launch,
};
