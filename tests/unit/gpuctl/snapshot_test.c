/* Snapshots of pools in files: JSON, the page, RMM's log, the pickle. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "gpuctl/pool/pickle.h"
#include "gpuctl/pool/snapshot.h"
#include "tests/unit/common/suite.h"

/* Bytes that a writer gave; freed by the caller. */
static char *written(bool (*write)(const struct snapshot *snapshot, FILE *out),
                     const struct snapshot *snapshot, size_t *ret_size)
{
    char *data = NULL;
    FILE *memory = open_memstream(&data, ret_size);
    ck_assert_ptr_nonnull(memory);
    ck_assert(write(snapshot, memory));
    ck_assert_int_eq(ferror(memory), 0);
    ck_assert_int_eq(fclose(memory), 0);
    return data;
}

static char *texts[] = {"",
                        "alice",
                        "buffer",
                        "</script><script>alert(1)</script>",
                        "quote \" back \\ tab \t bell \a",
                        "no \xff utf \xc0\xaf \xed\xa0\x80 8",
                        "größe 数 🚀"};

/* 0: a, stays; 256: b, came in the log; 1024: lived before and went; 512: came and went. */
static struct snapshot_piece pieces[] = {
    {.at = 0, .size = 256, .state = SNAPSHOT_LIVE, .tenant = 1, .kind = 2, .label = 3, .id = 7},
    {.at = 256, .size = 256, .state = SNAPSHOT_LIVE, .tenant = 1, .kind = 2, .label = 5, .id = 8},
    {.at = 512, .size = 2048, .state = SNAPSHOT_FREE},
    {.at = 2560, .size = 1 << 20, .state = SNAPSHOT_VOID},
};
static struct snapshot_event events[] = {
    {.number = 10, .kind = SNAPSHOT_ALLOC, .at = 512, .size = 256, .tenant = 1, .name = 4},
    {.number = 11, .kind = SNAPSHOT_RELEASE, .at = 1024, .size = 512, .name = 4},
    {.number = 12, .kind = SNAPSHOT_STAMP, .at = 900, .name = 6},
    {.number = 13, .kind = SNAPSHOT_RELEASE, .at = 512, .size = 256, .tenant = 1, .name = 4},
    {.number = 14, .kind = SNAPSHOT_HIT, .at = 256, .size = 256, .tenant = 1, .name = 4},
    {.number = 15, .kind = SNAPSHOT_REFUSE, .size = 1 << 30, .name = 4},
};
static struct snapshot_device device = {.id = 0,
                                        .answered = true,
                                        .taken_ns = 1000,
                                        .wall_ns = UINT64_C(1700000000123456789),
                                        .pieces = pieces,
                                        .events = events,
                                        .piece_count = 4,
                                        .event_count = 6};
static const struct snapshot snapshot = {
    .devices = &device, .device_count = 1, .texts = texts, .text_count = 7};

START_TEST(json_is_json)
{
    size_t size;
    json_error_t why;
    char *data = written(snapshot_write_json, &snapshot, &size);
    json_t *root = json_loadb(data, size, 0, &why);
    ck_assert_msg(root != NULL, "%s: %s", why.text, data);
    const json_t *d = json_array_get(json_object_get(root, "devices"), 0);
    ck_assert_uint_eq(json_array_size(json_object_get(d, "pieces")), 4);
    const json_t *a = json_array_get(json_object_get(d, "pieces"), 0);
    ck_assert_str_eq(json_string_value(json_object_get(a, "label")), texts[3]);
    const json_t *b = json_array_get(json_object_get(d, "pieces"), 1);
    ck_assert_str_eq(json_string_value(json_object_get(b, "label")), "no ? utf ?? ??? 8");
    const json_t *e = json_array_get(json_object_get(d, "events"), 2);
    ck_assert_str_eq(json_string_value(json_object_get(e, "kind")), texts[6]);
    json_decref(root);
    free(data);
}
END_TEST

/* A label cannot end the script that the data stands in. */
START_TEST(labels_stay_within_the_page)
{
    size_t size;
    char *data = written(snapshot_write_page, &snapshot, &size);
    ck_assert_ptr_eq(strstr(data, "<!doctype html>"), data);
    ck_assert_ptr_null(strstr(data, "alert(1)</script>"));
    ck_assert_ptr_null(strstr(data, "@DATA@"));
    ck_assert_ptr_nonnull(strstr(data, "alert(1)"));
    const char *begin = strstr(data, "id=\"data\">");
    ck_assert_ptr_nonnull(begin);
    const char *end = strstr(begin, "</script>");
    json_t *root = json_loadb(begin + 10, (size_t)(end - begin - 10), 0, NULL);
    ck_assert_ptr_nonnull(root);
    json_decref(root);
    free(data);
}
END_TEST

START_TEST(the_log_goes_backwards)
{
    uint32_t count = 0;
    uint32_t made[6];
    struct snapshot_piece *live = snapshot_live(&device, &count);
    ck_assert_uint_eq(count, 2);
    count = snapshot_rewind(&device, live, count, made);
    ck_assert_uint_eq(count, 2);
    ck_assert_uint_eq(live[0].at, 0);
    ck_assert_uint_eq(live[1].at, 1024);
    ck_assert_uint_eq(live[1].size, 512);
    ck_assert_uint_eq(made[4], 1);
    ck_assert_uint_eq(made[0], SNAPSHOT_NO_PIECE);
    free(live);
}
END_TEST

/* Two moves, and the free of a moved piece. A move is logged as a free and an allocation. */
static struct snapshot_event move_events[] = {
    {.number = 1, .kind = SNAPSHOT_HIT, .at = 4096, .size = 512, .tenant = 1},
    {.number = 2, .kind = SNAPSHOT_RELEASE, .at = 4096, .size = 512, .tenant = 1},
    {.number = 3, .kind = SNAPSHOT_HIT, .at = 1024, .size = 512, .tenant = 1},
    {.number = 4, .kind = SNAPSHOT_RELEASE, .at = 2048, .size = 256, .tenant = 1},
    {.number = 5, .kind = SNAPSHOT_ALLOC, .at = 256, .size = 256, .tenant = 1},
    {.number = 6, .kind = SNAPSHOT_RELEASE, .at = 1024, .size = 512, .tenant = 1},
};

START_TEST(what_moved_goes_backwards)
{
    struct snapshot_device d = device;
    d.events = move_events;
    uint32_t count = 0;
    uint32_t made[6];
    struct snapshot_piece *live = snapshot_live(&d, &count);
    count = snapshot_rewind(&d, live, count, made);
    ck_assert_uint_eq(count, 2);
    ck_assert_uint_eq(live[0].at, 0);
    ck_assert_uint_eq(live[1].at, 2048); /* where the second one was */
    ck_assert_uint_eq(live[1].size, 256);
    ck_assert_uint_eq(made[4], 1);
    free(live);
}
END_TEST

/* What contradicts itself ends all the same, within the memory that is there. */
START_TEST(a_log_that_contradicts_itself)
{
    struct snapshot_event odd[64];
    struct snapshot_device d = device;
    for (unsigned i = 0; i < 64; i++) {
        odd[i] =
            (struct snapshot_event){.kind = (uint8_t)(i * 7 % 3), .at = i % 5 * 256, .size = i};
    }
    d.events = odd;
    d.event_count = 64;
    uint32_t count = 0;
    struct snapshot_piece *live = snapshot_live(&d, &count);
    ck_assert_uint_le(snapshot_rewind(&d, live, count, NULL), 66);
    free(live);
    struct snapshot s = snapshot;
    s.devices = &d;
    bool (*const writers[])(const struct snapshot *, FILE *) = {
        snapshot_write_json, snapshot_write_page, snapshot_write_rmm, snapshot_write_pytorch};
    for (unsigned i = 0; i < 4; i++) {
        size_t size;
        char *data = written(writers[i], &s, &size);
        ck_assert_uint_gt(size, 100);
        free(data);
    }
}
END_TEST

START_TEST(rmm_lines)
{
    static const char *const lines[] = {"Thread,Time,Action,Pointer,Size,Stream",
                                        ",allocate,0x100,256,0x0",
                                        ",allocate,0x500,512,0x0",
                                        ",allocate,0x300,256,0x0",
                                        ",free,0x500,512,0x0",
                                        ",free,0x300,256,0x0",
                                        ",allocate,0x200,256,0x0",
                                        ",allocate failure,0x0,1073741824,0x0"};
    size_t size;
    char *data = written(snapshot_write_rmm, &snapshot, &size);
    char *at = data;
    for (unsigned i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        char *end = strchr(at, '\n');
        ck_assert_ptr_nonnull(end);
        *end = '\0';
        ck_assert_msg(strstr(at, lines[i]) != NULL, "%s instead of %s", at, lines[i]);
        at = end + 1;
    }
    ck_assert_str_eq(at, "");
    free(data);
}
END_TEST

/* As Python's pickletools has them. */
START_TEST(pickled_numbers)
{
    static const struct {
        uint64_t value;
        const char *bytes;
        size_t size;
    } numbers[] = {{0, "K\x00", 2},
                   {255, "K\xff", 2},
                   {256, "M\x00\x01", 3},
                   {65535, "M\xff\xff", 3},
                   {65536, "\x8a\x03\x00\x00\x01", 5},
                   {0x7fffff, "\x8a\x03\xff\xff\x7f", 5},
                   {0x800000, "\x8a\x04\x00\x00\x80\x00", 6},
                   {UINT64_C(1) << 62, "\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x40", 10},
                   {UINT64_MAX, "\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x00", 11}};
    for (unsigned i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        char *data = NULL;
        size_t size = 0;
        struct pickle p;
        FILE *memory = open_memstream(&data, &size);
        pickle_begin(&p, memory);
        pickle_uint(&p, numbers[i].value);
        pickle_end(&p);
        ck_assert_int_eq(fclose(memory), 0);
        ck_assert_uint_eq(size, numbers[i].size + 3);
        ck_assert_mem_eq(data, "\x80\x02", 2);
        ck_assert_mem_eq(data + 2, numbers[i].bytes, numbers[i].size);
        ck_assert_int_eq(data[size - 1], '.');
        free(data);
    }
}
END_TEST

SUITE_MAIN("snapshot", json_is_json, labels_stay_within_the_page, the_log_goes_backwards,
           what_moved_goes_backwards, a_log_that_contradicts_itself, rmm_lines, pickled_numbers)
