/* The demonstration in its parts: the program on the daemon, and its comparison. */
#ifndef GPUCTL_DEMO_DEMO_H
#define GPUCTL_DEMO_DEMO_H

#include <stdbool.h>
#include <stdint.h>

#include <gpud/gpud.h>

#include "gpuctl/base/ctl_err.h"
#include "gpuctl/demo/pixels.h"

#define DEMO_SIGMA 1.2f /* pixels, of the blur before edges are looked for */
/* The strongest edges are far stronger than the others: what is brighter than white is cut. */
#define DEMO_GAIN   2.5f
#define DEMO_STAGES 6

struct demo_stage {
    const char *kernel;
    uint64_t ns; /* on the device, 0 if not measured */
};

/* What the program gave back. */
struct demo_result {
    float *edges;         /* owned; width * height, 0 … 1 */
    struct image picture; /* owned; the same as gray bytes, DEMO_GAIN applied */
    struct demo_stage stage[DEMO_STAGES];
    uint64_t job;
    gpud_job_times times;
};

/* Runs the program on a photograph; device is GPUD_ON(id) or 0. Blocks. */
int demo_run(gpud_client *client, const struct image *photo, uint64_t device,
             struct demo_result *ret_result, struct ctl_err *e);
void demo_finish(struct demo_result *result);

struct demo_verdict {
    double error, bound;                 /* of edges, absolute */
    double picture_error, picture_bound; /* of bytes */
    bool good;
};
int demo_verify(const struct image *photo, const struct demo_result *result,
                struct demo_verdict *ret_verdict, struct ctl_err *e);

#endif
