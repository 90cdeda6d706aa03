/* What the sources of the server (serve.h) share. Thread: the loop's. */
#ifndef WORKER_SERVE_SERVE_INT_H
#define WORKER_SERVE_SERVE_INT_H

#include "daemon/worker/serve/serve.h"

/* ---- server.c: what is under way, and what begins when something ends ---- */

/* Ends the process if rc < 0: a frame could not be sent, so the front would have a wrong view of
 * its worker. */
void server_must_send(struct server *s, int rc, const struct err *e);
/* For a lost device: sends what is queued and ends the process. Does not return. */
void server_end_lost(struct server *s, const char *text);
/* Is no transfer or move of a buffer under way? tenant: count only transfers of that tenant's
 * buffers; NULL: all. Moves to the host and back count for every tenant, because they end soon. */
bool server_nothing_moves(const struct server *s, const uint64_t *tenant);
/* data: a server. Has the device nothing that a driver could wait for? Jobs that wait for memory
 * have nothing on the device. */
bool server_nothing_runs(void *data);
/* data: a server. Is nothing under way, in jobs or outside? */
bool server_still(void *data);
/* Starts the jobs of the batch. */
void server_start_jobs(struct server *s);
/* Has the device work other than the jobs of the batch? */
bool server_device_busy(const struct server *s);
/* Should the jobs of the batch wait for more? */
bool server_jobs_wait(struct server *s);
/* data: a server. Asks all parts what has ended, and begins what may begin then. Returns true if
 * anything is still under way. */
bool server_ask_device(void *data);

/* ---- callbacks of the parts; data: a server ---- */

void server_frame(void *data, struct bytes frame, struct frame_fds *fds);
void server_inventory_go_on(void *data);

void server_transfer_done(void *data, struct buffer *b, const struct err *why);
bool server_buffer_used(void *data, const struct buffer *b, uint64_t behind);
/* Reports why there is no such buffer, or why its transfer failed. If the device is lost, ends the
 * process. */
void server_buffer_refuse(void *data, uint64_t id, const struct err *why);
int server_buffer_create(void *data, struct creation *x, bool last, struct err *e);
int server_read_away(void *data, const struct buffer *b, uint64_t at, void *to, uint64_t bytes,
                     struct err *e);

void server_job_start(void *data, struct job *j, const struct msg_f_job *msg, struct bytes frame);
void server_job_fail(void *data, struct job *j, const struct err *why);
void server_job_announce(void *data, const struct job *j, bool waits);
void server_job_done(void *data, struct job *j);
void server_job_turned(void *data, struct job *j);
void server_job_late(void *data, struct job *j);

void server_module_loaded(void *data, struct module *m, const struct err *why);
void server_arena_ready(void *data, const struct arena *a);
void server_budget_ended(void *data, const struct budget_report *report);

/* Reports why there is no such module. If the device is lost, ends the process. */
void server_module_refuse(struct server *s, uint64_t id, const struct err *why);

/* ---- frames of the front. A function that takes descriptors over sets their count to 0.
 * serve_frames.c reports the error to the front or logs it. ---- */

int serve_buffer_create(struct server *s, struct bytes frame, struct frame_fds *fds, struct err *e);
int serve_buffer_export(struct server *s, struct bytes frame, struct frame_fds *fds, struct err *e);
int serve_buffer_free(struct server *s, struct bytes frame, struct frame_fds *fds, struct err *e);
int serve_buffer_seal(struct server *s, struct bytes frame, struct frame_fds *fds, struct err *e);
int serve_buffer_restore(struct server *s, struct bytes frame, struct frame_fds *fds,
                         struct err *e);

int serve_job(struct server *s, struct bytes frame, struct frame_fds *fds, struct err *e);
int serve_retire(struct server *s, struct bytes frame, struct frame_fds *fds, struct err *e);
int serve_cancel(struct server *s, struct bytes frame, struct frame_fds *fds, struct err *e);

int serve_module_load(struct server *s, struct bytes frame, struct frame_fds *fds, struct err *e);
int serve_module_unload(struct server *s, struct bytes frame, struct frame_fds *fds, struct err *e);
int serve_arena(struct server *s, struct bytes frame, struct frame_fds *fds, struct err *e);
int serve_arena_free(struct server *s, struct bytes frame, struct frame_fds *fds, struct err *e);

int serve_inventory(struct server *s, struct bytes frame, struct frame_fds *fds, struct err *e);
int serve_pool(struct server *s, struct bytes frame, struct frame_fds *fds, struct err *e);
int serve_tenant(struct server *s, struct bytes frame, struct frame_fds *fds, struct err *e);
int serve_coalesce(struct server *s, struct bytes frame, struct frame_fds *fds, struct err *e);
int serve_budget(struct server *s, struct bytes frame, struct frame_fds *fds, struct err *e);
int serve_spill(struct server *s, struct bytes frame, struct frame_fds *fds, struct err *e);
int serve_program_end(struct server *s, struct bytes frame, struct frame_fds *fds, struct err *e);
int serve_snapshot(struct server *s, struct bytes frame, struct frame_fds *fds, struct err *e);
int serve_rings(struct server *s, struct bytes frame, struct frame_fds *fds, struct err *e);
int serve_quit(struct server *s, struct bytes frame, struct frame_fds *fds, struct err *e);

#endif
