/* gpud's null job: a program without steps goes to the worker and back. */
#include <gpud/gpud.h>
#include <stdlib.h>

#include "bench/common/echo.h"

struct echo {
    gpud_client *client;
    gpud_program *program;
    gpud_job *job[ECHO_SLOTS];
};

static void must(int rc, const char *what)
{
    if (rc != 0) {
        bench_die("gpud: %s: %s", what, gpud_last_error()->text);
    }
}

static struct echo *open_client(const char *address, unsigned outstanding)
{
    struct echo *c = calloc(1, sizeof *c);
    if (c == NULL) {
        bench_die("no memory");
    }
    (void)outstanding;
    must(gpud_open(address, NULL, &c->client), "opening");
    must(gpud_program_create(c->client, "null", &c->program), "a program");
    must(gpud_program_seal(c->program), "a program without steps");
    return c;
}

static void begin(struct echo *c, unsigned slot)
{
    static const gpud_submit_options held = {.size = sizeof held, .flags = GPUD_SUBMIT_HELD};
    must(gpud_submit(c->client, c->program, NULL, 0, &held, &c->job[slot]), "a job");
}

static void take(struct echo *c, unsigned slot)
{
    must(gpud_wait(c->job[slot], GPUD_FOREVER), "a job's end");
    gpud_job_free(c->job[slot]);
}

static void close_client(struct echo *c)
{
    gpud_program_free(c->program);
    gpud_close(c->client);
    free(c);
}

const struct echo_kind echo_gpud = {
    .name = "gpud",
    .what = "gpud's null job: a program without steps, to the worker and back",
    .open = open_client,
    .send = begin,
    .take = take,
    .close = close_client,
};
