#include "daemon/front/metrics/page.h"

#include <microhttpd.h>
#include <stdlib.h>

#include "daemon/front/metrics/render.h"

#define TYPE_TEXT        "text/plain; version=0.0.4; charset=utf-8"
#define TYPE_OPENMETRICS "application/openmetrics-text; version=1.0.0; charset=utf-8"

struct text {
    struct metrics_page *page;
    struct exposition x;
};

static void text_free(void *data)
{
    struct text *t = data;
    t->page->texts--;
    exposition_finish(&t->x);
    free(t);
}

/* NULL: no memory. */
static struct MHD_Response *text_create(struct metrics_page *p, bool openmetrics)
{
    struct text *t = calloc(1, sizeof *t);
    if (t == NULL) {
        return NULL;
    }
    t->page = p;
    p->texts++;
    exposition_init(&t->x, openmetrics);
    render(&t->x, p->figures);
    struct MHD_Response *response = NULL;
    if (exposition_end(&t->x)) {
        response = MHD_create_response_from_buffer_with_free_callback_cls(
            t->x.text.size, t->x.text.data, text_free, t);
    }
    if (response == NULL) {
        text_free(t);
        return NULL;
    }
    (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE,
                                  openmetrics ? TYPE_OPENMETRICS : TYPE_TEXT);
    (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    return response;
}

static void drop(struct metrics_page *p)
{
    for (unsigned i = 0; i < 2; i++) {
        if (p->response[i] != NULL) {
            MHD_destroy_response(p->response[i]); /* connections may still have it */
            p->response[i] = NULL;
        }
    }
    figures_destroy(p->figures);
    p->figures = NULL;
}

void metrics_page_set(struct metrics_page *p, struct figures *figures)
{
    drop(p);
    p->figures = figures;
}

const char *metrics_page_response(struct metrics_page *p, bool openmetrics,
                                  struct MHD_Response **ret_response)
{
    struct MHD_Response **response = &p->response[openmetrics];
    if (p->figures == NULL) {
        return "the daemon has no memory for metrics\n";
    }
    if (*response == NULL && p->texts >= METRICS_TEXTS) {
        return "too many scrapers do not read what they asked for: try again\n";
    }
    *response = *response != NULL ? *response : text_create(p, openmetrics);
    if (*response == NULL) {
        return "the daemon has no memory for metrics\n";
    }
    *ret_response = *response;
    return NULL;
}

void metrics_page_finish(struct metrics_page *p)
{
    drop(p);
}
