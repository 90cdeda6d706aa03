#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/proto/sample.h"

/* ---- allocations of the linked code, counted by the linker's --wrap ----------------------- */

static size_t allocations;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *data, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *data, size_t size);

void *__wrap_malloc(size_t size)
{
    allocations++;
    return __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    allocations++;
    return __real_calloc(count, size);
}

void *__wrap_realloc(void *data, size_t size)
{
    allocations++;
    return __real_realloc(data, size);
}

/* ---- helpers ------------------------------------------------------------------------------ */

static struct capbuf encoded(const struct schema *schema, const void *value)
{
    struct capbuf out;
    capbuf_init(&out, PROTO_MESSAGE_MAX);
    struct err e = ERR_INIT;
    ck_assert_msg(proto_encode(schema, value, &out, &e) == 0, "%s", e.text);
    return out;
}

/* A copy of exactly that size, so that a sanitizer sees any step beyond it. */
static struct bytes exact(struct bytes b)
{
    uint8_t *copy = malloc(b.size > 0 ? b.size : 1);
    ck_assert_ptr_nonnull(copy);
    if (b.size > 0) {
        memcpy(copy, b.data, b.size);
    }
    return bytes_of(copy, b.size);
}

static void check_exact(const struct schema *schema, struct bytes message, bool *ret_accepted)
{
    struct bytes copy = exact(message);
    const char *wrong = sample_check(schema, copy, ret_accepted);
    ck_assert_msg(wrong == NULL, "%s: %s", schema->name, wrong != NULL ? wrong : "");
    free((void *)(uintptr_t)copy.data);
}

static void expect_text(const struct schema *schema, struct bytes message, const char *text)
{
    struct sample_value value;
    struct err e = ERR_INIT;
    ck_assert_int_eq(proto_decode(schema, message, &value, &e), ERR_PROTOCOL);
    ck_assert_str_eq(e.text, text);
}

/* ---- tests -------------------------------------------------------------------------------- */

START_TEST(random_messages_round_trip)
{
    for (size_t k = 0; sample_schemas[k] != NULL; k++) {
        const struct schema *schema = sample_schemas[k];
        for (uint64_t seed = 0; seed < 30; seed++) {
            struct sample s;
            sample_init(&s, seed * 1000 + k, seed % 3 != 0);
            struct sample_value made;
            struct sample_value got;
            sample_make(&s, schema, &made);
            struct capbuf out = encoded(schema, &made);
            struct err e = ERR_INIT;
            ck_assert_uint_eq(proto_kind(capbuf_view(&out)), schema->kind);
            ck_assert_msg(proto_decode(schema, capbuf_view(&out), &got, &e) == 0, "%s", e.text);
            ck_assert_msg(sample_equal(schema, &made, &got), "%s, seed %d", schema->name,
                          (int)seed);
            bool accepted = false;
            check_exact(schema, capbuf_view(&out), &accepted);
            ck_assert(accepted);
            capbuf_finish(&out);
            sample_finish(&s);
        }
    }
}
END_TEST

START_TEST(every_truncation_fails)
{
    for (size_t k = 0; sample_schemas[k] != NULL; k++) {
        const struct schema *schema = sample_schemas[k];
        for (uint64_t seed = 0; seed < 3; seed++) {
            struct sample s;
            sample_init(&s, seed * 77 + k, true);
            struct sample_value made;
            sample_make(&s, schema, &made);
            struct capbuf out = encoded(schema, &made);
            for (size_t size = 0; size < out.size; size++) {
                bool accepted = true;
                check_exact(schema, bytes_of(out.data, size), &accepted);
                ck_assert_msg(!accepted, "%s: %d of %d bytes", schema->name, (int)size,
                              (int)out.size);
            }
            capbuf_finish(&out);
            sample_finish(&s);
        }
    }
}
END_TEST

START_TEST(every_changed_byte_is_safe)
{
    size_t kept = 0;
    size_t refused = 0;
    for (size_t k = 0; sample_schemas[k] != NULL; k++) {
        const struct schema *schema = sample_schemas[k];
        struct sample s;
        sample_init(&s, k + 5, true);
        struct sample_value made;
        sample_make(&s, schema, &made);
        struct capbuf out = encoded(schema, &made);
        unsigned stride = out.size < 200 ? 1 : 17;
        for (size_t i = 0; i < out.size; i++) {
            uint8_t was = out.data[i];
            for (unsigned change = 1; change < 256; change += stride) {
                out.data[i] = (uint8_t)(was ^ change);
                bool accepted = false;
                check_exact(schema, capbuf_view(&out), &accepted);
                kept += accepted;
                refused += !accepted;
            }
            out.data[i] = was;
        }
        capbuf_finish(&out);
        sample_finish(&s);
    }
    /* both happen, else the test looks at nothing */
    ck_assert_uint_gt(kept, 1000);
    ck_assert_uint_gt(refused, 1000);
}
END_TEST

START_TEST(decoding_allocates_nothing)
{
    for (size_t k = 0; sample_schemas[k] != NULL; k++) {
        const struct schema *schema = sample_schemas[k];
        struct sample s;
        sample_init(&s, k, false);
        struct sample_value made;
        struct sample_value got;
        sample_make(&s, schema, &made);
        struct capbuf out = encoded(schema, &made);
        struct err e = ERR_INIT;
        ck_assert_uint_gt(allocations, 0);
        size_t before = allocations;
        int whole = proto_decode(schema, capbuf_view(&out), &got, &e);
        int cut = proto_decode(schema, bytes_of(out.data, out.size - 1), &got, &e);
        size_t after = allocations;
        ck_assert_uint_eq(after, before);
        ck_assert_int_eq(whole, 0);
        ck_assert_int_eq(cut, ERR_PROTOCOL);
        capbuf_finish(&out);
        sample_finish(&s);
    }
}
END_TEST

START_TEST(lengths_that_are_not_there)
{
    static const uint8_t text[] = {0x94, 20, 1, 0, 0xdb, 0xff, 0xff, 0xff, 0xff, 'x'};
    static const uint8_t array[] = {0xdd, 0xff, 0xff, 0xff, 0xff};
    static const uint8_t fields[] = {0xdd, 0xff, 0xff, 0xff, 0xff, 2, 1, 1};
    static const uint8_t rows[] = {0x94, 77, 0xa1, 't', 0x90, 0xdd, 0x00, 0x00, 0xff, 0xff};
    static const uint8_t bin[] = {0x96, 1, 0, 0, 0, 0, 0xc6, 0xff, 0xff, 0xff, 0xff};
    expect_text(&schema_msg_query, bytes_of(text, sizeof text), "query: what: message ends early");
    expect_text(&schema_msg_bye, bytes_of(array, sizeof array),
                "bye: not a list that starts with a kind");
    expect_text(&schema_msg_bye, bytes_of(fields, sizeof fields),
                "bye: surplus field: message ends early");
    expect_text(&schema_msg_table, bytes_of(rows, sizeof rows),
                "table: rows[0]: message ends early");
    expect_text(&schema_msg_hello, bytes_of(bin, sizeof bin),
                "hello: client_id: message ends early");
    expect_text(&schema_msg_bye, bytes_of(NULL, 0), "bye: empty message");
    ck_assert_uint_eq(proto_kind(bytes_of(NULL, 0)), MSG_KIND_NONE);
    ck_assert(!proto_well_formed(bytes_of(NULL, 0)));
    ck_assert(!proto_well_formed(bytes_of(array, sizeof array)));
    ck_assert(proto_well_formed(bytes_of("\x92\x3f\x91\xc0", 4)));
    ck_assert(!proto_well_formed(bytes_of("\x92\x3f\x91", 3)));
    ck_assert(!proto_well_formed(bytes_of("\x92\x3f\x91\xc0\x00", 5)));
    ck_assert_uint_eq(proto_kind(bytes_of(array, sizeof array)), MSG_KIND_NONE);
}
END_TEST

START_TEST(surplus_fields_are_skipped_to_a_depth)
{
    uint8_t message[4 + 9 + 1] = {0x94, MSG_KIND_BYE, 1, 0};
    struct msg_bye bye;
    struct err e = ERR_INIT;
    memset(message + 4, 0x91, 8);
    message[12] = 0x05;
    ck_assert_msg(proto_decode(&schema_msg_bye, bytes_of(message, 13), &bye, &e) == 0, "%s",
                  e.text);
    ck_assert_uint_eq(bye.seq, 1);
    message[12] = 0x91;
    message[13] = 0x05;
    expect_text(&schema_msg_bye, bytes_of(message, 14), "bye: surplus field: nested deeper than 8");
    size_t size = 4 << 20;
    uint8_t *deep = malloc(size);
    ck_assert_ptr_nonnull(deep);
    memcpy(deep, message, 4);
    memset(deep + 4, 0x91, size - 4);
    expect_text(&schema_msg_bye, bytes_of(deep, size), "bye: surplus field: nested deeper than 8");
    free(deep);
    /* one of every other kind of value */
    static const uint8_t all[] = {0xdc, 0x00, 0x17, MSG_KIND_BYE,
                                  7,    8,    0xc3, 0xca,
                                  1,    2,    3,    4,
                                  0xcb, 1,    2,    3,
                                  4,    5,    6,    7,
                                  8,    0xd4, 1,    2,
                                  0xc7, 1,    9,    0xaa,
                                  0x81, 1,    2,    0xc0,
                                  0xa1, 'x',  0xd9, 1,
                                  'y',  0xc4, 1,    0,
                                  1,    0xe0, 0xd0, 0x80,
                                  0xcc, 1,    0xde, 0,
                                  0,    0xdc, 0,    0,
                                  0xdf, 0,    0,    0,
                                  0,    0x80, 0x90, 0xcd,
                                  0,    1};
    ck_assert_msg(proto_decode(&schema_msg_bye, bytes_of(all, sizeof all), &bye, &e) == 0, "%s",
                  e.text);
    ck_assert_uint_eq(bye.ack, 8);
    static const uint8_t unused[] = {0x94, MSG_KIND_BYE, 1, 0, 0xc1};
    expect_text(&schema_msg_bye, bytes_of(unused, sizeof unused),
                "bye: surplus field: value starts with 0xc1, a msgpack value expected");
}
END_TEST

START_TEST(limits_are_named)
{
    struct capbuf args;
    struct capbuf steps;
    struct capbuf out;
    capbuf_init(&args, 4096);
    capbuf_init(&steps, 4096);
    struct proto_arg arg = {.tag = ARG_BUFFER, .handle = 7};
    for (int i = 0; i < 128; i++) {
        ck_assert_int_eq(proto_list_add(&schema_arg, &arg, &args, NULL), 0);
    }
    struct proto_step step = {.op = OP_LAUNCH};
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(proto_list_add(&schema_step, &step, &steps, NULL), 0);
    }
    step.args = proto_list_of(&args, 128);
    ck_assert_int_eq(proto_list_add(&schema_step, &step, &steps, NULL), 0);
    struct msg_submit submit = {.seq = 1, .steps = proto_list_of(&steps, 4)};
    out = encoded(&schema_msg_submit, &submit);
    uint8_t *head = memmem(out.data, out.size, "\xdc\x00\x80", 3);
    ck_assert_ptr_nonnull(head);
    head[2] = 140;
    expect_text(&schema_msg_submit, capbuf_view(&out),
                "submit: steps[3].args: 140 records, at most 128");
    head[2] = 128;
    uint8_t *tag = memmem(out.data, out.size, "\x93\x01\x00\x07", 4);
    ck_assert_ptr_nonnull(tag);
    tag[1] = 9;
    expect_text(&schema_msg_submit, capbuf_view(&out),
                "submit: steps[3].args[0].tag: 9, at most 8");
    capbuf_finish(&out);

    /* the encoder holds to the same limits and leaves nothing behind */
    struct err e = ERR_INIT;
    capbuf_init(&out, 4096);
    step.args.count = 129;
    ck_assert_int_eq(proto_list_add(&schema_step, &step, &out, &e), ERR_LIMIT);
    ck_assert_str_eq(e.text, "step: args: 129 records, at most 128");
    char name[PROTO_NAME_MAX + 2];
    memset(name, 'n', sizeof name);
    struct msg_query query = {.what = bytes_of(name, PROTO_NAME_MAX + 1)};
    ck_assert_int_eq(proto_encode(&schema_msg_query, &query, &out, &e), ERR_LIMIT);
    ck_assert_str_eq(e.text, "query: what: 65 bytes, at most 64");
    query.what = bytes_of("a\0b", 3);
    ck_assert_int_eq(proto_encode(&schema_msg_query, &query, &out, &e), ERR_INVALID);
    struct msg_welcome welcome = {.resumed = 2};
    ck_assert_int_eq(proto_encode(&schema_msg_welcome, &welcome, &out, &e), ERR_LIMIT);
    ck_assert_uint_eq(out.size, 0);
    capbuf_finish(&out);
    capbuf_init(&out, 10);
    query.what = bytes_of(name, 32);
    ck_assert_int_eq(proto_encode(&schema_msg_query, &query, &out, &e), ERR_NOMEM);
    ck_assert_uint_eq(out.size, 0);
    capbuf_finish(&out);
    capbuf_finish(&args);
    capbuf_finish(&steps);
}
END_TEST

/* Texts of clients are shown to other users, so they are checked. Texts of the daemon may quote
 * invalid ones. */
START_TEST(texts_of_requests_are_utf8)
{
    static const char *const bad[] = {
        "a\x80",        "\xc0\xaf",         "\xe0\x9f\xbf", "\xf0\x8f\xbf\xbf",
        "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82",     "\xff"};
    struct err e = ERR_INIT;
    struct capbuf out;
    struct capbuf params;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct msg_query query = {.what = bytes_str("xxxxxxxx")};
        query.what.size = strlen(bad[i]);
        out = encoded(&schema_msg_query, &query);
        uint8_t *text = memmem(out.data, out.size, "x", 1);
        ck_assert_ptr_nonnull(text);
        memcpy(text, bad[i], query.what.size);
        expect_text(&schema_msg_query, capbuf_view(&out), "query: what: text is not UTF-8");
        out.size = 0;
        query.what = bytes_str(bad[i]);
        ck_assert_int_eq(proto_encode(&schema_msg_query, &query, &out, &e), ERR_INVALID);
        ck_assert_str_eq(e.text, "query: what: text is not UTF-8");
        ck_assert_uint_eq(out.size, 0);
        capbuf_finish(&out);
        struct msg_explanation answer = {.text = bytes_str(bad[i])};
        struct msg_explanation read;
        out = encoded(&schema_msg_explanation, &answer);
        ck_assert_int_eq(proto_decode(&schema_msg_explanation, capbuf_view(&out), &read, &e), 0);
        capbuf_finish(&out);
    }
    /* in records, too */
    struct proto_param param = {.name = bytes_str("\xff"), .kind = PARAM_SCALAR};
    capbuf_init(&params, 256);
    ck_assert_int_eq(proto_list_add(&schema_param, &param, &params, NULL), 0);
    struct msg_program_create program = {.name = bytes_str("\xc3\xa4 \xe2\x82\xac"),
                                         .params = proto_list_of(&params, 1)};
    out = encoded(&schema_msg_program_create, &program);
    expect_text(&schema_msg_program_create, capbuf_view(&out),
                "program_create: params[0].name: text is not UTF-8");
    capbuf_finish(&out);
    capbuf_finish(&params);
}
END_TEST

START_TEST(wrong_types_are_named)
{
    static const uint8_t bin_for_text[] = {0x94, 20, 0, 0, 0xc4, 1, 'x'};
    static const uint8_t text_for_bin[] = {0x96, 1, 0, 0, 0, 0, 0xa1, 'x'};
    static const uint8_t nul[] = {0x94, 20, 0, 0, 0xa1, 0};
    static const uint8_t negative[] = {0x92, 2, 0xff};
    static const uint8_t negative_wide[] = {0x92, 2,    0xd3, 0xff, 0xff, 0xff,
                                            0xff, 0xff, 0xff, 0xff, 0};
    static const uint8_t huge[] = {0x92, 64, 0xcf, 0x80, 0, 0, 0, 0, 0, 0, 0};
    static const uint8_t boolean[] = {0x92, 2, 0xc3};
    static const uint8_t behind[] = {0x92, 2, 1, 0};
    static const uint8_t other[] = {0x91, 3};
    static const uint8_t nil[] = {0x95, 20, 0xc0, 0xc0, 0xc0, 0xa1, 'f'};
    expect_text(&schema_msg_query, bytes_of(bin_for_text, sizeof bin_for_text),
                "query: what: value starts with 0xc4, text expected");
    expect_text(&schema_msg_hello, bytes_of(text_for_bin, sizeof text_for_bin),
                "hello: client_id: value starts with 0xa1, bytes expected");
    expect_text(&schema_msg_query, bytes_of(nul, sizeof nul), "query: what: text with a NUL byte");
    expect_text(&schema_msg_bye, bytes_of(negative, sizeof negative),
                "bye: seq: value does not fit: at least 0 expected");
    expect_text(&schema_msg_bye, bytes_of(negative_wide, sizeof negative_wide),
                "bye: seq: value does not fit: at least 0 expected");
    expect_text(&schema_msg_error, bytes_of(huge, sizeof huge),
                "error: code: value does not fit: at most 2^63 - 1 expected");
    expect_text(&schema_msg_bye, bytes_of(boolean, sizeof boolean),
                "bye: seq: value starts with 0xc3, unsigned integer expected");
    expect_text(&schema_msg_bye, bytes_of(behind, sizeof behind), "bye: 1 bytes after the message");
    expect_text(&schema_msg_bye, bytes_of(other, sizeof other),
                "bye: message of kind 3, expected 2");
    struct msg_query query;
    ck_assert_int_eq(proto_decode(&schema_msg_query, bytes_of(nil, sizeof nil), &query, NULL), 0);
    ck_assert_uint_eq(query.what.size, 0);
    ck_assert(bytes_equal_str(query.filter, "f"));
}
END_TEST

/* The record that comes with the message is the one that its list gives first. */
START_TEST(first_records_come_with_their_message)
{
    struct capbuf records;
    struct capbuf out;
    struct err e = ERR_INIT;
    capbuf_init(&records, 4096);
    capbuf_init(&out, 4096);
    const struct proto_output output = {.step = 3, .data = bytes_str("bytes")};
    ck_assert_int_eq(proto_list_add(&schema_output, &output, &records, &e), 0);
    const struct proto_result result = {
        .job = 42, .step = -1, .arg = 7, .outputs = proto_list_of(&records, 1), .queued_ns = 300};
    struct capbuf list;
    capbuf_init(&list, 4096);
    ck_assert_int_eq(proto_list_add(&schema_result, &result, &list, &e), 0);
    struct msg_results m = {.results = proto_list_of(&list, 1)};
    for (unsigned count = 0; count < 2; count++) {
        struct msg_results back;
        struct proto_result first;
        struct proto_result next = {0};
        m.results.count = count;
        capbuf_reset(&out);
        ck_assert_int_eq(proto_encode(&schema_msg_results, &m, &out, &e), 0);
        memset(&first, 0xff, sizeof first);
        ck_assert_int_eq(proto_decode_first(&schema_msg_results, capbuf_view(&out), &back,
                                            &schema_result, &first, &e),
                         0);
        ck_assert_uint_eq(back.results.count, count);
        struct proto_iter it = proto_iter_of(back.results);
        ck_assert(proto_list_next(&it, &schema_result, &next) == (count == 1));
        ck_assert_mem_eq(&first, &next, sizeof next);
        ck_assert_int_eq(first.step, count == 1 ? -1 : 0);
    }
    capbuf_finish(&records);
    capbuf_finish(&list);
    capbuf_finish(&out);
}
END_TEST

START_TEST(schemas_are_found_by_kind)
{
    for (size_t k = 0; sample_schemas[k] != NULL; k++) {
        ck_assert_ptr_eq(schema_find(sample_schemas[k]->kind), sample_schemas[k]);
    }
    ck_assert_ptr_null(schema_find(0));
    ck_assert_ptr_null(schema_find(63));
    ck_assert_ptr_null(schema_find(UINT32_MAX));
}
END_TEST

START_TEST(errors_survive_the_wire)
{
    struct err e = ERR_INIT;
    (void)err_set_vendor(&e, ERR_LAUNCH, 719, "argument y: 4096 bytes, kernel needs 8192");
    (void)err_wrap(&e, "launch axpy");
    e.arg = 2;
    e.effects = ERR_EFFECTS_MAYBE;
    e.retry_after_ns = 5;
    struct msg_error sent;
    struct msg_error received;
    proto_error_from(&e, &sent);
    struct capbuf out = encoded(&schema_msg_error, &sent);
    ck_assert_int_eq(proto_decode(&schema_msg_error, capbuf_view(&out), &received, NULL), 0);
    struct err back;
    proto_error_to(&received, &back);
    ck_assert_int_eq(back.code, ERR_LAUNCH);
    ck_assert_int_eq(back.vendor, 719);
    ck_assert_int_eq(back.step, -1);
    ck_assert_int_eq(back.arg, 2);
    ck_assert_int_eq(back.effects, ERR_EFFECTS_MAYBE);
    ck_assert_uint_eq(back.retry_after_ns, 5);
    ck_assert_str_eq(back.text, e.text);
    capbuf_finish(&out);

    char text[ERR_TEXT_MAX + 10];
    memset(text, 'a', sizeof text);
    static const uint8_t euro[] = {0xe2, 0x82, 0xac};
    memcpy(text + ERR_TEXT_MAX - 2, euro, sizeof euro); /* would be cut inside */
    struct msg_error odd = {
        .code = 3, .vendor = INT64_MAX, .step = INT64_MIN, .text = bytes_of(text, sizeof text)};
    proto_error_to(&odd, &back);
    ck_assert_int_eq(back.code, ERR_INTERNAL);
    ck_assert_int_eq(back.vendor, 0);
    ck_assert_int_eq(back.step, -1);
    ck_assert_uint_eq(strlen(back.text), ERR_TEXT_MAX - 2);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("codec");
    TCase *tc = tcase_create("codec");
    tcase_set_timeout(tc, 100);
    tcase_add_test(tc, random_messages_round_trip);
    tcase_add_test(tc, every_truncation_fails);
    tcase_add_test(tc, every_changed_byte_is_safe);
    tcase_add_test(tc, decoding_allocates_nothing);
    tcase_add_test(tc, lengths_that_are_not_there);
    tcase_add_test(tc, surplus_fields_are_skipped_to_a_depth);
    tcase_add_test(tc, limits_are_named);
    tcase_add_test(tc, wrong_types_are_named);
    tcase_add_test(tc, texts_of_requests_are_utf8);
    tcase_add_test(tc, first_records_come_with_their_message);
    tcase_add_test(tc, schemas_are_found_by_kind);
    tcase_add_test(tc, errors_survive_the_wire);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
