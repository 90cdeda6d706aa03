#include "daemon/backend/cuda/binary.h"

#include <string.h>

#include "common/hash.h"

#define TABLE_MAX (16u * 1024u * 1024u) /* bytes: 65,536 kernels with the longest of names */

struct binary_head {
    char magic[8];
    struct hash arch;
    uint64_t kinds;   /* bytes */
    struct hash rest; /* of `kinds` and all that follows the head */
};

static const char magic[8] = "gpudcu1";

static struct hash rest_hash(uint64_t kinds, struct bytes rest)
{
    const struct hash_part part[] = {{&kinds, sizeof kinds}, {rest.data, rest.size}};
    return hash_parts(part, 2);
}

static char kind_letter(unsigned kind)
{
    switch (kind) {
    case 1: /* scalar */
    case 3: /* struct */
        return CUDA_KIND_VALUE;
    case 2: /* array */
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

int cuda_binary_wrap(const char *arch, struct bytes payload, struct backend_compiled *ret,
                     struct err *e)
{
    struct binary_head head = {.arch = hash_of(arch, strlen(arch))};
    struct capbuf out;
    memcpy(head.magic, magic, sizeof magic);
    capbuf_init(&out, sizeof head + TABLE_MAX + payload.size);
    (void)capbuf_append(&out, &head, sizeof head);
    kinds_write(&out, ret);
    head.kinds = out.size - sizeof head;
    (void)capbuf_append(&out, payload.data, payload.size);
    if (out.failed) {
        capbuf_finish(&out);
        return err_set(e, ERR_NOMEM, "a module of %zu bytes", payload.size);
    }
    head.rest = rest_hash(head.kinds, bytes_of(out.data + sizeof head, out.size - sizeof head));
    memcpy(out.data, &head, sizeof head);
    ret->binary = out.data;
    ret->binary_size = out.size;
    return 0;
}

int cuda_binary_unwrap(const char *arch, struct bytes binary, struct cuda_binary *ret_parts,
                       struct err *e)
{
    struct binary_head head;
    if (binary.size <= sizeof head) {
        return err_set(e, ERR_INVALID, "not a module: %zu bytes", binary.size);
    }
    memcpy(&head, binary.data, sizeof head);
    struct bytes rest = {binary.data + sizeof head, binary.size - sizeof head};
    if (memcmp(head.magic, magic, sizeof magic) != 0) {
        return err_set(e, ERR_INVALID, "not a module of the CUDA back end");
    }
    if (!hash_equal(head.arch, hash_of(arch, strlen(arch)))) {
        return err_set(e, ERR_INVALID, "the module was compiled for another device than %s", arch);
    }
    if (head.kinds >= rest.size || !hash_equal(head.rest, rest_hash(head.kinds, rest))) {
        return err_set(e, ERR_INVALID, "the module is damaged");
    }
    *ret_parts = (struct cuda_binary){
        .kinds = {rest.data, (size_t)head.kinds},
        .payload = {rest.data + head.kinds, rest.size - (size_t)head.kinds},
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
