/* The codec against msgpack-c: each must read what the other wrote. */
#include <check.h>
#include <msgpack.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/proto/sample.h"

static bool same_bytes(struct bytes ours, const char *data, uint32_t size)
{
    return bytes_equal(ours, bytes_of(data, size));
}

static void check_fields(const struct schema *s, const uint8_t *value, const msgpack_object *fields,
                         size_t count);

static void check_list(const struct schema_field *f, struct proto_list list,
                       const msgpack_object *object)
{
    ck_assert_int_eq(object->type, MSGPACK_OBJECT_ARRAY);
    ck_assert_uint_eq(object->via.array.size, list.count);
    struct proto_iter it = proto_iter_of(list);
    for (uint32_t i = 0; i < object->via.array.size; i++) {
        struct sample_value record;
        const msgpack_object *element = &object->via.array.ptr[i];
        ck_assert(proto_list_next(&it, f->record, &record));
        ck_assert_int_eq(element->type, MSGPACK_OBJECT_ARRAY);
        check_fields(f->record, (const uint8_t *)&record, element->via.array.ptr,
                     element->via.array.size);
    }
}

static void check_field(const struct schema_field *f, const void *at, const msgpack_object *object)
{
    switch (f->type) {
    case SCHEMA_U:
        ck_assert_int_eq(object->type, MSGPACK_OBJECT_POSITIVE_INTEGER);
        ck_assert_uint_eq(object->via.u64, *(const uint64_t *)at);
        break;
    case SCHEMA_I:
        ck_assert(object->type == MSGPACK_OBJECT_POSITIVE_INTEGER ||
                  object->type == MSGPACK_OBJECT_NEGATIVE_INTEGER);
        ck_assert_int_eq(object->via.i64, *(const int64_t *)at);
        break;
    case SCHEMA_S:
        ck_assert_int_eq(object->type, MSGPACK_OBJECT_STR);
        ck_assert(same_bytes(*(const struct bytes *)at, object->via.str.ptr, object->via.str.size));
        break;
    case SCHEMA_B:
        ck_assert_int_eq(object->type, MSGPACK_OBJECT_BIN);
        ck_assert(same_bytes(*(const struct bytes *)at, object->via.bin.ptr, object->via.bin.size));
        break;
    case SCHEMA_L:
        check_list(f, *(const struct proto_list *)at, object);
        break;
    }
}

static void check_fields(const struct schema *s, const uint8_t *value, const msgpack_object *fields,
                         size_t count)
{
    ck_assert_uint_le(count, s->count);
    for (size_t i = 0; i < count; i++) {
        check_field(&s->fields[i], value + s->fields[i].offset, &fields[i]);
    }
}

START_TEST(msgpack_c_reads_what_we_write)
{
    for (size_t k = 0; sample_schemas[k] != NULL; k++) {
        const struct schema *schema = sample_schemas[k];
        for (uint64_t seed = 0; seed < 10; seed++) {
            struct sample s;
            sample_init(&s, seed * 31 + k, seed % 2 == 0);
            struct sample_value made;
            sample_make(&s, schema, &made);
            struct capbuf out;
            capbuf_init(&out, PROTO_MESSAGE_MAX);
            ck_assert_int_eq(proto_encode(schema, &made, &out, NULL), 0);
            msgpack_unpacked read;
            msgpack_unpacked_init(&read);
            size_t end = 0;
            ck_assert_int_eq(msgpack_unpack_next(&read, (const char *)out.data, out.size, &end),
                             MSGPACK_UNPACK_SUCCESS);
            ck_assert_uint_eq(end, out.size);
            ck_assert_int_eq(read.data.type, MSGPACK_OBJECT_ARRAY);
            ck_assert_uint_eq(read.data.via.array.ptr[0].via.u64, schema->kind);
            check_fields(schema, (const uint8_t *)&made, read.data.via.array.ptr + 1,
                         read.data.via.array.size - 1);
            msgpack_unpacked_destroy(&read);
            capbuf_finish(&out);
            sample_finish(&s);
        }
    }
}
END_TEST

/* ---- the widest form of each value -------------------------------------------------------- */

static int write_to_capbuf(void *data, const char *bytes, size_t size)
{
    return capbuf_append(data, bytes, size) ? 0 : -1;
}

static void wide_fields(msgpack_packer *p, struct capbuf *out, const struct schema *s,
                        const uint8_t *value);

static void wide_length(struct capbuf *out, uint8_t lead, uint64_t length)
{
    uint8_t head[5] = {lead, (uint8_t)(length >> 24), (uint8_t)(length >> 16),
                       (uint8_t)(length >> 8), (uint8_t)length};
    ck_assert(capbuf_append(out, head, sizeof head));
}

static void wide_list(msgpack_packer *p, struct capbuf *out, const struct schema *record,
                      struct proto_list list)
{
    wide_length(out, 0xdd, list.count);
    struct proto_iter it = proto_iter_of(list);
    struct sample_value value;
    while (proto_list_next(&it, record, &value)) {
        wide_length(out, 0xdd, record->count);
        wide_fields(p, out, record, (const uint8_t *)&value);
    }
}

static void wide_fields(msgpack_packer *p, struct capbuf *out, const struct schema *s,
                        const uint8_t *value)
{
    for (size_t i = 0; i < s->count; i++) {
        const struct schema_field *f = &s->fields[i];
        const void *at = value + f->offset;
        struct bytes b = {0};
        switch (f->type) {
        case SCHEMA_U:
            if (*(const uint64_t *)at <= INT64_MAX && i % 2 == 0) {
                ck_assert_int_eq(msgpack_pack_fix_int64(p, *(const int64_t *)at), 0);
            } else {
                ck_assert_int_eq(msgpack_pack_fix_uint64(p, *(const uint64_t *)at), 0);
            }
            break;
        case SCHEMA_I:
            ck_assert_int_eq(msgpack_pack_fix_int64(p, *(const int64_t *)at), 0);
            break;
        case SCHEMA_S:
        case SCHEMA_B:
            b = *(const struct bytes *)at;
            wide_length(out, f->type == SCHEMA_S ? 0xdb : 0xc6, b.size);
            ck_assert(capbuf_append(out, b.data, b.size));
            break;
        case SCHEMA_L:
            wide_list(p, out, f->record, *(const struct proto_list *)at);
            break;
        }
    }
}

START_TEST(we_read_the_widest_forms)
{
    for (size_t k = 0; sample_schemas[k] != NULL; k++) {
        const struct schema *schema = sample_schemas[k];
        for (uint64_t seed = 0; seed < 10; seed++) {
            struct sample s;
            sample_init(&s, seed * 13 + k, seed % 2 == 0);
            struct sample_value made;
            struct sample_value got;
            sample_make(&s, schema, &made);
            struct capbuf out;
            capbuf_init(&out, (size_t)64 << 20);
            msgpack_packer p;
            msgpack_packer_init(&p, &out, write_to_capbuf);
            wide_length(&out, 0xdd, schema->count + 1u);
            ck_assert_int_eq(msgpack_pack_fix_uint32(&p, schema->kind), 0);
            wide_fields(&p, &out, schema, (const uint8_t *)&made);
            struct err e = ERR_INIT;
            ck_assert_uint_eq(proto_kind(capbuf_view(&out)), schema->kind);
            ck_assert_msg(proto_decode(schema, capbuf_view(&out), &got, &e) == 0, "%s", e.text);
            ck_assert(sample_equal(schema, &made, &got));
            capbuf_finish(&out);
            sample_finish(&s);
        }
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("msgpack");
    TCase *tc = tcase_create("msgpack");
    tcase_set_timeout(tc, 100);
    tcase_add_test(tc, msgpack_c_reads_what_we_write);
    tcase_add_test(tc, we_read_the_widest_forms);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
