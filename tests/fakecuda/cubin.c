#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fakecuda/fake.h"

#define EM_CUBIN     190u
#define PARAM_ATTR   0x17u /* of a kernel: one of its parameters */
#define LARGE_ATTR   0x45u /* the same, where it has over 4 KiB of them */
#define REGS_ATTR    0x2fu /* of the module: registers of a kernel */
#define THREADS_ATTR 0x05u
#define FORMAT_SIZED 4u

/* A cubin: ELF with a .text.NAME and a .nv.info.NAME for each kernel. */
struct cubin {
    const uint8_t *data;
    size_t size;
    const Elf64_Ehdr *head;
    const Elf64_Shdr *sections;
    const char *names;
    size_t names_size;
};

struct attr {
    uint8_t format, kind;
    uint16_t size;
    const uint8_t *data;
};

static bool inside(const struct cubin *c, uint64_t offset, uint64_t size)
{
    return offset <= c->size && size <= c->size - offset;
}

static bool open_cubin(const uint8_t *data, size_t size, struct cubin *ret)
{
    struct cubin c = {.data = data, .size = size, .head = (const Elf64_Ehdr *)data};
    if (size < sizeof *c.head || memcmp(data, ELFMAG, SELFMAG) != 0 ||
        c.head->e_machine != EM_CUBIN || c.head->e_ident[EI_CLASS] != ELFCLASS64) {
        return false;
    }
    if (c.head->e_shentsize != sizeof *c.sections || c.head->e_shnum == 0 ||
        !inside(&c, c.head->e_shoff, (uint64_t)c.head->e_shnum * sizeof *c.sections) ||
        c.head->e_shstrndx >= c.head->e_shnum) {
        return false;
    }
    c.sections = (const Elf64_Shdr *)(data + c.head->e_shoff);
    const Elf64_Shdr *names = &c.sections[c.head->e_shstrndx];
    for (unsigned i = 0; i < c.head->e_shnum; i++) {
        if (c.sections[i].sh_type != SHT_NOBITS &&
            !inside(&c, c.sections[i].sh_offset, c.sections[i].sh_size)) {
            return false;
        }
    }
    c.names = (const char *)data + names->sh_offset;
    c.names_size = names->sh_size;
    *ret = c;
    return names->sh_size > 0 && c.names[names->sh_size - 1] == '\0';
}

static const char *section_name(const struct cubin *c, const Elf64_Shdr *s)
{
    return s->sh_name < c->names_size ? c->names + s->sh_name : "";
}

/* ".nv.shared." and "foo": the section, NULL: there is none. */
static const Elf64_Shdr *section_of(const struct cubin *c, const char *prefix, const char *name)
{
    size_t size = strlen(prefix);
    for (unsigned i = 0; i < c->head->e_shnum; i++) {
        const char *own = section_name(c, &c->sections[i]);
        if (strncmp(own, prefix, size) == 0 && strcmp(own + size, name) == 0) {
            return &c->sections[i];
        }
    }
    return NULL;
}

/* Before 8 the ABI kept the architecture in the lowest byte of the flags. */
static int cubin_arch(const struct cubin *c)
{
    unsigned shift = c->head->e_ident[EI_ABIVERSION] >= 8 ? 8 : 0;
    return (int)(c->head->e_flags >> shift & 0xffu);
}

/* ---- attributes ------------------------------------------------------------------------------ */

static bool attr_next(const uint8_t **at, const uint8_t *end, struct attr *ret)
{
    if (end - *at < 4) {
        return false;
    }
    struct attr a = {.format = (*at)[0], .kind = (*at)[1], .data = *at + 4};
    memcpy(&a.size, *at + 2, sizeof a.size);
    size_t used = a.format == FORMAT_SIZED ? a.size : 0;
    if (used > (size_t)(end - *at) - 4) {
        return false;
    }
    *at += 4 + used;
    *ret = a;
    return true;
}

static void entry_attr(struct entry *e, const struct attr *a)
{
    uint16_t ordinal = 0, offset = 0;
    uint32_t word = 0;
    bool large = a->kind == LARGE_ATTR;
    if (a->format == FORMAT_SIZED && (large || a->kind == PARAM_ATTR) && a->size >= 12) {
        memcpy(&ordinal, a->data + 4, sizeof ordinal);
        memcpy(&offset, a->data + 6, sizeof offset);
        memcpy(&word, a->data + 8, sizeof word);
        (void)entry_param(e, ordinal,
                          (struct param){.offset = offset, .size = large ? word : word >> 18});
    } else if (a->format == FORMAT_SIZED && a->kind == THREADS_ATTR && a->size >= 12) {
        uint32_t dim[3];
        memcpy(dim, a->data, sizeof dim);
        e->max_threads = dim[0] * dim[1] * dim[2];
    }
}

static void attrs_read(const struct cubin *c, const Elf64_Shdr *s, struct entry *e)
{
    const uint8_t *at = c->data + s->sh_offset, *end = at + s->sh_size;
    struct attr a;
    while (attr_next(&at, end, &a)) {
        entry_attr(e, &a);
    }
}

/* ---- symbols --------------------------------------------------------------------------------- */

struct symbols {
    const Elf64_Sym *list;
    size_t count;
    const char *names;
    size_t names_size;
};

static struct symbols symbols_of(const struct cubin *c)
{
    struct symbols s = {0};
    const Elf64_Shdr *table = section_of(c, ".symtab", "");
    if (table && table->sh_link < c->head->e_shnum) {
        const Elf64_Shdr *names = &c->sections[table->sh_link];
        s.list = (const Elf64_Sym *)(c->data + table->sh_offset);
        s.count = table->sh_size / sizeof *s.list;
        s.names = (const char *)c->data + names->sh_offset;
        s.names_size = names->sh_size;
    }
    return s;
}

static const char *symbol_name(const struct symbols *s, const Elf64_Sym *symbol)
{
    return symbol->st_name < s->names_size ? s->names + symbol->st_name : "";
}

static void variable_read(const struct cubin *c, struct image *image, const char *name,
                          const Elf64_Sym *symbol)
{
    const Elf64_Shdr *s = &c->sections[symbol->st_shndx];
    const char *section = section_name(c, s);
    if (strcmp(section, ".nv.constant3") != 0 && strcmp(section, ".nv.global.init") != 0 &&
        strcmp(section, ".nv.global") != 0) {
        return;
    }
    struct variable *v = image_variable(image, name, strlen(name));
    v->size = symbol->st_size;
    if (s->sh_type != SHT_NOBITS && symbol->st_value <= s->sh_size &&
        symbol->st_size <= s->sh_size - symbol->st_value) {
        v->init = malloc(symbol->st_size ? symbol->st_size : 1);
        v->init_size = v->init ? symbol->st_size : 0;
        if (v->init) {
            memcpy(v->init, c->data + s->sh_offset + symbol->st_value, symbol->st_size);
        }
    }
}

static void variables_read(const struct cubin *c, struct image *image)
{
    struct symbols s = symbols_of(c);
    for (size_t i = 0; i < s.count; i++) {
        const char *name = symbol_name(&s, &s.list[i]);
        if (ELF64_ST_TYPE(s.list[i].st_info) == STT_OBJECT && s.list[i].st_size > 0 &&
            s.list[i].st_shndx < c->head->e_shnum && *name && *name != '.') {
            variable_read(c, image, name, &s.list[i]);
        }
    }
}

static void registers_read(const struct cubin *c, struct image *image)
{
    struct symbols s = symbols_of(c);
    const Elf64_Shdr *info = section_of(c, ".nv.info", "");
    const uint8_t *at = info ? c->data + info->sh_offset : NULL;
    const uint8_t *end = info ? at + info->sh_size : NULL;
    struct attr a;
    while (info && attr_next(&at, end, &a)) {
        uint32_t word[2];
        if (a.kind != REGS_ATTR || a.size < sizeof word) {
            continue;
        }
        memcpy(word, a.data, sizeof word);
        struct entry *e =
            word[0] < s.count ? image_find(image, symbol_name(&s, &s.list[word[0]])) : NULL;
        if (e) {
            e->registers = word[1];
        }
    }
}

static void entry_read(const struct cubin *c, struct image *image, const char *name)
{
    struct entry *e = image_entry(image, name, strlen(name));
    const Elf64_Shdr *info = section_of(c, ".nv.info.", name);
    const Elf64_Shdr *shared = section_of(c, ".nv.shared.", name);
    if (info) {
        attrs_read(c, info, e);
    }
    if (shared) { /* the device keeps 1 KiB of it for itself from 9.0 on */
        uint32_t size = (uint32_t)shared->sh_size, own = image->arch >= 90 ? 1024 : 0;
        e->shared = size > own ? size - own : 0;
    }
}

CUresult cubin_parse(const uint8_t *data, size_t size, int arch, struct image *ret_image)
{
    struct cubin c;
    if (!open_cubin(data, size, &c)) {
        return CUDA_ERROR_INVALID_IMAGE;
    }
    ret_image->arch = cubin_arch(&c);
    if (ret_image->arch / 10 != arch / 10 || ret_image->arch > arch) {
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    }
    for (unsigned i = 0; i < c.head->e_shnum; i++) {
        const char *name = section_name(&c, &c.sections[i]);
        if (strncmp(name, ".text.", 6) == 0 && section_of(&c, ".nv.info.", name + 6)) {
            entry_read(&c, ret_image, name + 6);
        }
    }
    registers_read(&c, ret_image);
    variables_read(&c, ret_image);
    return CUDA_SUCCESS;
}
