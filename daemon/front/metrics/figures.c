#include "daemon/front/metrics/figures.h"

#include <stdlib.h>

struct figures *figures_create(unsigned devices)
{
    struct figures *n = calloc(1, sizeof *n);
    if (n == NULL) {
        return NULL;
    }
    size_t places = devices > 0 ? devices : 1; /* so that NULL means no memory */
    n->device_count = devices;
    n->device = calloc(places, sizeof *n->device);
    n->busy_ns = calloc(places * TENANT_ROWS, sizeof *n->busy_ns);
    n->buffers = calloc(places * TENANT_ROWS, sizeof *n->buffers);
    if (n->device == NULL || n->busy_ns == NULL || n->buffers == NULL) {
        figures_destroy(n);
        return NULL;
    }
    return n;
}

void figures_destroy(struct figures *n)
{
    if (n != NULL) {
        free(n->device);
        free(n->busy_ns);
        free(n->buffers);
        free(n);
    }
}
