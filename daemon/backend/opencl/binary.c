#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "daemon/backend/opencl/opencl.h"

/* Drivers accept damaged binaries and crash later, so each one carries its checksum. */
struct binary_head {
    char magic[8];
    struct hash arch;
    struct hash payload;
};

static const char magic[8] = "gpudcl1";

int opencl_binary_wrap(const char *arch, struct bytes payload, struct backend_compiled *ret,
                       struct err *e)
{
    struct binary_head head = {.arch = hash_of(arch, strlen(arch)),
                               .payload = hash_of(payload.data, payload.size)};
    memcpy(head.magic, magic, sizeof magic);
    uint8_t *data = malloc(sizeof head + payload.size);
    if (!data) {
        return err_set(e, ERR_NOMEM, "a binary of %zu bytes", payload.size);
    }
    memcpy(data, &head, sizeof head);
    memcpy(data + sizeof head, payload.data, payload.size);
    ret->binary = data;
    ret->binary_size = sizeof head + payload.size;
    return 0;
}

int opencl_binary_unwrap(const char *arch, struct bytes binary, struct bytes *ret_payload,
                         struct err *e)
{
    struct binary_head head;
    if (binary.size <= sizeof head) {
        return err_set(e, ERR_INVALID, "not a module: %zu bytes", binary.size);
    }
    memcpy(&head, binary.data, sizeof head);
    struct bytes payload = {binary.data + sizeof head, binary.size - sizeof head};
    if (memcmp(head.magic, magic, sizeof magic) != 0) {
        return err_set(e, ERR_INVALID, "not a module of the OpenCL back end");
    }
    if (!hash_equal(head.arch, hash_of(arch, strlen(arch)))) {
        return err_set(e, ERR_INVALID, "the module was compiled for another device than %s", arch);
    }
    if (!hash_equal(head.payload, hash_of(payload.data, payload.size))) {
        return err_set(e, ERR_INVALID, "the module is damaged");
    }
    *ret_payload = payload;
    return 0;
}
