/* `gpuctl pool snapshot`: every piece of device memory and the log, for people and for programs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuctl/base/save.h"
#include "gpuctl/pool/pool_ask.h"

#define FILES  4u
#define SHOWN  40u /* rows of a table */
#define COLUMN 7u

enum snapshot_option { SNAPSHOT_JSON = 10, SNAPSHOT_HTML, SNAPSHOT_CSV, SNAPSHOT_PYTORCH };

const struct option pool_snapshot_option_list[] = {
    {"device", 0, true, POOL_DEVICE},
    {"timeout", 0, true, POOL_TIMEOUT},
    {"file", 'f', true, SNAPSHOT_JSON},
    {"html", 0, true, SNAPSHOT_HTML},
    {"csv", 0, true, SNAPSHOT_CSV},
    {"pytorch", 0, true, SNAPSHOT_PYTORCH},
    {0},
};

/* A file that is asked for. */
struct output {
    const char *path; /* NULL: not */
    void (*write)(const struct shot *shot, FILE *out);
    struct save save;
};

/* ---- files -------------------------------------------------------------------------------- */

static int output_commit(struct output *o, const struct shot *shot, struct ctl_err *e)
{
    char *data = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&data, &size);
    if (memory == NULL) {
        return ctl_err_errno(e, "%s", o->path);
    }
    o->write(shot, memory);
    bool failed = ferror(memory) != 0;
    failed = fclose(memory) != 0 || failed;
    const struct save_part part = {.data = data, .size = size};
    int rc = failed ? ctl_err_set(e, GPUD_ERR_NOMEM, "%s: out of memory", o->path)
                    : save_commit(&o->save, &part, 1, e);
    free(data);
    return rc;
}

/* ---- tables ------------------------------------------------------------------------------- */

struct line {
    const struct shot_device *device;
    const struct shot_piece *piece;
};

static int by_size(const void *a, const void *b)
{
    const struct line *x = a;
    const struct line *y = b;
    bool live_x = x->piece->state == SHOT_LIVE;
    bool live_y = y->piece->state == SHOT_LIVE;
    if (live_x != live_y) {
        return live_x ? -1 : 1;
    }
    return x->piece->size > y->piece->size ? -1 : x->piece->size < y->piece->size;
}

static void cells_fill(const struct shot *shot, const struct line *l, struct sheet_cell *cells)
{
    const struct shot_piece *p = l->piece;
    const struct sheet_cell row[COLUMN] = {
        {.value = l->device->id},
        {.value = p->at},
        {.value = p->size},
        {.text = shot_state_name(p->state)},
        {.text = shot_text(shot, p->tenant)},
        {.text = shot_text(shot, p->kind)},
        {.text = shot_text(shot, p->label)},
    };
    memcpy(cells, row, sizeof row);
}

/* The pieces of all devices by address. NULL without memory. */
static struct line *lines_make(const struct shot *shot, uint32_t *ret_count)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < shot->device_count; i++) {
        count += shot->devices[i].piece_count;
    }
    struct line *lines = calloc((size_t)count + 1, sizeof *lines);
    uint32_t n = 0;
    for (uint32_t i = 0; lines != NULL && i < shot->device_count; i++) {
        const struct shot_device *d = &shot->devices[i];
        for (uint32_t k = 0; k < d->piece_count; k++) {
            lines[n++] = (struct line){d, &d->pieces[k]};
        }
    }
    *ret_count = n;
    return lines;
}

static int lines_write(struct ctl *ctl, const struct shot *shot, const struct line *lines,
                       uint32_t count, struct ctl_err *e)
{
    static const struct sheet_column columns[COLUMN] = {
        {"device", GPUD_COLUMN_UINT, false}, {"at", GPUD_COLUMN_UINT, false},
        {"size", GPUD_COLUMN_BYTES, false},  {"state", GPUD_COLUMN_TEXT, false},
        {"tenant", GPUD_COLUMN_TEXT, false}, {"kind", GPUD_COLUMN_TEXT, false},
        {"label", GPUD_COLUMN_TEXT, false},
    };
    struct sheet_cell *cells = calloc(((size_t)count + 1) * COLUMN, sizeof *cells);
    if (cells == NULL) {
        return ctl_err_set(e, GPUD_ERR_NOMEM, "out of memory");
    }
    for (uint32_t i = 0; i < count; i++) {
        cells_fill(shot, &lines[i], &cells[(size_t)i * COLUMN]);
    }
    const struct sheet sheet = {.name = "pieces",
                                .columns = columns,
                                .column_count = COLUMN,
                                .cells = cells,
                                .row_count = count};
    int rc = ctl_write(ctl, &sheet, e);
    free(cells);
    return rc;
}

/* The largest pieces for people, all by address otherwise. */
static int table_write(struct ctl *ctl, const struct shot *shot, struct ctl_err *e)
{
    uint32_t count = 0;
    struct line *lines = lines_make(shot, &count);
    if (lines == NULL) {
        return ctl_err_set(e, GPUD_ERR_NOMEM, "out of memory");
    }
    bool people = ctl->format == SHEET_TABLE;
    if (people && count > 0) {
        qsort(lines, count, sizeof *lines, by_size);
    }
    uint32_t shown = people && count > SHOWN ? SHOWN : count;
    int rc = lines_write(ctl, shot, lines, shown, e);
    if (rc == 0 && shown < count) {
        ctl_say("these are the largest of %u; -o wide shows all, --html FILE a picture", count);
    }
    free(lines);
    return rc;
}

/* ---- the command -------------------------------------------------------------------------- */

static int options_read(struct ctl *ctl, struct options *options, struct shot_ask *ask,
                        struct output *outputs, struct ctl_err *e)
{
    const char *value = NULL;
    int rc = 0;
    int id;
    while (rc == 0 &&
           (id = ctl_option(ctl, options, pool_snapshot_option_list, &value, e)) != OPTION_END) {
        if (id == OPTION_BAD) {
            return e->code;
        }
        if (id == OPTION_WORD) {
            return ctl_err_usage(e, "unexpected word '%s'", value);
        }
        if (id < SNAPSHOT_JSON) {
            rc = pool_ask_option(id, value, ask, e);
        } else {
            outputs[id - SNAPSHOT_JSON].path = value;
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
        ctl->format = SHEET_TABLE; /* nothing else goes there */
    }
    return rc;
}

int cmd_pool_snapshot(struct ctl *ctl, struct options *options, struct ctl_err *e)
{
    struct output outputs[FILES] = {{.write = shot_write_json},
                                    {.write = shot_write_page},
                                    {.write = shot_write_rmm},
                                    {.write = shot_write_pytorch}};
    struct shot_ask ask = {.detail = true};
    struct shot shot = {0};
    unsigned files = 0;
    int rc = options_read(ctl, options, &ask, outputs, e);
    rc = rc == 0 ? outputs_begin(ctl, outputs, &files, e) : rc;
    rc = rc == 0 ? ctl_connect(ctl, e) : rc;
    rc = rc == 0 ? shot_take(ctl->client, &ask, &shot, e) : rc;
    rc = rc == 0 ? pool_notes_tell(&shot, e) : rc;
    for (unsigned i = 0; rc == 0 && i < FILES; i++) {
        rc = outputs[i].path != NULL ? output_commit(&outputs[i], &shot, e) : 0;
    }
    if (rc == 0 && ctl->format == SHEET_JSON) {
        struct output out = {.path = "-", .write = shot_write_json};
        rc = save_begin_stdout(&out.save, e);
        rc = rc == 0 ? output_commit(&out, &shot, e) : rc;
        save_finish(&out.save);
    } else if (rc == 0 && (files == 0 || ctl->format != SHEET_TABLE)) {
        rc = table_write(ctl, &shot, e);
    }
    for (unsigned i = 0; i < FILES; i++) {
        save_finish(&outputs[i].save);
    }
    shot_finish(&shot);
    return rc;
}
