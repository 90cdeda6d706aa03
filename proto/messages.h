/*
 * The messages between clients and the daemon, as C tables. PROTOCOL.md is the normative text.
 *
 * A message or record is one X-macro over its fields, in wire order:
 *   U(name, max)          unsigned integer, at most `max`           uint64_t
 *   I(name)               signed integer                            int64_t
 *   S(name, max)          text of at most `max` bytes, no NUL       struct bytes
 *   B(name, max)          bytes, at most `max`                      struct bytes
 *   L(name, record, max)  list of records, at most `max`            struct proto_list
 * Texts of requests are UTF-8. On the wire a message is one msgpack array whose first element is
 * its kind, followed by its fields; a record is an array of its fields. Trailing fields that are 0
 * or empty may be left out, and a reader ignores fields after those that it knows, so that both
 * sides can add fields.
 */
#ifndef PROTO_MESSAGES_H
#define PROTO_MESSAGES_H

#include "common/bytes.h"
#include "proto/limits.h"

/* A list in its encoded form: `count` consecutive records, checked when the message was decoded.
 * Not owned: it is part of the message. Read it with proto_list_next. */
struct proto_list {
    struct bytes raw;
    uint64_t count;
};

/* ---- records ------------------------------------------------------------------------------- */

/* The tag of an argument decides which of its fields are used: */
enum proto_arg_tag {
    ARG_BUFFER =
        1, /* handle, first, count: a resident buffer or a slice of it (count 0 = the rest) */
    ARG_SCALAR = 2, /* dtype, bits: the value's bits, little endian, in the low bytes */
    ARG_INLINE = 3, /* access, dtype, shape, data: an array that travels with the job */
    ARG_TEMP = 4,   /* handle = index of the program's temporary, first, count */
    ARG_PARAM = 5,  /* handle = index of the program's parameter, first, count */
    ARG_STRUCT = 6, /* data: a struct by value */
    ARG_LOCAL = 7,  /* count: bytes of local (shared) memory */
    ARG_ARENA = 8,  /* handle, first = offset in bytes, access, dtype, shape: an array in an arena;
                       bits: enum proto_arena_wish */
};

enum proto_arena_wish {
    ARENA_DIRECT = 1, /* kernels may access the arena itself, over the bus, instead of a copy */
};

#define REC_ARG(U, I, S, B, L)                                                                     \
    U(tag, 8)                                                                                      \
    U(access, 3)                                                                                   \
    U(handle, UINT64_MAX)                                                                          \
    U(first, UINT64_MAX)                                                                           \
    U(count, UINT64_MAX)                                                                           \
    U(dtype, 255)                                                                                  \
    U(bits, UINT64_MAX)                                                                            \
    B(data, PROTO_INLINE_MAX)                                                                      \
    U(ndim, 4)                                                                                     \
    U(d0, UINT64_MAX)                                                                              \
    U(d1, UINT64_MAX)                                                                              \
    U(d2, UINT64_MAX)                                                                              \
    U(d3, UINT64_MAX)                                                                              \
    U(view, 255) /* of arrays: the element type that the step sees, 0 = the array's own */

enum proto_op {
    OP_WRITE = 1, /* args: destination, source (ARG_INLINE in, or ARG_PARAM of kind data) */
    OP_FILL = 2,  /* args: destination, ARG_SCALAR or ARG_PARAM of kind scalar */
    OP_COPY = 3,  /* args: destination, source */
    OP_LAUNCH =
        4,       /* kernel, args in the kernel's order, sizes if the kernel's signature has none */
    OP_READ = 5, /* args: source; its bytes become an output of the job */
};

/* gx…gz: global size in work items, lx…lz: local size; 0 = let the daemon choose.
 * shared: bytes of dynamic local memory. */
#define REC_STEP(U, I, S, B, L)                                                                    \
    U(op, 5)                                                                                       \
    U(kernel, UINT64_MAX)                                                                          \
    L(args, ARG, PROTO_ARGS_MAX)                                                                   \
    U(gx, UINT64_MAX)                                                                              \
    U(gy, UINT64_MAX)                                                                              \
    U(gz, UINT64_MAX)                                                                              \
    U(lx, UINT64_MAX)                                                                              \
    U(ly, UINT64_MAX)                                                                              \
    U(lz, UINT64_MAX)                                                                              \
    U(shared, UINT64_MAX)

enum proto_param_kind { PARAM_BUFFER = 1, PARAM_SCALAR = 2, PARAM_DATA = 3 };

/* ndim 0 = any shape of that type */
#define REC_PARAM(U, I, S, B, L)                                                                   \
    S(name, PROTO_NAME_MAX)                                                                        \
    U(kind, 3)                                                                                     \
    U(dtype, 255)                                                                                  \
    U(ndim, 4)                                                                                     \
    U(d0, UINT64_MAX)                                                                              \
    U(d1, UINT64_MAX)                                                                              \
    U(d2, UINT64_MAX)                                                                              \
    U(d3, UINT64_MAX)

#define REC_TEMP(U, I, S, B, L)                                                                    \
    U(dtype, 255)                                                                                  \
    U(ndim, 4)                                                                                     \
    U(d0, UINT64_MAX)                                                                              \
    U(d1, UINT64_MAX)                                                                              \
    U(d2, UINT64_MAX)                                                                              \
    U(d3, UINT64_MAX)

/* An output of a job: of a READ step or of an inline out/inout argument, in step order. */
#define REC_OUTPUT(U, I, S, B, L)                                                                  \
    U(step, PROTO_STEPS_MAX)                                                                       \
    U(arg, PROTO_ARGS_MAX)                                                                         \
    B(data, PROTO_INLINE_MAX)

/* The time of a step, relative to the start of the job's execution. by: the implementation of an
 * operation that has several ("cublas", "portable"); empty if there was no choice. */
#define REC_TIMING(U, I, S, B, L)                                                                  \
    U(step, UINT64_MAX)                                                                            \
    U(begin_ns, UINT64_MAX)                                                                        \
    U(end_ns, UINT64_MAX)                                                                          \
    S(by, PROTO_NAME_MAX)

/* An argument of a kernel. kind: 1 scalar, 2 array, 3 struct, 4 local memory, 0 = the code does not
 * show whether it is an array or a value; dtype 0 = unknown; type: as in the source, empty if the
 * code does not have it. */
#define REC_KARG(U, I, S, B, L)                                                                    \
    S(name, PROTO_NAME_MAX)                                                                        \
    U(kind, 4)                                                                                     \
    U(access, 3)                                                                                   \
    U(dtype, 255)                                                                                  \
    U(bytes, UINT64_MAX)                                                                           \
    S(type, PROTO_NAME_MAX)

/* signature: the source line, empty if the code had none. auto_grid: sizes follow from the data.
 * From `registers` on: resources on the kind of device that it was compiled for, 0 = unknown; of a
 * family, those of the member that needs most. */
#define REC_KERNEL(U, I, S, B, L)                                                                  \
    U(handle, UINT64_MAX)                                                                          \
    S(name, PROTO_NAME_MAX)                                                                        \
    U(version, UINT64_MAX)                                                                         \
    U(auto_grid, 1)                                                                                \
    S(signature, PROTO_TEXT_MAX)                                                                   \
    L(args, KARG, PROTO_ARGS_MAX)                                                                  \
    U(registers, UINT64_MAX)                                                                       \
    U(item_bytes, UINT64_MAX)                                                                      \
    U(group_bytes, UINT64_MAX)                                                                     \
    U(max_group, UINT64_MAX)                                                                       \
    U(group_multiple, UINT64_MAX)                                                                  \
    U(occupancy, 1000000)

/* The end of a job. code 0 = success; step and arg are -1 if the error is not about one. */
#define REC_RESULT(U, I, S, B, L)                                                                  \
    U(job, UINT64_MAX)                                                                             \
    I(code)                                                                                        \
    I(vendor)                                                                                      \
    I(step)                                                                                        \
    I(arg)                                                                                         \
    U(effects, 2)                                                                                  \
    U(retry_after_ns, UINT64_MAX)                                                                  \
    S(text, PROTO_TEXT_MAX)                                                                        \
    L(outputs, OUTPUT, PROTO_OUTPUTS_MAX)                                                          \
    U(device, UINT64_MAX)                                                                          \
    U(queued_ns, UINT64_MAX)                                                                       \
    U(executed_ns, UINT64_MAX)                                                                     \
    U(replays, UINT64_MAX)                                                                         \
    L(timings, TIMING, PROTO_STEPS_MAX)

enum proto_notice_kind { NOTICE_BUFFER_LOST = 1, NOTICE_DRAINING = 2, NOTICE_RESUMED = 3 };

#define REC_NOTICE(U, I, S, B, L)                                                                  \
    U(kind, 255)                                                                                   \
    U(handle, UINT64_MAX)                                                                          \
    S(text, PROTO_TEXT_MAX)

/* The kind of a column: the meaning of its cells. */
enum proto_column_kind {
    COLUMN_TEXT = 1,
    COLUMN_UINT = 2,
    COLUMN_INT = 3, /* two's complement in the cell's value */
    COLUMN_BYTES = 4,
    COLUMN_NS = 5,
    COLUMN_PPM = 6, /* parts of a million */
    COLUMN_HANDLE = 7,
    COLUMN_BOOL = 8,
};

/* wide: shown in a wide table only */
#define REC_COLUMN(U, I, S, B, L)                                                                  \
    S(name, PROTO_NAME_MAX)                                                                        \
    U(kind, 255)                                                                                   \
    U(wide, 1)

#define REC_CELL(U, I, S, B, L)                                                                    \
    U(value, UINT64_MAX)                                                                           \
    S(text, PROTO_TEXT_MAX)

#define REC_SPAN(U, I, S, B, L) U(first, UINT64_MAX) U(count, UINT64_MAX)
#define REC_ROW(U, I, S, B, L)  L(cells, CELL, PROTO_COLUMNS_MAX)

/* A text that a source may include by this name. */
#define REC_HEADER(U, I, S, B, L) S(name, PROTO_HEADER_NAME_MAX) B(text, PROTO_SOURCE_MAX)

/* RECORD(NAME, name) */
#define PROTO_RECORDS(RECORD)                                                                      \
    RECORD(ARG, arg)                                                                               \
    RECORD(STEP, step)                                                                             \
    RECORD(PARAM, param)                                                                           \
    RECORD(TEMP, temp)                                                                             \
    RECORD(OUTPUT, output)                                                                         \
    RECORD(TIMING, timing)                                                                         \
    RECORD(KARG, karg)                                                                             \
    RECORD(KERNEL, kernel)                                                                         \
    RECORD(RESULT, result)                                                                         \
    RECORD(NOTICE, notice)                                                                         \
    RECORD(COLUMN, column)                                                                         \
    RECORD(CELL, cell)                                                                             \
    RECORD(SPAN, span)                                                                             \
    RECORD(ROW, row)                                                                               \
    RECORD(HEADER, header)

/* ---- requests ------------------------------------------------------------------------------
 * seq: the session's sequence number, 1, 2, 3 …; the daemon admits in this order, and answers a
 * number that it has seen with the same answer. 0 = not sequenced (HELLO, PING, WAIT, CANCEL, QUERY
 * …). ack: the client has received all answers up to this number; the daemon may forget them. */
#define HEAD(U) U(seq, UINT64_MAX) U(ack, UINT64_MAX)

/* resume: the lowest sequence number that the client will send next or again. taken: higher numbers
 * whose answers the client has already, so that a daemon that does not know the session skips them.
 */
#define MSG_HELLO(U, I, S, B, L)                                                                   \
    HEAD(U)                                                                                        \
    U(major, UINT64_MAX)                                                                           \
    U(minor, UINT64_MAX)                                                                           \
    B(client_id, PROTO_CLIENT_ID_BYTES)                                                            \
    U(resume, UINT64_MAX)                                                                          \
    S(name, PROTO_NAME_MAX)                                                                        \
    B(token, PROTO_TOKEN_MAX)                                                                      \
    L(taken, SPAN, 1024)

#define MSG_BYE(U, I, S, B, L) HEAD(U)

#define MSG_PING(U, I, S, B, L) HEAD(U) U(value, UINT64_MAX)

/* flags of a buffer */
enum proto_buffer_flag {
    BUFFER_FLAG_ZERO = 1,     /* starts as zeros, not undefined */
    BUFFER_FLAG_EXPORT = 2,   /* another process may map its memory: BUFFER_EXPORT */
    BUFFER_FLAG_MANAGED = 8,  /* the driver moves it between host and device */
    BUFFER_FLAG_STAY = 16,    /* never moves to the host when the device is full */
    BUFFER_FLAG_VARIABLE = 4, /* in answers only: its memory is a module's variable */
};

/* device: 0 = the daemon chooses, else the device's id + 1. module: 0, or the module whose
 * `variable` becomes the buffer; kernels: the access of the module's kernels to it (enum access, 0
 * = inout). */
#define MSG_BUFFER_CREATE(U, I, S, B, L)                                                           \
    HEAD(U)                                                                                        \
    U(dtype, 255)                                                                                  \
    U(ndim, 4)                                                                                     \
    U(d0, UINT64_MAX)                                                                              \
    U(d1, UINT64_MAX)                                                                              \
    U(d2, UINT64_MAX)                                                                              \
    U(d3, UINT64_MAX)                                                                              \
    U(flags, UINT64_MAX)                                                                           \
    S(label, PROTO_LABEL_MAX)                                                                      \
    U(device, UINT64_MAX)                                                                          \
    U(module, UINT64_MAX)                                                                          \
    S(variable, PROTO_NAME_MAX)                                                                    \
    U(kernels, 3)

#define MSG_BUFFER_FREE(U, I, S, B, L) HEAD(U) U(handle, UINT64_MAX)
#define MSG_BUFFER_INFO(U, I, S, B, L) HEAD(U) U(handle, UINT64_MAX)
#define MSG_BUFFER_SEAL(U, I, S, B, L) HEAD(U) U(handle, UINT64_MAX)

/* rights: 1 = other sessions of the tenant may read, 3 = read and write */
#define MSG_BUFFER_PUBLISH(U, I, S, B, L)                                                          \
    HEAD(U)                                                                                        \
    U(handle, UINT64_MAX)                                                                          \
    S(name, PROTO_NAME_MAX)                                                                        \
    U(rights, 3)                                                                                   \
    U(linger_ns, UINT64_MAX)                                                                       \
    S(grants, PROTO_GRANTS_MAX)

/* owner: the tenant that granted it; empty: the caller's own. */
#define MSG_BUFFER_OPEN(U, I, S, B, L)   HEAD(U) S(name, PROTO_NAME_MAX) S(owner, PROTO_NAME_MAX)
#define MSG_BUFFER_EXPORT(U, I, S, B, L) HEAD(U) U(handle, UINT64_MAX)

enum proto_lang {
    LANG_DIALECT = 1, /* .gk: the portable dialect */
    LANG_OPENCL = 2,  /* .cl */
    LANG_CUDA = 3,    /* .cu */
    LANG_PTX = 4,
    LANG_CUBIN = 5,
    LANG_SPIRV = 6,
};

/* file: the user's file name, for messages. signature: signature lines for code without them. */
#define MSG_MODULE_LOAD(U, I, S, B, L)                                                             \
    HEAD(U)                                                                                        \
    S(name, PROTO_NAME_MAX)                                                                        \
    U(lang, 255)                                                                                   \
    B(source, PROTO_SOURCE_MAX)                                                                    \
    S(options, PROTO_OPTIONS_MAX)                                                                  \
    S(signature, PROTO_TEXT_MAX)                                                                   \
    S(file, PROTO_LABEL_MAX)                                                                       \
    L(headers, HEADER, PROTO_HEADERS_MAX)

#define MSG_MODULE_UNLOAD(U, I, S, B, L) HEAD(U) U(module, UINT64_MAX)

/* module 0 = built-in kernels */
#define MSG_KERNEL_FIND(U, I, S, B, L) HEAD(U) S(name, PROTO_NAME_MAX) U(module, UINT64_MAX)

#define MSG_PROGRAM_CREATE(U, I, S, B, L)                                                          \
    HEAD(U)                                                                                        \
    S(name, PROTO_NAME_MAX)                                                                        \
    L(params, PARAM, PROTO_PARAMS_MAX)                                                             \
    L(temps, TEMP, PROTO_TEMPS_MAX)                                                                \
    L(steps, STEP, PROTO_STEPS_MAX)

#define MSG_PROGRAM_FREE(U, I, S, B, L) HEAD(U) U(program, UINT64_MAX)

enum proto_submit_flag {
    SUBMIT_ASYNC = 1,    /* answered by ACCEPTED; the result comes through WAIT */
    SUBMIT_PURE = 2,     /* reserved */
    SUBMIT_DETACHED = 4, /* the job goes on after the end of its session */
    SUBMIT_BLOCK = 8,    /* BUSY leaves the number open: the request keeps its place in the order */
};

/* program 0: this message has the temps and steps. bindings: a value for each parameter.
 * deadline_ns, limit_ns: relative; 0 = none / the daemon's default. device as in BUFFER_CREATE.
 * class: the smallest that the job may have; the tenant's class may be greater. */
#define MSG_SUBMIT(U, I, S, B, L)                                                                  \
    HEAD(U)                                                                                        \
    U(program, UINT64_MAX)                                                                         \
    L(bindings, ARG, PROTO_PARAMS_MAX)                                                             \
    U(flags, UINT64_MAX)                                                                           \
    U(deadline_ns, UINT64_MAX)                                                                     \
    U(limit_ns, UINT64_MAX)                                                                        \
    I(priority)                                                                                    \
    U(device, UINT64_MAX)                                                                          \
    S(label, PROTO_LABEL_MAX)                                                                      \
    U(trace_id, UINT64_MAX)                                                                        \
    L(temps, TEMP, PROTO_TEMPS_MAX)                                                                \
    L(steps, STEP, PROTO_STEPS_MAX)                                                                \
    U(job_class, CLASS_BATCH)

/* Unanswered until there are events or timeout_ns has passed. taken: the number of the last EVENTS
 * that this client received; later EVENTS are sent again. */
#define MSG_WAIT(U, I, S, B, L) HEAD(U) U(timeout_ns, UINT64_MAX) U(taken, UINT64_MAX)

/* job 0: number is the SUBMIT's, which need not have been admitted. kill 1: a job on a device ends
 * with its worker. */
#define MSG_CANCEL(U, I, S, B, L)   HEAD(U) U(job, UINT64_MAX) U(number, UINT64_MAX) U(kill, 1)
#define MSG_JOB_INFO(U, I, S, B, L) HEAD(U) U(job, UINT64_MAX)
#define MSG_EXPLAIN(U, I, S, B, L)  HEAD(U) U(job, UINT64_MAX)

/* what: status, devices, pool, kernels, buffers, jobs, sessions, tenants, … The last four
 * fields choose among jobs: with this state, of this session (0: any) and tenant, and only the
 * newest `limit` (0: any number). */
#define MSG_QUERY(U, I, S, B, L)                                                                   \
    HEAD(U)                                                                                        \
    S(what, PROTO_NAME_MAX)                                                                        \
    S(filter, PROTO_TEXT_MAX)                                                                      \
    S(state, PROTO_NAME_MAX)                                                                       \
    U(session, UINT64_MAX)                                                                         \
    S(tenant, PROTO_NAME_MAX)                                                                      \
    U(limit, UINT64_MAX)                                                                           \
    U(job, UINT64_MAX)

/* what: drain, resume, log-level, session-kill, pool-trim, reload */
#define MSG_CONTROL(U, I, S, B, L) HEAD(U) S(what, PROTO_NAME_MAX) S(value, PROTO_TEXT_MAX)

/* bytes > 0. import: 1 = the client sends a memfd with CLAIM, 0 = the daemon makes one. */
#define MSG_ARENA_CREATE(U, I, S, B, L) HEAD(U) U(bytes, UINT64_MAX) U(import, 1)
#define MSG_ARENA_FREE(U, I, S, B, L)   HEAD(U) U(arena, UINT64_MAX)

/* Only over the socket that WELCOME names in `shm`, with the descriptors that the request with this
 * nonce requires. Answered by GRANTED or ERROR. */
#define MSG_CLAIM(U, I, S, B, L) HEAD(U) B(nonce, PROTO_NONCE_BYTES)

/* Requests a ring lane for this session: see PROTOCOL.md, "Rings". version: LANE_VERSION. Answered
 * by RING. */
#define MSG_RING_OPEN(U, I, S, B, L) HEAD(U) U(version, UINT64_MAX)

/* Requests the job's id by its SUBMIT's number. Answered by ACCEPTED, or NOT_FOUND if the SUBMIT's
 * answer was acknowledged. */
#define MSG_JOB_FIND(U, I, S, B, L) HEAD(U) U(number, UINT64_MAX)

/* taken: numbers above `ack` whose answers the client also has: the daemon forgets them. Answered
 * by DONE, whose `value` is the number of forgotten answers. */
#define MSG_TAKEN(U, I, S, B, L) HEAD(U) L(taken, SPAN, 1024)

/* Takes a snapshot of the devices' memory pools. Answered by TABLE when all have reported, or the
 * time is over. device: 0 = all, else the device's id + 1. detail: with pieces and events, for
 * POOL_READ. */
#define MSG_POOL_TAKE(U, I, S, B, L)                                                               \
    HEAD(U) U(device, UINT64_MAX) U(detail, 1) U(timeout_ns, UINT64_MAX)

enum proto_pool_part { POOL_METERS = 1, POOL_PIECES = 2, POOL_EVENTS = 3 };

/* Reads a part of a snapshot. Answered by TABLE: at most `count` rows from number `first` on.
 * device: its id. */
#define MSG_POOL_READ(U, I, S, B, L)                                                               \
    HEAD(U)                                                                                        \
    U(picture, UINT64_MAX)                                                                         \
    U(part, 3)                                                                                     \
    U(device, UINT64_MAX)                                                                          \
    U(first, UINT64_MAX)                                                                           \
    U(count, UINT64_MAX)

/* ---- replies ------------------------------------------------------------------------------- */

/* open: 1 = the request was not admitted, and its number was not consumed. */
#define MSG_ERROR(U, I, S, B, L)                                                                   \
    I(code)                                                                                        \
    I(vendor)                                                                                      \
    I(step)                                                                                        \
    I(arg)                                                                                         \
    U(effects, 2)                                                                                  \
    U(retry_after_ns, UINT64_MAX)                                                                  \
    S(text, PROTO_TEXT_MAX)                                                                        \
    S(log, PROTO_LOG_MAX)                                                                          \
    U(open, 1)

#define MSG_DONE(U, I, S, B, L) U(value, UINT64_MAX)

/* daemon_id: different after each start. resumed: the daemon knew this session. expect: the
 * sequence number that it admits next. shm: path of the local socket for CLAIM, empty: none. The
 * rest are limits of one session. max_arena: bytes of all its arenas. max_unacked: requests whose
 * answers were not acknowledged. max_kept: bytes of these answers. max_early: bytes of requests
 * that came before their turn. max_buffers … max_programs: objects. max_requests: unanswered
 * requests of one connection. lineage: what the daemon knows of earlier daemons' jobs reaches back as
 * far as this number was the same; 0: unknown. up_ns: how long the daemon has run. */
#define MSG_WELCOME(U, I, S, B, L)                                                                 \
    U(major, UINT64_MAX)                                                                           \
    U(minor, UINT64_MAX)                                                                           \
    B(daemon_id, PROTO_CLIENT_ID_BYTES)                                                            \
    U(resumed, 1)                                                                                  \
    U(expect, UINT64_MAX)                                                                          \
    U(max_message, UINT64_MAX)                                                                     \
    U(max_inflight, UINT64_MAX)                                                                    \
    U(max_reorder, UINT64_MAX)                                                                     \
    U(linger_ns, UINT64_MAX)                                                                       \
    S(build, PROTO_NAME_MAX)                                                                       \
    S(tenant, PROTO_NAME_MAX)                                                                      \
    U(may_load, 1)                                                                                 \
    U(session, UINT64_MAX)                                                                         \
    S(shm, PROTO_SOCKET_MAX)                                                                       \
    U(max_arena, UINT64_MAX)                                                                       \
    U(max_unacked, UINT64_MAX)                                                                     \
    U(max_kept, UINT64_MAX)                                                                        \
    U(max_early, UINT64_MAX)                                                                       \
    U(max_buffers, UINT64_MAX)                                                                     \
    U(max_arenas, UINT64_MAX)                                                                      \
    U(max_modules, UINT64_MAX)                                                                     \
    U(max_programs, UINT64_MAX)                                                                    \
    U(max_requests, UINT64_MAX)                                                                    \
    U(lineage, UINT64_MAX)                                                                         \
    U(up_ns, UINT64_MAX)

#define MSG_PONG(U, I, S, B, L) U(value, UINT64_MAX) U(now_ns, UINT64_MAX)

/* state: 1 defined, 2 undefined, 3 sealed, 4 lost. device: the device's id + 1. */
#define MSG_BUFFER(U, I, S, B, L)                                                                  \
    U(handle, UINT64_MAX)                                                                          \
    U(dtype, 255)                                                                                  \
    U(ndim, 4)                                                                                     \
    U(d0, UINT64_MAX)                                                                              \
    U(d1, UINT64_MAX)                                                                              \
    U(d2, UINT64_MAX)                                                                              \
    U(d3, UINT64_MAX)                                                                              \
    U(flags, UINT64_MAX)                                                                           \
    S(label, PROTO_LABEL_MAX)                                                                      \
    U(state, 4)                                                                                    \
    U(device, UINT64_MAX)                                                                          \
    S(name, PROTO_NAME_MAX)                                                                        \
    U(generation, UINT64_MAX)

/* nonce: for a CLAIM, which receives one descriptor of `bytes` of device memory. device: the
 * vendor's name of the device ("uuid=…"), empty if it has none. */
#define MSG_EXPORTED(U, I, S, B, L)                                                                \
    B(nonce, PROTO_NONCE_BYTES) U(bytes, UINT64_MAX) S(device, PROTO_NAME_MAX)

#define MSG_MODULE(U, I, S, B, L)                                                                  \
    U(module, UINT64_MAX)                                                                          \
    S(log, PROTO_LOG_MAX)                                                                          \
    L(kernels, KERNEL, PROTO_KERNELS_MAX)

#define MSG_KERNEL_FOUND(U, I, S, B, L) L(kernels, KERNEL, 1)

#define MSG_PROGRAM(U, I, S, B, L)  U(program, UINT64_MAX)
#define MSG_ACCEPTED(U, I, S, B, L) U(job, UINT64_MAX)
#define MSG_RESULTS(U, I, S, B, L)  L(results, RESULT, 1)

#define MSG_EVENTS(U, I, S, B, L)                                                                  \
    U(number, UINT64_MAX)                                                                          \
    L(results, RESULT, PROTO_EVENTS_MAX)                                                           \
    L(notices, NOTICE, PROTO_EVENTS_MAX)

/* Times are of the daemon's monotonic clock, 0 = not yet. */
#define MSG_JOB(U, I, S, B, L)                                                                     \
    U(job, UINT64_MAX)                                                                             \
    S(state, PROTO_NAME_MAX)                                                                       \
    S(label, PROTO_LABEL_MAX)                                                                      \
    I(code)                                                                                        \
    S(text, PROTO_TEXT_MAX)                                                                        \
    U(device, UINT64_MAX)                                                                          \
    U(stream, UINT64_MAX)                                                                          \
    U(replays, UINT64_MAX)                                                                         \
    U(submitted_ns, UINT64_MAX)                                                                    \
    U(dispatched_ns, UINT64_MAX)                                                                   \
    U(started_ns, UINT64_MAX)                                                                      \
    U(ended_ns, UINT64_MAX)                                                                        \
    U(trace_id, UINT64_MAX)                                                                        \
    L(timings, TIMING, PROTO_STEPS_MAX)                                                            \
    U(now_ns, UINT64_MAX)                                                                          \
    U(begins_ns, UINT64_MAX)                                                                       \
    U(ends_ns, UINT64_MAX)

#define MSG_EXPLANATION(U, I, S, B, L) S(text, PROTO_TEXT_MAX)

#define MSG_TABLE(U, I, S, B, L)                                                                   \
    S(name, PROTO_NAME_MAX)                                                                        \
    L(columns, COLUMN, PROTO_COLUMNS_MAX)                                                          \
    L(rows, ROW, PROTO_ROWS_MAX)

/* nonce: for the CLAIM that receives or sends the memfd */
#define MSG_ARENA(U, I, S, B, L)                                                                   \
    U(arena, UINT64_MAX) U(bytes, UINT64_MAX) B(nonce, PROTO_NONCE_BYTES)

/* fds: the number of descriptors that accompany it */
#define MSG_GRANTED(U, I, S, B, L) U(fds, 8)

/* nonce: for CLAIM. memory, submit, complete: bytes of the memory, of its ring of requests and of
 * its ring of answers. */
#define MSG_RING(U, I, S, B, L)                                                                    \
    B(nonce, PROTO_NONCE_BYTES)                                                                    \
    U(memory, UINT64_MAX)                                                                          \
    U(submit, UINT64_MAX)                                                                          \
    U(complete, UINT64_MAX)

/* In a ring: the answer is ready, but too long for the ring. The client sends the request again
 * over the socket. */
#define MSG_ELSEWHERE(U, I, S, B, L) U(value, UINT64_MAX)

/* MESSAGE(NAME, name, kind). A kind is never reused. All requests, future ones included, have kinds
 * below PROTO_REQUEST_KINDS. */
#define PROTO_REQUEST_KINDS 64
#define PROTO_REQUESTS(MESSAGE)                                                                    \
    MESSAGE(HELLO, hello, 1)                                                                       \
    MESSAGE(BYE, bye, 2)                                                                           \
    MESSAGE(PING, ping, 3)                                                                         \
    MESSAGE(BUFFER_CREATE, buffer_create, 4)                                                       \
    MESSAGE(BUFFER_FREE, buffer_free, 5)                                                           \
    MESSAGE(BUFFER_INFO, buffer_info, 6)                                                           \
    MESSAGE(BUFFER_SEAL, buffer_seal, 7)                                                           \
    MESSAGE(BUFFER_PUBLISH, buffer_publish, 8)                                                     \
    MESSAGE(BUFFER_OPEN, buffer_open, 9)                                                           \
    MESSAGE(MODULE_LOAD, module_load, 10)                                                          \
    MESSAGE(MODULE_UNLOAD, module_unload, 11)                                                      \
    MESSAGE(KERNEL_FIND, kernel_find, 12)                                                          \
    MESSAGE(PROGRAM_CREATE, program_create, 13)                                                    \
    MESSAGE(PROGRAM_FREE, program_free, 14)                                                        \
    MESSAGE(SUBMIT, submit, 15)                                                                    \
    MESSAGE(WAIT, wait, 16)                                                                        \
    MESSAGE(CANCEL, cancel, 17)                                                                    \
    MESSAGE(JOB_INFO, job_info, 18)                                                                \
    MESSAGE(EXPLAIN, explain, 19)                                                                  \
    MESSAGE(QUERY, query, 20)                                                                      \
    MESSAGE(CONTROL, control, 21)                                                                  \
    MESSAGE(ARENA_CREATE, arena_create, 22)                                                        \
    MESSAGE(ARENA_FREE, arena_free, 23)                                                            \
    MESSAGE(CLAIM, claim, 24)                                                                      \
    MESSAGE(RING_OPEN, ring_open, 26)                                                              \
    MESSAGE(JOB_FIND, job_find, 27)                                                                \
    MESSAGE(POOL_TAKE, pool_take, 29)                                                              \
    MESSAGE(POOL_READ, pool_read, 30)                                                              \
    MESSAGE(BUFFER_EXPORT, buffer_export, 32)                                                      \
    MESSAGE(TAKEN, taken, 33)

#define PROTO_REPLIES(MESSAGE)                                                                     \
    MESSAGE(ERROR, error, 64)                                                                      \
    MESSAGE(DONE, done, 65)                                                                        \
    MESSAGE(WELCOME, welcome, 66)                                                                  \
    MESSAGE(PONG, pong, 67)                                                                        \
    MESSAGE(BUFFER, buffer, 68)                                                                    \
    MESSAGE(MODULE, module, 69)                                                                    \
    MESSAGE(KERNEL_FOUND, kernel_found, 70)                                                        \
    MESSAGE(PROGRAM, program, 71)                                                                  \
    MESSAGE(ACCEPTED, accepted, 72)                                                                \
    MESSAGE(RESULTS, results, 73)                                                                  \
    MESSAGE(EVENTS, events, 74)                                                                    \
    MESSAGE(JOB, job, 75)                                                                          \
    MESSAGE(EXPLANATION, explanation, 76)                                                          \
    MESSAGE(TABLE, table, 77)                                                                      \
    MESSAGE(ARENA, arena, 78)                                                                      \
    MESSAGE(GRANTED, granted, 79)                                                                  \
    MESSAGE(RING, ring, 81)                                                                        \
    MESSAGE(ELSEWHERE, elsewhere, 82)                                                              \
    MESSAGE(EXPORTED, exported, 87)

#define PROTO_MESSAGES(MESSAGE) PROTO_REQUESTS(MESSAGE) PROTO_REPLIES(MESSAGE)

/* ---- the structs: struct proto_<name> for records, struct msg_<name> for messages ------------ */

#define FIELD_U(name, max)         uint64_t name;
#define FIELD_I(name)              int64_t name;
#define FIELD_S(name, max)         struct bytes name;
#define FIELD_B(name, max)         struct bytes name;
#define FIELD_L(name, record, max) struct proto_list name;

#define X(NAME, name)                                                                              \
    struct proto_##name {                                                                          \
        REC_##NAME(FIELD_U, FIELD_I, FIELD_S, FIELD_B, FIELD_L)                                    \
    };
PROTO_RECORDS(X)
#undef X

#define X(NAME, name, value)                                                                       \
    struct msg_##name {                                                                            \
        MSG_##NAME(FIELD_U, FIELD_I, FIELD_S, FIELD_B, FIELD_L)                                    \
    };
PROTO_MESSAGES(X)
#undef X

enum msg_kind {
    MSG_KIND_NONE = 0,
#define X(NAME, name, value) MSG_KIND_##NAME = (value),
    PROTO_MESSAGES(X)
#undef X
};

#endif
