/* PTX, cubin and fatbin as bytes from anywhere. The cubin is a real one, of NVRTC. */
#include <check.h>
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/backend/cuda/compile/compile.h"
#include "daemon/backend/cuda/compile/nvcc.h"
#include "daemon/backend/cuda/image/image.h"
#include "daemon/backend/cuda/image/image_readers.h"
#include "daemon/backend/cuda/run/binary.h"

#define SKIPPED 77
/* Bytes from one damage to the next. A reading takes fifty times as long under ASan. */
#if defined(__SANITIZE_ADDRESS__)
#define STEP 7u
#else
#define STEP 1u
#endif

static const struct image_arch sm_90 = {.number = 90};
static struct backend_compiled made; /* once, by main */
static struct bytes cubin;           /* in it */

static const char source[] = "extern \"C\" __global__ void one(float *x, int n, double4 v) {\n"
                             "    __shared__ float t[32];\n"
                             "    t[threadIdx.x] = x[n]; __syncthreads(); x[0] = t[n] + v.x; }\n"
                             "__global__ void __launch_bounds__(64) two(const int *a) {}\n";

static int make(const char *text, struct backend_compiled *out, struct bytes *ret_cubin)
{
    struct err e = ERR_INIT;
    struct backend_source s = {.lang = BACKEND_LANG_CUDA,
                               .text = bytes_str(text),
                               .file = "k.cu",
                               .options = "-w",
                               .arch = "sm_90"};
    struct cuda_binary parts;
    int rc = cuda_compile(0, &s, out, &e);
    rc = rc == 0 ? cuda_binary_unwrap("sm_90", bytes_of(out->binary, out->binary_size), &parts, &e)
                 : rc;
    if (rc != 0) {
        fprintf(stderr, "%s\n", e.text);
        return rc;
    }
    *ret_cubin = parts.payload;
    return 0;
}

static const struct backend_compiled_kernel *find(const struct image *i, const char *entry)
{
    for (unsigned k = 0; k < i->kernel_count; k++) {
        if (strcmp(i->kernels[k].entry, entry) == 0) {
            return &i->kernels[k];
        }
    }
    ck_abort_msg("no kernel %s", entry);
    return NULL;
}

/* ---- cubin ----------------------------------------------------------------------------------- */

START_TEST(reads_a_cubin)
{
    struct image i = {0};
    struct err e = ERR_INIT;
    ck_assert_msg(image_cubin_read(cubin, &sm_90, &i, &e) == 0, "%s", e.text);
    ck_assert_uint_eq(i.kernel_count, 2);
    const struct backend_compiled_kernel *k = find(&i, "one");
    ck_assert_uint_eq(k->arg_count, 3);
    ck_assert_uint_eq(k->arg[0].bytes, 8);
    ck_assert_uint_eq(k->arg[0].kind, 0);
    ck_assert_uint_eq(k->arg[1].bytes, 4);
    ck_assert_uint_eq(k->arg[2].bytes, 32);
    ck_assert_uint_eq(k->arg[2].kind, 3);
    ck_assert_uint_gt(k->registers, 0);
    ck_assert_uint_eq(k->shared_bytes, 128);
    ck_assert_uint_eq(find(&i, "_Z3twoPKi")->max_group, 64);
    image_finish(&i);
}
END_TEST

START_TEST(a_parameter_that_is_cut_off_is_damage)
{
    struct image i = {0};
    struct err e = ERR_INIT;
    uint8_t *copy = malloc(cubin.size);
    ck_assert_ptr_nonnull(copy);
    memcpy(copy, cubin.data, cubin.size);
    uint8_t *record = memmem(copy, cubin.size, "\4\x17\14\0", 4);
    ck_assert_ptr_nonnull(record);
    record[2] = 8;
    ck_assert_int_eq(image_cubin_read(bytes_of(copy, cubin.size), &sm_90, &i, &e), ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(e.text, "damaged"));
    free(copy);
}
END_TEST

/* Parameters of over 4 KiB are recorded in another way; from sm_100 on with flags above a pointer's
 * size. */
START_TEST(reads_large_parameters)
{
    static const uint8_t pointer[] = {4, 0x45, 12, 0, 0, 0, 0, 0, 1, 0};
    struct backend_compiled c = {0};
    struct bytes large;
    struct image i = {0};
    struct err e = ERR_INIT;
    ck_assert_int_eq(make("struct S { char c[5000]; };\n"
                          "extern \"C\" __global__ void f(S s, int *p) { *p = s.c[*p]; }\n",
                          &c, &large),
                     0);
    uint8_t *record = memmem(large.data, large.size, pointer, sizeof pointer);
    ck_assert_ptr_nonnull(record);
    for (unsigned flags = 0; flags <= 0x50; flags += 0x50) {
        record[15] = (uint8_t)flags;
        ck_assert_msg(image_cubin_read(large, &sm_90, &i, &e) == 0, "%s", e.text);
        const struct backend_compiled_kernel *k = find(&i, "f");
        ck_assert_uint_eq(k->arg_count, 2);
        ck_assert_uint_eq(k->arg[0].bytes, 5000);
        ck_assert_uint_eq(k->arg[0].kind, BACKEND_KIND_STRUCT);
        ck_assert_uint_eq(k->arg[1].bytes, 8);
        image_finish(&i);
    }
    backend_compiled_finish(&c);
}
END_TEST

START_TEST(names_the_architectures)
{
    static const struct image_arch ampere = {.number = 80};
    struct image i = {0};
    struct err e = ERR_INIT;
    ck_assert_int_eq(image_cubin_read(cubin, &ampere, &i, &e), ERR_UNSUPPORTED);
    ck_assert_str_eq(e.text, "the cubin is for sm_90, the device is sm_80");
}
END_TEST

/* A copy of exactly that size, so that a sanitizer sees the first byte read beyond. */
static void read_copy(struct bytes b, size_t size, size_t flip, unsigned bit)
{
    struct image i = {0};
    struct err e = ERR_INIT;
    uint8_t *copy = malloc(size > 0 ? size : 1);
    ck_assert_ptr_nonnull(copy);
    memcpy(copy, b.data, size);
    if (flip < size) {
        copy[flip] ^= (uint8_t)(1u << bit);
    }
    int rc = image_read(BACKEND_LANG_CUBIN, bytes_of(copy, size), &sm_90, &i, &e);
    ck_assert_msg(rc == 0 || rc == ERR_INVALID || rc == ERR_UNSUPPORTED || rc == ERR_LIMIT,
                  "%d: %s", rc, e.text);
    ck_assert(rc == 0 || e.text[0] != '\0');
    if (size < b.size) {
        ck_assert_int_ne(rc, 0);
    }
    if (rc == 0) {
        image_finish(&i);
    }
    free(copy);
}

START_TEST(every_truncation_is_refused)
{
    for (size_t size = 0; size < cubin.size; size += STEP) {
        read_copy(cubin, size, SIZE_MAX, 0);
    }
}
END_TEST

START_TEST(every_flipped_bit_does_no_harm)
{
    for (size_t at = (unsigned)_i % STEP; at < cubin.size; at += STEP) {
        read_copy(cubin, cubin.size, at, (unsigned)_i);
    }
}
END_TEST

/* ---- fatbin ---------------------------------------------------------------------------------- */

static void fat_begin(struct capbuf *out)
{
    static const uint8_t head[16] = {0x50, 0xed, 0x55, 0xba, 1, 0, 16};
    capbuf_init(out, 1u << 20);
    ck_assert(capbuf_append(out, head, sizeof head));
}

static void fat_add(struct capbuf *out, unsigned kind, unsigned arch, uint64_t flags,
                    struct bytes data)
{
    uint8_t head[64] = {(uint8_t)kind, 0, 1, 1, 64};
    uint64_t size = data.size;
    uint32_t number = arch;
    memcpy(head + 8, &size, 8);
    memcpy(head + 28, &number, 4);
    memcpy(head + 40, &flags, 8);
    ck_assert(capbuf_append(out, head, sizeof head));
    ck_assert(capbuf_append(out, data.data, data.size));
    size = out->size - 16;
    memcpy(out->data + 8, &size, 8);
}

static const char ptx[] = "// made by hand\n.version 8.0\n.target sm_80, debug\n.address_size 64\n"
                          ".global .align 4 .b8 g[16];\n"
                          ".visible .entry f(\n\t.param .u64 .ptr .align 4 f_param_0,\n"
                          "\t.param .align 8 .b8 f_param_1[24],\n\t.param .f32 f_param_2\n)\n"
                          ".reqntid 32, 2, 1\n{\n\t.reg .b32 %r<3>;\n\t{ ret; }\n}\n"
                          ".func (.reg .b32 x) h(.reg .b32 y) { ret; }\n"
                          ".entry g()\n{\nret;\n}\n";

START_TEST(a_fatbin_gives_its_best_entry)
{
    struct capbuf fat;
    struct image i = {0};
    struct err e = ERR_INIT;
    fat_begin(&fat);
    fat_add(&fat, 1, 80, 0, bytes_of(ptx, sizeof ptx));
    fat_add(&fat, 2, 75, 0, bytes_str("not looked at"));
    ck_assert_msg(image_fatbin_read(capbuf_view(&fat), &sm_90, &i, &e) == 0, "%s", e.text);
    ck_assert_uint_eq(find(&i, "f")->arg_count, 3);
    image_finish(&i);
    fat_add(&fat, 2, 90, 0, cubin);
    ck_assert_msg(image_fatbin_read(capbuf_view(&fat), &sm_90, &i, &e) == 0, "%s", e.text);
    ck_assert_uint_eq(find(&i, "one")->arg_count, 3);
    image_finish(&i);
    capbuf_finish(&fat);
}
END_TEST

START_TEST(a_fatbin_without_a_match_lists_what_it_has)
{
    static const struct image_arch old = {.number = 75};
    struct capbuf fat;
    struct image i = {0};
    struct err e = ERR_INIT;
    fat_begin(&fat);
    fat_add(&fat, 2, 90, 0, cubin);
    fat_add(&fat, 1, 80, 0, bytes_of(ptx, sizeof ptx));
    ck_assert_int_eq(image_fatbin_read(capbuf_view(&fat), &old, &i, &e), ERR_UNSUPPORTED);
    ck_assert_str_eq(e.text, "the fatbin has code for sm_90 compute_80, the device is sm_75");
    capbuf_finish(&fat);
}
END_TEST

/* ---- compressed fatbins ---------------------------------------------------------------------- */

#define PACKED_MAX 32768u

/* As nvcc makes them, once, by main. */
static const struct packed {
    const char *name, *arch, *how[2];
} packed[] = {
    {"zstd.fatbin", "-arch=sm_90", {"--compress-mode=size"}},
    {"lz4.fatbin", "-arch=sm_90", {"--compress-mode=speed", "--fatbin-options=-compress-all"}},
    {"ptx-zstd.fatbin", "-gencode=arch=compute_90,code=compute_90", {"--compress-mode=default"}},
    {"ptx-lz4.fatbin", "-gencode=arch=compute_90,code=compute_90", {"--compress-mode=speed"}},
    {"ptx.fatbin", "-gencode=arch=compute_90,code=compute_90", {"--compress-mode=none"}},
};
#define PACKED_COUNT ((int)(sizeof packed / sizeof packed[0]))
static struct {
    uint8_t data[PACKED_MAX];
    size_t size;
} fat_of[sizeof packed / sizeof packed[0]];

static size_t file_take(const char *folder, const char *name, uint8_t *data, size_t room)
{
    char path[PATH_MAX + 32];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "rbe");
    size_t size = f != NULL ? fread(data, 1, room, f) : 0;
    if (f != NULL) {
        (void)fclose(f);
        (void)unlink(path);
    }
    return size;
}

static void packed_make(int index, const char *program, const char *folder)
{
    const struct packed *p = &packed[index];
    struct err e = ERR_INIT;
    struct capbuf said;
    bool done = false;
    const struct nvcc_run run = {
        .program = program,
        .folder = folder,
        .argument = {"-fatbin", p->arch, "-w", "k.cu", "-o", p->name, p->how[0], p->how[1]}};
    capbuf_init(&said, 1u << 16);
    if (nvcc_run(&run, &said, &done, &e) == 0 && done) {
        fat_of[index].size =
            file_take(folder, p->name, fat_of[index].data, sizeof fat_of[index].data);
    } else {
        (void)fprintf(stderr, "%s: %s %.*s\n", p->name, e.text, (int)said.size,
                      said.size > 0 ? (const char *)said.data : "");
    }
    capbuf_finish(&said);
}

static bool packed_make_all(void)
{
    char program[PATH_MAX];
    char folder[] = "/tmp/gpud-test-image-XXXXXX";
    char path[64];
    if (!nvcc_find("", program) || mkdtemp(folder) == NULL) {
        return false;
    }
    (void)snprintf(path, sizeof path, "%s/k.cu", folder);
    FILE *f = fopen(path, "we");
    bool written = f != NULL && fputs(source, f) >= 0;
    written = f != NULL && fclose(f) == 0 && written;
    for (int i = 0; written && i < PACKED_COUNT; i++) {
        packed_make(i, program, folder);
        written = fat_of[i].size > 0;
    }
    DIR *left = opendir(folder); /* what nvcc keeps on the way */
    for (struct dirent *d = NULL; left != NULL && (d = readdir(left)) != NULL;) {
        (void)unlinkat(dirfd(left), d->d_name, 0);
    }
    if (left != NULL) {
        (void)closedir(left);
    }
    (void)rmdir(folder);
    return written;
}

#ifdef IMAGE_WITH_LZ4
#define WITH_LZ4 true
#else
#define WITH_LZ4 false
#endif
#ifdef IMAGE_WITH_ZSTD
#define WITH_ZSTD true
#else
#define WITH_ZSTD false
#endif

/* Was this built with the library that it takes? */
static bool readable(const char *name)
{
    return (WITH_LZ4 || strstr(name, "lz4") == NULL) && (WITH_ZSTD || strstr(name, "zstd") == NULL);
}

START_TEST(what_nvcc_compressed_is_read)
{
    const struct packed *p = &packed[_i];
    struct image i = {0};
    struct err e = ERR_INIT;
    struct bytes fat = bytes_of(fat_of[_i].data, fat_of[_i].size);
    int rc = image_read(BACKEND_LANG_CUBIN, fat, &sm_90, &i, &e);
    if (!readable(p->name)) {
        ck_assert_int_eq(rc, ERR_UNSUPPORTED);
        ck_assert_ptr_nonnull(strstr(e.text, "-no-compress"));
        return;
    }
    ck_assert_msg(rc == 0, "%s: %s", p->name, e.text);
    ck_assert_uint_eq(i.kernel_count, 2);
    const struct backend_compiled_kernel *k = find(&i, "one");
    ck_assert_uint_eq(k->arg_count, 3);
    ck_assert_uint_eq(k->arg[0].bytes, 8);
    ck_assert_uint_eq(k->arg[1].bytes, 4);
    ck_assert_uint_eq(k->arg[2].bytes, 32);
    ck_assert_uint_eq(find(&i, "_Z3twoPKi")->max_group, 64);
    image_finish(&i);
}
END_TEST

START_TEST(damage_in_compressed_code_does_no_harm)
{
    struct bytes all = bytes_of(fat_of[_i].data, fat_of[_i].size);
    for (size_t size = 0; size < all.size; size += STEP * (size < 96 ? 1 : 97)) {
        read_copy(all, size, SIZE_MAX, 0);
    }
    for (size_t at = 0; at < all.size; at += STEP * (at < 192 ? 1 : 29)) {
        read_copy(all, all.size, at, (unsigned)at % 8);
    }
}
END_TEST

/* What the header says of the size: too much, too little, none; each is refused by its own word. */
START_TEST(a_compressed_size_is_bounded)
{
    static const struct {
        uint64_t size;
        int code;
        const char *why;
    } wrong[] = {{UINT64_MAX, ERR_LIMIT, "at most"},
                 {(uint64_t)IMAGE_BYTES_MAX + 1, ERR_LIMIT, "at most"},
                 {0, ERR_INVALID, "damaged"},
                 {100, ERR_INVALID, "damaged"},
                 {IMAGE_BYTES_MAX, ERR_INVALID, "damaged"}};
    const struct packed *p = &packed[_i];
    struct bytes fat = bytes_of(fat_of[_i].data, fat_of[_i].size);
    for (size_t i = 0; readable(p->name) && i < sizeof wrong / sizeof wrong[0]; i++) {
        struct image none = {0};
        struct err e = ERR_INIT;
        memcpy(fat_of[_i].data + 16 + 56, &wrong[i].size, 8);
        ck_assert_int_eq(image_read(BACKEND_LANG_CUBIN, fat, &sm_90, &none, &e), wrong[i].code);
        ck_assert_msg(strstr(e.text, wrong[i].why) != NULL, "%s", e.text);
    }
}
END_TEST

START_TEST(an_unknown_packing_is_named)
{
    struct capbuf fat;
    struct image i = {0};
    struct err e = ERR_INIT;
    uint32_t some = 4;
    uint64_t size = 64;
    fat_begin(&fat);
    fat_add(&fat, 2, 90, 0x11, bytes_str("some code"));
    memcpy(fat.data + 16 + 16, &some, sizeof some);
    memcpy(fat.data + 16 + 56, &size, sizeof size);
    ck_assert_int_eq(image_fatbin_read(capbuf_view(&fat), &sm_90, &i, &e), ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(e.text, "-no-compress"));
    capbuf_finish(&fat);
}
END_TEST

START_TEST(a_damaged_fatbin_does_no_harm)
{
    struct capbuf fat;
    fat_begin(&fat);
    fat_add(&fat, 1, 80, 0, bytes_of(ptx, sizeof ptx));
    fat_add(&fat, 2, 90, 0, cubin);
    struct bytes all = capbuf_view(&fat);
    for (size_t size = 0; size < all.size; size += STEP * (size < 1024 ? 1 : 13)) {
        read_copy(all, size, SIZE_MAX, 0);
    }
    size_t heads = 16 + 64 + sizeof ptx + 64;
    for (size_t at = 0; at < heads; at += STEP) {
        for (unsigned bit = 0; bit < 8; bit++) {
            read_copy(all, all.size, at, bit);
        }
    }
    capbuf_finish(&fat);
}
END_TEST

/* ---- PTX ------------------------------------------------------------------------------------- */

START_TEST(reads_ptx)
{
    struct image i = {0};
    struct err e = ERR_INIT;
    ck_assert_msg(image_ptx_read(bytes_str(ptx), &sm_90, &i, &e) == 0, "%s", e.text);
    const struct backend_compiled_kernel *k = find(&i, "f");
    ck_assert_uint_eq(i.kernel_count, 2);
    ck_assert_uint_eq(k->arg_count, 3);
    ck_assert_uint_eq(k->arg[0].kind, 2);
    ck_assert_uint_eq(k->arg[1].bytes, 24);
    ck_assert_uint_eq(k->arg[2].bytes, 4);
    ck_assert_uint_eq(k->required_local[0], 32);
    ck_assert_uint_eq(k->required_local[1], 2);
    image_finish(&i);
}
END_TEST

/* A kernel that is too large leaves nothing behind in the record of the next one. */
START_TEST(a_kernel_that_does_not_fit_spoils_no_other)
{
    struct capbuf text;
    struct image i = {0};
    struct err e = ERR_INIT;
    capbuf_init(&text, 1u << 20);
    (void)capbuf_printf(&text,
                        ".version 8.0\n.target sm_80\n.address_size 64\n"
                        ".entry l%0150d(.param .u64 a) .maxntid 8 { ret; }\n"
                        ".entry few(.param .f32 a) { ret; }\n.entry many(.param .u16 a",
                        7);
    for (unsigned k = 0; k < IMAGE_ARGS_MAX; k++) {
        (void)capbuf_printf(&text, ", .param .b128 a%u", k);
    }
    (void)capbuf_printf(&text, ") { ret; }\n.entry none() { ret; }\n");
    ck_assert_msg(image_ptx_read(capbuf_view(&text), &sm_90, &i, &e) == 0, "%s", e.text);
    ck_assert_uint_eq(i.kernel_count, 3);
    ck_assert_uint_eq(i.left_out, 1);
    ck_assert_uint_eq(find(&i, "few")->arg_count, 1);
    ck_assert_uint_eq(find(&i, "few")->max_group, 0);
    ck_assert_ptr_nonnull(strstr(find(&i, "many")->unfit, "over 128 arguments"));
    ck_assert_uint_eq(find(&i, "many")->arg_count, 0);
    ck_assert_uint_eq(find(&i, "none")->arg_count, 0);
    ck_assert_str_eq(find(&i, "none")->unfit, "");
    image_finish(&i);
    capbuf_finish(&text);
}
END_TEST

static const struct {
    const char *text, *why;
    int code;
} bad_ptx[] = {
    {"", "this is no PTX", ERR_INVALID},
    {"hello", "this is no PTX", ERR_INVALID},
    {".version 8.0", "no .target", ERR_INVALID},
    {".version 8.0\n.target nonsense\n", "architecture", ERR_INVALID},
    {".version 8.0\n.target sm_100\n.address_size 64\n.entry f() { ret; }",
     "the PTX is for sm_100, the device is sm_90", ERR_UNSUPPORTED},
    {".version 8.0\n.target sm_80a\n.address_size 64\n.entry f() { ret; }", "sm_80a",
     ERR_UNSUPPORTED},
    {".version 8.0\n.target sm_80\n.address_size 32\n.entry f() { ret; }", "64 bits", ERR_INVALID},
    {".version 8.0\n.target sm_80\n.address_size 64\n", "no .entry", ERR_INVALID},
    {".version 8.0\n.target sm_80\n.address_size 64\n.entry f() { ret;", "cut off", ERR_INVALID},
    {".version 8.0\n.target sm_80\n.address_size 64\n.entry f(.param .u64 x", "do not end",
     ERR_INVALID},
    {".version 8.0\n.target sm_80\n.address_size 64\n.entry f(.param .b8 x[0]) {}", "no size",
     ERR_INVALID},
    {".version 8.0\n.target sm_80\n.address_size 64\n.entry f(x) {}", "unknown type", ERR_INVALID},
    {".version 8.0\n.target sm_80\n.address_size 64\n.entry f();", "without a body", ERR_INVALID},
    {".version 8.0\n.target sm_80\n.address_size 64\n.entry f()", "without a body", ERR_INVALID},
};

START_TEST(refuses_ptx)
{
    struct image i = {0};
    struct err e = ERR_INIT;
    ck_assert_int_eq(image_ptx_read(bytes_str(bad_ptx[_i].text), &sm_90, &i, &e), bad_ptx[_i].code);
    ck_assert_msg(strstr(e.text, bad_ptx[_i].why) != NULL, "%s", e.text);
}
END_TEST

START_TEST(any_ptx_does_no_harm)
{
    for (size_t size = 0; size < sizeof ptx; size++) {
        for (const char *c = "\n({[,\"/*;.\xff"; *c != '\0'; c++) {
            struct image i = {0};
            char *copy = malloc(size + 1);
            memcpy(copy, ptx, size);
            copy[size] = *c;
            if (image_ptx_read(bytes_of(copy, size + 1), &sm_90, &i, NULL) == 0) {
                image_finish(&i);
            }
            free(copy);
        }
    }
}
END_TEST

START_TEST(a_module_has_so_many_kernels)
{
    struct capbuf text;
    struct image i = {0};
    struct err e = ERR_INIT;
    capbuf_init(&text, 1u << 20);
    (void)capbuf_printf(&text, ".version 8.0\n.target sm_80\n.address_size 64\n");
    for (unsigned k = 0; k < 10000; k++) {
        (void)capbuf_printf(&text, ".entry k%u() { ret; }\n", k);
    }
    ck_assert_int_eq(image_ptx_read(capbuf_view(&text), &sm_90, &i, &e), ERR_LIMIT);
    ck_assert_ptr_nonnull(strstr(e.text, "256 kernels"));
    capbuf_finish(&text);
}
END_TEST

/* ---- through cuda_compile -------------------------------------------------------------------- */

static int given(int lang, struct bytes text, struct backend_compiled *out, struct err *e)
{
    struct backend_source s = {
        .lang = lang, .text = text, .file = "m.bin", .options = "", .arch = "sm_90"};
    return cuda_compile(0, &s, out, e);
}

static void expect_letters(struct bytes kinds, const char *entry, const char *letters)
{
    const char *name;
    const char *text;
    while (cuda_binary_next(&kinds, &name, &text)) {
        if (strcmp(name, entry) == 0) {
            ck_assert_str_eq(text, letters);
            return;
        }
    }
    ck_abort_msg("no kernel %s", entry);
}

START_TEST(a_users_cubin_is_wrapped_with_its_types)
{
    struct backend_compiled c = {0};
    struct err e = ERR_INIT;
    struct cuda_binary parts;
    ck_assert_msg(given(BACKEND_LANG_CUBIN, cubin, &c, &e) == 0, "%s", e.text);
    ck_assert_uint_eq(c.kernel_count, 2);
    ck_assert_int_eq(cuda_binary_unwrap("sm_90", bytes_of(c.binary, c.binary_size), &parts, &e), 0);
    ck_assert(bytes_equal(parts.payload, cubin));
    expect_letters(parts.kinds, "_Z3twoPKi", "m");
    expect_letters(parts.kinds, "one", "?vv");
    backend_compiled_finish(&c);
}
END_TEST

START_TEST(a_users_ptx_is_wrapped_as_it_is)
{
    struct backend_compiled c = {0};
    struct err e = ERR_INIT;
    struct cuda_binary parts;
    ck_assert_msg(given(BACKEND_LANG_PTX, bytes_str(ptx), &c, &e) == 0, "%s", e.text);
    ck_assert_int_eq(cuda_binary_unwrap("sm_90", bytes_of(c.binary, c.binary_size), &parts, &e), 0);
    ck_assert(bytes_equal(parts.payload, bytes_str(ptx)));
    backend_compiled_finish(&c);
    ck_assert_msg(given(BACKEND_LANG_PTX, bytes_of(ptx, sizeof ptx), &c, &e) == 0, "%s", e.text);
    backend_compiled_finish(&c);
    ck_assert_int_eq(given(BACKEND_LANG_PTX, bytes_of("a\0b", 3), &c, &e), ERR_INVALID);
    ck_assert_int_eq(given(BACKEND_LANG_CUBIN, bytes_str("hello"), &c, &e), ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(e.text, "neither a cubin nor a fatbin"));
    ck_assert_int_eq(given(BACKEND_LANG_SPIRV, bytes_str("hello"), &c, &e), ERR_UNSUPPORTED);
}
END_TEST

/* The driver decompresses by itself; of PTX it makes code. */
START_TEST(a_compressed_fatbin_is_wrapped_unchanged)
{
    const struct bytes fat = bytes_of(fat_of[_i].data, fat_of[_i].size);
    struct backend_compiled c = {0};
    struct err e = ERR_INIT;
    struct cuda_binary parts;
    if (!readable(packed[_i].name)) {
        return;
    }
    ck_assert_msg(given(BACKEND_LANG_CUBIN, fat, &c, &e) == 0, "%s", e.text);
    ck_assert_uint_eq(c.kernel_count, 2);
    ck_assert_int_eq(cuda_binary_unwrap("sm_90", bytes_of(c.binary, c.binary_size), &parts, &e), 0);
    ck_assert(bytes_equal(parts.payload, fat));
    backend_compiled_finish(&c);
}
END_TEST

int main(void)
{
    int rc = make(source, &made, &cubin);
    if (rc == ERR_UNSUPPORTED) {
        fprintf(stderr, "skipped: no NVRTC to make a cubin with\n");
        return SKIPPED;
    }
    if (rc != 0) {
        return EXIT_FAILURE;
    }
    Suite *suite = suite_create("cuda image");
    TCase *t = tcase_create("image");
    tcase_set_timeout(t, 110);
    tcase_add_test(t, reads_a_cubin);
    tcase_add_test(t, reads_large_parameters);
    tcase_add_test(t, a_parameter_that_is_cut_off_is_damage);
    tcase_add_test(t, names_the_architectures);
    tcase_add_test(t, every_truncation_is_refused);
    tcase_add_loop_test(t, every_flipped_bit_does_no_harm, 0, 8);
    tcase_add_test(t, a_fatbin_gives_its_best_entry);
    tcase_add_test(t, a_fatbin_without_a_match_lists_what_it_has);
    tcase_add_test(t, an_unknown_packing_is_named);
    TCase *c = tcase_create("compressed");
    suite_add_tcase(suite, c);
    tcase_set_timeout(c, 110);
    if (packed_make_all()) {
        tcase_add_loop_test(c, what_nvcc_compressed_is_read, 0, PACKED_COUNT);
        tcase_add_loop_test(c, damage_in_compressed_code_does_no_harm, 0, PACKED_COUNT);
        tcase_add_loop_test(c, a_compressed_size_is_bounded, 0, PACKED_COUNT - 1);
        tcase_add_loop_test(c, a_compressed_fatbin_is_wrapped_unchanged, 0, PACKED_COUNT);
    } else {
        fprintf(stderr, "no nvcc: compressed fatbins are not tried\n");
    }
    tcase_add_test(t, a_damaged_fatbin_does_no_harm);
    tcase_add_test(t, reads_ptx);
    tcase_add_test(t, a_kernel_that_does_not_fit_spoils_no_other);
    tcase_add_loop_test(t, refuses_ptx, 0, sizeof bad_ptx / sizeof bad_ptx[0]);
    tcase_add_test(t, any_ptx_does_no_harm);
    tcase_add_test(t, a_module_has_so_many_kernels);
    tcase_add_test(t, a_users_cubin_is_wrapped_with_its_types);
    tcase_add_test(t, a_users_ptx_is_wrapped_as_it_is);
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    backend_compiled_finish(&made);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
