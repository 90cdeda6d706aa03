#include "tests/system/harness/load.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WINDOW 4u
#define ITEMS  1000u

struct slot {
    gpud_job *job;
    unsigned answers;
    int code;
    uint64_t number;
    float y[ITEMS];
};

struct worker {
    const char *url;
    int stop;
    int done;
    uint64_t sent;
    struct slot slot[WINDOW];
};

static void answered(gpud_job *job, int code, void *user)
{
    (void)job;
    struct slot *slot = user;
    slot->answers++;
    slot->code = code;
}

static float expected(uint64_t number, unsigned i)
{
    return 2.0f * (float)i + (float)(number % 1000);
}

static int submit(gpud_client *c, gpud_kernel axpy, struct slot *slot, uint64_t number)
{
    float x[ITEMS];
    for (unsigned i = 0; i < ITEMS; i++) {
        x[i] = (float)i;
        slot->y[i] = (float)(number % 1000);
    }
    slot->number = number;
    slot->answers = 0;
    gpud_arg args[] = {gpud_f32(2), gpud_host(x, ITEMS, GPUD_F32),
                       gpud_host(slot->y, ITEMS, GPUD_F32)};
    gpud_submit_options o = {
        .size = sizeof o, .flags = GPUD_SUBMIT_BLOCK, .done = answered, .user = slot};
    return gpud_launch(c, axpy, args, 3, NULL, &o, &slot->job);
}

/* 0, or why not. */
static const char *check(const struct slot *slot)
{
    if (slot->answers != 1) {
        return slot->answers == 0 ? "no answer" : "more than one answer";
    }
    if (slot->code != 0) {
        return gpud_err_name(slot->code);
    }
    for (unsigned i = 0; i < ITEMS; i++) {
        if (slot->y[i] != expected(slot->number, i)) {
            return "a wrong result";
        }
    }
    return NULL;
}

static int complain(const struct worker *w, const char *what, const gpud_error *error)
{
    (void)fprintf(stderr, "client %d after %llu jobs: %s: %s\n", (int)getpid(),
                  (unsigned long long)w->sent, what, error->text);
    return 1;
}

static int finish_slot(const struct worker *w, struct slot *slot)
{
    if (slot->job == NULL) {
        return 0;
    }
    (void)gpud_wait(slot->job, PATIENCE);
    gpud_error error = {.size = sizeof error};
    (void)gpud_job_error(slot->job, &error);
    const char *why = check(slot);
    if (why != NULL) {
        return complain(w, why, &error);
    }
    gpud_job_free(slot->job);
    slot->job = NULL;
    return 0;
}

static bool stopped(const struct worker *w)
{
    struct pollfd p = {.fd = w->stop, .events = POLLIN};
    return poll(&p, 1, 0) > 0;
}

static int work(void *data)
{
    struct worker *w = data;
    gpud_client *c = NULL;
    gpud_kernel axpy = {0};
    gpud_options o = {.size = sizeof o,
                      .timeout_ns = PATIENCE,
                      .connect_timeout_ns = PATIENCE,
                      .reconnect_ns = PATIENCE};
    if (gpud_open(w->url, &o, &c) != 0 || gpud_kernel_find(c, "axpy", &axpy) != 0) {
        return complain(w, "no start", gpud_last_error());
    }
    int failed = 0;
    while (failed == 0 && !stopped(w)) {
        struct slot *slot = &w->slot[w->sent % WINDOW];
        failed = finish_slot(w, slot);
        if (failed == 0 && submit(c, axpy, slot, w->sent) != 0) {
            failed = complain(w, "not taken", gpud_last_error());
        }
        w->sent++;
    }
    for (unsigned i = 0; failed == 0 && i < WINDOW; i++) {
        failed = finish_slot(w, &w->slot[i]);
    }
    if (failed == 0 && write(w->done, &w->sent, sizeof w->sent) != (ssize_t)sizeof w->sent) {
        failed = 1;
    }
    gpud_close(c);
    return failed;
}

void load_start(struct load *load, const char *url, unsigned processes)
{
    int stop[2];
    int done[2];
    ck_assert_uint_le(processes, LOAD_MAX);
    ck_assert_int_eq(pipe2(stop, O_CLOEXEC), 0);
    ck_assert_int_eq(pipe2(done, O_CLOEXEC), 0);
    load->count = processes;
    load->stop = stop[1];
    load->done = done[0];
    struct worker *w = calloc(1, sizeof *w);
    ck_assert_ptr_nonnull(w);
    w->url = url;
    w->stop = stop[0];
    w->done = done[1];
    for (unsigned i = 0; i < processes; i++) {
        load->pid[i] = fork();
        ck_assert_int_ge(load->pid[i], 0);
        if (load->pid[i] == 0) {
            (void)close(stop[1]);
            int status = work(w);
            free(w);
            _exit(status);
        }
    }
    free(w);
    (void)close(stop[0]);
    (void)close(done[1]);
}

uint64_t load_stop(struct load *load)
{
    uint64_t sum = 0;
    uint64_t each = 0;
    (void)close(load->stop);
    for (unsigned i = 0; i < load->count; i++) {
        ck_assert_msg(process_wait(load->pid[i]) == 0, "a client had no or wrong answers");
    }
    while (read(load->done, &each, sizeof each) == (ssize_t)sizeof each) {
        ck_assert_uint_gt(each, 0);
        sum += each;
    }
    (void)close(load->done);
    return sum;
}

/* The longer run is for the night. */
unsigned storm_seconds(unsigned brief)
{
    const char *text = getenv("GPUD_SYSTEM_SECONDS");
    return text != NULL ? (unsigned)strtoul(text, NULL, 10) : brief;
}

void storm_told(const char *what, int backend, unsigned kills, uint64_t jobs, uint64_t replayed)
{
    if (getenv("GPUD_SYSTEM_SECONDS") != NULL) {
        (void)printf("storm: %s, %s: %u kills, %llu jobs answered once and rightly, %llu replays\n",
                     what, backend == 0 ? "sim" : "opencl", kills, (unsigned long long)jobs,
                     (unsigned long long)replayed);
        (void)fflush(stdout);
    }
}
