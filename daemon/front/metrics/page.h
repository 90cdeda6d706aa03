/*
 * The texts of the latest numbers, one for each format, as answers of libmicrohttpd. A text is
 * written when it is first asked for, and lives until all connections have read it. Thread: the
 * server's.
 */
#ifndef FRONT_METRICS_PAGE_H
#define FRONT_METRICS_PAGE_H

#include <stdbool.h>

#include "daemon/front/metrics/figures.h"

#define METRICS_TEXTS      8u  /* that connections have yet to read */
#define METRICS_STATE_TEXT 512 /* bytes of the state's text, with the NUL */

struct MHD_Response;

/* Zeroed: it has no numbers. */
struct metrics_page {
    struct figures *figures;          /* owned; NULL: there was no memory for them */
    struct MHD_Response *response[2]; /* owned: text format, OpenMetrics; NULL: not written yet */
    unsigned texts;                   /* that some connection has yet to read, or the page has */
};

/* Takes the numbers, and drops the texts of earlier ones. */
void metrics_page_set(struct metrics_page *p, struct figures *figures);
/* The answer, which the page owns. Returns NULL, or why there is none; static. */
const char *metrics_page_response(struct metrics_page *p, bool openmetrics,
                                  struct MHD_Response **ret_response);
/* All connections must be closed. */
void metrics_page_finish(struct metrics_page *p);

#endif
