/* gpud in a libuv loop: uv_poll on its descriptor. */
#include <uv.h>

#include "example.h"

static float x[64], y[64];
static uv_poll_t poll_handle;

static void readable(uv_poll_t *handle, int status, int events)
{
    (void)status;
    (void)events;
    must(gpud_dispatch(handle->data));
}

static void ended(gpud_job *job, int code, void *user)
{
    (void)user;
    must(code);
    gpud_job_free(job);
    uv_close((uv_handle_t *)&poll_handle, NULL); /* the last handle: the loop ends */
}

int main(void)
{
    gpud_client *c;
    gpud_kernel square;
    gpud_job *job;
    must(gpud_open(NULL, NULL, &c));
    must(gpud_kernel_find(c, "square", &square));
    poll_handle.data = c;
    if (uv_poll_init(uv_default_loop(), &poll_handle, gpud_fd(c)) != 0 ||
        uv_poll_start(&poll_handle, UV_READABLE, readable) != 0) {
        return 1;
    }
    x[5] = 9;
    gpud_submit_options o = {.size = sizeof o, .done = ended};
    gpud_arg args[] = {gpud_host_in(x, 64, GPUD_F32), gpud_host_out(y, 64, GPUD_F32)};
    must(gpud_launch(c, square, args, 2, NULL, &o, &job));
    (void)uv_run(uv_default_loop(), UV_RUN_DEFAULT);
    (void)uv_loop_close(uv_default_loop());
    (void)printf("9 * 9 = %g\n", (double)y[5]);
    gpud_close(c);
    return y[5] == 81 ? 0 : 1;
}
