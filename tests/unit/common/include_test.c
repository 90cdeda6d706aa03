/* The time to expand a source's includes; the result is tested with gpuctl's headers. */
#include <stdio.h>

#include "common/include.h"
#include "tests/unit/common/suite.h"

#define SOURCE_BYTES (1024u * 1024u)

static int find_it(void *header, const char *from, const char *name, bool angle,
                   struct include_header *ret_header, struct err *e)
{
    (void)from;
    (void)name;
    (void)angle;
    (void)e;
    *ret_header = *(const struct include_header *)header;
    return 0;
}

/* Looked through once for each of its lines, a header of 1 MiB takes minutes. */
START_TEST(a_header_that_includes_itself_costs_its_size)
{
    char *text = malloc(SOURCE_BYTES);
    size_t size = 0;
    ck_assert_ptr_nonnull(text);
    size += (size_t)snprintf(text, SOURCE_BYTES, "#pragma once\n");
    while (size + 32 < SOURCE_BYTES) {
        size += (size_t)snprintf(text + size, SOURCE_BYTES - size, "#include \"h\"\n");
    }
    struct include_header header = {.number = 1, .path = "h", .text = bytes_of(text, size)};
    struct capbuf out;
    struct err e = ERR_INIT;
    bool any = false;
    capbuf_init(&out, (size_t)2 * SOURCE_BYTES);
    ck_assert_int_eq(
        include_expand("main.cu", bytes_str("#include \"h\"\n"), find_it, &header, &out, &any, &e),
        0);
    ck_assert(any);
    capbuf_finish(&out);
    free(text);
}
END_TEST

SUITE_MAIN("include", a_header_that_includes_itself_costs_its_size)
