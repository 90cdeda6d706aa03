/* `gpuctl pool snapshot`: all pieces of device memory and the log, for people and for programs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuctl/base/save.h"
#include "gpuctl/pool/pool_request.h"

#define FILES 4u
#define SHOWN 40u /* most rows of a table for people */

enum output_option { OPT_JSON = 10, OPT_HTML, OPT_CSV, OPT_PYTORCH };

const struct option pool_snapshot_option_list[] = {
    {"device", 0, true, POOL_DEVICE},
    {"timeout", 0, true, POOL_TIMEOUT},
    {"file", 'f', true, OPT_JSON},
    {"html", 0, true, OPT_HTML},
    {"csv", 0, true, OPT_CSV},
    {"pytorch", 0, true, OPT_PYTORCH},
    {0},
};

/* An output file that the user can request. */
struct output {
    const char *path; /* NULL: not asked for */
    bool (*write)(const struct snapshot *snapshot, FILE *out);
    struct save save;
};

/* ---- files -------------------------------------------------------------------------------- */

static int output_commit(struct output *o, const struct snapshot *snapshot, struct ctl_err *e)
{
    char *data = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&data, &size);
    if (memory == NULL) {
        return ctl_err_errno(e, "%s", o->path);
    }
    bool failed = !o->write(snapshot, memory) || ferror(memory) != 0;
    failed = fclose(memory) != 0 || failed;
    const struct save_part part = {.data = data, .size = size};
    int rc = failed ? ctl_err_set(e, GPUD_ERR_NOMEM, "%s: out of memory", o->path)
                    : save_commit(&o->save, &part, 1, e);
    free(data);
    return rc;
}

/* ---- tables ------------------------------------------------------------------------------- */

struct line {
    const struct snapshot_device *device;
    const struct snapshot_piece *piece;
};

static int by_size(const void *a, const void *b)
{
    const struct line *x = a;
    const struct line *y = b;
    bool live_x = x->piece->state == SNAPSHOT_LIVE;
    bool live_y = y->piece->state == SNAPSHOT_LIVE;
    if (live_x != live_y) {
        return live_x ? -1 : 1;
    }
    return x->piece->size > y->piece->size ? -1 : x->piece->size < y->piece->size;
}

struct piece_row {
    struct sheet_cell device, at, size, state, tenant, kind, label;
};

static const struct sheet_field piece_fields[] = {
    SHEET_FIELD(struct piece_row, device, GPUD_COLUMN_UINT, false),
    SHEET_FIELD(struct piece_row, at, GPUD_COLUMN_UINT, false),
    SHEET_FIELD(struct piece_row, size, GPUD_COLUMN_BYTES, false),
    SHEET_FIELD(struct piece_row, state, GPUD_COLUMN_TEXT, false),
    SHEET_FIELD(struct piece_row, tenant, GPUD_COLUMN_TEXT, false),
    SHEET_FIELD(struct piece_row, kind, GPUD_COLUMN_TEXT, false),
    SHEET_FIELD(struct piece_row, label, GPUD_COLUMN_TEXT, false),
};

static struct piece_row row_of(const struct snapshot *snapshot, const struct line *l)
{
    const struct snapshot_piece *p = l->piece;
    return (struct piece_row){.device = {.value = l->device->id},
                              .at = {.value = p->at},
                              .size = {.value = p->size},
                              .state = {.text = snapshot_state_name(p->state)},
                              .tenant = {.text = snapshot_text(snapshot, p->tenant)},
                              .kind = {.text = snapshot_text(snapshot, p->kind)},
                              .label = {.text = snapshot_text(snapshot, p->label)}};
}

/* The pieces of all devices, by address; freed by the caller. NULL: out of memory. */
static struct line *lines_make(const struct snapshot *snapshot, uint32_t *ret_count)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < snapshot->device_count; i++) {
        count += snapshot->devices[i].piece_count;
    }
    struct line *lines = calloc((size_t)count + 1, sizeof *lines);
    uint32_t n = 0;
    for (uint32_t i = 0; lines != NULL && i < snapshot->device_count; i++) {
        const struct snapshot_device *d = &snapshot->devices[i];
        for (uint32_t k = 0; k < d->piece_count; k++) {
            lines[n++] = (struct line){d, &d->pieces[k]};
        }
    }
    *ret_count = n;
    return lines;
}

static int lines_write(struct ctl *ctl, const struct snapshot *snapshot, const struct line *lines,
                       uint32_t count, struct ctl_err *e)
{
    struct piece_row *rows = calloc((size_t)count + 1, sizeof *rows);
    if (rows == NULL) {
        return ctl_err_set(e, GPUD_ERR_NOMEM, "out of memory");
    }
    for (uint32_t i = 0; i < count; i++) {
        rows[i] = row_of(snapshot, &lines[i]);
    }
    const struct sheet_rows table = SHEET_ROWS("pieces", piece_fields, rows, count);
    int rc = ctl_write_rows(ctl, &table, e);
    free(rows);
    return rc;
}

/* The narrow format shows the largest pieces; the others show all pieces by address. */
static int table_write(struct ctl *ctl, const struct snapshot *snapshot, struct ctl_err *e)
{
    uint32_t count = 0;
    struct line *lines = lines_make(snapshot, &count);
    if (lines == NULL) {
        return ctl_err_set(e, GPUD_ERR_NOMEM, "out of memory");
    }
    bool people = ctl->format == SHEET_TABLE;
    if (people && count > 0) {
        qsort(lines, count, sizeof *lines, by_size);
    }
    uint32_t shown = people && count > SHOWN ? SHOWN : count;
    int rc = lines_write(ctl, snapshot, lines, shown, e);
    if (rc == 0 && shown < count) {
        ctl_say("these are the largest of %u; -o wide shows all, --html FILE a picture", count);
    }
    free(lines);
    return rc;
}

/* ---- the command -------------------------------------------------------------------------- */

static int options_read(struct ctl *ctl, struct options *options, struct snapshot_request *request,
                        struct output *outputs, struct ctl_err *e)
{
    const char *value = NULL;
    int rc = 0;
    int id;
    while (rc == 0 && (id = ctl_option_only(ctl, options, pool_snapshot_option_list, &value, e)) !=
                          OPTION_END) {
        if (id == OPTION_BAD) {
            return e->code;
        }
        if (id < OPT_JSON) {
            rc = pool_request_option(id, value, request, e);
        } else {
            outputs[id - OPT_JSON].path = value;
        }
    }
    return rc;
}

static int outputs_begin(struct ctl *ctl, struct output *outputs, unsigned *ret_files,
                         struct ctl_err *e)
{
    int rc = 0;
    bool piped = false;
    for (unsigned i = 0; rc == 0 && i < FILES; i++) {
        if (outputs[i].path == NULL) {
            continue;
        }
        bool pipe = strcmp(outputs[i].path, "-") == 0;
        if (pipe && piped) {
            return ctl_err_usage(e, "standard output ('-') takes one of the files only");
        }
        piped = piped || pipe;
        (*ret_files)++;
        rc = pipe ? save_begin_stdout(&outputs[i].save, e)
                  : save_begin(outputs[i].path, &outputs[i].save, e);
    }
    if (rc == 0 && piped) {
        ctl->format = SHEET_TABLE; /* standard output is the file's, so no table is written */
    }
    return rc;
}

int cmd_pool_snapshot(struct ctl *ctl, struct options *options, struct ctl_err *e)
{
    struct output outputs[FILES] = {{.write = snapshot_write_json},
                                    {.write = snapshot_write_page},
                                    {.write = snapshot_write_rmm},
                                    {.write = snapshot_write_pytorch}};
    struct snapshot_request request = {.detail = true};
    struct snapshot snapshot = {0};
    unsigned files = 0;
    int rc = options_read(ctl, options, &request, outputs, e);
    rc = rc == 0 ? outputs_begin(ctl, outputs, &files, e) : rc;
    rc = rc == 0 ? ctl_connect(ctl, e) : rc;
    rc = rc == 0 ? snapshot_take(ctl->client, &request, &snapshot, e) : rc;
    rc = rc == 0 ? pool_notes_show(&snapshot, e) : rc;
    for (unsigned i = 0; rc == 0 && i < FILES; i++) {
        rc = outputs[i].path != NULL ? output_commit(&outputs[i], &snapshot, e) : 0;
    }
    if (rc == 0 && ctl->format == SHEET_JSON) {
        struct output out = {.path = "-", .write = snapshot_write_json};
        rc = save_begin_stdout(&out.save, e);
        rc = rc == 0 ? output_commit(&out, &snapshot, e) : rc;
        save_finish(&out.save);
    } else if (rc == 0 && (files == 0 || ctl->format != SHEET_TABLE)) {
        rc = table_write(ctl, &snapshot, e);
    }
    for (unsigned i = 0; i < FILES; i++) {
        save_finish(&outputs[i].save);
    }
    snapshot_finish(&snapshot);
    return rc;
}
