/* Step 3: the service's own loop. Several frames are with the daemon at once, each with a deadline;
 * a frame that fails is dropped or goes again. */
#include <gpud/gpud.h>
#include <poll.h>

#include "frames.h"
#include "kernels.h"

#define DEPTH 4 /* frames in flight */

enum state { WAITING, RUNNING, DONE, DROPPED, AGAIN };

struct slot {
    struct service *service;
    enum state state;
    int number;
    float mean;
    uint8_t *pixels;
    float *sums;
};

struct service {
    gpud_client *client;
    gpud_program *program;
    gpud_buffer weights, background;
    uint64_t deadline_ns;
    struct slot slots[DEPTH]; /* frame n is in slot n % DEPTH */
    int first, next;          /* frames that are not answered: from first on, before next */
    bool anew;                /* the next answer is the first one with a new background */
};

static void weights(struct service *s)
{
    float values[25];
    frame_weights(values);
    must(gpud_buffer_create(s->client, gpud_shape_1d(GPUD_F32, 25), 0, "weights", &s->weights));
    must(gpud_write(s->client, s->weights, GPUD_F32, 0, GPUD_REST, values, NULL));
    must(gpud_buffer_seal(s->client, s->weights));
}

static void background(struct service *s)
{
    must(gpud_buffer_create(s->client, gpud_shape_1d(GPUD_F32, PIXELS), GPUD_BUFFER_ZERO,
                            "background", &s->background));
}

/* Memory that the daemon shares: frames and answers are not copied on their way. */
static void memory(struct service *s)
{
    for (int i = 0; i < DEPTH; i++) {
        struct slot *slot = &s->slots[i];
        void *pixels, *sums;
        slot->service = s;
        must(gpud_host_alloc(s->client, PIXELS, &pixels));
        must(gpud_host_alloc(s->client, GROUPS * sizeof(float), &sums));
        slot->pixels = pixels;
        slot->sums = sums;
    }
}

static void program(struct service *s, const struct kernels *k)
{
    const gpud_shape bytes = gpud_shape_1d(GPUD_U8, PIXELS);
    const gpud_shape floats = gpud_shape_1d(GPUD_F32, PIXELS);
    const gpud_shape few = gpud_shape_1d(GPUD_F32, GROUPS);
    const gpud_grid points = {.size = sizeof points, .global = {WIDTH, HEIGHT}, .local = {16, 16}};
    const gpud_grid groups = {.size = sizeof groups, .global = {PIXELS}, .local = {GROUP}};
    gpud_program *p;
    must(gpud_program_create(s->client, "frame", &p));
    gpud_arg frame = gpud_program_param(p, "frame", GPUD_PARAM_DATA, bytes);
    gpud_arg behind = gpud_program_param(p, "background", GPUD_PARAM_BUFFER, floats);
    gpud_arg answer = gpud_program_param(p, "answer", GPUD_PARAM_DATA, few);
    gpud_arg pixels = gpud_program_temp(p, bytes);
    gpud_arg blurred = gpud_program_temp(p, floats);
    gpud_arg sums = gpud_program_temp(p, few);
    const gpud_arg first[] = {pixels, gpud_in(s->weights), gpud_arg_with(blurred, GPUD_OUT),
                              gpud_i32(WIDTH), gpud_i32(HEIGHT)};
    const gpud_arg second[] = {blurred, behind, gpud_arg_with(sums, GPUD_OUT), gpud_i32(PIXELS)};
    must(gpud_program_write(p, pixels, frame));
    must(gpud_program_launch(p, k->blur, first, 5, &points));
    must(gpud_program_launch(p, k->motion, second, 4, &groups));
    must(gpud_program_read_to(p, answer, sums));
    must(gpud_program_seal(p));
    s->program = p;
}

/* A frame that was refused or came too late is dropped: nothing has changed. One whose background
 * went with its worker goes again. Any other error is the service's own mistake and ends it. */
static void failed(struct slot *slot, const gpud_error *error)
{
    bool lost = error->code == GPUD_ERR_WORKER_LOST || error->code == GPUD_ERR_BUFFER_LOST ||
                error->code == GPUD_ERR_UNDEFINED;
    bool refused = error->code == GPUD_ERR_DEADLINE || error->retriable;
    (void)fprintf(stderr, "frame %d: %s\n", slot->number, error->text);
    if (lost || (refused && error->effects != GPUD_EFFECTS_NONE)) {
        slot->state = AGAIN;
    } else if (refused) {
        slot->state = DROPPED;
    } else {
        exit(1);
    }
}

static void ended(gpud_job *job, int code, void *user)
{
    struct slot *slot = user;
    gpud_error error = {.size = sizeof error};
    must(gpud_job_error(job, &error));
    gpud_job_free(job);
    if (code != 0) {
        failed(slot, &error);
    } else {
        slot->mean = frame_mean(slot->sums);
        slot->state = DONE;
    }
}

static void happened(gpud_client *client, const gpud_event *event, void *user)
{
    (void)client;
    (void)user;
    if (event->text[0] != '\0') {
        const char *what = event->kind == GPUD_EVENT_BUFFER_LOST ? "a buffer " : "";
        (void)fprintf(stderr, "gpud: %s%s\n", what, event->text);
    }
}

static void submit(struct slot *slot)
{
    struct service *s = slot->service;
    const gpud_submit_options options = {
        .size = sizeof options,
        .deadline_ns = s->deadline_ns,
        .label = "frame",
        .done = ended,
        .user = slot,
    };
    const gpud_arg args[] = {gpud_host_in(slot->pixels, PIXELS, GPUD_U8), gpud_inout(s->background),
                             gpud_host_out(slot->sums, GROUPS, GPUD_F32)};
    gpud_job *job;
    slot->state = RUNNING;
    if (gpud_submit(s->client, s->program, args, 3, &options, &job) != 0) {
        failed(slot, gpud_last_error()); /* known at once: the buffer is lost */
    }
}

static bool any(const struct service *s, enum state state)
{
    for (int i = s->first; i < s->next; i++) {
        if (s->slots[i % DEPTH].state == state) {
            return true;
        }
    }
    return false;
}

/* Submits what waits. After a loss the frames in flight fail first; then they go again in their
 * order, with a new background. */
static void forward(struct service *s)
{
    bool lost = any(s, AGAIN);
    if (lost && any(s, RUNNING)) {
        return;
    }
    if (lost) {
        (void)gpud_buffer_free(s->client, s->background);
        background(s);
        s->anew = true;
    }
    for (int i = s->first; i < s->next; i++) {
        struct slot *slot = &s->slots[i % DEPTH];
        if (slot->state == WAITING || slot->state == AGAIN) {
            submit(slot);
        }
    }
}

static void answer(struct service *s)
{
    for (; s->first < s->next; s->first++) {
        struct slot *slot = &s->slots[s->first % DEPTH];
        if (slot->state == DROPPED) {
            (void)printf("%d dropped\n", slot->number);
        } else if (slot->state == DONE) {
            (void)printf("%d %g%s\n", slot->number, (double)slot->mean, s->anew ? " anew" : "");
            s->anew = false;
        } else {
            break;
        }
    }
    (void)fflush(stdout);
}

/* false at the end of the input */
static bool receive(struct service *s)
{
    struct slot *slot = &s->slots[s->next % DEPTH];
    if (!frame_read(slot->pixels)) {
        return false;
    }
    slot->number = s->next++;
    slot->state = WAITING;
    return true;
}

static void serve(struct service *s)
{
    bool more = true;
    while (more || s->first < s->next) {
        bool room = more && s->next - s->first < DEPTH;
        struct pollfd fds[] = {{.fd = gpud_fd(s->client), .events = POLLIN},
                               {.fd = room ? 0 : -1, .events = POLLIN}};
        bool again = any(s, AGAIN) && !any(s, RUNNING); /* nothing else would end the wait */
        if (poll(fds, 2, again ? 0 : -1) < 0) {
            perror("poll");
            exit(1);
        }
        if (fds[1].revents != 0) {
            more = receive(s);
        }
        must(gpud_dispatch(s->client));
        answer(s);
        forward(s);
    }
}

int main(int argc, char **argv)
{
    struct service s = {.deadline_ns = argc > 2 ? strtoull(argv[2], NULL, 10) : 60000000000};
    struct kernels k;
    (void)setvbuf(stdin, NULL, _IONBF, 0); /* poll has to see what stdio has not read */
    must(gpud_open(NULL, NULL, &s.client));
    must(gpud_set_event_cb(s.client, happened, NULL));
    kernels_load(s.client, argc > 1 ? argv[1] : "frame.cl", &k);
    weights(&s);
    background(&s);
    program(&s, &k);
    memory(&s);
    serve(&s);
    gpud_program_free(s.program);
    gpud_close(s.client);
    return 0;
}
