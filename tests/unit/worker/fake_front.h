/* Plays the front for a real gpud-worker, and runs gpud-compile. Any failure ends the test. Frames
 * are waited for, for up to 60 s. */
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
    bool may_end; /* a frame that cannot be sent is no failure */
    bool absent;  /* it sent W_ABSENT instead of W_READY */
    char arch[129];
    uint64_t streams;
    uint64_t tenant;                /* tenant of the buffers and jobs that are sent */
    uint8_t frame[FRAME_MAX_BYTES]; /* the last frame received */
    size_t size;
    struct frame_fds fds;
    uint8_t packet[FRAME_MAX_BYTES]; /* the packet that it came in */
    struct bytes rest;               /* frames of the packet that are still to come */
    bool first;
    unsigned beats;          /* W_BEATs seen so far */
    struct packet *gathered; /* owned: frames that are sent at the end of the packet */
    struct duplex *rings;    /* owned; NULL: all frames go over the socket */
    int ear;                 /* owned with `rings`: listens to their bell */
};

/* args: added to the usual ones, NULL-terminated or NULL. Waits for W_READY or W_ABSENT. */
void fake_start(struct fake *f, const char *backend, const char *const *args);
/* Offers rings, and uses them from then on. fake_start does so if FAKE_RINGS is set. */
void fake_rings(struct fake *f);
/* As if this front had ended: frames that it has not taken are lost, and the next one has the
 * socket. */
void fake_dies(struct fake *f);
/* Starts a program with descriptors 3, 4, … ; returns its pid. */
pid_t fake_spawn(const char *name, const char *const *args, const int *fds, int count);
int fake_reap(struct fake *f);  /* waits for the worker's end; returns the wait status */
void fake_stop(struct fake *f); /* sends F_QUIT; the worker must end with 0 */
void fake_finish(struct fake *f);

/* Frames that are sent until fake_packet_end go in one packet, without descriptors. */
void fake_packet_begin(struct fake *f);
void fake_packet_end(struct fake *f);
void fake_send(struct fake *f, const struct schema *schema, const void *msg, int fd);
/* Sends these bytes as a packet. */
void fake_send_bytes(struct fake *f, struct bytes packet, const struct frame_fds *fds);
/* Waits for the next frame of `kind`. Beats and reports about tenants and about jobs that started,
 * paused or wait are skipped, any other frame fails. */
void fake_expect(struct fake *f, unsigned kind, const struct schema *schema, void *ret_msg);
/* Does the frame report that a job started, or paused? These come when a job takes long. */
bool fake_turns(unsigned kind);
/* Waits for the next frame that is no beat. Returns its kind, 0 when the channel was closed. */
unsigned fake_next(struct fake *f);

int fake_buffer(struct fake *f, uint64_t id, uint64_t size, bool zero); /* W_BUFFER's code */

/* ---- jobs ---- */

struct job_draft {
    struct msg_f_job msg;
    struct capbuf after, temps, steps;
    uint64_t after_count, temp_count, step_count;
    uint64_t shared; /* bytes of shared memory of launches that are drafted from then on */
};

void draft_init(struct job_draft *d, uint64_t job, unsigned stream);
void draft_after(struct job_draft *d, uint64_t job);
uint64_t draft_temp(struct job_draft *d, uint64_t size); /* its index */
void draft_move(struct job_draft *d, int op, struct proto_ref ref, uint64_t stage);
/* As above, from or to an arena. */
void draft_move_arena(struct job_draft *d, int op, struct proto_ref ref, struct proto_ref arena);
void draft_copy(struct job_draft *d, struct proto_ref dst, struct proto_ref src);
void draft_fill(struct job_draft *d, struct proto_ref dst, const void *pattern, size_t size);
void draft_launch(struct job_draft *d, uint64_t module, const char *entry, uint64_t global,
                  const struct proto_ref *args, unsigned count);
void draft_send(struct job_draft *d, struct fake *f); /* and frees the draft */
/* Waits for the job's W_DONE. Returns its code. ret_done (may be NULL) lies in f->frame. */
int fake_done(struct fake *f, uint64_t job, struct msg_w_done *ret_done);

struct proto_ref ref_buffer(uint64_t id, uint64_t offset, uint64_t size);
struct proto_ref ref_temp(uint64_t index, uint64_t size);
/* The REF with an access, for an argument of a launch. */
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
