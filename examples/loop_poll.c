/* gpud in a poll loop: one descriptor, one call, callbacks when jobs end. */
#include <poll.h>

#include "example.h"

#define JOBS 10

static unsigned done;

static void ended(gpud_job *job, int code, void *user)
{
    (void)user;
    must(code);
    done++;
    gpud_job_free(job);
}

int main(void)
{
    gpud_client *c;
    gpud_kernel square;
    static float x[JOBS][64], y[JOBS][64];
    must(gpud_open(NULL, NULL, &c));
    must(gpud_kernel_find(c, "square", &square));
    gpud_submit_options o = {.size = sizeof o, .done = ended};
    for (int i = 0; i < JOBS; i++) {
        gpud_job *job;
        x[i][5] = (float)i;
        gpud_arg args[] = {gpud_host_in(x[i], 64, GPUD_F32), gpud_host_out(y[i], 64, GPUD_F32)};
        must(gpud_launch(c, square, args, 2, NULL, &o, &job));
    }
    struct pollfd p = {.fd = gpud_fd(c), .events = POLLIN};
    while (done < JOBS && poll(&p, 1, -1) > 0) {
        must(gpud_dispatch(c));
    }
    (void)printf("9 * 9 = %g\n", (double)y[9][5]);
    gpud_close(c);
    return y[9][5] == 81 ? 0 : 1;
}
