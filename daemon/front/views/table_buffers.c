/* The table `buffers`: published buffers, to whom they are granted, and the copies that others
 * opened. */
#include "common/shape.h"
#include "daemon/front/views/table_view.h"

static const char *rights_of(const struct buffer *b)
{
    return b->name[0] == '\0' ? "" : (b->rights & ACCESS_OUT) != 0 ? "read-write" : "read";
}

#define BUFFER_COLUMNS(COLUMN, WIDE)                                                               \
    COLUMN(buffer, HANDLE, b->handle)                                                              \
    COLUMN(tenant, TEXT, b->tenant->name)                                                          \
    COLUMN(name, TEXT, b->name)                                                                    \
    COLUMN(bytes, BYTES, b->bytes)                                                                 \
    COLUMN(device, UINT, b->shown)                                                                 \
    COLUMN(state, TEXT, buffer_state_name(b))                                                      \
    COLUMN(rights, TEXT, rights_of(b))                                                             \
    COLUMN(opened, UINT, b->openers)                                                               \
    COLUMN(granted_to, TEXT, b->grants != NULL ? b->grants : "")                                   \
    COLUMN(copy_of, TEXT, b->copy_of != NULL ? b->copy_of : "")                                    \
    WIDE(session, UINT, table_known(b->owner != NULL, b->owner != NULL ? b->owner->id : 0))        \
    WIDE(label, TEXT, b->label)

static bool shared(const struct buffer *b)
{
    return !b->freed && (b->name[0] != '\0' || b->openers > 0 || b->copy_of != NULL);
}

static void buffers_begin(struct table_query *q)
{
    struct table *t = &q->table;
    TABLE_HEADER(BUFFER_COLUMNS);
}

static bool buffers_next(struct table_query *q)
{
    struct table *t = &q->table;
    const struct buffer *b = idmap_next(&q->f->buffers, &q->cursor, NULL);
    if (b == NULL) {
        return false;
    }
    if (shared(b) && rights_sees(&q->f->rights, q->s, b->tenant)) {
        turn_count(q->f, TABLE_ROW_UNITS);
        TABLE_ROW(BUFFER_COLUMNS);
    }
    return true;
}

const struct table_view view_buffers = {"buffers", buffers_begin, buffers_next, false};
