#include <limits.h>
#include <string.h>

#include "gpuctl/base/child.h"
#include "gpuctl/ctl/ctl.h"

int cmd_config_show(struct ctl *ctl, struct options *options, struct ctl_err *e)
{
    int rc = ctl_words(ctl, options, 0, 0, NULL, e);
    return rc == 0 ? ctl_show(ctl, "config", NULL, e) : rc;
}

/* Only gpud knows its settings, so it checks the file: the gpud in gpuctl's folder, or in PATH. */
int cmd_config_check(struct ctl *ctl, struct options *options, struct ctl_err *e)
{
    const char *word[1] = {NULL};
    int rc = ctl_words(ctl, options, 0, 1, word, e);
    if (rc != 0) {
        return rc;
    }
    char path[PATH_MAX];
    if (child_find("", "gpud", path, sizeof path, e) != 0) {
        strcpy(path, "gpud");
    }
    const char *const argv[] = {"gpud", "--check-config", word[0] != NULL ? "--config" : NULL,
                                word[0], NULL};
    struct child child = {.path = path, .argv = argv, .file = -1};
    char text[4096];
    if (ctl->format == SHEET_JSON || ctl->format == SHEET_CSV) {
        /* for programs: the daemon's messages are in a row of the command's result */
        child.output = text;
        child.output_size = sizeof text;
        child.output_errors = true;
    }
    int status = EXIT_FAILED;
    rc = child_run(&child, &status, e);
    if (rc == 0 && child.output != NULL) {
        rc = ctl_done(ctl, "config check", status == 0, text, e);
    }
    return rc != 0 ? rc : status == 0 ? EXIT_OK : EXIT_FAILED;
}
