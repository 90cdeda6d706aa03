#include <elf.h>
#include <stdio.h>
#include <string.h>

#include "daemon/backend/cuda/image/image_readers.h"

#ifndef EM_CUDA
#define EM_CUDA 190
#endif

/* Facts about NVIDIA's ELF files that the public format does not define. */
/* EI_OSABI up to CUDA 12: the architecture is the low byte of the flags */
#define ABI_OLD        0x33
#define ABI_NEW        0x41 /* since CUDA 13: the architecture is in the two bytes above that */
#define ENTRY_FUNCTION 0x10 /* bit of st_other: the function is __global__, not __device__ */
#define SECTIONS_MAX   (1u << 20)

/* .nv.info consists of records: a format byte, an attribute byte, and a value or a size with
 * bytes. */
enum info_format { INFO_SIZED = 4 };
enum info_attribute {
    INFO_MAX_THREADS = 0x05,
    INFO_REQUIRED_THREADS = 0x10,
    INFO_FRAME_SIZE = 0x11,
    INFO_PARAM = 0x17,
    INFO_REGISTERS = 0x2f,
    INFO_PARAM_LARGE = 0x45, /* for a kernel with more than 4 KiB of parameters, since CUDA 12.1 */
};

struct elf {
    struct bytes bytes;
    Elf64_Ehdr head;
    unsigned count; /* number of sections */
    struct bytes names;
    struct bytes info;    /* .nv.info, which concerns all kernels */
    struct bytes symbols; /* the table of symbols */
    struct bytes strings; /* the names of symbols */
    struct err *e;
};

static int damaged(const struct elf *f, const char *what, unsigned long long where)
{
    return err_set(f->e, ERR_INVALID, "the cubin is damaged: %s %llu lies outside of its %zu bytes",
                   what, where, f->bytes.size);
}

static bool inside(struct bytes b, uint64_t offset, uint64_t size)
{
    return offset <= b.size && size <= b.size - offset;
}

static struct bytes part(struct bytes b, uint64_t offset, uint64_t size)
{
    return bytes_of(b.data + offset, (size_t)size);
}

/* The sections were checked: headers and bytes lie inside the file. */
static Elf64_Shdr section(const struct elf *f, unsigned index)
{
    Elf64_Shdr s;
    memcpy(&s, f->bytes.data + f->head.e_shoff + (uint64_t)index * sizeof s, sizeof s);
    return s;
}

static struct bytes section_bytes(const struct elf *f, const Elf64_Shdr *s)
{
    return s->sh_type == SHT_NOBITS ? bytes_of(NULL, 0) : part(f->bytes, s->sh_offset, s->sh_size);
}

/* A NUL-terminated name in a table of strings; NULL: it is not inside. */
static const char *string_at(struct bytes table, uint64_t offset)
{
    if (offset >= table.size || memchr(table.data + offset, 0, table.size - offset) == NULL) {
        return NULL;
    }
    return (const char *)table.data + offset;
}

/* ---- headers -------------------------------------------------------------------------------- */

static int head_check(struct elf *f)
{
    const unsigned char *id = f->head.e_ident;
    if (f->bytes.size < sizeof f->head) {
        return err_set(f->e, ERR_INVALID, "the cubin is damaged: %zu bytes are no ELF header",
                       f->bytes.size);
    }
    memcpy(&f->head, f->bytes.data, sizeof f->head);
    if (memcmp(id, ELFMAG, SELFMAG) != 0 || id[EI_CLASS] != ELFCLASS64 ||
        id[EI_DATA] != ELFDATA2LSB || f->head.e_machine != EM_CUDA ||
        (id[EI_OSABI] != ABI_OLD && id[EI_OSABI] != ABI_NEW)) {
        return err_set(f->e, ERR_INVALID, "not a cubin: an ELF file of machine %u, ABI %u",
                       f->head.e_machine, id[EI_OSABI]);
    }
    if (f->head.e_type != ET_EXEC) {
        return err_set(f->e, ERR_INVALID,
                       "the cubin is relocatable (made with -rdc=true): link it first");
    }
    return 0;
}

static int segments_check(const struct elf *f)
{
    Elf64_Phdr p;
    uint64_t size = (uint64_t)f->head.e_phnum * sizeof p;
    if (f->head.e_phnum == 0) {
        return 0;
    }
    if (f->head.e_phentsize != sizeof p || !inside(f->bytes, f->head.e_phoff, size)) {
        return damaged(f, "the table of segments at", f->head.e_phoff);
    }
    for (unsigned i = 0; i < f->head.e_phnum; i++) {
        memcpy(&p, f->bytes.data + f->head.e_phoff + i * sizeof p, sizeof p);
        if (!inside(f->bytes, p.p_offset, p.p_filesz)) {
            return damaged(f, "segment", i);
        }
    }
    return 0;
}

static int section_table_check(struct elf *f)
{
    Elf64_Shdr first;
    if (f->head.e_shentsize != sizeof first || f->head.e_shoff == 0 ||
        !inside(f->bytes, f->head.e_shoff, sizeof first)) {
        return damaged(f, "the table of sections at", f->head.e_shoff);
    }
    memcpy(&first, f->bytes.data + f->head.e_shoff, sizeof first);
    /* a count above 65,279 is in the first section */
    uint64_t count = f->head.e_shnum != 0 ? f->head.e_shnum : first.sh_size;
    if (count == 0 || count > SECTIONS_MAX ||
        !inside(f->bytes, f->head.e_shoff, count * sizeof first)) {
        return damaged(f, "the table of sections at", f->head.e_shoff);
    }
    f->count = (unsigned)count;
    return 0;
}

static int names_find(struct elf *f)
{
    uint64_t index = f->head.e_shstrndx != SHN_XINDEX ? f->head.e_shstrndx : section(f, 0).sh_link;
    if (index >= f->count) {
        return damaged(f, "section", index);
    }
    Elf64_Shdr s = section(f, (unsigned)index);
    if (s.sh_type != SHT_STRTAB) {
        return damaged(f, "the sections' names in", index);
    }
    f->names = section_bytes(f, &s);
    return 0;
}

static int symbols_take(struct elf *f, const Elf64_Shdr *s)
{
    if (s->sh_entsize != sizeof(Elf64_Sym) || s->sh_link >= f->count) {
        return damaged(f, "the table of symbols at", s->sh_offset);
    }
    Elf64_Shdr strings = section(f, s->sh_link);
    f->symbols = section_bytes(f, s);
    f->strings = section_bytes(f, &strings);
    return 0;
}

static int sections_check(struct elf *f)
{
    for (unsigned i = 0; i < f->count; i++) {
        Elf64_Shdr s = section(f, i);
        if (i > 0 && s.sh_type != SHT_NOBITS && !inside(f->bytes, s.sh_offset, s.sh_size)) {
            return damaged(f, "section", i);
        }
    }
    int rc = names_find(f);
    for (unsigned i = 1; rc == 0 && i < f->count; i++) {
        Elf64_Shdr s = section(f, i);
        const char *name = string_at(f->names, s.sh_name);
        if (name == NULL) {
            return damaged(f, "the name of section", i);
        }
        if (s.sh_type == SHT_SYMTAB) {
            rc = symbols_take(f, &s);
        } else if (strcmp(name, ".nv.info") == 0) {
            f->info = section_bytes(f, &s);
        }
    }
    return rc;
}

static int arch_check(const struct elf *f, const struct image_arch *device)
{
    bool old = f->head.e_ident[EI_OSABI] == ABI_OLD;
    unsigned number = old ? f->head.e_flags & 0xff : f->head.e_flags >> 8 & 0xffff;
    /* a cubin runs on devices of the same major and the same or a later minor number */
    if (number / 10 != device->number / 10 || number > device->number) {
        return err_set(f->e, ERR_UNSUPPORTED, "the cubin is for sm_%u, the device is sm_%u", number,
                       device->number);
    }
    return 0;
}

/* ---- kernels -------------------------------------------------------------------------------- */

struct info_record {
    unsigned attribute;
    struct bytes value;
};

/* Reads the record at *at and advances *at. Returns false at the end; *at is SIZE_MAX if the
 * record is damaged. */
static bool info_next(struct bytes info, size_t *at, struct info_record *ret)
{
    if (*at == info.size) {
        return false;
    }
    const uint8_t *p = inside(info, *at, 4) ? info.data + *at : NULL;
    size_t size = p != NULL && p[0] == INFO_SIZED ? (size_t)(p[2] | p[3] << 8) : 0;
    if (p == NULL || !inside(info, *at + 4, size)) {
        *at = SIZE_MAX;
        return false;
    }
    ret->attribute = p[1];
    ret->value = bytes_of(p + 4, size);
    *at += 4 + size;
    return true;
}

static uint32_t u32_at(struct bytes b, size_t index)
{
    uint32_t value = 0;
    if (inside(b, index * 4, 4)) {
        memcpy(&value, b.data + index * 4, 4);
    }
    return value;
}

/* Takes a kernel's parameter. Its position, offset and size are bits of three words; for a large
 * kernel the size has a word of its own. */
static bool param_take(const struct info_record *r, struct backend_compiled_kernel *k)
{
    unsigned ordinal = u32_at(r->value, 1) & 0xffff;
    uint32_t word = u32_at(r->value, 2); /* large: from sm_100 on there are flags above the size */
    uint32_t size = r->attribute == INFO_PARAM_LARGE ? word & 0xffffff : word >> 18;
    if (ordinal < IMAGE_ARGS_MAX) {
        k->arg[ordinal].bytes = size;
        k->arg[ordinal].kind = size == 8 ? BACKEND_KIND_UNKNOWN : BACKEND_KIND_STRUCT;
    }
    k->arg_count = ordinal + 1 > k->arg_count ? ordinal + 1 : k->arg_count;
    return r->value.size >= 12;
}

static int info_take(const struct elf *f, struct bytes info, struct backend_compiled_kernel *k)
{
    size_t at = 0;
    struct info_record r;
    while (info_next(info, &at, &r)) {
        if (r.attribute == INFO_PARAM || r.attribute == INFO_PARAM_LARGE) {
            at = param_take(&r, k) ? at : SIZE_MAX;
        } else if (r.attribute == INFO_REQUIRED_THREADS) {
            for (unsigned i = 0; i < 3; i++) {
                k->required_local[i] = u32_at(r.value, i);
            }
        } else if (r.attribute == INFO_MAX_THREADS) {
            k->max_group = (uint64_t)u32_at(r.value, 0) * u32_at(r.value, 1) * u32_at(r.value, 2);
        }
    }
    return at == SIZE_MAX ? damaged(f, "the attributes of kernel", 0) : 0;
}

/* Takes what .nv.info says about the function with that symbol. */
static int common_take(const struct elf *f, uint32_t symbol, struct backend_compiled_kernel *k)
{
    size_t at = 0;
    struct info_record r;
    while (info_next(f->info, &at, &r)) {
        if (r.value.size < 8 || u32_at(r.value, 0) != symbol) {
            continue;
        }
        if (r.attribute == INFO_REGISTERS) {
            k->registers = u32_at(r.value, 1);
        } else if (r.attribute == INFO_FRAME_SIZE) {
            k->local_bytes = u32_at(r.value, 1);
        }
    }
    return at == SIZE_MAX ? damaged(f, "the attributes of all kernels in section", 0) : 0;
}

static bool named(const char *name, const char *prefix, const char *kernel)
{
    size_t size = strlen(prefix);
    return strncmp(name, prefix, size) == 0 && strcmp(name + size, kernel) == 0;
}

static int sections_take(const struct elf *f, struct backend_compiled_kernel *k)
{
    uint64_t reserved = 0;
    for (unsigned i = 1; i < f->count; i++) {
        Elf64_Shdr s = section(f, i);
        const char *name = string_at(f->names, s.sh_name); /* was checked */
        if (strncmp(name, ".nv.", 4) != 0) {
            continue;
        }
        if (named(name, ".nv.info.", k->entry)) {
            int rc = info_take(f, section_bytes(f, &s), k);
            if (rc != 0) {
                return err_wrap(f->e, "kernel %s", k->entry);
            }
        } else if (named(name, ".nv.shared.", k->entry)) {
            k->shared_bytes = s.sh_size;
        } else if (strcmp(name, ".nv.shared.reserved.0") == 0) {
            /* the system's part of each group's shared memory, on sm_80 and later */
            reserved = 1024;
        } else if (named(name, ".nv.constant0.", k->entry)) {
            k->constant_bytes = s.sh_size;
        }
    }
    k->shared_bytes -= k->shared_bytes >= reserved ? reserved : k->shared_bytes;
    return 0;
}

static int kernel_take(const struct elf *f, uint32_t symbol, const Elf64_Sym *s, struct image *out)
{
    const char *name = string_at(f->strings, s->st_name);
    if (name == NULL || s->st_shndx >= f->count) {
        return damaged(f, "symbol", symbol);
    }
    struct backend_compiled_kernel *k = NULL;
    int rc = image_kernel_add(out, name, &k, f->e);
    if (rc != 0 || k->entry[0] == '\0') {
        return rc;
    }
    rc = sections_take(f, k);
    return rc == 0 ? common_take(f, symbol, k) : rc;
}

int image_cubin_read(struct bytes elf, const struct image_arch *device, struct image *ret_image,
                     struct err *e)
{
    struct elf f = {.bytes = elf, .e = e};
    struct image out = {.kernels = NULL};
    int rc = head_check(&f);
    rc = rc == 0 ? segments_check(&f) : rc;
    rc = rc == 0 ? section_table_check(&f) : rc;
    rc = rc == 0 ? sections_check(&f) : rc;
    rc = rc == 0 ? arch_check(&f, device) : rc;
    size_t count = f.symbols.size / sizeof(Elf64_Sym);
    for (size_t i = 0; rc == 0 && i < count; i++) {
        Elf64_Sym s;
        memcpy(&s, f.symbols.data + i * sizeof s, sizeof s);
        if (ELF64_ST_TYPE(s.st_info) == STT_FUNC && (s.st_other & ENTRY_FUNCTION) != 0) {
            rc = kernel_take(&f, (uint32_t)i, &s, &out);
        }
    }
    return image_done(&out, rc, ret_image);
}
