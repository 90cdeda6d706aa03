#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "contract.h"
#include "kernels/builtin.h"
#include "kernels/dialect.h"

#define TRANSLATED_MAX (4u * 1024u * 1024u) /* bytes */

struct bench bench;

static void wake(void *data)
{
    atomic_fetch_add((atomic_uint *)data, 1);
}

void bench_open(void)
{
    memset(&bench, 0, sizeof bench);
    bench.b = backend_find(contract_backend);
    ck_assert_ptr_nonnull(bench.b);
    ok(bench.b->device->open(0, contract_options, wake, &bench.wakes, &bench.device, e));
    bench.b->device->info(bench.device, &bench.info);
    ok(bench.b->stream->create(bench.device, 0, &bench.stream, e));
}

void bench_close(void)
{
    bench.b->stream->destroy(bench.stream);
    bench.b->device->close(bench.device);
}

struct backend_block *block_new(uint64_t size)
{
    struct backend_block *block = NULL;
    ok(bench.b->memory->alloc(bench.device, size, &block, e));
    ck_assert_ptr_nonnull(block);
    return block;
}

void block_free(struct backend_block *block)
{
    bench.b->memory->free(bench.device, block);
}

struct backend_ref at(struct backend_block *block, uint64_t offset)
{
    return (struct backend_ref){block, offset};
}

struct backend_marker *mark(struct backend_stream *s)
{
    struct backend_marker *m = NULL;
    ok(bench.b->stream->mark(s, &m, e));
    ok(bench.b->stream->flush(s, e));
    return m;
}

/* The contract lets a marker be polled; the pause only spares the processor. */
enum backend_state settle(struct backend_marker *m, struct err *e)
{
    const struct timespec pause = {0, 50000};
    enum backend_state state = bench.b->marker->state(m, e);
    while (state != BACKEND_DONE && state != BACKEND_FAILED) {
        nanosleep(&pause, NULL);
        state = bench.b->marker->state(m, e);
    }
    return state;
}

void drain(struct backend_stream *s)
{
    struct err e = ERR_INIT;
    struct backend_marker *m = mark(s);
    ck_assert_msg(settle(m, &e) == BACKEND_DONE, "%s", e.text);
    bench.b->marker->release(m);
}

void put(struct backend_ref dst, const void *data, uint64_t size)
{
    ok(bench.b->stream->write(bench.stream, dst, data, size, e));
    drain(bench.stream);
}

void get(void *data, struct backend_ref src, uint64_t size)
{
    ok(bench.b->stream->read(bench.stream, data, src, size, e));
    drain(bench.stream);
}

static enum dialect_target target_of(int lang)
{
    return lang == BACKEND_LANG_CUDA ? DIALECT_CUDA : DIALECT_OPENCL;
}

int compile_builtin(const char *kernel, struct backend_compiled *ret_compiled,
                    const struct signature **ret_sig, struct err *why)
{
    unsigned module = 0;
    char file[80];
    ck_assert(builtin_find(kernel, &module, ret_sig));
    /* as the daemon names it: what nvcc made before is found by the translated text */
    (void)snprintf(file, sizeof file, "%s.gk", builtin_module_name(module));
    struct backend_source source = {.lang = bench.b->dialect,
                                    .text = builtin_module_source(module),
                                    .file = file,
                                    .options = "",
                                    .arch = bench.info.arch};
    struct capbuf text;
    capbuf_init(&text, TRANSLATED_MAX);
    if (source.lang != BACKEND_LANG_DIALECT) {
        ok(dialect_translate(source.text, source.file, target_of(source.lang), bench.info.f64,
                             &text, e));
        source.text = capbuf_view(&text);
    }
    int rc = bench.b->compile(0, &source, ret_compiled, why);
    capbuf_finish(&text);
    return rc;
}

struct backend_module *module_of(const char *kernel, const struct signature **ret_sig)
{
    struct backend_compiled compiled = {0};
    struct backend_module *module = NULL;
    ok(compile_builtin(kernel, &compiled, ret_sig, e));
    ok(bench.b->module->load(bench.device, bytes_of(compiled.binary, compiled.binary_size), &module,
                             e));
    backend_compiled_finish(&compiled);
    return module;
}

void call_memory(struct call *c, struct backend_ref ref)
{
    c->arg[c->count++] = (struct backend_arg){.kind = BACKEND_ARG_MEMORY, .memory = ref};
}

void call_value(struct call *c, const void *value, size_t size)
{
    memcpy(&c->value[c->count], value, size);
    c->arg[c->count] =
        (struct backend_arg){.kind = BACKEND_ARG_VALUE, .value = &c->value[c->count], .size = size};
    c->count++;
}

struct backend_launch launch_of(const struct call *c, uint64_t global, uint64_t local)
{
    return (struct backend_launch){.global = {global, 1, 1},
                                   .local = {local, local ? 1 : 0, local ? 1 : 0},
                                   .args = c->arg,
                                   .arg_count = c->count};
}
