/* The table `record`: the recording that runs, or else the last one. */
#include <stdio.h>

#include "daemon/front/record/record.h"
#include "daemon/front/views/table_view.h"

#define RECORD_COLUMNS(COLUMN, WIDE)                                                               \
    COLUMN(state, TEXT, recorder_state_name(s.state))                                              \
    COLUMN(file, TEXT, s.path)                                                                     \
    COLUMN(data, BOOL, s.data)                                                                     \
    COLUMN(bytes, BYTES, s.bytes)                                                                  \
    COLUMN(file_bytes, BYTES, s.file_bytes)                                                        \
    COLUMN(jobs, UINT, s.jobs)                                                                     \
    COLUMN(lost, UINT, s.lost)                                                                     \
    COLUMN(why, TEXT, s.why)

static void record_begin(struct table_query *q)
{
    struct table *t = &q->table;
    struct recorder_status s;
    TABLE_HEADER(RECORD_COLUMNS);
    if (!rights_admin(&q->f->rights, q->s)) {
        (void)err_set(&t->error, ERR_PERMISSION,
                      "recordings are for root, the daemon's user and members of its admin_group");
    } else if (record_status(q->f, &s)) {
        TABLE_ROW(RECORD_COLUMNS);
    }
}

const struct table_view view_record = {"record", record_begin, NULL, false};
