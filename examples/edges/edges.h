/* Finds the edges of a photograph on a device by a program of six kernels, one of them from source.
 */
#ifndef EDGES_EDGES_H
#define EDGES_EDGES_H

#include <stdint.h>

#include <gpud/gpud.h>

#include "edges/image.h"

#define EDGES_SIGMA 1.2f /* pixels, of the blur before edges are looked for */
/* The picture's brightness factor. The few edges that are much stronger than the rest become white.
 */
#define EDGES_GAIN   2.5f
#define EDGES_STAGES 6

struct edges_stage {
    const char *kernel;
    uint64_t ns; /* on the device, 0 if not measured */
};

struct edges {
    float *strength;      /* owned; width * height values of 0 … 1 */
    struct image picture; /* owned; the same as gray bytes, EDGES_GAIN applied */
    struct edges_stage stage[EDGES_STAGES];
    uint64_t job;
    gpud_job_times times;
};

/* Runs the program on a photograph. device: GPUD_ON(id), or 0 for the daemon's choice. Ends the
 * process if a call fails. Blocks. */
void edges_find(gpud_client *client, const struct image *photo, uint64_t device,
                struct edges *ret_edges);
void edges_free(struct edges *edges);

#endif
