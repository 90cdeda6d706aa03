#include "proto/codec.h"

/*
 * A row of a field table needs the struct of the field, but the X-macros pass only the field. So a
 * row has two halves. The argument passed as U, I, … is the first half: it names the struct and
 * ends with the name of a macro. The field's own arguments follow that name, and the macro expands
 * to the second half. (offsetof cannot be split that way, hence the cast.)
 */
/* clang-format off */
#define ROW(type, half)        {.offset = (uint16_t)(uintptr_t)&((struct type *)0)->half
#define HALF_U(field, limit)     field, .name = #field, .type = SCHEMA_U, .max = (limit)},
#define HALF_I(field)            field, .name = #field, .type = SCHEMA_I, .max = INT64_MAX},
#define HALF_S(field, limit)     field, .name = #field, .type = SCHEMA_S, .max = (limit)},
#define HALF_B(field, limit)     field, .name = #field, .type = SCHEMA_B, .max = (limit)},
#define HALF_L(field, of, limit) field, .name = #field, .type = SCHEMA_L, .max = (limit), \
                                 .record = &record_##of},
/* clang-format on */

/* List fields name their record in capitals, so each record schema gets an alias. */
#define X(NAME, id) extern const struct schema record_##NAME __attribute__((alias("schema_" #id)));
PROTO_RECORDS(X)
FRAME_RECORDS(X)
#undef X

#define COUNT_OF(array) ((uint16_t)(sizeof(array) / sizeof((array)[0])))

#define X(NAME, id)                                                                                \
    static const struct schema_field fields_##id[] = {                                             \
        REC_##NAME(ROW(proto_##id, HALF_U), ROW(proto_##id, HALF_I), ROW(proto_##id, HALF_S),      \
                   ROW(proto_##id, HALF_B), ROW(proto_##id, HALF_L))};                             \
    const struct schema schema_##id = {.name = #id,                                                \
                                       .size = sizeof(struct proto_##id),                          \
                                       .count = COUNT_OF(fields_##id),                             \
                                       .fields = fields_##id};
PROTO_RECORDS(X)
FRAME_RECORDS(X)
#undef X

#define X(NAME, id, value)                                                                         \
    static const struct schema_field fields_msg_##id[] = {                                         \
        MSG_##NAME(ROW(msg_##id, HALF_U), ROW(msg_##id, HALF_I), ROW(msg_##id, HALF_S),            \
                   ROW(msg_##id, HALF_B), ROW(msg_##id, HALF_L))};                                 \
    const struct schema schema_msg_##id = {.name = #id,                                            \
                                           .kind = (value),                                        \
                                           .size = sizeof(struct msg_##id),                        \
                                           .count = COUNT_OF(fields_msg_##id),                     \
                                           .fields = fields_msg_##id};
PROTO_MESSAGES(X)
PROTO_FRAMES(X)
#undef X

static const struct schema *const by_kind[] = {
#define X(NAME, id, value) [value] = &schema_msg_##id,
    PROTO_MESSAGES(X) PROTO_FRAMES(X)
#undef X
};

const struct schema *schema_find(unsigned kind)
{
    return kind < sizeof by_kind / sizeof by_kind[0] ? by_kind[kind] : NULL;
}
