/*
 * The contract suite: what every back end must do, run once for each one that registers itself in
 * CMakeLists.txt. A test opens the device, does its work on it and closes it.
 */
#ifndef CONTRACT_CONTRACT_H
#define CONTRACT_CONTRACT_H

#include <check.h>
#include <stdatomic.h>

#include "daemon/backend/backend.h"
#include "kernels/signature.h"

/* The back end under test and the options its device is opened with. */
extern const char contract_backend[];
extern const char contract_options[];

/* An opened device, made anew for each test. */
struct bench {
    const struct backend *b;
    struct backend_device *device;
    struct backend_info info;
    struct backend_stream *stream;
    atomic_uint wakes;
};

extern struct bench bench;

void bench_open(void);
void bench_close(void);

#define ok(call)                                                                                   \
    do {                                                                                           \
        struct err ok_e = ERR_INIT;                                                                \
        struct err *e = &ok_e;                                                                     \
        int ok_rc = (call);                                                                        \
        ck_assert_msg(ok_rc == 0, "%s: %s", #call, ok_e.text);                                     \
    } while (0)

#define fails(want, call)                                                                          \
    do {                                                                                           \
        struct err f_e = ERR_INIT;                                                                 \
        struct err *e = &f_e;                                                                      \
        int f_rc = (call);                                                                         \
        ck_assert_msg(f_rc == (want), "%s: %s instead of %s: %s", #call, err_name(f_rc),           \
                      err_name(want), f_e.text);                                                   \
        ck_assert_int_eq(f_e.code, f_rc);                                                          \
        ck_assert_uint_gt(strlen(f_e.text), 0);                                                    \
    } while (0)

struct backend_block *block_new(uint64_t size);
void block_free(struct backend_block *block);
struct backend_ref at(struct backend_block *block, uint64_t offset);
struct backend_marker *mark(struct backend_stream *s);
/* Waits until the marker settled; DONE or FAILED, where `e` says why. */
enum backend_state settle(struct backend_marker *m, struct err *e);
/* Marks the stream and waits until it is done. */
void drain(struct backend_stream *s);
void put(struct backend_ref dst, const void *data, uint64_t size);
void get(void *data, struct backend_ref src, uint64_t size);

/* A built-in kernel, compiled by the back end and loaded. */
struct backend_module *module_of(const char *kernel, const struct signature **ret_sig);
int compile_builtin(const char *kernel, struct backend_compiled *ret_compiled,
                    const struct signature **ret_sig, struct err *why);

#define MANY_ARGS 32
/* The arguments point into it: it is not to be copied. */
struct call {
    struct backend_arg arg[MANY_ARGS];
    uint64_t value[MANY_ARGS];
    unsigned count;
};

void call_memory(struct call *c, struct backend_ref ref);
void call_value(struct call *c, const void *value, size_t size);
struct backend_launch launch_of(const struct call *c, uint64_t global, uint64_t local);

void contract_device(Suite *suite);
void contract_memory(Suite *suite);
void contract_pages(Suite *suite);
void contract_stream(Suite *suite);
void contract_module(Suite *suite);
void contract_launch(Suite *suite);

#endif
