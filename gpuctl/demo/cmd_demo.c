#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpuctl/base/save.h"
#include "gpuctl/ctl/ctl.h"
#include "gpuctl/demo/demo.h"
#include "gpuctl/demo/image.h"
#include "gpuctl/demo/reference.h"
#include "gpuctl/input/spec.h"

#define PHOTO_PACKAGE "python-matplotlib-data"

static const char *const photos[] = {
    "/usr/share/matplotlib/mpl-data/sample_data/grace_hopper.jpg",
};

enum { OPT_FILE = 1, OPT_IMAGE, OPT_DEVICE };

const struct option demo_option_list[] = {
    {"file", 'f', true, OPT_FILE},
    {"image", 0, true, OPT_IMAGE},
    {"device", 0, true, OPT_DEVICE},
    {0},
};

struct demo_choice {
    const char *file;
    const char *image;
    uint64_t device; /* GPUD_ON(id); 0: the daemon chooses */
    struct save save;
};

static int parse(struct ctl *ctl, struct options *options, struct demo_choice *choice,
                 struct ctl_err *e)
{
    const char *value = NULL;
    int id;
    while ((id = ctl_option(ctl, options, demo_option_list, &value, e)) != OPTION_END) {
        if (id == OPTION_BAD) {
            return e->code;
        }
        if (id == OPTION_WORD) {
            return ctl_err_usage(e, "unexpected word '%s'", value);
        }
        if (id == OPT_FILE) {
            choice->file = value;
        } else if (id == OPT_IMAGE) {
            choice->image = value;
        } else {
            int rc = ctl_device(value, &choice->device, e);
            if (rc != 0) {
                return rc;
            }
        }
    }
    return 0;
}

static int find_photo(struct demo_choice *choice, struct ctl_err *e)
{
    for (size_t i = 0; choice->image == NULL && i < sizeof photos / sizeof photos[0]; i++) {
        if (access(photos[i], R_OK) == 0) {
            choice->image = photos[i];
        }
    }
    return choice->image != NULL ? 0
                                 : ctl_err_set(e, GPUD_ERR_NOT_FOUND,
                                               "no photograph here: apt-get install " PHOTO_PACKAGE
                                               ", or name one with --image FILE (JPEG or PNG)");
}

/* Half a step of rounding beside what the value itself may be off. */
static double picture_bound(double bound)
{
    return 0.5 + 255 * (double)DEMO_GAIN * (bound + 4 * 0x1p-24);
}

int demo_verify(const struct image *photo, const struct demo_result *result,
                struct demo_verdict *ret_verdict, struct ctl_err *e)
{
    double most = 0;
    double *expected = reference_edges(photo, (double)DEMO_SIGMA, &most);
    if (expected == NULL) {
        return ctl_err_set(e, GPUD_ERR_NOMEM, "no memory for the reference");
    }
    struct demo_verdict v = {.bound = reference_bound((double)DEMO_SIGMA, most)};
    v.picture_bound = picture_bound(v.bound);
    bool numbers = true;
    size_t count = (size_t)photo->width * photo->height;
    for (size_t i = 0; i < count; i++) {
        double white = fmin(255, 255 * (double)DEMO_GAIN * expected[i]);
        numbers = numbers && isfinite(result->edges[i]);
        v.error = fmax(v.error, fabs((double)result->edges[i] - expected[i]));
        v.picture_error = fmax(v.picture_error, fabs(result->picture.pixels[i] - white));
    }
    free(expected);
    v.good = numbers && v.error <= v.bound && v.picture_error <= v.picture_bound;
    *ret_verdict = v;
    return 0;
}

#define COLUMNS 5

/* The stages with their times, then the comparison of both results. */
static int show(struct ctl *ctl, const struct demo_result *result, const struct demo_verdict *v,
                struct ctl_err *e)
{
    static const struct sheet_column columns[COLUMNS] = {
        {"stage", GPUD_COLUMN_TEXT, false},     {"time", GPUD_COLUMN_NS, false},
        {"max_error", GPUD_COLUMN_TEXT, false}, {"bound", GPUD_COLUMN_TEXT, false},
        {"verdict", GPUD_COLUMN_TEXT, false},
    };
    struct sheet_cell cells[(DEMO_STAGES + 2) * COLUMNS];
    char text[4][32];
    snprintf(text[0], sizeof text[0], "%.3g", v->error);
    snprintf(text[1], sizeof text[1], "%.3g", v->bound);
    snprintf(text[2], sizeof text[2], "%.3g", v->picture_error);
    snprintf(text[3], sizeof text[3], "%.3g", v->picture_bound);
    for (int s = 0; s < DEMO_STAGES; s++) {
        const struct sheet_cell row[COLUMNS] = {{.text = result->stage[s].kernel},
                                                {.value = result->stage[s].ns},
                                                {.text = ""},
                                                {.text = ""},
                                                {.text = ""}};
        memcpy(&cells[s * COLUMNS], row, sizeof row);
    }
    const char *edges = v->error <= v->bound ? "ok" : "WRONG";
    const char *picture = v->picture_error <= v->picture_bound ? "ok" : "WRONG";
    const struct sheet_cell ends[2 * COLUMNS] = {
        {.text = "edges against CPU"},
        {.text = ""},
        {.text = text[0]},
        {.text = text[1]},
        {.text = edges},
        {.text = "picture against CPU"},
        {.text = ""},
        {.text = text[2]},
        {.text = text[3]},
        {.text = picture},
    };
    memcpy(&cells[DEMO_STAGES * COLUMNS], ends, sizeof ends);
    struct sheet sheet = {.name = "demo",
                          .columns = columns,
                          .column_count = COLUMNS,
                          .cells = cells,
                          .row_count = DEMO_STAGES + 2};
    return ctl_write(ctl, &sheet, e);
}

/* Names the device that ran the job, and says so if it is no GPU. */
static void say_where(struct ctl *ctl, const struct demo_result *result)
{
    gpud_table *devices = NULL;
    char time[32];
    if (gpud_query(ctl->client, "devices", NULL, &devices) != 0) {
        return;
    }
    for (uint32_t r = 0; r < gpud_table_rows(devices); r++) {
        if (table_value_of(devices, r, "device") == result->times.device) {
            ctl_say("job %llu on device %llu: %s (%s, %s), executed %s",
                    (unsigned long long)result->job, (unsigned long long)result->times.device,
                    table_text_of(devices, r, "name"), table_text_of(devices, r, "backend"),
                    table_text_of(devices, r, "kind"),
                    sheet_text(GPUD_COLUMN_NS, result->times.executed_ns, time, sizeof time));
        }
    }
    gpud_table_free(devices);
}

static int report(struct ctl *ctl, struct demo_choice *choice, const struct image *photo,
                  const struct demo_result *result, struct ctl_err *e)
{
    struct demo_verdict verdict;
    int rc = demo_verify(photo, result, &verdict, e);
    if (rc == 0) {
        rc = image_save_png(&choice->save, &result->picture, e);
    }
    if (rc == 0) {
        say_where(ctl, result);
        rc = show(ctl, result, &verdict, e);
    }
    if (rc != 0) {
        return rc;
    }
    ctl_say("edges of %s (%u x %u) are in %s: %s", choice->image, photo->width, photo->height,
            choice->file, verdict.good ? "verified" : "NOT as computed on the CPU");
    return verdict.good ? 0 : EXIT_FAILED;
}

int cmd_demo(struct ctl *ctl, struct options *options, struct ctl_err *e)
{
    struct demo_choice choice = {.file = "gpud-demo.png"};
    struct image photo = {0};
    struct demo_result result = {0};
    int rc = parse(ctl, options, &choice, e);
    if (rc == 0) {
        rc = find_photo(&choice, e);
    }
    if (rc == 0) {
        rc = save_begin(choice.file, &choice.save, e);
    }
    if (rc == 0) {
        rc = image_load(choice.image, &photo, e);
    }
    if (rc == 0) {
        rc = ctl_connect(ctl, e);
    }
    if (rc == 0) {
        rc = demo_run(ctl->client, &photo, choice.device, &result, e);
    }
    if (rc == 0) {
        rc = report(ctl, &choice, &photo, &result, e);
    }
    save_finish(&choice.save);
    demo_finish(&result);
    image_finish(&photo);
    return rc;
}
