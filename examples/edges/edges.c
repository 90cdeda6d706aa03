#include "edges/edges.h"

#include <stdlib.h>

#include "edges/fail.h"

/* The one kernel that is not built in: source in the portable dialect, which every back end
 * accepts. It reads the greatest value from a buffer, so that value does not leave the device. */
static const char normalise_source[] =
    "//@kernel normalise(in f32 x[n], in f32 most[1], out f32 y[n])  over n\n"
    "{\n"
    "    y[i] = most[0] > 0.0f ? x[i] / most[0] : 0.0f;\n"
    "}\n";

enum stage { TO_GRAY, BLUR, EDGES, MOST, NORMALISE, TO_BYTES };

static const char *const kernel_names[EDGES_STAGES] = {
    "rgb_to_gray", "gaussian", "sobel", "reduce_max", "normalise", "to_u8",
};

struct work {
    gpud_client *client;
    gpud_module module;
    gpud_kernel kernel[EDGES_STAGES];
    gpud_buffer photo, strength, picture;
    gpud_program *program;
    int step[EDGES_STAGES]; /* the program's step of each stage */
};

static void find_kernels(struct work *w)
{
    gpud_module_options o = {.size = sizeof o, .name = "demo", .file = "normalise.gk"};
    need(gpud_module_load(w->client, GPUD_LANG_DIALECT, normalise_source,
                          sizeof normalise_source - 1, &o, &w->module),
         "the demonstration's own kernel");
    for (int i = 0; i < EDGES_STAGES; i++) {
        need(i == NORMALISE
                 ? gpud_module_kernel(w->client, w->module, kernel_names[i], &w->kernel[i])
                 : gpud_kernel_find(w->client, kernel_names[i], &w->kernel[i]),
             kernel_names[i]);
    }
}

static gpud_buffer create_buffer(struct work *w, uint64_t device, gpud_shape shape,
                                 const char *label)
{
    gpud_buffer buffer;
    need(device != 0 ? gpud_buffer_create_on(w->client, device - 1, shape, 0, label, &buffer)
                     : gpud_buffer_create(w->client, shape, 0, label, &buffer),
         "uploading the photograph");
    return buffer;
}

static void upload(struct work *w, const struct image *photo, uint64_t device)
{
    uint64_t height = photo->height, width = photo->width;
    w->photo = create_buffer(w, device, gpud_shape_3d(GPUD_U8, height, width, 3), "photograph");
    w->strength = create_buffer(w, device, gpud_shape_2d(GPUD_F32, height, width), "edges");
    w->picture = create_buffer(w, device, gpud_shape_2d(GPUD_U8, height, width), "picture");
    need(gpud_write(w->client, w->photo, GPUD_U8, 0, GPUD_REST, photo->pixels, NULL),
         "uploading the photograph");
}

/* Sealing the program reports the errors of all building calls. */
static void build_program(struct work *w, uint64_t height, uint64_t width)
{
    need(gpud_program_create(w->client, "edges", &w->program), "program");
    gpud_program *p = w->program;
    gpud_shape plane = gpud_shape_2d(GPUD_F32, height, width);
    gpud_arg photo =
        gpud_program_param(p, "photo", GPUD_PARAM_BUFFER, gpud_shape_3d(GPUD_U8, height, width, 3));
    gpud_arg strength = gpud_program_param(p, "edges", GPUD_PARAM_BUFFER, plane);
    gpud_arg picture =
        gpud_program_param(p, "picture", GPUD_PARAM_BUFFER, gpud_shape_2d(GPUD_U8, height, width));
    gpud_arg gray = gpud_program_temp(p, plane);
    gpud_arg blurred = gpud_program_temp(p, plane);
    gpud_arg slope = gpud_program_temp(p, plane);
    gpud_arg most = gpud_program_temp(p, gpud_shape_1d(GPUD_F32, 1));

    const gpud_arg to_gray[] = {photo, gray};
    const gpud_arg blur[] = {gray, blurred, gpud_f32(EDGES_SIGMA)};
    const gpud_arg sobel[] = {blurred, slope};
    const gpud_arg greatest[] = {slope, most};
    const gpud_arg divide[] = {slope, most, strength};
    const gpud_arg to_bytes[] = {gpud_f32(255.0f * EDGES_GAIN), strength, picture};
    w->step[TO_GRAY] = gpud_program_launch(p, w->kernel[TO_GRAY], to_gray, 2, NULL);
    w->step[BLUR] = gpud_program_launch(p, w->kernel[BLUR], blur, 3, NULL);
    w->step[EDGES] = gpud_program_launch(p, w->kernel[EDGES], sobel, 2, NULL);
    w->step[MOST] = gpud_program_launch(p, w->kernel[MOST], greatest, 2, NULL);
    w->step[NORMALISE] = gpud_program_launch(p, w->kernel[NORMALISE], divide, 3, NULL);
    w->step[TO_BYTES] = gpud_program_launch(p, w->kernel[TO_BYTES], to_bytes, 3, NULL);
    need(gpud_program_seal(p), "program");
}

/* The daemon may run a stage as several steps; the stage's time is their sum. */
static void read_times(const struct work *w, const gpud_job *job, struct edges *result)
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
        for (int s = 0; s < EDGES_STAGES; s++) {
            if (w->step[s] == (int)step && end >= begin) {
                result->stage[s].ns += end - begin;
            }
        }
    }
}

static void run(struct work *w, uint64_t device, struct edges *result)
{
    const gpud_arg args[] = {gpud_in(w->photo), gpud_out(w->strength), gpud_out(w->picture)};
    gpud_submit_options o = {
        .size = sizeof o, .flags = GPUD_SUBMIT_BLOCK, .device = device, .label = "demo"};
    gpud_job *job = NULL;
    need(gpud_run(w->client, w->program, args, 3, &o, &job), "running the program");
    result->job = gpud_job_id(job);
    read_times(w, job, result);
    gpud_job_free(job);
}

static void download(struct work *w, const struct image *photo, struct edges *result)
{
    size_t count = (size_t)photo->width * photo->height;
    result->strength = malloc(count * sizeof *result->strength);
    if (result->strength == NULL ||
        !image_alloc(photo->width, photo->height, 1, &result->picture)) {
        fail(GPUD_ERR_NOMEM, "reading the result", gpud_strerror(GPUD_ERR_NOMEM));
    }
    need(gpud_read(w->client, w->strength, GPUD_F32, 0, GPUD_REST, result->strength, NULL),
         "reading the result");
    need(gpud_read(w->client, w->picture, GPUD_U8, 0, GPUD_REST, result->picture.pixels, NULL),
         "reading the result");
}

/* The end of the session would free buffers and modules, too. Longer programs free them like this.
 */
static void release(struct work *w)
{
    gpud_program_free(w->program);
    need(gpud_buffer_free(w->client, w->photo), "freeing the photograph");
    need(gpud_buffer_free(w->client, w->strength), "freeing the edges");
    need(gpud_buffer_free(w->client, w->picture), "freeing the picture");
    need(gpud_module_unload(w->client, w->module), "unloading the module");
}

void edges_find(gpud_client *client, const struct image *photo, uint64_t device,
                struct edges *ret_edges)
{
    struct work w = {.client = client};
    struct edges result = {0};
    for (int s = 0; s < EDGES_STAGES; s++) {
        result.stage[s].kernel = kernel_names[s];
    }
    find_kernels(&w);
    upload(&w, photo, device);
    build_program(&w, photo->height, photo->width);
    run(&w, device, &result);
    download(&w, photo, &result);
    release(&w);
    *ret_edges = result;
}

void edges_free(struct edges *edges)
{
    free(edges->strength);
    image_free(&edges->picture);
    *edges = (struct edges){0};
}
