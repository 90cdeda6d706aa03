/* Input: a recording. Reading it, and learning what it defines, ends without a fault; an error has
 * a text. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuctl/run/replay.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool good, const char *what)
{
    if (!good) {
        (void)fprintf(stderr, "%s\n", what);
        abort();
    }
}

static int learn_all(struct replay *r, struct ctl_err *e)
{
    enum recording_line line = LINE_OTHER;
    int rc = 0;
    while (rc == 0 && line != LINE_NONE) {
        json_t *root = NULL;
        rc = recording_next(&r->recording, &line, &root, e);
        must(rc == 0 || root == NULL, "an error with a line");
        rc = root != NULL ? replay_learn(r, line, root, e) : rc;
        json_decref(root);
    }
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ctl_err e = {.code = 0};
    struct replay *r = calloc(1, sizeof *r);
    FILE *in = size > 0 ? fmemopen((void *)(uintptr_t)data, size, "r") : NULL;
    if (r == NULL || in == NULL) {
        free(r);
        return 0;
    }
    int rc = recording_begin(in, "file", &r->recording, &e);
    if (rc == 0) {
        rc = learn_all(r, &e);
        must(rc != 0 || recording_rewind(&r->recording, &e) == 0, "it cannot be read again");
    }
    must(rc == 0 || (e.code != 0 && e.text[0] != '\0'), "an error without a text");
    replay_forget(r);
    free(r);
    return 0;
}
