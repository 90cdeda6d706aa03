#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuctl/demo/demo.h"

/* The one kernel that is not built in: sent as source, in the language that every back end takes.
 * The greatest value stays on the device. */
static const char normalise_source[] =
    "//@kernel normalise(in f32 x[n], in f32 most[1], out f32 y[n])  over n\n"
    "{\n"
    "    y[i] = most[0] > 0.0f ? x[i] / most[0] : 0.0f;\n"
    "}\n";

enum stage { TO_GRAY, BLUR, EDGES, MOST, NORMALISE, TO_BYTES };

static const char *const kernel_names[DEMO_STAGES] = {
    "rgb_to_gray", "gaussian", "sobel", "reduce_max", "normalise", "to_u8",
};

struct demo {
    gpud_client *client;
    gpud_module module;
    gpud_kernel kernel[DEMO_STAGES];
    gpud_buffer photo, edges, picture;
    gpud_program *program;
    int step[DEMO_STAGES];
};

static int find_kernels(struct demo *d, struct ctl_err *e)
{
    gpud_module_options o = {.size = sizeof o, .name = "demo", .file = "normalise.gk"};
    int rc = gpud_module_load(d->client, GPUD_LANG_DIALECT, normalise_source,
                              sizeof normalise_source - 1, &o, &d->module);
    if (rc != 0) {
        return ctl_err_lib(e, rc, "the demonstration's own kernel");
    }
    for (int i = 0; i < DEMO_STAGES; i++) {
        rc = i == NORMALISE
                 ? gpud_module_kernel(d->client, d->module, kernel_names[i], &d->kernel[i])
                 : gpud_kernel_find(d->client, kernel_names[i], &d->kernel[i]);
        if (rc != 0) {
            return ctl_err_lib(e, rc, "kernel %s", kernel_names[i]);
        }
    }
    return 0;
}

static int create_buffer(struct demo *d, uint64_t device, gpud_shape shape, const char *label,
                         gpud_buffer *ret_buffer)
{
    return device != 0 ? gpud_buffer_create_on(d->client, device - 1, shape, 0, label, ret_buffer)
                       : gpud_buffer_create(d->client, shape, 0, label, ret_buffer);
}

static int create_buffers(struct demo *d, const struct image *photo, uint64_t device,
                          struct ctl_err *e)
{
    uint64_t h = photo->height, w = photo->width;
    int rc = create_buffer(d, device, gpud_shape_3d(GPUD_U8, h, w, 3), "photograph", &d->photo);
    if (rc == 0) {
        rc = create_buffer(d, device, gpud_shape_2d(GPUD_F32, h, w), "edges", &d->edges);
    }
    if (rc == 0) {
        rc = create_buffer(d, device, gpud_shape_2d(GPUD_U8, h, w), "picture", &d->picture);
    }
    if (rc == 0) {
        rc = gpud_write(d->client, d->photo, GPUD_U8, 0, GPUD_REST, photo->pixels, NULL);
    }
    return rc == 0 ? 0 : ctl_err_lib(e, rc, "uploading the photograph");
}

static int build_program(struct demo *d, uint64_t h, uint64_t w, struct ctl_err *e)
{
    int rc = gpud_program_create(d->client, "edges", &d->program);
    if (rc != 0) {
        return ctl_err_lib(e, rc, "program");
    }
    gpud_program *p = d->program;
    gpud_shape plane = gpud_shape_2d(GPUD_F32, h, w);
    gpud_arg photo =
        gpud_program_param(p, "photo", GPUD_PARAM_BUFFER, gpud_shape_3d(GPUD_U8, h, w, 3));
    gpud_arg edges = gpud_program_param(p, "edges", GPUD_PARAM_BUFFER, plane);
    gpud_arg picture =
        gpud_program_param(p, "picture", GPUD_PARAM_BUFFER, gpud_shape_2d(GPUD_U8, h, w));
    gpud_arg gray = gpud_program_temp(p, plane);
    gpud_arg blurred = gpud_program_temp(p, plane);
    gpud_arg slope = gpud_program_temp(p, plane);
    gpud_arg most = gpud_program_temp(p, gpud_shape_1d(GPUD_F32, 1));

    const gpud_arg to_gray[] = {photo, gray};
    const gpud_arg blur[] = {gray, blurred, gpud_f32(DEMO_SIGMA)};
    const gpud_arg sobel[] = {blurred, slope};
    const gpud_arg greatest[] = {slope, most};
    const gpud_arg divide[] = {slope, most, edges};
    const gpud_arg to_bytes[] = {gpud_f32(255.0f * DEMO_GAIN), edges, picture};
    d->step[TO_GRAY] = gpud_program_launch(p, d->kernel[TO_GRAY], to_gray, 2, NULL);
    d->step[BLUR] = gpud_program_launch(p, d->kernel[BLUR], blur, 3, NULL);
    d->step[EDGES] = gpud_program_launch(p, d->kernel[EDGES], sobel, 2, NULL);
    d->step[MOST] = gpud_program_launch(p, d->kernel[MOST], greatest, 2, NULL);
    d->step[NORMALISE] = gpud_program_launch(p, d->kernel[NORMALISE], divide, 3, NULL);
    d->step[TO_BYTES] = gpud_program_launch(p, d->kernel[TO_BYTES], to_bytes, 3, NULL);
    rc = gpud_program_seal(p);
    return rc == 0 ? 0 : ctl_err_lib(e, rc, "program");
}

/* A stage's time is that of all measured steps that stand for it. */
static void read_times(const struct demo *d, const gpud_job *job, struct demo_result *result)
{
    result->times.size = sizeof result->times;
    if (gpud_job_timing(job, &result->times) != 0) {
        return;
    }
    for (uint32_t i = 0; i < result->times.step_count; i++) {
        uint32_t step = 0;
        uint64_t begin = 0, end = 0;
        if (gpud_job_step_time(job, i, &step, &begin, &end) != 0) {
            continue;
        }
        for (int s = 0; s < DEMO_STAGES; s++) {
            if (d->step[s] == (int)step && end >= begin) {
                result->stage[s].ns += end - begin;
            }
        }
    }
}

static int submit(struct demo *d, uint64_t device, struct demo_result *result, struct ctl_err *e)
{
    const gpud_arg args[] = {gpud_in(d->photo), gpud_out(d->edges), gpud_out(d->picture)};
    gpud_submit_options o = {
        .size = sizeof o, .flags = GPUD_SUBMIT_BLOCK, .device = device, .label = "demo"};
    gpud_job *job = NULL;
    int rc = gpud_run(d->client, d->program, args, 3, &o, &job);
    if (job != NULL) {
        result->job = gpud_job_id(job);
        read_times(d, job, result);
    }
    gpud_job_free(job);
    return rc == 0 ? 0 : ctl_err_lib(e, rc, "running the program");
}

static int fetch(struct demo *d, const struct image *photo, struct demo_result *result,
                 struct ctl_err *e)
{
    size_t count = (size_t)photo->width * photo->height;
    result->picture = (struct image){photo->width, photo->height, 1, malloc(count)};
    result->edges = malloc(count * sizeof *result->edges);
    if (result->edges == NULL || result->picture.pixels == NULL) {
        return ctl_err_set(e, GPUD_ERR_NOMEM, "no memory for the result");
    }
    int rc = gpud_read(d->client, d->edges, GPUD_F32, 0, GPUD_REST, result->edges, NULL);
    if (rc == 0) {
        rc = gpud_read(d->client, d->picture, GPUD_U8, 0, GPUD_REST, result->picture.pixels, NULL);
    }
    return rc == 0 ? 0 : ctl_err_lib(e, rc, "reading the result");
}

static void demo_release(struct demo *d)
{
    const gpud_buffer buffers[] = {d->photo, d->edges, d->picture};
    gpud_program_free(d->program);
    for (unsigned i = 0; i < 3; i++) {
        if (buffers[i].id != 0) {
            (void)gpud_buffer_free(d->client, buffers[i]);
        }
    }
    if (d->module.id != 0) {
        (void)gpud_module_unload(d->client, d->module);
    }
}

int demo_run(gpud_client *client, const struct image *photo, uint64_t device,
             struct demo_result *ret_result, struct ctl_err *e)
{
    struct demo d = {.client = client};
    struct demo_result result = {0};
    for (int s = 0; s < DEMO_STAGES; s++) {
        result.stage[s].kernel = kernel_names[s];
    }
    int rc = find_kernels(&d, e);
    if (rc == 0) {
        rc = create_buffers(&d, photo, device, e);
    }
    if (rc == 0) {
        rc = build_program(&d, photo->height, photo->width, e);
    }
    if (rc == 0) {
        rc = submit(&d, device, &result, e);
    }
    if (rc == 0) {
        rc = fetch(&d, photo, &result, e);
    }
    demo_release(&d);
    if (rc != 0) {
        demo_finish(&result);
        return rc;
    }
    *ret_result = result;
    return 0;
}

void demo_finish(struct demo_result *result)
{
    free(result->edges);
    image_finish(&result->picture);
    *result = (struct demo_result){0};
}
