/* gpuctl demo: runs the installed example gpud-demo (examples/edges) and shows its results. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpuctl/base/child.h"
#include "gpuctl/base/save.h"
#include "gpuctl/ctl/ctl.h"

#define PROGRAM_NAME  "gpud-demo"
#define PHOTO_PACKAGE "python-matplotlib-data"
#define PHOTO         "/usr/share/matplotlib/mpl-data/sample_data/grace_hopper.jpg"
#define ROWS          8u /* six stages, two comparisons with the CPU */

enum { OPT_FILE = 1, OPT_IMAGE, OPT_DEVICE };

const struct option demo_option_list[] = {
    {"file", 'f', true, OPT_FILE},
    {"image", 0, true, OPT_IMAGE},
    {"device", 0, true, OPT_DEVICE},
    {0},
};

struct choice {
    const char *file;
    const char *image; /* NULL: PHOTO */
    uint64_t device;   /* GPUD_ON(id); 0: the daemon chooses */
};

static int parse(struct ctl *ctl, struct options *options, struct choice *choice, struct ctl_err *e)
{
    const char *value = NULL;
    int id;
    while ((id = ctl_option_only(ctl, options, demo_option_list, &value, e)) != OPTION_END) {
        int rc = 0;
        switch (id) {
        case OPTION_BAD:
            return e->code;
        case OPT_FILE:
            choice->file = value;
            break;
        case OPT_IMAGE:
            choice->image = value;
            break;
        default:
            rc = ctl_device(value, &choice->device, e);
            break;
        }
        if (rc != 0) {
            return rc;
        }
    }
    return 0;
}

static int find_photo(struct choice *choice, struct ctl_err *e)
{
    if (choice->image == NULL) {
        choice->image = PHOTO;
        return access(PHOTO, R_OK) == 0
                   ? 0
                   : ctl_err_set(e, GPUD_ERR_NOT_FOUND,
                                 "no photograph here: apt-get install " PHOTO_PACKAGE
                                 ", or name one with --image FILE (JPEG or PNG)");
    }
    return strcmp(choice->image, "-") == 0 || access(choice->image, R_OK) == 0
               ? 0
               : ctl_err_errno(e, "%s", choice->image);
}

/* Finds the installed program, or the one in gpuctl's folder of a build. */
static int find_program(char *out, size_t size, struct ctl_err *e)
{
    struct ctl_err ignored;
    return child_find(GPUD_HELPERS, PROGRAM_NAME, out, size, &ignored) == 0 ||
                   child_find("", PROGRAM_NAME, out, size, &ignored) == 0
               ? 0
               : ctl_err_set(e, GPUD_ERR_NOT_FOUND,
                             PROGRAM_NAME " is neither in " GPUD_HELPERS " as seen from gpuctl, "
                                          "nor beside it: install the example with gpud, or build "
                                          "it from examples/edges");
}

struct stage {
    struct sheet_cell stage, time, max_error, bound, verdict;
};

static const struct sheet_field fields[] = {
    SHEET_FIELD(struct stage, stage, GPUD_COLUMN_TEXT, false),
    SHEET_FIELD(struct stage, time, GPUD_COLUMN_NS, false),
    SHEET_FIELD(struct stage, max_error, GPUD_COLUMN_TEXT, false),
    SHEET_FIELD(struct stage, bound, GPUD_COLUMN_TEXT, false),
    SHEET_FIELD(struct stage, verdict, GPUD_COLUMN_TEXT, false),
};

/* The program's output. The cells point into `text`. */
struct result {
    char text[4096];
    uint64_t sides[2]; /* of the photograph: width, height */
    uint64_t job[3];   /* id, device, ns on the device */
    struct stage stages[ROWS];
};

/* Runs the program; its messages look like gpuctl's. *ret_exit: gpuctl's exit code. */
static int run(const struct ctl *ctl, const struct choice *choice, const struct save *save,
               struct result *result, int *ret_exit, struct ctl_err *e)
{
    char path[PATH_MAX];
    char device[24] = "";
    char file[32];
    int rc = find_program(path, sizeof path, e);
    if (rc != 0) {
        return rc;
    }
    snprintf(file, sizeof file, "/dev/fd/%d", CHILD_FILE);
    const char *argv[8] = {"gpuctl: demo"};
    unsigned count = 1;
    if (ctl->url != NULL) {
        argv[count++] = "-u";
        argv[count++] = ctl->url;
    }
    if (choice->device != 0) {
        snprintf(device, sizeof device, "%" PRIu64, choice->device - 1);
        argv[count++] = "-d";
        argv[count++] = device;
    }
    argv[count++] = choice->image;
    argv[count++] = file;
    const struct child child = {.path = path,
                                .argv = argv,
                                .file = save->fd,
                                .output = result->text,
                                .output_size = sizeof result->text};
    int status = 0;
    rc = child_run(&child, &status, e);
    *ret_exit = ctl_exit_code(-status); /* an error's number without its sign */
    return rc;
}

/* Parses a line of the table: name, time, largest error, bound, verdict. */
static bool take_row(char *line, struct stage *s)
{
    struct sheet_cell *const cells[] = {&s->stage, &s->time, &s->max_error, &s->bound, &s->verdict};
    for (unsigned c = 0; c < sizeof cells / sizeof cells[0]; c++) {
        cells[c]->text = strsep(&line, "\t");
        if (cells[c]->text == NULL) {
            return false;
        }
    }
    if (s->time.text[0] != '\0') {
        s->time = (struct sheet_cell){.value = strtoull(s->time.text, NULL, 10)};
    }
    return line == NULL;
}

/* Parses the first `count` numbers of a line; false: it has fewer. */
static bool take_numbers(const char *line, unsigned count, uint64_t *ret_numbers)
{
    for (unsigned i = 0; i < count; i++) {
        char *end = NULL;
        line += strcspn(line, "0123456789");
        if (*line == '\0') {
            return false;
        }
        ret_numbers[i] = strtoull(line, &end, 10);
        line = end;
    }
    return true;
}

/* Parses the output; false: the program ended before it was complete. */
static bool take_result(struct result *r)
{
    char *rest = r->text;
    const char *photo = strsep(&rest, "\n");
    const char *job = rest != NULL ? strsep(&rest, "\n") : "";
    if (!take_numbers(photo, 2, r->sides) || !take_numbers(job, 3, r->job)) {
        return false;
    }
    (void)strsep(&rest, "\n"); /* the names of the columns */
    for (unsigned i = 0; i < ROWS; i++) {
        char *line = strsep(&rest, "\n");
        if (line == NULL || !take_row(line, &r->stages[i])) {
            return false;
        }
    }
    return true;
}

/* Names the device that ran the job, and says so if it is no GPU. */
static void say_where(struct ctl *ctl, const struct result *result)
{
    gpud_table *devices = NULL;
    char time[32];
    if (gpud_query(ctl->client, "devices", NULL, &devices) != 0) {
        return;
    }
    for (uint32_t r = 0; r < gpud_table_rows(devices); r++) {
        if (table_value_of(devices, r, "device") == result->job[1]) {
            ctl_say("job %" PRIu64 " on device %" PRIu64 ": %s (%s, %s), executed %s",
                    result->job[0], result->job[1], table_text_of(devices, r, "name"),
                    table_text_of(devices, r, "backend"), table_text_of(devices, r, "kind"),
                    sheet_text(GPUD_COLUMN_NS, result->job[2], time, sizeof time));
        }
    }
    gpud_table_free(devices);
}

static int show(struct ctl *ctl, const struct result *result, struct ctl_err *e)
{
    const struct sheet_rows rows = SHEET_ROWS("demo", fields, result->stages, ROWS);
    return ctl_write_rows(ctl, &rows, e);
}

static int demo(struct ctl *ctl, const struct choice *choice, struct save *save, struct ctl_err *e)
{
    struct result result = {0};
    int code = EXIT_FAILED;
    int rc = run(ctl, choice, save, &result, &code, e);
    if (rc != 0) {
        return rc;
    }
    if (!take_result(&result)) {
        return code != EXIT_OK ? code /* the program has printed its error */
                               : ctl_err_set(e, GPUD_ERR_INTERNAL,
                                             PROGRAM_NAME " is of another version than gpuctl");
    }
    rc = save_commit(save, NULL, 0, e);
    if (rc == 0) {
        say_where(ctl, &result);
        rc = show(ctl, &result, e);
    }
    if (rc != 0) {
        return rc;
    }
    ctl_say("edges of %s (%" PRIu64 " x %" PRIu64 ") are in %s: %s", choice->image, result.sides[0],
            result.sides[1], choice->file,
            code == EXIT_OK ? "verified" : "DIFFERENT from the CPU's result");
    return code;
}

int cmd_demo(struct ctl *ctl, struct options *options, struct ctl_err *e)
{
    struct choice choice = {.file = "gpud-demo.png"};
    struct save save = {0};
    int rc = parse(ctl, options, &choice, e);
    if (rc == 0) {
        rc = find_photo(&choice, e);
    }
    if (rc == 0) {
        rc = save_begin(choice.file, &save, e);
    }
    if (rc == 0) { /* before the program connects: gpuctl's error says how to start a daemon */
        rc = ctl_connect(ctl, e);
    }
    if (rc == 0) {
        rc = demo(ctl, &choice, &save, e);
    }
    save_finish(&save);
    return rc;
}
