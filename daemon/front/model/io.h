/*
 * The outside world as a table of functions: the clock, clients, workers, the launcher and the
 * compiler. pipeline_io fills it with the real functions. A test fills it with its own, and runs
 * the front without sockets, processes or waiting. Each function has the contract of the real
 * function, which a comment names. Code behind the table (sockets, rings, links, the compiler)
 * reads the real clock. Thread: the loop's.
 */
#ifndef FRONT_MODEL_IO_H
#define FRONT_MODEL_IO_H

#include <stdbool.h>
#include <stdint.h>

#include "common/bytes.h"
#include "common/err.h"
#include "common/hash.h"
#include "common/seqpacket.h"
#include "proto/codec.h"

struct compile_response;
struct compiler;
struct compiler_request;
struct device;
struct launcher_link;
struct worker_order;
struct link;
struct listener;
struct listener_slot;
struct thread_look;

struct front_io {
    /* Monotonic time: clock_now_ns. */
    uint64_t (*now_ns)(void);

    /* Clients: listener_reply, listener_drop, listener_identified, listener_close_pipe. */
    void (*reply)(struct listener *l, struct listener_slot *slot, struct bytes message);
    void (*drop)(struct listener *l, struct listener_slot *slot);
    void (*identified)(struct listener *l, uint32_t pipe);
    void (*close_pipe)(struct listener *l, uint32_t pipe);

    /* Frames to and from a worker: link_send, link_pressed, link_unread. */
    int (*send)(struct link *l, const struct schema *schema, const void *msg,
                const struct frame_fds *fds, struct err *e);
    bool (*pressed)(const struct link *l);
    bool (*unread)(const struct link *l);
    /* What the thread does that gives its signs of life: beater_look. */
    bool (*look)(const struct device *d, struct thread_look *ret_look);

    /* Processes: launcher_worker, launcher_device, launcher_monitor, launcher_kill,
     * launcher_link_close, launcher_vacate. Copies: launcher_keep, launcher_release. */
    int (*start_worker)(struct launcher_link *l, const struct worker_order *w, struct err *e);
    int (*name_worker)(struct launcher_link *l, uint64_t id, struct bytes device, struct err *e);
    int (*start_monitor)(struct launcher_link *l, uint64_t id, int page, struct err *e);
    int (*kill)(struct launcher_link *l, uint64_t id, int signal, struct err *e);
    int (*keep)(struct launcher_link *l, uint64_t id, uint64_t worker, int fd, struct err *e);
    int (*release)(struct launcher_link *l, uint64_t id, struct err *e);
    int (*vacate)(struct launcher_link *l, uint64_t id, struct bytes device, struct err *e);
    void (*leave_launcher)(struct launcher_link *l);

    /* Source to binary: compiler_start. */
    int (*compile)(struct compiler *c, const struct compiler_request *request,
                   void (*done)(void *data, int code, const struct compile_response *response,
                                struct hash key, const struct err *e),
                   void *data, struct err *e);
};

#endif
