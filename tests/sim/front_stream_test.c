/*
 * One recorded stream of requests, frames and time through the real front. What it answers, sends
 * and starts, in order, is compared with the recording (front_stream.golden).
 *
 * A change that alters what the front says on purpose records anew: run the test with
 * GPUD_STREAM_RECORD=FILE and read the difference (tests/sim/record).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/world.h"
#include "tests/unit/common/suite.h"

static void play(const char *path, FILE *out)
{
    char *line = NULL;
    size_t room = 0;
    FILE *in = fopen(path, "r");
    ck_assert(in != NULL && out != NULL);
    world_begin(out);
    while (getline(&line, &room, in) > 0) {
        line[strcspn(line, "\n")] = '\0';
        world_line(line);
        (void)fflush(out); /* a stream that ends here shows why */
    }
    world_end();
    free(line);
    (void)fclose(in);
    ck_assert_int_eq(fclose(out), 0);
}

/* The first line that differs is worth more than both texts. */
static void compare(const char *is, const char *path)
{
    char *line = NULL;
    size_t room = 0;
    unsigned number = 0;
    FILE *golden = fopen(path, "r");
    ck_assert_ptr_nonnull(golden);
    while (getline(&line, &room, golden) > 0) {
        number++;
        size_t size = strcspn(is, "\n");
        line[strcspn(line, "\n")] = '\0';
        if (strlen(line) != size || strncmp(line, is, size) != 0) {
            ck_abort_msg("line %u is\n%.*s\ninstead of\n%s", number, (int)size, is, line);
        }
        is += is[size] == '\n' ? size + 1 : size;
    }
    ck_assert_str_eq(is, "");
    free(line);
    (void)fclose(golden);
}

START_TEST(a_recorded_stream_is_answered_as_before)
{
    const char *record = getenv("GPUD_STREAM_RECORD");
    char *text = NULL;
    size_t size = 0;
    play(STREAM_DIR "/front_stream.txt",
         record != NULL ? fopen(record, "w") : open_memstream(&text, &size));
    if (record == NULL) {
        compare(text, STREAM_DIR "/front_stream.golden");
    }
    free(text);
}
END_TEST

SUITE_MAIN("stream", a_recorded_stream_is_answered_as_before)
