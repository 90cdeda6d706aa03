/* What a session does: jobs, and memory that it shares. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/torture/session.h"

#define ITEMS 64u
#define LARGE 25000u /* arrays that go through shared memory */
#define JOBS  4u

static bool same(struct session *s, const float *y, unsigned count, float each, const char *what)
{
    for (unsigned i = 0; i < count; i++) {
        if (y[i] != each) {
            wrong(s, "%s: element %u is %g, not %g", what, i, (double)y[i], (double)each);
            return false;
        }
    }
    return true;
}

/* ---- jobs ----------------------------------------------------------------------------------- */

static void resident(struct session *s)
{
    gpud_buffer a = {0};
    gpud_buffer b = {0};
    gpud_buffer_desc desc = {.size = sizeof desc};
    static const float ones[ITEMS] = {0};
    bool made = numbers_make(s, ITEMS, 3, &a) && numbers_make(s, ITEMS, 9, &b);
    if (made) {
        gpud_arg args[] = {gpud_f32(5), gpud_host_in(ones, ITEMS, GPUD_F32), gpud_inout(a)};
        if (said(s, gpud_call(s->c, s->axpy, args, 3, NULL), "axpy on a buffer")) {
            (void)numbers_check(s, a, ITEMS, 3, "gpud_read after axpy");
        }
        if (said(s, gpud_copy(s->c, gpud_out(b), gpud_in(a)), "gpud_copy")) {
            (void)numbers_check(s, b, ITEMS, 3, "gpud_read after gpud_copy");
        }
        (void)said(s, gpud_fill(s->c, gpud_slice(b, 0, 4), gpud_f32(1)), "gpud_fill");
        (void)said(s, gpud_buffer_info(s->c, b, &desc), "gpud_buffer_info");
    }
    if (a.id != 0) {
        (void)said(s, gpud_buffer_free(s->c, a), "gpud_buffer_free");
    }
    if (b.id != 0) {
        (void)said(s, gpud_buffer_free(s->c, b), "gpud_buffer_free");
    }
}

static bool program_make(struct session *s, gpud_program **ret_program)
{
    gpud_program *p = NULL;
    gpud_shape shape = gpud_shape_1d(GPUD_F32, ITEMS);
    if (!said(s, gpud_program_create(s->c, "torture", &p), "gpud_program_create")) {
        return false;
    }
    gpud_arg value = gpud_program_param(p, "value", GPUD_PARAM_SCALAR, gpud_shape_1d(GPUD_F32, 1));
    gpud_arg data = gpud_program_param(p, "data", GPUD_PARAM_DATA, shape);
    gpud_arg x = gpud_program_temp(p, shape);
    gpud_arg y = gpud_program_temp(p, shape);
    gpud_arg args[] = {gpud_f32(2), gpud_arg_with(x, GPUD_IN), gpud_arg_with(y, GPUD_INOUT)};
    (void)gpud_program_write(p, x, data);
    (void)gpud_program_fill(p, y, value);
    (void)gpud_program_launch(p, s->axpy, args, 3, NULL);
    (void)gpud_program_read(p, y);
    if (!said(s, gpud_program_seal(p), "gpud_program_seal")) {
        gpud_program_free(p);
        return false;
    }
    *ret_program = p;
    return true;
}

static void programs(struct session *s)
{
    float x[ITEMS];
    gpud_program *p = NULL;
    for (unsigned i = 0; i < ITEMS; i++) {
        x[i] = 4;
    }
    if (!program_make(s, &p)) {
        return;
    }
    for (unsigned i = 0; i < 2; i++) {
        gpud_job *job = NULL;
        const void *out = NULL;
        size_t bytes = 0;
        gpud_arg args[] = {gpud_f32((float)i), gpud_host_in(x, ITEMS, GPUD_F32)};
        if (said(s, gpud_run(s->c, p, args, 2, NULL, &job), "gpud_run") &&
            said(s, gpud_job_output(job, 3, 0, &out, &bytes), "gpud_job_output")) {
            if (bytes != sizeof x) {
                wrong(s, "gpud_job_output: %zu bytes", bytes);
            } else {
                (void)same(s, out, ITEMS, 8 + (float)i, "a program's output");
            }
        }
        gpud_job_free(job);
    }
    gpud_program_free(p);
}

struct answer {
    unsigned count;
    int code;
};

static void on_done(gpud_job *job, int code, void *user)
{
    (void)job;
    struct answer *a = user;
    a->count++;
    a->code = code;
}

static void judge(struct session *s, gpud_job *job, const struct answer *a, const float *y,
                  unsigned index)
{
    int code = gpud_wait(job, patience_of(s));
    if (s->famine && code == GPUD_ERR_TIMEOUT) {
        return;
    }
    if (code == GPUD_ERR_TIMEOUT || a->count != 1) {
        wrong(s, "job %u: %s, %u answers", index, gpud_err_name(code), a->count);
        return;
    }
    if (index == JOBS - 1 && code == GPUD_ERR_CANCELLED) {
        return;
    }
    if (said(s, code, "gpud_wait")) {
        (void)same(s, y, ITEMS, (float)(index + 7), "gpud_launch");
    }
}

/* Several under way, with one answer or two; the last one is cancelled, perhaps in time. */
static void asynchronous(struct session *s)
{
    static float y[JOBS][ITEMS];
    gpud_job *job[JOBS] = {NULL};
    struct answer answer[JOBS] = {{0}};
    for (unsigned i = 0; i < JOBS; i++) {
        gpud_submit_options o = {.size = sizeof o,
                                 .flags = i == 1 ? GPUD_SUBMIT_HELD : GPUD_SUBMIT_BLOCK,
                                 .priority = (int32_t)i,
                                 .deadline_ns = i == 2 ? SESSION_PATIENCE : 0,
                                 .label = "torture",
                                 .done = on_done,
                                 .user = &answer[i]};
        memset(y[i], 0, sizeof y[i]);
        gpud_arg args[] = {gpud_f32((float)(i + 7)), gpud_host_out(y[i], ITEMS, GPUD_F32)};
        (void)said(s, gpud_launch(s->c, s->fill, args, 2, NULL, &o, &job[i]), "gpud_launch");
    }
    if (job[JOBS - 1] != NULL) {
        (void)said(s, gpud_cancel(job[JOBS - 1]), "gpud_cancel");
    }
    (void)said(s, gpud_flush(s->c, patience_of(s)), "gpud_flush");
    for (unsigned i = 0; i < JOBS; i++) {
        if (job[i] != NULL) {
            judge(s, job[i], &answer[i], y[i], i);
            gpud_job_free(job[i]);
        }
    }
}

static void large(struct session *s)
{
    static float x[LARGE];
    static float y[LARGE];
    for (unsigned i = 0; i < LARGE; i++) {
        x[i] = 2;
        y[i] = 1;
    }
    gpud_arg args[] = {gpud_f32(3), gpud_host_in(x, LARGE, GPUD_F32),
                       gpud_host_inout(y, LARGE, GPUD_F32)};
    if (said(s, gpud_call(s->c, s->axpy, args, 3, NULL), "gpud_call with large arrays")) {
        (void)same(s, y, LARGE, 7, "gpud_call with large arrays");
    }
}

void play_jobs(struct session *s)
{
    (void)said(s, gpud_ping(s->c, NULL), "gpud_ping");
    resident(s);
    programs(s);
    asynchronous(s);
    large(s);
}

/* ---- memory --------------------------------------------------------------------------------- */

static void arena(struct session *s)
{
    void *memory = NULL;
    if (!said(s, gpud_host_alloc(s->c, 2 * LARGE * sizeof(float), &memory), "gpud_host_alloc")) {
        return;
    }
    float *x = memory;
    float *y = x + LARGE;
    for (unsigned i = 0; i < LARGE; i++) {
        x[i] = 1;
        y[i] = 5;
    }
    gpud_arg args[] = {gpud_f32(2), gpud_host_in(x, LARGE, GPUD_F32),
                       gpud_host_inout(y, LARGE, GPUD_F32)};
    if (said(s, gpud_call(s->c, s->axpy, args, 3, NULL), "gpud_call in an arena")) {
        (void)same(s, y, LARGE, 7, "gpud_call in an arena");
    }
    (void)said(s, gpud_host_free(s->c, memory), "gpud_host_free");
}

static void imported(struct session *s)
{
    void *memory = NULL;
    size_t bytes = 0;
    int fd = memfd_create("torture", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0 || ftruncate(fd, 65536) != 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) != 0) {
        wrong(s, "no memory to be shared");
    } else if (said(s, gpud_host_import(s->c, fd, &memory, &bytes), "gpud_host_import")) {
        gpud_arg args[] = {gpud_f32(6), gpud_host_out(memory, ITEMS, GPUD_F32)};
        if (said(s, gpud_call(s->c, s->fill, args, 2, NULL), "gpud_call in imported memory")) {
            (void)same(s, memory, ITEMS, 6, "gpud_call in imported memory");
        }
        (void)said(s, gpud_host_free(s->c, memory), "gpud_host_free");
    }
    if (fd >= 0) {
        (void)close(fd);
    }
}

/* Another session opens it. */
static void published(struct session *s)
{
    static unsigned serial;
    char name[GPUD_NAME];
    gpud_buffer a = {0};
    gpud_buffer b = {0};
    (void)snprintf(name, sizeof name, "torture-%d-%u", (int)getpid(), serial++);
    if (!numbers_make(s, ITEMS, 30, &a)) {
        return;
    }
    if (said(s, gpud_buffer_seal(s->c, a), "gpud_buffer_seal") &&
        said(s, gpud_buffer_publish(s->c, a, name, GPUD_IN, 0), "gpud_buffer_publish")) {
        struct session other = {.h = s->h, .clean = s->clean, .famine = s->famine};
        if (session_open(&other) &&
            said(&other, gpud_buffer_open(other.c, name, &b), "gpud_buffer_open")) {
            (void)numbers_check(&other, b, ITEMS, 30, "gpud_read of a published buffer");
        }
        session_close(&other);
        s->failed += other.failed;
        if (other.problem[0] != '\0') {
            wrong(s, "%s", other.problem);
        }
    }
    (void)said(s, gpud_buffer_free(s->c, a), "gpud_buffer_free");
}

static void detached(struct session *s)
{
    gpud_buffer b = {0};
    gpud_job *job = NULL;
    gpud_submit_options o = {.size = sizeof o, .flags = GPUD_SUBMIT_DETACHED};
    if (!numbers_make(s, ITEMS, 0, &b)) {
        return;
    }
    gpud_arg args[] = {gpud_f32(1), gpud_out(b)};
    (void)said(s, gpud_launch(s->c, s->fill, args, 2, NULL, &o, &job), "gpud_launch, detached");
    if (job != NULL) {
        (void)said(s, gpud_wait(job, patience_of(s)), "gpud_wait, detached");
    }
    gpud_job_free(job);
    (void)said(s, gpud_buffer_free(s->c, b), "gpud_buffer_free");
}

void play_memory(struct session *s)
{
    arena(s);
    imported(s);
    published(s);
    detached(s);
}
