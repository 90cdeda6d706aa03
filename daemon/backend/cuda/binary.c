#include "daemon/backend/cuda/binary.h"

#include <string.h>

#include "daemon/backend/wrapped.h"

#define MAGIC     "gpudcu2"
#define TABLE_MAX (16u * 1024u * 1024u) /* bytes: 65,536 kernels with the longest of names */

static char kind_letter(unsigned kind)
{
    switch (kind) {
    case BACKEND_KIND_SCALAR:
    case BACKEND_KIND_STRUCT:
        return CUDA_KIND_VALUE;
    case BACKEND_KIND_ARRAY:
        return CUDA_KIND_MEMORY;
    default:
        return CUDA_KIND_ANY;
    }
}

static void kinds_write(struct capbuf *out, const struct backend_compiled *c)
{
    for (unsigned i = 0; i < c->kernel_count; i++) {
        const struct backend_compiled_kernel *k = &c->kernels[i];
        char letters[sizeof k->arg / sizeof k->arg[0] + 1] = "";
        for (unsigned a = 0; a < k->arg_count && a < sizeof letters - 1; a++) {
            letters[a] = kind_letter(k->arg[a].kind);
        }
        (void)capbuf_printf(out, "%s %s\n", k->entry, letters);
    }
}

/* Behind the head: the bytes of the lines as a number, the lines, the payload. */
int cuda_binary_wrap(const char *arch, struct bytes payload, struct backend_compiled *ret,
                     struct err *e)
{
    uint64_t size = 0;
    struct capbuf lines;
    capbuf_init(&lines, sizeof size + TABLE_MAX);
    (void)capbuf_append(&lines, &size, sizeof size);
    kinds_write(&lines, ret);
    int rc = lines.failed ? err_set(e, ERR_NOMEM, "a table of %u kernels", ret->kernel_count) : 0;
    if (rc == 0) {
        size = lines.size - sizeof size;
        memcpy(lines.data, &size, sizeof size);
        rc = backend_wrap(MAGIC, arch, capbuf_view(&lines), payload, ret, e);
    }
    capbuf_finish(&lines);
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
    if (rest.size < sizeof size) {
        return err_set(e, ERR_INVALID, "the module is damaged");
    }
    memcpy(&size, rest.data, sizeof size);
    rest = bytes_of(rest.data + sizeof size, rest.size - sizeof size);
    if (size >= rest.size) {
        return err_set(e, ERR_INVALID, "the module is damaged");
    }
    *ret_parts = (struct cuda_binary){
        .kinds = bytes_of(rest.data, (size_t)size),
        .payload = bytes_of(rest.data + size, rest.size - (size_t)size),
    };
    return 0;
}

bool cuda_binary_next(struct bytes *kinds, struct bytes *ret_entry, struct bytes *ret_letters)
{
    const uint8_t *line_end = kinds->size > 0 ? memchr(kinds->data, '\n', kinds->size) : NULL;
    if (!line_end) {
        return false;
    }
    size_t line = (size_t)(line_end - kinds->data);
    const uint8_t *space = memchr(kinds->data, ' ', line);
    size_t entry = space ? (size_t)(space - kinds->data) : line;
    size_t skip = space ? entry + 1 : line;
    *ret_entry = bytes_of(kinds->data, entry);
    *ret_letters = bytes_of(kinds->data + skip, line - skip);
    *kinds = bytes_of(line_end + 1, kinds->size - line - 1);
    return true;
}
