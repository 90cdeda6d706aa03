/* Operations on the CUDA back end: the same path as a worker's, compiler, loader and all, but
 * without a daemon. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/backend/backend.h"
#include "kernels/builtin.h"
#include "kernels/dialect.h"
#include "tests/unit/kernels/runner.h"

#define MODULES_MAX 64
#define SOURCE_MAX  (16u << 20)
#define SKIPPED     77

static const struct backend *b;
static struct backend_device *device;
static struct backend_info info;
static struct backend_stream *stream;
static struct backend_module *module_of[MODULES_MAX];

#define ok(call)                                                                                   \
    do {                                                                                           \
        struct err ok_e = ERR_INIT;                                                                \
        struct err *e = &ok_e;                                                                     \
        ck_assert_msg((call) == 0, "%s: %s", #call, ok_e.text);                                    \
    } while (0)

static int init(void)
{
    struct err e = ERR_INIT;
    unsigned count = 0;
    b = backend_find("cuda");
    if (b == NULL || b->enumerate("", &count, &e) != 0) {
        (void)fprintf(stderr, "skipped: %s\n", b == NULL ? "built without CUDA" : e.text);
        return SKIPPED;
    }
    if (b->device->open(0, "", NULL, NULL, &device, &e) != 0 ||
        b->stream->create(device, 0, &stream, &e) != 0) {
        (void)fprintf(stderr, "%s\n", e.text);
        return EXIT_FAILURE;
    }
    b->device->info(device, &info);
#ifdef GPU_LIBRARIES
    b->library->prepare(device, ~0u);
#endif
    return 0;
}

#ifdef GPU_LIBRARIES
/* How many calls each of them served: a line "served NAME COUNT" at the end. */
static struct {
    const char *by;
    unsigned calls;
} served[] = {{.by = "cublas"}, {.by = "cufft"}, {.by = "curand"}, {.by = "cub"}};
#define LIBRARIES (sizeof served / sizeof served[0])

static void served_by(const char *by)
{
    for (size_t i = 0; i < LIBRARIES; i++) {
        served[i].calls += strcmp(served[i].by, by) == 0;
    }
}
#endif

static void finish(void)
{
#ifdef GPU_LIBRARIES
    for (size_t i = 0; i < LIBRARIES; i++) {
        (void)printf("served %s %u\n", served[i].by, served[i].calls);
    }
#endif
    for (unsigned m = 0; m < MODULES_MAX; m++) {
        if (module_of[m] != NULL) {
            b->module->unload(module_of[m]);
        }
    }
    b->stream->destroy(stream);
    b->device->close(device);
}

static void drain(const char *what)
{
    const struct timespec pause = {0, 20000};
    struct backend_marker *m = NULL;
    struct err why = ERR_INIT;
    enum backend_state state;
    ok(b->stream->mark(stream, &m, e));
    ok(b->stream->flush(stream, e));
    while ((state = b->marker->state(m, &why)) != BACKEND_DONE) {
        ck_assert_msg(state != BACKEND_FAILED, "%s: %s", what, why.text);
        (void)nanosleep(&pause, NULL);
    }
    b->marker->release(m);
}

static void mem_write(void *memory, const void *data, size_t size)
{
    if (size > 0) {
        ok(b->stream->write(stream, (struct backend_ref){memory, 0}, data, size, e));
        drain("write");
    }
}

static void mem_read(void *memory, void *data, size_t size)
{
    if (size > 0) {
        ok(b->stream->read(stream, data, (struct backend_ref){memory, 0}, size, e));
        drain("read");
    }
}

static void *mem_create(const void *data, size_t size)
{
    struct backend_block *block = NULL;
    ok(b->memory->alloc(device, size, &block, e));
    mem_write(block, data, size);
    return block;
}

static void mem_free(void *memory)
{
    b->memory->free(device, memory);
}

static void module_make(unsigned index)
{
    struct capbuf text;
    struct backend_compiled compiled = {0};
    char file[80];
    capbuf_init(&text, SOURCE_MAX);
    /* as the daemon names it: what nvcc made before is found by the translated text */
    (void)snprintf(file, sizeof file, "%s.gk", builtin_module_name(index));
    ok(dialect_translate(builtin_module_source(index), file, DIALECT_CUDA, info.f64, &text, e));
    const struct backend_source source = {.lang = BACKEND_LANG_CUDA,
                                          .text = capbuf_view(&text),
                                          .file = file,
                                          .options = "",
                                          .arch = info.arch};
    ok(b->compile(0, &source, &compiled, e));
    ok(b->module->load(device, bytes_of(compiled.binary, compiled.binary_size), &module_of[index],
                       e));
    backend_compiled_finish(&compiled);
    capbuf_finish(&text);
}

static void launch(unsigned module, const char *entry, const struct sig_binding *binding,
                   const struct runner_arg *args, unsigned count)
{
    struct backend_arg arg[SIG_ARGS + SIG_DIMS];
    struct backend_launch l = {.args = arg, .arg_count = count};
    ck_assert_uint_lt(module, MODULES_MAX);
    if (module_of[module] == NULL) {
        module_make(module);
    }
    for (unsigned a = 0; a < count; a++) {
        arg[a] = args[a].array ? (struct backend_arg){.kind = BACKEND_ARG_MEMORY,
                                                      .memory = {args[a].memory, 0}}
                               : (struct backend_arg){.kind = BACKEND_ARG_VALUE,
                                                      .value = args[a].value,
                                                      .size = dtype_size(args[a].dtype)};
    }
    memcpy(l.global, binding->global, sizeof l.global);
    memcpy(l.local, binding->local, sizeof l.local);
    ok(b->stream->launch(stream, module_of[module], entry, &l, e));
    drain(entry);
}

#ifdef GPU_LIBRARIES
/* Served by a library of the vendor's, with workspace of its own. */
static bool library(const char *operation, int dtype, const struct runner_arg *args, unsigned count)
{
    struct backend_arg arg[SIG_ARGS + SIG_DIMS];
    const struct backend_call call = {operation, dtype, arg, count};
    struct backend_ref workspace = {NULL, 0};
    const char *by = NULL;
    uint64_t bytes = 0;
    for (unsigned a = 0; a < count; a++) {
        arg[a] = args[a].array ? (struct backend_arg){.kind = BACKEND_ARG_MEMORY,
                                                      .memory = {args[a].memory, 0}}
                               : (struct backend_arg){.kind = BACKEND_ARG_VALUE,
                                                      .value = args[a].value,
                                                      .size = dtype_size(args[a].dtype)};
    }
    if (b->library->workspace(stream, &call, &bytes, NULL) != 0) {
        return false;
    }
    if (bytes > 0) {
        ok(b->memory->alloc(device, bytes, &workspace.block, e));
    }
    ok(b->library->run(stream, &call, workspace, &by, e));
    drain(operation);
    if (bytes > 0) {
        b->memory->free(device, workspace.block);
    }
    served_by(by);
    return true;
}
#endif

const struct runner_target runner_target = {
    .name = "cuda",
    .size_max = 3000017, /* a prime */
    .init = init,
    .finish = finish,
    .mem_create = mem_create,
    .mem_read = mem_read,
    .mem_write = mem_write,
    .mem_free = mem_free,
    .launch = launch,
#ifdef GPU_LIBRARIES
    .library = library,
#endif
};
