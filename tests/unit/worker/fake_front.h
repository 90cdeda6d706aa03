/* Plays the front for a real gpud-worker, and runs gpud-compile. Everything that fails ends the
 * test. Frames are waited for, for up to 60 s. */
#ifndef TESTS_FAKE_FRONT_H
#define TESTS_FAKE_FRONT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/duplex.h"
#include "common/memfd.h"
#include "common/packet.h"
#include "proto/codec.h"
#include "proto/compile.h"

#define FAKE_STAGING (64u << 20)

struct fake {
    pid_t pid; /* 0: reaped */
    int fd;
    struct memfd input;
    struct memfd output;
    bool may_end; /* what cannot be sent is not amiss */
    bool absent;  /* it sent W_ABSENT instead of W_READY */
    char arch[129];
    uint64_t streams;
    uint64_t tenant;                /* whose buffers and jobs are sent */
    uint8_t frame[FRAME_MAX_BYTES]; /* the last one received */
    size_t size;
    struct frame_fds fds;
    uint8_t packet[FRAME_MAX_BYTES]; /* what it came in */
    struct bytes rest;               /* frames of it that are still to come */
    bool first;
    unsigned beats;          /* seen so far */
    struct packet *gathered; /* what is sent at the end; owned */
    struct duplex *rings;    /* owned; NULL: all goes over the socket */
};

/* args: behind the usual ones, NULL-terminated or NULL. Waits for W_READY or W_ABSENT. */
void fake_start(struct fake *f, const char *backend, const char *const *args);
/* Offers rings, and uses them from then on. fake_start does so where FAKE_RINGS is set. */
void fake_rings(struct fake *f);
/* As if this front had ended: what it has not taken is lost; the next one has the socket. */
void fake_dies(struct fake *f);
/* Starts a program with descriptors 3, 4, … ; returns its pid. */
pid_t fake_spawn(const char *name, const char *const *args, const int *fds, int count);
int fake_reap(struct fake *f);  /* waits for its end; the wait status */
void fake_stop(struct fake *f); /* F_QUIT, and it must end with 0 */
void fake_finish(struct fake *f);

/* What is sent until the end goes in one packet; no descriptors. */
void fake_packet_begin(struct fake *f);
void fake_packet_end(struct fake *f);
void fake_send(struct fake *f, const struct schema *schema, const void *msg, int fd);
/* A packet as it is, whatever it is. */
void fake_send_bytes(struct fake *f, struct bytes packet, const struct frame_fds *fds);
/* The next frame of `kind`; beats and notes of jobs that started or paused and of tenants are
 * stepped over, others fail. */
void fake_expect(struct fake *f, unsigned kind, const struct schema *schema, void *ret_msg);
/* Does it say that a job started, or paused? These come when a job takes long. */
bool fake_turns(unsigned kind);
/* Any next frame but beats; its kind, 0 when the channel was closed. */
unsigned fake_next(struct fake *f);

int fake_buffer(struct fake *f, uint64_t id, uint64_t size, bool zero); /* W_BUFFER's code */

/* ---- jobs ---- */

struct job_draft {
    struct msg_f_job msg;
    struct capbuf after, temps, steps;
    uint64_t after_count, temp_count, step_count;
    uint64_t shared; /* of launches that are drafted from then on */
};

void draft_init(struct job_draft *d, uint64_t job, unsigned stream);
void draft_after(struct job_draft *d, uint64_t job);
uint64_t draft_temp(struct job_draft *d, uint64_t size); /* its index */
void draft_move(struct job_draft *d, int op, struct proto_ref ref, uint64_t stage);
/* The same, from or to an arena. */
void draft_move_arena(struct job_draft *d, int op, struct proto_ref ref, struct proto_ref arena);
void draft_copy(struct job_draft *d, struct proto_ref dst, struct proto_ref src);
void draft_fill(struct job_draft *d, struct proto_ref dst, const void *pattern, size_t size);
void draft_launch(struct job_draft *d, uint64_t module, const char *entry, uint64_t global,
                  const struct proto_ref *args, unsigned count);
void draft_send(struct job_draft *d, struct fake *f); /* and frees the draft */
/* Waits for the job's W_DONE; its code. ret_done (may be NULL) lies in f->frame. */
int fake_done(struct fake *f, uint64_t job, struct msg_w_done *ret_done);

struct proto_ref ref_buffer(uint64_t id, uint64_t offset, uint64_t size);
struct proto_ref ref_temp(uint64_t index, uint64_t size);
/* As an argument of a launch that does no more to it. */
struct proto_ref ref_as(struct proto_ref ref, int access);
struct proto_ref ref_value(const void *value, size_t size);

/* ---- modules ---- */

/* Runs gpud-compile; the response lies in *ret_memory. */
void fake_compile(const char *backend, const char *arch, int lang, const char *file,
                  struct bytes source, struct compile_response *ret_response,
                  struct memfd *ret_memory);
/* Compiles and loads the built-in module that has this kernel. */
void fake_builtin(struct fake *f, const char *backend, const char *kernel, uint64_t module);
/* Loads a source; W_MODULE's code. */
int fake_module(struct fake *f, uint64_t module, struct bytes binary);

#endif
