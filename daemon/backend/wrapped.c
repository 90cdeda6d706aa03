#include "daemon/backend/wrapped.h"

#include <stdlib.h>
#include <string.h>

#include "common/hash.h"

struct head {
    char magic[8];
    struct hash arch;
    struct hash rest;
};

static void magic_copy(const char *magic, char out[8])
{
    memset(out, 0, 8);
    memcpy(out, magic, strnlen(magic, 7));
}

int backend_wrap(const char *magic, const char *arch, struct bytes first, struct bytes second,
                 struct backend_compiled *ret, struct err *e)
{
    struct head head = {.arch = hash_of(arch, strlen(arch))};
    size_t size = sizeof head + first.size + second.size;
    uint8_t *data = malloc(size);
    if (!data) {
        return err_set(e, ERR_NOMEM, "no memory for a module of %zu bytes", size);
    }
    if (first.size > 0) {
        memcpy(data + sizeof head, first.data, first.size);
    }
    if (second.size > 0) {
        memcpy(data + sizeof head + first.size, second.data, second.size);
    }
    magic_copy(magic, head.magic);
    head.rest = hash_of(data + sizeof head, size - sizeof head);
    memcpy(data, &head, sizeof head);
    ret->binary = data;
    ret->binary_size = size;
    return 0;
}

int backend_unwrap(const char *magic, const char *name, const char *arch, struct bytes binary,
                   struct bytes *ret_rest, struct err *e)
{
    struct head head;
    char wanted[8];
    if (binary.size <= sizeof head) {
        return err_set(e, ERR_INVALID, "not a module: %zu bytes", binary.size);
    }
    memcpy(&head, binary.data, sizeof head);
    magic_copy(magic, wanted);
    struct bytes rest = bytes_of(binary.data + sizeof head, binary.size - sizeof head);
    if (memcmp(head.magic, wanted, sizeof wanted) != 0) {
        return err_set(e, ERR_INVALID, "not a module of the %s back end", name);
    }
    if (!hash_equal(head.arch, hash_of(arch, strlen(arch)))) {
        return err_set(e, ERR_INVALID, "the module was compiled for another device than %s", arch);
    }
    if (!hash_equal(head.rest, hash_of(rest.data, rest.size))) {
        return err_set(e, ERR_INVALID, "the module is damaged");
    }
    *ret_rest = rest;
    return 0;
}

void backend_compiled_finish(struct backend_compiled *c)
{
    free(c->binary);
    free(c->log);
    free(c->kernels);
    *c = (struct backend_compiled){0};
}
