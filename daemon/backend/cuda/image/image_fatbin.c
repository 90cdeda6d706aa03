#include <stdlib.h>
#include <string.h>

#include "daemon/backend/cuda/image/image_readers.h"

#define FATBIN_VERSION 1
#define FATBIN_PTX     1
#define FATBIN_ELF     2
#define FATBIN_LZ4     0x2000u /* bits of `flags` */
#define FATBIN_ZSTD    0x8000u
#define ENTRIES_MAX    1024u

struct fat_head {
    uint32_t magic;
    uint16_t version;
    uint16_t head_size;
    uint64_t size; /* bytes after this header */
};

/* The beginning of an entry's header. The header may be longer. */
struct fat_entry {
    uint16_t kind;
    uint16_t version;
    uint32_t head_size;
    uint64_t size; /* bytes after the header, with padding */
    uint32_t packed_size;
    uint32_t unknown;
    uint16_t minor, major;
    uint32_t arch;
    uint32_t name_offset, name_size;
    uint64_t flags;
    uint64_t zero;
    uint64_t unpacked_size;
};
_Static_assert(sizeof(struct fat_head) == 16 && sizeof(struct fat_entry) == 64, "layout");

/* The entry that a driver will choose: a cubin for the device before PTX, and the newest of each
 * kind. */
struct choice {
    struct bytes data; /* compressed unless packing is IMAGE_PLAIN */
    uint32_t arch;
    unsigned kind; /* 0: no entry fits */
    enum image_packing packing;
    uint64_t unpacked_size;
};

static int damaged(struct err *e, const char *what, unsigned entry)
{
    return err_set(e, ERR_INVALID, "the fatbin is damaged: %s of entry %u", what, entry);
}

static int head_check(struct bytes fat, struct fat_head *h, struct err *e)
{
    if (fat.size < sizeof *h) {
        return err_set(e, ERR_INVALID, "the fatbin is damaged: %zu bytes are no header", fat.size);
    }
    memcpy(h, fat.data, sizeof *h);
    if (h->version != FATBIN_VERSION || h->head_size != sizeof *h) {
        return err_set(e, ERR_INVALID, "not a fatbin: version %u, a header of %u bytes", h->version,
                       h->head_size);
    }
    if (h->size > fat.size - sizeof *h) {
        return err_set(e, ERR_INVALID, "the fatbin is cut off: %llu bytes are to follow, %zu do",
                       (unsigned long long)h->size, fat.size - sizeof *h);
    }
    return 0;
}

static int entry_check(struct bytes rest, unsigned index, struct fat_entry *ret_entry,
                       struct err *e)
{
    struct fat_entry n;
    if (rest.size < sizeof n) {
        return damaged(e, "the header", index);
    }
    memcpy(&n, rest.data, sizeof n);
    if (n.head_size < sizeof n || n.head_size > rest.size || n.size > rest.size - n.head_size) {
        return damaged(e, "the size", index);
    }
    if (n.packed_size > n.size) {
        return damaged(e, "the packed size", index);
    }
    *ret_entry = n;
    return 0;
}

static bool fits(const struct fat_entry *n, const struct image_arch *device)
{
    if (n->kind == FATBIN_PTX) {
        return n->arch <= device->number;
    }
    return n->kind == FATBIN_ELF && n->arch / 10 == device->number / 10 &&
           n->arch <= device->number;
}

static enum image_packing packing(const struct fat_entry *n)
{
    return (n->flags & FATBIN_ZSTD) != 0  ? IMAGE_ZSTD
           : (n->flags & FATBIN_LZ4) != 0 ? IMAGE_LZ4
           : n->packed_size != 0          ? IMAGE_OTHER
                                          : IMAGE_PLAIN;
}

static void choose(struct choice *c, const struct fat_entry *n, struct bytes data)
{
    bool better = n->kind > c->kind || (n->kind == c->kind && n->arch > c->arch);
    if (better) {
        enum image_packing how = packing(n);
        size_t size = how == IMAGE_PLAIN ? data.size : n->packed_size;
        *c = (struct choice){.data = bytes_of(data.data, size),
                             .arch = n->arch,
                             .kind = n->kind,
                             .packing = how,
                             .unpacked_size = n->unpacked_size};
    }
}

/* Adds to a list like "sm_75 sm_80 compute_90". */
static void list_add(struct capbuf *list, const struct fat_entry *n)
{
    const char *kind = n->kind == FATBIN_PTX ? "compute" : n->kind == FATBIN_ELF ? "sm" : "other";
    (void)capbuf_printf(list, "%s%s_%u", list->size > 0 ? " " : "", kind, n->arch);
}

static int entries_read(struct bytes rest, const struct image_arch *device, struct choice *ret,
                        struct capbuf *list, struct err *e)
{
    for (unsigned i = 0; rest.size > 0; i++) {
        struct fat_entry n = {.kind = 0};
        int rc = i == ENTRIES_MAX ? damaged(e, "the number", i) : entry_check(rest, i, &n, e);
        if (rc != 0) {
            return rc;
        }
        struct bytes data = bytes_of(rest.data + n.head_size, (size_t)n.size);
        list_add(list, &n);
        if (fits(&n, device)) {
            choose(ret, &n, data);
        }
        rest = bytes_of(data.data + data.size, rest.size - n.head_size - data.size);
    }
    return 0;
}

static int code_read(unsigned kind, struct bytes code, const struct image_arch *device,
                     struct image *ret_image, struct err *e)
{
    return kind == FATBIN_ELF ? image_cubin_read(code, device, ret_image, e)
                              : image_ptx_read(code, device, ret_image, e);
}

static int choice_read(const struct choice *c, const struct image_arch *device,
                       struct image *ret_image, struct err *e)
{
    uint8_t *code = NULL;
    if (c->packing == IMAGE_PLAIN) {
        return code_read(c->kind, c->data, device, ret_image, e);
    }
    int rc = image_unpack(c->packing, c->data, c->unpacked_size, &code, e);
    if (rc == 0) {
        rc = code_read(c->kind, bytes_of(code, (size_t)c->unpacked_size), device, ret_image, e);
        free(code);
    }
    return rc;
}

int image_fatbin_read(struct bytes fat, const struct image_arch *device, struct image *ret_image,
                      struct err *e)
{
    struct fat_head h;
    struct choice c = {.kind = 0};
    struct capbuf list;
    int rc = head_check(fat, &h, e);
    if (rc != 0) {
        return rc;
    }
    capbuf_init(&list, 200);
    rc = entries_read(bytes_of(fat.data + sizeof h, (size_t)h.size), device, &c, &list, e);
    if (rc == 0 && c.kind == 0) {
        rc = err_set(e, ERR_UNSUPPORTED, "the fatbin has code for %.*s, the device is sm_%u",
                     list.size > 0 ? (int)list.size : 7,
                     list.size > 0 ? (const char *)list.data : "nothing", device->number);
    }
    capbuf_finish(&list);
    return rc == 0 ? choice_read(&c, device, ret_image, e) : rc;
}
