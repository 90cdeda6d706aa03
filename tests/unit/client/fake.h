/*
 * A daemon for the tests, on NNG's own REP contexts: buffers are memory, a launch adds one to each
 * byte of its host arrays that it may write, and tests say how it misbehaves.
 *
 * Thread: any; NNG's threads serve.
 */
#ifndef TESTS_CLIENT_FAKE_H
#define TESTS_CLIENT_FAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fake;

enum fake_mode {
    FAKE_SERVE,
    FAKE_HOLD,   /* submits wait for fake_release */
    FAKE_SILENT, /* nothing but hello is answered */
    FAKE_BUSY,   /* the next submit is refused as busy */
    FAKE_REFUSE, /* hello is refused with GPUD_ERR_PERMISSION */
};

/* Listens on ipc in a temporary directory, or on a free port of tcp if url is not NULL
 * ("tcp://127.0.0.1:0"). Exits the test on failure. */
struct fake *fake_start(const char *url);
void fake_stop(struct fake *f);
/* Leaves it as it is until the process ends: nng_close of 1.5.2 may hang after connections that
 * were closed by nng_pipe_close or ended before their handshake. */
void fake_leave(struct fake *f);
const char *fake_url(const struct fake *f);

void fake_mode(struct fake *f, enum fake_mode mode);
void fake_limit(struct fake *f, uint64_t max_inflight); /* told in the next WELCOME */
/* The same for the bytes of a message; a larger request is refused. */
void fake_limit_message(struct fake *f, uint64_t max_message);
/* Tells in the next WELCOME that it shares memory, and answers ARENA_CREATE and BUFFER_EXPORT. It
 * has no socket for claims: the test stands in for shm_claim. */
void fake_share(struct fake *f);
/* Tells in the next WELCOME how long sessions outlive their connections; 10 s at first. */
void fake_linger(struct fake *f, uint64_t ns);
/* What the next WELCOME says of the daemon's jobs, and how long it has run; 0 at first. */
void fake_lineage(struct fake *f, uint64_t lineage);
void fake_up(struct fake *f, uint64_t ns);
/* Is a daemon of that minor from the next WELCOME on. */
void fake_minor(struct fake *f, uint64_t minor);
/* The next `count` requests with a number are not admitted, for this reason. */
void fake_not_admit(struct fake *f, unsigned count, int code);
/* The next job runs, and ends with this code. on_device: its result names the device. */
void fake_fail(struct fake *f, int code, bool on_device);
/* Answers what is held: the newest first if `reverse`. */
void fake_release(struct fake *f, bool reverse);
/* Waits until so many submits are held. */
void fake_wait_held(struct fake *f, unsigned count);
/* Closes every connection. What was held is answered to nobody. */
void fake_drop(struct fake *f);
/* The same, and forgets kernels, modules and programs, as another process would; and the session,
 * unless it adopts it. */
void fake_restart(struct fake *f, bool adopts);
/* Its buffers are gone, as those of a session that ended. */
void fake_forget_buffers(struct fake *f);
/* Loads of modules fail with this code from now on; 0: they do not. */
void fake_refuse_loads(struct fake *f, int code);
/* Until a job is cancelled no results go out; it is listed no more then. */
void fake_forget_jobs(struct fake *f);
/* Results of asynchronous jobs go out before the ACCEPTED of their job. */
void fake_results_first(struct fake *f, bool on);
enum fake_garble {
    FAKE_GARBLE_NOT,
    FAKE_GARBLE_KIND,   /* an answer of another kind */
    FAKE_GARBLE_SHORT,  /* the first half of the answer */
    FAKE_GARBLE_LONG,   /* something behind the answer */
    FAKE_GARBLE_ERROR,  /* an ERROR whose code is none: chosen by the seed */
    FAKE_GARBLE_RANDOM, /* some bytes changed: chosen by the seed */
};
/* Answers nonsense from now on, but to HELLO. */
void fake_garble(struct fake *f, enum fake_garble how, uint64_t seed);
/* Sends a notice that a buffer was lost (daemon's handle) when next asked. */
void fake_lose(struct fake *f, uint64_t handle);

uint64_t fake_executed(struct fake *f); /* jobs that were run */
uint64_t fake_twice(struct fake *f);    /* sequence numbers that came again */
uint64_t fake_gaps(struct fake *f);     /* that were neither admitted nor told as taken */
uint64_t fake_live(struct fake *f);     /* buffers */
uint64_t fake_arenas(struct fake *f);   /* made and not freed, by whichever life of it */
uint64_t fake_stale(struct fake *f);    /* requests that named what another life of it made */

#endif
