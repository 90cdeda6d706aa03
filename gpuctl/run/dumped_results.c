#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "gpuctl/run/dumped.h"

#define RESULT_MOST (UINT64_C(1) << 30) /* bytes of a buffer that is read for its hash */

struct result {
    char name[DUMPED_WORDS];
    uint64_t bytes;
    char hash[HASH_TEXT_BYTES];
    const char *expected; /* the file's; "": none */
};

struct results {
    struct result list[DUMPED_MEMORY + GPUD_MAX_JOB_BUFFERS + GPUD_MAX_STEPS];
    uint32_t count;
    uint32_t differing, compared;
};

static int add(struct dumped *d, struct results *all, const char *name, const void *data,
               uint64_t bytes, struct ctl_err *e)
{
    struct result *r = &all->list[all->count++];
    const json_t *known = json_object_get(d->root, "results");
    (void)snprintf(r->name, sizeof r->name, "%s", name);
    r->bytes = bytes;
    (void)hash_text(hash_of(data, bytes), r->hash);
    int rc = dumped_text(known, name, HASH_TEXT_BYTES - 1, &r->expected, e);
    bool compared = rc == 0 && r->expected[0] != '\0';
    all->compared += compared;
    all->differing += compared && strcmp(r->expected, r->hash) != 0;
    return rc;
}

static int add_buffer(struct dumped *d, struct results *all, const struct dumped_buffer *b,
                      struct ctl_err *e)
{
    char name[DUMPED_WORDS];
    uint64_t bytes = gpud_shape_bytes(b->shape);
    (void)snprintf(name, sizeof name, "buffer %#" PRIx64, b->handle);
    if (!b->written || bytes == 0) {
        return 0;
    }
    if (bytes > RESULT_MOST) {
        ctl_say("%s: %" PRIu64 " bytes are too many for a hash", name, bytes);
        return 0;
    }
    void *data = malloc(bytes);
    if (data == NULL) {
        return ctl_err_set(e, GPUD_ERR_NOMEM, "no memory for %" PRIu64 " bytes", bytes);
    }
    int rc = gpud_read(d->client, b->buffer, (int)b->shape.dtype, 0, GPUD_REST, data, NULL);
    rc = rc == 0 ? add(d, all, name, data, bytes, e) : ctl_err_lib(e, rc, "%s", name);
    free(data);
    return rc;
}

/* What READ steps returned. Steps that read into an array have their result there. */
static int add_outputs(struct dumped *d, struct results *all, struct ctl_err *e)
{
    const json_t *steps = json_object_get(d->root, "steps");
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < json_array_size(steps); i++) {
        const void *data = NULL;
        size_t bytes = 0;
        char name[DUMPED_WORDS];
        (void)snprintf(name, sizeof name, "step %zu", i);
        if (gpud_job_output(d->run->job, (uint32_t)i, 0, &data, &bytes) == 0) {
            rc = add(d, all, name, data, bytes, e);
        }
    }
    return rc;
}

static int collect(struct dumped *d, struct results *all, struct ctl_err *e)
{
    int rc = add_outputs(d, all, e);
    for (uint32_t i = 0; rc == 0 && i < d->memory_count; i++) {
        const struct dumped_memory *m = &d->memory[i];
        rc = m->written ? add(d, all, m->name, m->data, m->bytes, e) : 0;
    }
    for (uint32_t i = 0; rc == 0 && i < d->buffer_count; i++) {
        rc = add_buffer(d, all, &d->buffer[i], e);
    }
    return rc;
}

struct result_row {
    struct sheet_cell result, bytes, hash, expected, same;
};

static const struct sheet_field fields[] = {
    SHEET_FIELD(struct result_row, result, GPUD_COLUMN_TEXT, false),
    SHEET_FIELD(struct result_row, bytes, GPUD_COLUMN_BYTES, false),
    SHEET_FIELD(struct result_row, hash, GPUD_COLUMN_TEXT, false),
    SHEET_FIELD(struct result_row, expected, GPUD_COLUMN_TEXT, true),
    SHEET_FIELD(struct result_row, same, GPUD_COLUMN_BOOL, false),
};

static int show(struct ctl *ctl, const struct results *all, struct ctl_err *e)
{
    struct result_row *rows = calloc(all->count + 1, sizeof *rows);
    if (rows == NULL) {
        return ctl_err_set(e, GPUD_ERR_NOMEM, "out of memory");
    }
    for (uint32_t i = 0; i < all->count; i++) {
        const struct result *r = &all->list[i];
        bool known = r->expected[0] != '\0';
        rows[i] = (struct result_row){
            .result = {.text = r->name},
            .bytes = {.value = r->bytes},
            .hash = {.text = r->hash},
            .expected = {.text = r->expected},
            .same = {.value = strcmp(r->hash, r->expected) == 0, .text = known ? NULL : "-"},
        };
    }
    const struct sheet_rows table = SHEET_ROWS("results", fields, rows, all->count);
    int rc = ctl_write_rows(ctl, &table, e);
    free(rows);
    return rc;
}

static int record(const struct dumped *d, const struct results *all, struct ctl_err *e)
{
    json_t *results = json_object();
    for (uint32_t i = 0; i < all->count; i++) {
        (void)json_object_set_new(results, all->list[i].name, json_string(all->list[i].hash));
    }
    (void)json_object_set_new(d->root, "results", results);
    return json_save(d->root, d->options->record, e);
}

int dumped_results(struct ctl *ctl, struct dumped *d, struct ctl_err *e)
{
    struct results *all = calloc(1, sizeof *all);
    if (all == NULL) {
        return ctl_err_set(e, GPUD_ERR_NOMEM, "out of memory");
    }
    int rc = collect(d, all, e);
    rc = rc == 0 ? show(ctl, all, e) : rc;
    uint32_t differing = all->differing;
    if (rc == 0 && all->compared > 0) {
        ctl_say("%u of %u results are as in the file", all->compared - differing, all->compared);
    }
    rc = rc == 0 && d->options->record != NULL ? record(d, all, e) : rc;
    free(all);
    return rc == 0 && differing > 0 ? EXIT_FAILED : rc;
}
