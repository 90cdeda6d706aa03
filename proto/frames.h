/*
 * The frames between front, launcher and workers: at most FRAME_MAX_BYTES each, over a
 * SOCK_SEQPACKET pair, encoded like messages.h. Both ends are of one build (they compare build
 * ids), so frames may change with any version. Descriptors accompany a frame in the order that its
 * comment names.
 */
#ifndef PROTO_FRAMES_H
#define PROTO_FRAMES_H

#include "proto/messages.h"

#define FRAME_DEVICE_MAX  16384u                /* bytes that the front attaches to a worker */
#define FRAME_AFTER_MAX   32u                   /* jobs that one job waits for inside a worker */
#define FRAME_PATTERN_MAX 16u                   /* bytes of a fill pattern */
#define FRAME_STAY_PERCENT 25u /* of a device: buffers that stay there, until F_BUDGET says another */
#define FRAME_BINARY_MAX  (64u * 1024u * 1024u) /* bytes of a compiler's output */

/* ---- records ------------------------------------------------------------------------------- */

/* An argument of a launch, or a side of a copy. */
enum frame_ref_tag {
    REF_BUFFER = 1, /* id, offset, size */
    REF_TEMP = 2,   /* id = index of the job's temporary, offset, size */
    REF_VALUE = 3,  /* value: the bytes of a scalar or struct, as the kernel receives them */
    REF_LOCAL = 4,  /* size: bytes of local memory */
    REF_ARENA = 5,  /* id, offset, size */
};

#define REC_REF(U, I, S, B, L)                                                                     \
    U(tag, 5)                                                                                      \
    U(id, UINT64_MAX)                                                                              \
    U(offset, UINT64_MAX)                                                                          \
    U(size, UINT64_MAX)                                                                            \
    B(value, PROTO_TEXT_MAX)                                                                       \
    U(access, 3) /* of a launch's memory; 0: not known, so the launch may write it */

/* One primitive step. step: the user's step; an operation of several launches becomes several
 * primitive steps.
 * - OP_WRITE: args[0] = destination; stage = offset in the input staging memory, or args[1] = an
 *   arena
 * - OP_READ: args[0] = source; stage = offset in the output staging memory, or args[1] = an arena
 * - OP_FILL: args[0] = destination; pattern of 1, 2, 4, 8 or 16 bytes, repeated
 * - OP_COPY: args[0] = destination, args[1] = source, of the same size
 * - OP_LAUNCH: module, entry, args, sizes in work items (local all 0 = the back end chooses)
 * - FRAME_OP_LIBRARY: one of the vendor's libraries may run a whole operation. entry = its name,
 *   dtype = its T, args in the order of its signature, then the sizes that the signature names. If
 *   a library runs it, the next `after` steps run and the `covers` steps after those do not.
 *   Otherwise the `after` steps do not run and the `covers` steps do. */
#define FRAME_OP_LIBRARY 6
#define REC_WSTEP(U, I, S, B, L)                                                                   \
    U(op, 6)                                                                                       \
    U(step, PROTO_STEPS_MAX)                                                                       \
    L(args, REF, PROTO_ARGS_MAX)                                                                   \
    U(stage, UINT64_MAX)                                                                           \
    B(pattern, FRAME_PATTERN_MAX)                                                                  \
    U(module, UINT64_MAX)                                                                          \
    S(entry, PROTO_NAME_MAX * 2)                                                                   \
    U(gx, UINT64_MAX)                                                                              \
    U(gy, UINT64_MAX)                                                                              \
    U(gz, UINT64_MAX)                                                                              \
    U(lx, UINT64_MAX)                                                                              \
    U(ly, UINT64_MAX)                                                                              \
    U(lz, UINT64_MAX)                                                                              \
    U(shared, UINT64_MAX)                                                                          \
    U(dtype, 255)                                                                                  \
    U(after, PROTO_STEPS_MAX)                                                                      \
    U(covers, UINT16_MAX)

#define REC_WTEMP(U, I, S, B, L)  U(size, UINT64_MAX)
#define REC_JOBREF(U, I, S, B, L) U(job, UINT64_MAX)
#define REC_WORD(U, I, S, B, L)   S(text, PROTO_TEXT_MAX)

/* A back end's or compiler's report on a kernel in a module, 0 = unknown. local_bytes: of a work
 * item; shared_bytes: of a group; occupancy in parts of a million. only_reads: from a compiler; bit
 * i % 8 of byte i / 8 is set if it has proved that the code writes nothing through argument i. */
#define REC_WKERNEL(U, I, S, B, L)                                                                 \
    S(entry, PROTO_NAME_MAX * 2)                                                                   \
    U(registers, UINT64_MAX)                                                                       \
    U(local_bytes, UINT64_MAX)                                                                     \
    U(shared_bytes, UINT64_MAX)                                                                    \
    U(max_group, UINT64_MAX)                                                                       \
    U(preferred_multiple, UINT64_MAX)                                                              \
    U(occupancy, 1000000)                                                                          \
    B(only_reads, PROTO_ARGS_MAX / 8)

/* A compiler's report on an argument. kind, access and dtype as in KARG, type as in the source.
 * kind 0: the code does not show whether it is an array or a value of `bytes`. */
#define REC_CARG(U, I, S, B, L)                                                                    \
    S(name, PROTO_NAME_MAX)                                                                        \
    S(type, PROTO_NAME_MAX)                                                                        \
    U(kind, 4)                                                                                     \
    U(access, 3)                                                                                   \
    U(dtype, 255)                                                                                  \
    U(bytes, UINT64_MAX)

/* A kernel of a compiled source. entry: its name in the binary, without the type if the signature
 * names a family. name: the users' name for it if that is different. signature: its line, empty if
 * there is none. args: as reported, empty for the dialect. rx…rz: the local size that the source
 * requires, 0 = free. unfit: the reason why it cannot be launched, empty if it can. */
#define REC_CKERNEL(U, I, S, B, L)                                                                 \
    S(entry, PROTO_NAME_MAX * 2)                                                                   \
    S(name, PROTO_NAME_MAX * 2)                                                                    \
    S(signature, PROTO_TEXT_MAX)                                                                   \
    L(args, CARG, PROTO_ARGS_MAX)                                                                  \
    U(rx, UINT64_MAX)                                                                              \
    U(ry, UINT64_MAX)                                                                              \
    U(rz, UINT64_MAX)                                                                              \
    S(unfit, PROTO_TEXT_MAX)

#define FRAME_RECORDS(RECORD)                                                                      \
    RECORD(REF, ref)                                                                               \
    RECORD(WSTEP, wstep)                                                                           \
    RECORD(WTEMP, wtemp)                                                                           \
    RECORD(JOBREF, jobref)                                                                         \
    RECORD(WORD, word)                                                                             \
    RECORD(WKERNEL, wkernel)                                                                       \
    RECORD(CARG, carg)                                                                             \
    RECORD(CKERNEL, ckernel)                                                                       \
    RECORD(RECORD_OUTPUT, record_output)                                                           \
    RECORD(RECORD_USE, record_use)                                                                 \
    RECORD(RECORD_OPENER, record_opener)

/* ---- front to worker ------------------------------------------------------------------------ */

/* tenant, here and below: a tenant's number, the same from every front; 0: the daemon's own work.
 * It separates the tenants' leftovers in memory. */
/* Answered by W_BUFFER. zero: start as zeros. module: 0, or a loaded module whose `variable` of
 * this size becomes the buffer. */
#define MSG_F_BUFFER_CREATE(U, I, S, B, L)                                                         \
    U(id, UINT64_MAX)                                                                              \
    U(size, UINT64_MAX)                                                                            \
    U(zero, 1)                                                                                     \
    U(tenant, UINT64_MAX)                                                                          \
    U(exported, 1)                                                                                 \
    U(module, UINT64_MAX)                                                                          \
    S(variable, PROTO_NAME_MAX)                                                                    \
    U(managed, 1)                                                                                  \
    U(stays, 1) /* it never moves to the host to make room */
/* Sent after the end of all jobs that use it; not answered. */
#define MSG_F_BUFFER_FREE(U, I, S, B, L) U(id, UINT64_MAX)
/* fd: memfd of at least `size` bytes. The worker copies the buffer into it, keeps the descriptor
 * and answers W_BUFFER. lent: the front alone keeps the copy, for a time without a worker, and the
 * buffer is not sealed. */
#define MSG_F_BUFFER_SEAL(U, I, S, B, L) U(id, UINT64_MAX) U(size, UINT64_MAX) U(lent, 1)
/* fd: memfd with the content. Creates, copies, keeps the descriptor, answers W_BUFFER. lent: the
 * buffer is not sealed, and the descriptor is kept only until the bytes are on the device. */
#define MSG_F_BUFFER_RESTORE(U, I, S, B, L)                                                        \
    U(id, UINT64_MAX)                                                                              \
    U(size, UINT64_MAX)                                                                            \
    U(tenant, UINT64_MAX)                                                                          \
    U(exported, 1)                                                                                 \
    U(managed, 1)                                                                                  \
    U(stays, 1) /* if there still is room for that */                                              \
    U(lent, 1)
/* Answered by W_EXPORTED. */
#define MSG_F_BUFFER_EXPORT(U, I, S, B, L) U(id, UINT64_MAX)
/* fd: memfd whose first `size` bytes are the binary. Answered by W_MODULE. */
#define MSG_F_MODULE_LOAD(U, I, S, B, L)                                                           \
    U(module, UINT64_MAX) U(size, UINT64_MAX) B(hash, 16) U(tenant, UINT64_MAX)
#define MSG_F_MODULE_UNLOAD(U, I, S, B, L) U(module, UINT64_MAX)
/* Steps run in order on `stream`, after the jobs in `after` (all sent to this worker before).
 * Answered by W_DONE; remains in the worker's ledger until F_RETIRE. If the job has to wait for
 * device memory: rank: the smallest goes first; deadline_ns: the end of the wait (CLOCK_MONOTONIC).
 * program: what it is a run of, whose temporaries keep their addresses; 0: of no program. */
#define MSG_F_JOB(U, I, S, B, L)                                                                   \
    U(job, UINT64_MAX)                                                                             \
    U(stream, 255)                                                                                 \
    L(after, JOBREF, FRAME_AFTER_MAX)                                                              \
    L(temps, WTEMP, 1024)                                                                          \
    L(steps, WSTEP, 4096)                                                                          \
    U(tenant, UINT64_MAX)                                                                          \
    I(rank)                                                                                        \
    U(deadline_ns, UINT64_MAX)                                                                     \
    U(program, UINT64_MAX)
/* The program and all its jobs have ended: its addresses are kept no longer. Not answered. */
#define MSG_F_PROGRAM_END(U, I, S, B, L) U(program, UINT64_MAX)
/* The client has acknowledged the job's answer: forget the job. */
#define MSG_F_RETIRE(U, I, S, B, L) U(job, UINT64_MAX)
/* Cancels a job. Steps that have not begun do not run; steps that have begun run to their end.
 * W_DONE reports ERR_CANCELLED, at once if no step has begun. */
#define MSG_F_CANCEL(U, I, S, B, L) U(job, UINT64_MAX)
/* Asks for the inventory: W_READY, W_INVENTORY_* …, then W_INVENTORY_END. */
#define MSG_F_INVENTORY(U, I, S, B, L) U(nonce, UINT64_MAX)
#define MSG_F_POOL(U, I, S, B, L)      U(trim, 1)
#define MSG_F_QUIT(U, I, S, B, L)      U(unused, 0)
/* The longest time that brief jobs may wait for other brief jobs (coalesce.h in daemon/worker); not
 * answered. */
#define MSG_F_COALESCE(U, I, S, B, L) U(window_ns, UINT64_MAX)
/* Sets the device's share of the host memory for buffers of full devices. Not answered. */
#define MSG_F_SPILL(U, I, S, B, L) U(limit, UINT64_MAX)
/* Sets the device's budget of memory, in bytes. Memory above it goes back until the deadline,
 * `deadline_ms` from now. stay: bytes of buffers that stay on the device, of all tenants without
 * guaranteed memory. most: what the budget may grow to for jobs that wait (W_WAITING); not above
 * the limit: it does not now. Answered by W_BUDGET, unless another F_BUDGET comes before. */
#define MSG_F_BUDGET(U, I, S, B, L)                                                                \
    U(limit, UINT64_MAX) U(deadline_ms, UINT32_MAX) U(stay, UINT64_MAX) U(most, UINT64_MAX)
/* Answered by W_SNAPSHOT. detail: with pieces and events. */
#define MSG_F_SNAPSHOT(U, I, S, B, L) U(nonce, UINT64_MAX) U(detail, 1)
/* fd: a memfd of at least `size` bytes. Answered by W_ARENA once kernels can use its memory
 * directly, which may never happen. Answered at once if the worker cannot take the memory: jobs
 * that name it then fail until it is freed and sent again. */
#define MSG_F_ARENA(U, I, S, B, L) U(arena, UINT64_MAX) U(size, UINT64_MAX) U(tenant, UINT64_MAX)
/* Sent after the end of all jobs that use it, or when the worker could not take it. Not answered.
 */
#define MSG_F_ARENA_FREE(U, I, S, B, L) U(arena, UINT64_MAX)
/* Limits of a tenant on this device, in bytes. hard: the most (UINT64_MAX: no limit). soft: memory
 * above it moves to the host first. guaranteed: reserved for it. spilled: the most on the host for
 * this device. They apply from the next request on; F_INVENTORY ends them. Answered by
 * W_TENANT_REFUSED if the guarantee is impossible (the other limits apply), or if the tenant cannot
 * be distinguished from others (no limit applies). */
#define MSG_F_TENANT(U, I, S, B, L)                                                                \
    U(tenant, UINT64_MAX)                                                                          \
    S(name, PROTO_NAME_MAX)                                                                        \
    U(hard, UINT64_MAX)                                                                            \
    U(soft, UINT64_MAX)                                                                            \
    U(guaranteed, UINT64_MAX)                                                                      \
    U(spilled, UINT64_MAX)

/* ---- worker to front ------------------------------------------------------------------------ */

/* The device is open: a copy without a kernel has succeeded on it. */
#define MSG_W_READY(U, I, S, B, L)                                                                 \
    S(build, PROTO_NAME_MAX)                                                                       \
    S(backend, PROTO_NAME_MAX)                                                                     \
    S(name, 128)                                                                                   \
    S(vendor, 128)                                                                                 \
    S(driver, 128)                                                                                 \
    U(cpu, 1)                                                                                      \
    U(simulated, 1)                                                                                \
    U(memory, UINT64_MAX)                                                                          \
    U(units, UINT64_MAX)                                                                           \
    U(max_group, UINT64_MAX)                                                                       \
    U(local_bytes, UINT64_MAX)                                                                     \
    U(streams, 255)                                                                                \
    U(max_alloc, UINT64_MAX)                                                                       \
    U(f64, 1)                                                                                      \
    S(arch, 128)                                                                                   \
    S(pin, 64)                                                                                     \
    U(devices, UINT32_MAX) /* devices of the back end; 0: not known */                             \
    U(urgent, 255)         /* the last so many streams, which the device prefers if it can */      \
    U(pool_limit, UINT64_MAX)                                                                      \
    U(pool_default, UINT64_MAX) /* the limit that a worker takes if none is set */                 \
    U(stay, UINT64_MAX)         /* as in F_BUDGET */                                               \
    U(spill_limit, UINT64_MAX)                                                                     \
    U(chosen, 1) /* the worker's environment restricts the devices that it sees */                 \
    S(note, 256) /* a problem of a device that works; empty: none */
/* The device cannot be used; the worker ends after this. */
#define MSG_W_ABSENT(U, I, S, B, L)                                                                \
    I(code) I(vendor) S(text, PROTO_TEXT_MAX) U(devices, UINT32_MAX) /* as in W_READY */
/* Sent once a second by a thread of its own. patience_ns: the longest time until the next beat
 * (during a compilation, pinning, or the creation of a context). */
#define MSG_W_BEAT(U, I, S, B, L) U(count, UINT64_MAX) U(patience_ns, UINT64_MAX)
/* Sent for jobs that run longer than some milliseconds, and again after a W_PAUSED. */
#define MSG_W_STARTED(U, I, S, B, L) U(job, UINT64_MAX) U(at_ns, UINT64_MAX)
/* A job that was reported as started has had no kernel on the device for some milliseconds: its
 * next steps wait for its copies, or in its stream for another job. */
#define MSG_W_PAUSED(U, I, S, B, L) U(job, UINT64_MAX)
#define MSG_W_DONE(U, I, S, B, L)                                                                  \
    U(job, UINT64_MAX)                                                                             \
    I(code)                                                                                        \
    I(vendor)                                                                                      \
    I(step)                                                                                        \
    I(arg)                                                                                         \
    U(effects, 2)                                                                                  \
    U(started_ns, UINT64_MAX)                                                                      \
    U(ended_ns, UINT64_MAX)                                                                        \
    S(text, PROTO_TEXT_MAX)                                                                        \
    L(timings, TIMING, PROTO_STEPS_MAX)
/* gone: the worker has no such buffer. */
#define MSG_W_BUFFER(U, I, S, B, L)                                                                \
    U(id, UINT64_MAX) I(code) I(vendor) U(gone, 1) S(text, PROTO_TEXT_MAX)
/* fd if code is 0: a descriptor of `bytes` of device memory for another process's driver. */
#define MSG_W_EXPORTED(U, I, S, B, L)                                                              \
    U(id, UINT64_MAX) U(bytes, UINT64_MAX) I(code) I(vendor) S(text, PROTO_TEXT_MAX)
/* Launches may name arrays in the arena that begin at multiples of `align` bytes. align 0: the
 * worker could not take it, for lack of descriptors or memory. */
#define MSG_W_ARENA(U, I, S, B, L) U(arena, UINT64_MAX) U(align, 4096)
#define MSG_W_MODULE(U, I, S, B, L)                                                                \
    U(module, UINT64_MAX)                                                                          \
    I(code)                                                                                        \
    I(vendor)                                                                                      \
    S(text, PROTO_TEXT_MAX)                                                                        \
    L(kernels, WKERNEL, PROTO_KERNELS_MAX)
/* The front's adoption record has the owner and all other properties. fd if sealed: the host copy.
 * arriving: the buffer is being restored, and W_BUFFER follows. lent: it is being restored from a
 * copy that seals nothing; fd, too. */
#define MSG_W_INVENTORY_BUFFER(U, I, S, B, L)                                                      \
    U(id, UINT64_MAX) U(size, UINT64_MAX) U(sealed, 1) U(arriving, 1) U(lent, 1)
#define MSG_W_INVENTORY_MODULE(U, I, S, B, L) U(module, UINT64_MAX) B(hash, 16)
/* A job that runs, or has ended and was not retired. W_DONE follows for a finished job; W_STARTED
 * for a job that was reported as started, and not as paused since. */
#define MSG_W_INVENTORY_JOB(U, I, S, B, L) U(job, UINT64_MAX) U(stream, 255) U(finished, 1)
#define MSG_W_INVENTORY_END(U, I, S, B, L) U(nonce, UINT64_MAX)
#define MSG_W_POOL(U, I, S, B, L)                                                                  \
    U(size, UINT64_MAX)                                                                            \
    U(used, UINT64_MAX)                                                                            \
    U(peak, UINT64_MAX)                                                                            \
    U(cached, UINT64_MAX)                                                                          \
    U(largest_free, UINT64_MAX)                                                                    \
    U(allocations, UINT64_MAX)                                                                     \
    U(frees, UINT64_MAX)                                                                           \
    U(hits, UINT64_MAX)                                                                            \
    U(failures, UINT64_MAX)                                                                        \
    U(driver_calls, UINT64_MAX)                                                                    \
    U(live, UINT64_MAX)                                                                            \
    U(spilled, UINT64_MAX)                                                                         \
    U(spill_limit, UINT64_MAX)                                                                     \
    U(spills, UINT64_MAX)                                                                          \
    U(returns, UINT64_MAX)                                                                         \
    U(managed, UINT64_MAX)                                                                         \
    U(managed_limit, UINT64_MAX)                                                                   \
    U(batches, UINT64_MAX)                                                                         \
    U(batched, UINT64_MAX)                                                                         \
    U(waited, UINT64_MAX)                                                                          \
    U(limit, UINT64_MAX)                                                                           \
    U(missing, UINT64_MAX) /* bytes above the limit, which are to be given back */                 \
    /* Places that programs keep for their temporaries, bytes of their addresses, runs that had the */  \
    /* addresses of an earlier run, and that had others. */                                        \
    U(private_places, UINT64_MAX)                                                                  \
    U(private_bytes, UINT64_MAX)                                                                   \
    U(private_returns, UINT64_MAX)                                                                 \
    U(private_others, UINT64_MAX)                                                                  \
    U(staying, UINT64_MAX) /* bytes of buffers that never move to the host */
/* A tenant's memory in bytes; sent before W_POOL if it has changed. asked: as requested; mapped: on
 * the device, not available to others; shared: the part of `mapped` outside of the pool; spilled:
 * on the host. */
#define MSG_W_TENANT(U, I, S, B, L)                                                                \
    U(tenant, UINT64_MAX)                                                                          \
    U(asked, UINT64_MAX)                                                                           \
    U(mapped, UINT64_MAX)                                                                          \
    U(peak, UINT64_MAX)                                                                            \
    U(shared, UINT64_MAX)                                                                          \
    U(spilled, UINT64_MAX)
#define MSG_W_TENANT_REFUSED(U, I, S, B, L) U(tenant, UINT64_MAX) I(code) S(text, PROTO_TEXT_MAX)
/* The budget is met, or its deadline has passed. asked: the limit of the F_BUDGET that this answers;
 * limit: that is in force; size: bytes that the worker has; missing: bytes that are still to be
 * given back. code not 0: the budget was refused, and the former one remains. */
#define MSG_W_BUDGET(U, I, S, B, L)                                                                \
    U(asked, UINT64_MAX)                                                                           \
    U(limit, UINT64_MAX)                                                                           \
    U(size, UINT64_MAX)                                                                            \
    U(missing, UINT64_MAX)                                                                         \
    I(code)                                                                                        \
    S(text, PROTO_TEXT_MAX)
/* A job waits for device memory, or no longer does. bytes: that the budget lacks for it, if the
 * budget may grow. It is sent again for a job that still waits after another budget. */
#define MSG_W_WAITING(U, I, S, B, L) U(job, UINT64_MAX) U(waits, 1) U(bytes, UINT64_MAX)
/* The job's deadline has passed before its first step began. Its commands cannot be taken back from
 * the stream, so it runs late. The front answers the client now; W_DONE follows at the job's end.
 */
#define MSG_W_LATE(U, I, S, B, L) U(job, UINT64_MAX)
/* fd if code is 0: memfd with the snapshot (snapshot.h). */
#define MSG_W_SNAPSHOT(U, I, S, B, L) U(nonce, UINT64_MAX) I(code) I(vendor) S(text, PROTO_TEXT_MAX)

/* Rings for the channel; fds: memory and doorbells (common/duplex.h). Answered by W_RINGS over the
 * socket, with the same nonce; code 0: the rings are used from then on. fd of W_RINGS, if
 * the worker has one: /proc/PID/task/TID/stat of the thread that writes beats, which the front could
 * not open where its /proc hides processes of other users. */
#define MSG_F_RINGS(U, I, S, B, L) U(nonce, UINT64_MAX)
#define MSG_W_RINGS(U, I, S, B, L) U(nonce, UINT64_MAX) I(code) S(text, PROTO_TEXT_MAX)

/* ---- entries of the adoption record, for the next front (record.h in daemon/front) ----------- */

#define REC_RECORD_OUTPUT(U, I, S, B, L)                                                           \
    U(step, PROTO_STEPS_MAX) U(arg, PROTO_ARGS_MAX) U(offset, UINT64_MAX) U(size, UINT64_MAX)
/* A buffer that the job uses, and the part [begin, end) that it writes. fills: it writes all of the
 * part. */
#define REC_RECORD_USE(U, I, S, B, L)                                                              \
    U(handle, UINT64_MAX) U(access, 3) U(fills, 1) U(begin, UINT64_MAX) U(end, UINT64_MAX)

/* A session that opened the buffer by name, and the number of its request. */
#define RECORD_OPENERS_MAX 256
#define REC_RECORD_OPENER(U, I, S, B, L)                                                           \
    B(client_id, PROTO_CLIENT_ID_BYTES) U(uid, UINT64_MAX) U(seq, UINT64_MAX)

/* client_id, uid: the owner; left: its session has ended. seq: of the request that created the
 * buffer; freed: of its owner's request to free it, 0: none. */
#define MSG_RECORD_BUFFER(U, I, S, B, L)                                                           \
    B(client_id, PROTO_CLIENT_ID_BYTES)                                                            \
    U(uid, UINT64_MAX)                                                                             \
    U(seq, UINT64_MAX)                                                                             \
    U(dtype, 255)                                                                                  \
    U(ndim, 4)                                                                                     \
    U(d0, UINT64_MAX)                                                                              \
    U(d1, UINT64_MAX)                                                                              \
    U(d2, UINT64_MAX)                                                                              \
    U(d3, UINT64_MAX)                                                                              \
    U(flags, UINT64_MAX)                                                                           \
    S(label, PROTO_LABEL_MAX)                                                                      \
    S(name, PROTO_NAME_MAX)                                                                        \
    U(rights, 3)                                                                                   \
    U(linger_ns, UINT64_MAX)                                                                       \
    U(defined, 1)                                                                                  \
    U(left, 1)                                                                                     \
    L(openers, RECORD_OPENER, RECORD_OPENERS_MAX)                                                  \
    S(tenant, PROTO_NAME_MAX)                                                                      \
    U(freed, UINT64_MAX)                                                                           \
    S(grants, PROTO_GRANTS_MAX)                                                                    \
    U(kept, 2) /* L_KEEP: its content is on the host: 1: moved from its worker; 2: sealed */

/* input, output: offsets in the staging memory, bytes; offsets of outputs are relative to `output`.
 */
#define MSG_RECORD_JOB(U, I, S, B, L)                                                              \
    B(client_id, PROTO_CLIENT_ID_BYTES)                                                            \
    U(uid, UINT64_MAX)                                                                             \
    U(seq, UINT64_MAX)                                                                             \
    U(async, 1)                                                                                    \
    U(limit_ns, UINT64_MAX)                                                                        \
    U(submitted_ns, UINT64_MAX)                                                                    \
    S(label, PROTO_LABEL_MAX)                                                                      \
    U(input, UINT64_MAX)                                                                           \
    U(input_size, UINT64_MAX)                                                                      \
    U(output, UINT64_MAX)                                                                          \
    U(output_size, UINT64_MAX)                                                                     \
    L(uses, RECORD_USE, 512)                                                                       \
    L(outputs, RECORD_OUTPUT, PROTO_OUTPUTS_MAX)                                                   \
    U(arenas, 1)              /* the job uses arenas */                                            \
    U(repeatable, 1)          /* a second run has no other effects than one */                     \
    S(tenant, PROTO_NAME_MAX) /* "": the daemon's own */                                           \
    U(to_device, UINT64_MAX)  /* bytes that its copies move there, and back */                     \
    U(from_device, UINT64_MAX)

/* The device of a worker; the launcher keeps this entry with the worker, and takes workers with
 * equal entries for workers of one device. tenant: whose own worker it is; "": tenants share it. */
#define MSG_RECORD_WORKER(U, I, S, B, L)                                                           \
    S(backend, PROTO_NAME_MAX)                                                                     \
    U(index, UINT64_MAX) S(tenant, PROTO_NAME_MAX)

/* ---- front and launcher --------------------------------------------------------------------- */

/* First frame of both sides. The launcher serves one front at a time. Only the launcher's has:
 * compiler, the hash of its gpud-compile; worker_uid, worker_gid, of the user that compilers run as
 * and of the group of all workers, 0: the launcher's own; lineage, a number of its own, because the
 * records of workers' jobs are no older than the launcher that keeps them; copies, how many L_KEEP
 * may keep. */
#define MSG_L_HELLO(U, I, S, B, L)                                                                 \
    S(build, PROTO_NAME_MAX)                                                                       \
    U(pid, UINT64_MAX)                                                                             \
    S(compiler, PROTO_NAME_MAX)                                                                    \
    U(worker_uid, UINT32_MAX)                                                                      \
    U(worker_gid, UINT32_MAX) U(lineage, UINT64_MAX) U(copies, UINT32_MAX)
/* fds: input staging, output staging, and the adoption record, which the worker does not get.
 * device: a RECORD_WORKER. prepare: keep a process ready for the worker that replaces this one. The
 * launcher makes the worker's channel, keeps duplicates of all descriptors and answers L_STARTED.
 */
#define MSG_L_WORKER(U, I, S, B, L)                                                                \
    U(id, UINT64_MAX) L(args, WORD, 64) B(device, FRAME_DEVICE_MAX) U(prepare, 1)
/* The worker is of another device from now on (a spare worker became a tenant's). */
#define MSG_L_DEVICE(U, I, S, B, L) U(id, UINT64_MAX) B(device, FRAME_DEVICE_MAX)
/* fds: request, response (memfds). Limits: CPU seconds, address space in bytes, wall time. */
#define MSG_L_COMPILER(U, I, S, B, L)                                                              \
    U(id, UINT64_MAX)                                                                              \
    L(args, WORD, 64)                                                                              \
    U(cpu_s, UINT64_MAX)                                                                           \
    U(memory, UINT64_MAX)                                                                          \
    U(wall_ns, UINT64_MAX)
/* fd: the page of proto/health.h that gpud-monitor writes. Answered by L_STARTED. */
#define MSG_L_MONITOR(U, I, S, B, L) U(id, UINT64_MAX)
/* fd for a worker: the front's end of its channel. code < 0: it could not be started. */
#define MSG_L_STARTED(U, I, S, B, L)                                                               \
    U(id, UINT64_MAX) U(pid, UINT64_MAX) I(code) S(text, PROTO_TEXT_MAX)
/* status: as from waitpid. timed_out: the launcher ended the process after its wall time. */
#define MSG_L_ENDED(U, I, S, B, L)                                                                 \
    U(id, UINT64_MAX) U(pid, UINT64_MAX) U(status, UINT64_MAX) U(timed_out, 1)
#define MSG_L_KILL(U, I, S, B, L) U(id, UINT64_MAX) U(signal, 64)
/* Answered by an L_KEPT for each copy, an L_INVENTORY for each device that has or had a worker,
 * then L_LISTED. */
#define MSG_L_LIST(U, I, S, B, L) U(unused, 0)
/* fds: the front's end of the channel, input staging, output staging, the adoption record. args,
 * device: those of L_WORKER, or of the last L_DEVICE. pid 0: the worker has ended, and fds has the
 * record only. The launcher keeps it until the next worker of the same device starts. */
#define MSG_L_INVENTORY(U, I, S, B, L)                                                             \
    U(id, UINT64_MAX) U(pid, UINT64_MAX) L(args, WORD, 64) B(device, FRAME_DEVICE_MAX)
/* fd: the copy of a buffer on the host, which the launcher keeps for the next front. id: the handle
 * of the buffer; worker: the last one that got the record which names it. Not answered. A copy with
 * this id from before goes. */
#define MSG_L_KEEP(U, I, S, B, L) U(id, UINT64_MAX) U(worker, UINT64_MAX)
/* Not answered. */
#define MSG_L_RELEASE(U, I, S, B, L) U(id, UINT64_MAX)
/* fd: that of L_KEEP. */
#define MSG_L_KEPT(U, I, S, B, L) U(id, UINT64_MAX)
#define MSG_L_LISTED(U, I, S, B, L) U(count, UINT64_MAX)
/* Ends processes that wait to replace a worker of the device, a RECORD_WORKER. Answered by
 * L_VACATED; left: how many have yet to end. id: the front's. */
#define MSG_L_VACATE(U, I, S, B, L)  U(id, UINT64_MAX) B(device, FRAME_DEVICE_MAX)
#define MSG_L_VACATED(U, I, S, B, L) U(id, UINT64_MAX) U(left, UINT64_MAX)
/* The launcher ends all its children, then itself. */
#define MSG_L_QUIT(U, I, S, B, L) U(unused, 0)

/* ---- front and compiler: not over a socket but in two memfds, see compile.h ------------------ */

#define MSG_C_REQUEST(U, I, S, B, L)                                                               \
    U(lang, 255)                                                                                   \
    U(f64, 1)                                                                                      \
    S(file, PROTO_TEXT_MAX)                                                                        \
    S(options, PROTO_OPTIONS_MAX)                                                                  \
    S(arch, 128)                                                                                   \
    B(source, PROTO_SOURCE_MAX)                                                                    \
    S(signature, PROTO_TEXT_MAX)                                                                   \
    L(headers, HEADER, PROTO_HEADERS_MAX)
/* code 0 or ERR_*; log: the compiler's messages, also after success; compiler: the stamp of the
 * compiler's file (common/stamp.h), empty if the architecture identifies it; entries: the
 * properties of each entry in the binary. */
#define MSG_C_RESPONSE(U, I, S, B, L)                                                              \
    I(code)                                                                                        \
    I(vendor)                                                                                      \
    S(text, PROTO_TEXT_MAX)                                                                        \
    S(log, PROTO_LOG_MAX)                                                                          \
    S(compiler, PROTO_TEXT_MAX)                                                                    \
    B(binary, FRAME_BINARY_MAX)                                                                    \
    L(kernels, CKERNEL, PROTO_KERNELS_MAX)                                                         \
    L(entries, WKERNEL, PROTO_KERNELS_MAX)

#define PROTO_FRAMES(MESSAGE)                                                                      \
    MESSAGE(F_BUFFER_CREATE, f_buffer_create, 128)                                                 \
    MESSAGE(F_BUFFER_FREE, f_buffer_free, 129)                                                     \
    MESSAGE(F_BUFFER_SEAL, f_buffer_seal, 131)                                                     \
    MESSAGE(F_BUFFER_RESTORE, f_buffer_restore, 132)                                               \
    MESSAGE(F_MODULE_LOAD, f_module_load, 133)                                                     \
    MESSAGE(F_MODULE_UNLOAD, f_module_unload, 134)                                                 \
    MESSAGE(F_JOB, f_job, 135)                                                                     \
    MESSAGE(F_RETIRE, f_retire, 136)                                                               \
    MESSAGE(F_INVENTORY, f_inventory, 137)                                                         \
    MESSAGE(F_POOL, f_pool, 138)                                                                   \
    MESSAGE(F_QUIT, f_quit, 139)                                                                   \
    MESSAGE(F_BUFFER_EXPORT, f_buffer_export, 150)                                                 \
    MESSAGE(F_ARENA, f_arena, 144)                                                                 \
    MESSAGE(F_ARENA_FREE, f_arena_free, 145)                                                       \
    MESSAGE(F_TENANT, f_tenant, 151)                                                               \
    MESSAGE(F_CANCEL, f_cancel, 156)                                                               \
    MESSAGE(F_SNAPSHOT, f_snapshot, 158)                                                           \
    MESSAGE(F_COALESCE, f_coalesce, 146)                                                           \
    MESSAGE(F_SPILL, f_spill, 147)                                                                 \
    MESSAGE(F_BUDGET, f_budget, 148)                                                               \
    MESSAGE(F_PROGRAM_END, f_program_end, 149)                                                     \
    MESSAGE(W_READY, w_ready, 160)                                                                 \
    MESSAGE(W_ABSENT, w_absent, 161)                                                               \
    MESSAGE(W_BEAT, w_beat, 162)                                                                   \
    MESSAGE(W_STARTED, w_started, 163)                                                             \
    MESSAGE(W_PAUSED, w_paused, 183)                                                               \
    MESSAGE(W_DONE, w_done, 164)                                                                   \
    MESSAGE(W_BUFFER, w_buffer, 165)                                                               \
    MESSAGE(W_MODULE, w_module, 166)                                                               \
    MESSAGE(W_INVENTORY_BUFFER, w_inventory_buffer, 167)                                           \
    MESSAGE(W_INVENTORY_MODULE, w_inventory_module, 168)                                           \
    MESSAGE(W_INVENTORY_JOB, w_inventory_job, 169)                                                 \
    MESSAGE(W_INVENTORY_END, w_inventory_end, 170)                                                 \
    MESSAGE(W_POOL, w_pool, 171)                                                                   \
    MESSAGE(W_ARENA, w_arena, 174)                                                                 \
    MESSAGE(W_EXPORTED, w_exported, 175)                                                           \
    MESSAGE(W_WAITING, w_waiting, 172)                                                             \
    MESSAGE(W_LATE, w_late, 173)                                                                   \
    MESSAGE(W_TENANT, w_tenant, 176)                                                               \
    MESSAGE(W_TENANT_REFUSED, w_tenant_refused, 177)                                               \
    MESSAGE(W_BUDGET, w_budget, 184)                                                               \
    MESSAGE(W_SNAPSHOT, w_snapshot, 179)                                                           \
    MESSAGE(F_RINGS, f_rings, 159)                                                                 \
    MESSAGE(W_RINGS, w_rings, 178)                                                                 \
    MESSAGE(RECORD_BUFFER, record_buffer, 180)                                                     \
    MESSAGE(RECORD_JOB, record_job, 181)                                                           \
    MESSAGE(RECORD_WORKER, record_worker, 182)                                                     \
    MESSAGE(L_HELLO, l_hello, 192)                                                                 \
    MESSAGE(L_WORKER, l_worker, 193)                                                               \
    MESSAGE(L_COMPILER, l_compiler, 194)                                                           \
    MESSAGE(L_STARTED, l_started, 195)                                                             \
    MESSAGE(L_ENDED, l_ended, 196)                                                                 \
    MESSAGE(L_KILL, l_kill, 197)                                                                   \
    MESSAGE(L_LIST, l_list, 198)                                                                   \
    MESSAGE(L_INVENTORY, l_inventory, 199)                                                         \
    MESSAGE(L_LISTED, l_listed, 200)                                                               \
    MESSAGE(L_QUIT, l_quit, 201)                                                                   \
    MESSAGE(L_MONITOR, l_monitor, 202)                                                             \
    MESSAGE(L_DEVICE, l_device, 203)                                                               \
    MESSAGE(L_KEEP, l_keep, 204)                                                                   \
    MESSAGE(L_RELEASE, l_release, 205)                                                             \
    MESSAGE(L_KEPT, l_kept, 206)                                                                   \
    MESSAGE(L_VACATE, l_vacate, 207)                                                               \
    MESSAGE(L_VACATED, l_vacated, 208)                                                             \
    MESSAGE(C_REQUEST, c_request, 224)                                                             \
    MESSAGE(C_RESPONSE, c_response, 225)

#define X(NAME, name)                                                                              \
    struct proto_##name {                                                                          \
        REC_##NAME(FIELD_U, FIELD_I, FIELD_S, FIELD_B, FIELD_L)                                    \
    };
FRAME_RECORDS(X)
#undef X

#define X(NAME, name, value)                                                                       \
    struct msg_##name {                                                                            \
        MSG_##NAME(FIELD_U, FIELD_I, FIELD_S, FIELD_B, FIELD_L)                                    \
    };
PROTO_FRAMES(X)
#undef X

enum frame_kind {
#define X(NAME, name, value) FRAME_KIND_##NAME = (value),
    PROTO_FRAMES(X)
#undef X
};

#endif
