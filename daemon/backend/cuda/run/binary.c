#include "daemon/backend/cuda/run/binary.h"

#include <string.h>

#include "daemon/backend/wrapped.h"

#define MAGIC "gpudcu3"

static void kinds_write(struct capbuf *out, const struct backend_compiled *c)
{
    static const char letter[] = {[BACKEND_KIND_UNKNOWN] = CUDA_KIND_ANY,
                                  [BACKEND_KIND_SCALAR] = CUDA_KIND_VALUE,
                                  [BACKEND_KIND_ARRAY] = CUDA_KIND_MEMORY,
                                  [BACKEND_KIND_STRUCT] = CUDA_KIND_VALUE};
    for (unsigned i = 0; i < c->kernel_count; i++) {
        const struct backend_compiled_kernel *k = &c->kernels[i];
        (void)capbuf_append(out, k->entry, strlen(k->entry) + 1);
        for (unsigned a = 0; a < k->arg_count; a++) {
            (void)capbuf_append(out, &letter[k->arg[a].kind], 1);
        }
        (void)capbuf_append(out, "", 1);
    }
}

/* Layout after the head: the size of the strings as a number, the strings, the payload. */
int cuda_binary_wrap(const char *arch, struct bytes payload, struct backend_compiled *ret,
                     struct err *e)
{
    uint64_t size = 0;
    struct capbuf kinds;
    capbuf_init(&kinds, sizeof size + ret->kernel_count * sizeof *ret->kernels);
    (void)capbuf_append(&kinds, &size, sizeof size);
    kinds_write(&kinds, ret);
    int rc = kinds.failed
                 ? err_set(e, ERR_NOMEM, "no memory for a table of %u kernels", ret->kernel_count)
                 : 0;
    if (rc == 0) {
        size = kinds.size - sizeof size;
        memcpy(kinds.data, &size, sizeof size);
        rc = backend_wrap(MAGIC, arch, capbuf_view(&kinds), payload, ret, e);
    }
    capbuf_finish(&kinds);
    return rc;
}

int cuda_binary_unwrap(const char *arch, struct bytes binary, struct cuda_binary *ret_parts,
                       struct err *e)
{
    uint64_t size;
    struct bytes rest;
    int rc = backend_unwrap(MAGIC, "CUDA", arch, binary, &rest, e);
    if (rc != 0) {
        return rc;
    }
    bool whole = rest.size > sizeof size;
    if (whole) {
        memcpy(&size, rest.data, sizeof size);
        rest = bytes_of(rest.data + sizeof size, rest.size - sizeof size);
        whole = size < rest.size;
    }
    if (!whole) {
        return err_set(e, ERR_INVALID, "the module is damaged");
    }
    *ret_parts = (struct cuda_binary){
        .kinds = bytes_of(rest.data, (size_t)size),
        .payload = bytes_of(rest.data + size, rest.size - (size_t)size),
    };
    return 0;
}

/* Takes the next string; NULL: there is none. */
static const char *string_take(struct bytes *kinds)
{
    const char *text = (const char *)kinds->data;
    size_t size = strnlen(text, kinds->size) + 1;
    if (size > kinds->size) {
        return NULL;
    }
    *kinds = bytes_of(kinds->data + size, kinds->size - size);
    return text;
}

bool cuda_binary_next(struct bytes *kinds, const char **ret_entry, const char **ret_letters)
{
    *ret_entry = string_take(kinds);
    *ret_letters = string_take(kinds);
    return *ret_letters != NULL;
}
