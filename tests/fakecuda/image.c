#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef FAKECUDA_WITH_ZSTD
#include <zstd.h>
#endif

#include "tests/fakecuda/fake.h"

#define FATBIN_MAGIC  0xba55ed50u
#define WRAPPER_MAGIC 0x466243b1u
#define KIND_PTX      1u
#define KIND_ELF      2u
#define FLAG_LZ4      0x2000u
#define FLAG_ZSTD     0x8000u

/* ---- what a module holds --------------------------------------------------------------------- */

/* Grows at powers of two. */
static void *grown(void *array, unsigned count, size_t size)
{
    if (count > 0 && (count & (count - 1)) != 0) {
        return array;
    }
    void *more = realloc(array, (count ? 2 * (size_t)count : 1) * size);
    if (!more) {
        abort();
    }
    return more;
}

static char *name_copy(const char *name, size_t size)
{
    char *copy = strndup(name, size);
    if (!copy) {
        abort();
    }
    return copy;
}

struct entry *image_entry(struct image *i, const char *name, size_t size)
{
    struct entry *e = calloc(1, sizeof *e);
    i->entries = grown(i->entries, i->entry_count, sizeof(struct entry *));
    if (!e) {
        abort();
    }
    e->name = name_copy(name, size);
    e->registers = 32;
    e->max_threads = 1024;
    i->entries[i->entry_count++] = e;
    return e;
}

struct variable *image_variable(struct image *i, const char *name, size_t size)
{
    struct variable *v = calloc(1, sizeof *v);
    i->variables = grown(i->variables, i->variable_count, sizeof(struct variable *));
    if (!v) {
        abort();
    }
    v->name = name_copy(name, size);
    i->variables[i->variable_count++] = v;
    return v;
}

struct entry *image_find(const struct image *i, const char *name)
{
    for (unsigned k = 0; k < i->entry_count; k++) {
        if (strcmp(i->entries[k]->name, name) == 0) {
            return i->entries[k];
        }
    }
    return NULL;
}

bool entry_param(struct entry *e, unsigned index, struct param p)
{
    if (index >= PARAMS_MAX) {
        return false;
    }
    if (index >= e->param_count) {
        struct param *more = realloc(e->param, (index + 1) * sizeof *more);
        if (!more) {
            abort();
        }
        memset(more + e->param_count, 0, (index + 1 - e->param_count) * sizeof *more);
        e->param = more;
        e->param_count = index + 1;
    }
    e->param[index] = p;
    if (p.offset + p.size > e->param_bytes) {
        e->param_bytes = p.offset + p.size;
    }
    return true;
}

void image_finish(struct image *i)
{
    for (unsigned k = 0; k < i->entry_count; k++) {
        free(i->entries[k]->name);
        free(i->entries[k]->param);
        free(i->entries[k]);
    }
    for (unsigned k = 0; k < i->variable_count; k++) {
        free(i->variables[k]->name);
        free(i->variables[k]->init);
        free(i->variables[k]);
    }
    free(i->entries);
    free(i->variables);
    *i = (struct image){0};
}

/* ---- fatbin ---------------------------------------------------------------------------------- */

struct fat_head {
    uint32_t magic;
    uint16_t version, head_size;
    uint64_t size;
};

struct fat_part {
    uint16_t kind, version;
    uint32_t head_size;
    uint64_t size;
    uint32_t packed_size, options;
    uint16_t minor, major;
    uint32_t arch;
    uint32_t name_offset, name_size;
    uint64_t flags;
    uint64_t zero;
    uint64_t plain_size;
};

struct wrapper {
    uint32_t magic, version;
    const void *data;
};

/* How well a part serves the device: code for it, then PTX; 0 = not at all. */
static unsigned fitness(const struct fat_part *p, int arch)
{
    unsigned own = (unsigned)arch, its = p->arch;
    if (p->kind == KIND_ELF && its / 10 == own / 10 && its <= own) {
        return 1000 + its;
    }
    return p->kind == KIND_PTX && its <= own ? its : 0;
}

/* The LZ4 block format: literals, then a match further back, and so on. */
static bool lz4_length(const uint8_t **in, const uint8_t *end, size_t *length)
{
    uint8_t b = 255;
    if (*length != 15) {
        return true;
    }
    while (b == 255 && *in < end) {
        b = *(*in)++;
        *length += b;
    }
    return b != 255;
}

static bool lz4_unpack(const uint8_t *in, size_t in_size, uint8_t *out, size_t out_size)
{
    const uint8_t *end = in + in_size;
    size_t at = 0;
    while (in < end) {
        uint8_t token = *in++;
        size_t literals = token >> 4, match = token & 15u;
        if (!lz4_length(&in, end, &literals) || literals > (size_t)(end - in) ||
            literals > out_size - at) {
            return false;
        }
        memcpy(out + at, in, literals);
        in += literals;
        at += literals;
        if (in == end) {
            break;
        }
        if (end - in < 2) {
            return false;
        }
        size_t back = (size_t)in[0] | (size_t)in[1] << 8;
        in += 2;
        if (!lz4_length(&in, end, &match) || back == 0 || back > at || match + 4 > out_size - at) {
            return false;
        }
        for (size_t stop = at + match + 4; at < stop; at++) {
            out[at] = out[at - back];
        }
    }
    return at == out_size;
}

static bool zstd_unpack(const uint8_t *in, size_t in_size, uint8_t *out, size_t out_size)
{
#ifdef FAKECUDA_WITH_ZSTD
    return ZSTD_decompress(out, out_size, in, in_size) == out_size;
#else
    (void)in, (void)in_size, (void)out, (void)out_size;
    note("a fatbin's code is packed with zstd, and the double was built without libzstd");
    return false;
#endif
}

static CUresult part_parse(const struct fat_part *p, const uint8_t *data, size_t size, int arch,
                           struct image *ret_image, char *ret_log, size_t log_size)
{
    if (p->kind == KIND_ELF) {
        return cubin_parse(data, size, arch, ret_image);
    }
    return ptx_parse((const char *)data, strnlen((const char *)data, size), arch, ret_image,
                     ret_log, log_size);
}

static CUresult part_unpack(const struct fat_part *p, int arch, struct image *ret_image,
                            char *ret_log, size_t log_size)
{
    const uint8_t *data = (const uint8_t *)p + p->head_size;
    if ((p->flags & (FLAG_ZSTD | FLAG_LZ4)) == 0) {
        return part_parse(p, data, p->size, arch, ret_image, ret_log, log_size);
    }
    CUresult r = CUDA_ERROR_INVALID_IMAGE;
    uint8_t *plain = p->plain_size < UINT64_C(1) << 32 ? malloc(p->plain_size + 1) : NULL;
    if (plain && p->packed_size <= p->size &&
        ((p->flags & FLAG_ZSTD) != 0 ? zstd_unpack : lz4_unpack)(data, p->packed_size, plain,
                                                                 p->plain_size)) {
        r = part_parse(p, plain, p->plain_size, arch, ret_image, ret_log, log_size);
    }
    free(plain);
    return r;
}

static CUresult fatbin_parse(const uint8_t *data, int arch, struct image *ret_image, char *ret_log,
                             size_t log_size)
{
    struct fat_head head;
    const struct fat_part *best = NULL;
    memcpy(&head, data, sizeof head);
    const uint8_t *at = data + head.head_size, *end = at + head.size;
    if (head.version != 1 || head.head_size < sizeof head) {
        return CUDA_ERROR_INVALID_IMAGE;
    }
    while ((size_t)(end - at) >= sizeof(struct fat_part)) {
        const struct fat_part *p = (const struct fat_part *)at;
        if (p->head_size < sizeof *p || p->head_size > (size_t)(end - at) ||
            p->size > (size_t)(end - at) - p->head_size) {
            return CUDA_ERROR_INVALID_IMAGE;
        }
        if (fitness(p, arch) > (best ? fitness(best, arch) : 0)) {
            best = p;
        }
        at += p->head_size + p->size;
    }
    if (!best) {
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    }
    return part_unpack(best, arch, ret_image, ret_log, log_size);
}

/* ---- any ------------------------------------------------------------------------------------- */

CUresult image_parse(const void *data, int arch, struct image *ret_image, char *ret_log,
                     size_t log_size)
{
    struct image image = {0};
    uint8_t magic[4];
    uint32_t word = 0;
    const struct wrapper *w = data;
    CUresult r = CUDA_SUCCESS;
    memcpy(magic, data, 1); /* a text may end there */
    if (magic[0] == 0x7f || magic[0] == 0x50 || magic[0] == 0xb1) {
        memcpy(&word, data, sizeof word);
    }
    if (word == WRAPPER_MAGIC) {
        data = w->data;
        memcpy(&word, data, sizeof word);
    }
    if (word == FATBIN_MAGIC) {
        r = fatbin_parse(data, arch, &image, ret_log, log_size);
    } else if (magic[0] == 0x7f) {
        r = cubin_parse(data, SIZE_MAX, arch, &image);
    } else {
        r = ptx_parse(data, strlen(data), arch, &image, ret_log, log_size);
    }
    if (r != CUDA_SUCCESS) {
        image_finish(&image);
        return r;
    }
    *ret_image = image;
    return CUDA_SUCCESS;
}
