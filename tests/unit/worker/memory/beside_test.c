/*
 * The calls of a driver that may take long are made beside the worker's loop: gpud-worker as a
 * process on the CUDA driver's double, which notes such calls of a process's first thread.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/shape.h"
#include "daemon/backend/backend.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/worker/fake_front.h"

#define MIB (UINT64_C(1) << 20)

static struct fake f;
static char report[64];

/* Counts lines of the report that begin so. */
static unsigned lines(const char *want)
{
    char line[512];
    unsigned count = 0;
    FILE *file = fopen(report, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        count += strncmp(line, want, strlen(want)) == 0;
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return count;
}

/* Counts the calls that the worker's first thread has made. */
static unsigned made(const char *call)
{
    char want[128];
    (void)snprintf(want, sizeof want, "%d note: %s: called by the first thread\n", (int)f.pid,
                   call);
    return lines(want);
}

/* The worker serves. false: there is no such back end here. */
static bool start(const char *driver, const char *spill)
{
    const char *const args[] = {
        "--memory-limit", "33554432", "--managed-limit", "33554432", "--spill-limit", spill, NULL};
    char script[256];
    if (backend_find("cuda") == NULL) {
        return false;
    }
    (void)snprintf(report, sizeof report, "/tmp/gpud-beside-%d", (int)getpid());
    (void)unlink(report);
    (void)snprintf(script, sizeof script, "main_notes=1%s%s", driver[0] != '\0' ? "," : "", driver);
    (void)setenv("LD_LIBRARY_PATH", GPUD_FAKECUDA, 1);
    (void)setenv("FAKECUDA", script, 1);
    (void)setenv("FAKECUDA_REPORT", report, 1);
    (void)setenv("GPUD_CONFINE_WRITE", "/tmp", 1); /* where the report is */
    fake_start(&f, "cuda", args);
    ck_assert(!f.absent);
    return true;
}

static void finish(void)
{
    fake_finish(&f);
    (void)unlink(report);
}

/* A module with a kernel that never ends. */
static void hang_compile(struct compile_response *ret_compiled, struct memfd *ret_memory)
{
    static const char PTX[] = ".version 8.0\n.target sm_80\n.address_size 64\n"
                              ".visible .entry fake_hang(.param .u64 p)\n{\n ret;\n}\n";
    fake_compile("cuda", f.arch, LANG_PTX, "hang.ptx", bytes_str(PTX), ret_compiled, ret_memory);
    ck_assert_msg(ret_compiled->code == 0, "%.*s", (int)ret_compiled->text.size,
                  ret_compiled->text.data);
}

static void arena_send(uint64_t id, uint64_t tenant, uint64_t size)
{
    struct err e = ERR_INIT;
    struct memfd m = MEMFD_NONE;
    const struct msg_f_arena msg = {.arena = id, .size = size, .tenant = tenant};
    ck_assert_int_eq(memfd_create_sealed("arena", size, &m, &e), 0);
    memset(m.data, (int)id, 4096);
    fake_send(&f, &schema_msg_f_arena, &msg, m.fd);
    memfd_finish(&m);
}

/* Loading modules, registering arenas and releasing both: none of it on the loop. */
START_TEST(modules_and_arenas_are_known_beside_the_loop)
{
    struct compile_response compiled;
    struct memfd memory = MEMFD_NONE;
    if (!start("host_us=10,load_us=1000", "0")) {
        return;
    }
    const unsigned before = made("cuMemHostRegister");
    ck_assert_uint_eq(before, 1); /* before the worker serves: the pieces for copies */
    hang_compile(&compiled, &memory);
    for (uint64_t id = 1; id <= 3; id++) {
        struct msg_w_arena known;
        f.tenant = id;
        ck_assert_int_eq(fake_module(&f, id, compiled.binary), 0);
        arena_send(id, id, 40 * MIB);
        fake_expect(&f, FRAME_KIND_W_ARENA, &schema_msg_w_arena, &known);
        ck_assert(known.arena == id && known.align == 16);
    }
    for (uint64_t id = 1; id <= 2; id++) {
        const struct msg_f_arena_free gone = {.arena = id};
        const struct msg_f_module_unload unload = {.module = id};
        fake_send(&f, &schema_msg_f_arena_free, &gone, -1);
        fake_send(&f, &schema_msg_f_module_unload, &unload, -1);
    }
    ck_assert_int_eq(fake_module(&f, 4, compiled.binary), 0); /* behind the others */
    ck_assert_uint_eq(made("cuModuleLoadDataEx"), 0);
    ck_assert_uint_eq(made("cuFuncLoad"), 0);
    ck_assert_uint_eq(made("cuModuleUnload"), 0);
    ck_assert_uint_eq(made("cuMemHostRegister"), before);
    ck_assert_uint_eq(made("cuMemHostUnregister"), 0);
    memfd_finish(&memory);
    finish();
}
END_TEST

/* Ends a worker that has modules and an arena. false: it was still pinning staging memory, and
 * released nothing. */
static bool ends_clean(const struct compile_response *compiled)
{
    struct msg_w_arena known;
    char all[64];
    char clean[64];
    ck_assert_int_eq(fake_module(&f, 1, compiled->binary), 0);
    ck_assert_int_eq(fake_module(&f, 2, compiled->binary), 0);
    arena_send(1, 1, 40 * MIB);
    fake_expect(&f, FRAME_KIND_W_ARENA, &schema_msg_w_arena, &known);
    (void)snprintf(all, sizeof all, "%d end: ", (int)f.pid);
    (void)snprintf(clean, sizeof clean, "%s0 leaks, 0 misuses\n", all);
    fake_stop(&f);
    unsigned ends = lines(all);
    ck_assert_uint_eq(lines(clean), ends);
    (void)unlink(report);
    return ends == 1;
}

/* The threads release what is left when the worker ends. */
START_TEST(the_worker_ends_with_modules_and_arenas)
{
    bool clean = false;
    for (unsigned tries = 0; !clean && tries < 20; tries++) {
        struct compile_response compiled;
        struct memfd memory = MEMFD_NONE;
        if (!start("host_us=10,load_us=1000", "67108864")) {
            return;
        }
        hang_compile(&compiled, &memory);
        clean = ends_clean(&compiled);
        memfd_finish(&memory);
    }
    ck_assert(clean);
}
END_TEST

/* The driver's calls wait for a kernel that never ends. Jobs that need neither the module nor the
 * registered arena go on, a front that connects gets its answers, and the worker ends. */
START_TEST(what_is_under_way_holds_up_no_job)
{
    enum { LITTLE = 4096 };
    struct compile_response compiled;
    struct memfd memory = MEMFD_NONE;
    struct memfd module = MEMFD_NONE;
    struct job_draft d;
    struct err e = ERR_INIT;
    const struct msg_f_inventory ask = {.nonce = 9};
    unsigned kind = 0;
    if (!start("host_us=1,load_us=1", "0")) {
        return;
    }
    f.tenant = 1;
    hang_compile(&compiled, &memory);
    ck_assert_int_eq(fake_module(&f, 7, compiled.binary), 0);
    ck_assert_int_eq(fake_buffer(&f, 1, LITTLE, false), 0);
    f.tenant = 2;
    ck_assert_int_eq(fake_buffer(&f, 2, LITTLE, false), 0);
    const struct proto_ref arg = ref_as(ref_buffer(1, 0, LITTLE), ACCESS_INOUT);
    draft_init(&d, 1, 0);
    draft_launch(&d, 7, "fake_hang", 1, &arg, 1);
    draft_send(&d, &f);
    ck_assert_int_eq(memfd_create_sealed("module", compiled.binary.size, &module, &e), 0);
    memcpy(module.data, compiled.binary.data, compiled.binary.size);
    const struct msg_f_module_load load = {.module = 8, .size = compiled.binary.size, .tenant = 1};
    fake_send(&f, &schema_msg_f_module_load, &load, module.fd);
    arena_send(5, 1, 40 * MIB);
    arena_send(6, 2, LITTLE);
    const struct proto_ref arena = {.tag = REF_ARENA, .id = 6, .size = LITTLE};
    draft_init(&d, 2, 1);
    draft_move_arena(&d, OP_WRITE, ref_buffer(2, 0, LITTLE), arena);
    draft_move(&d, OP_READ, ref_buffer(2, 0, LITTLE), 0);
    draft_send(&d, &f);
    ck_assert_int_eq(fake_done(&f, 2, NULL), 0);
    ck_assert_uint_eq(f.output.data[0], 6);
    fake_send(&f, &schema_msg_f_inventory, &ask, -1);
    while (kind != FRAME_KIND_W_INVENTORY_END) {
        kind = fake_next(&f);
        ck_assert(kind != 0 && kind != FRAME_KIND_W_MODULE && kind != FRAME_KIND_W_ARENA);
    }
    ck_assert_int_eq(fake_buffer(&f, 3, LITTLE, false), 0);
    memfd_finish(&memory);
    memfd_finish(&module);
    fake_stop(&f);
    (void)unlink(report);
}
END_TEST

/* To unmap exported memory the driver waits for a kernel that never ends. */
START_TEST(exported_memory_goes_when_nothing_runs)
{
    enum { LITTLE = 4096 };
    const struct msg_f_buffer_create create = {
        .id = 5, .size = LITTLE, .zero = 1, .tenant = 1, .exported = 1};
    const struct msg_f_buffer_free gone = {.id = 5};
    struct compile_response compiled;
    struct memfd memory = MEMFD_NONE;
    struct msg_w_buffer exported;
    struct job_draft d;
    if (!start("remap_us=1", "0")) {
        return;
    }
    hang_compile(&compiled, &memory);
    ck_assert_int_eq(fake_module(&f, 7, compiled.binary), 0);
    ck_assert_int_eq(fake_buffer(&f, 1, LITTLE, false), 0);
    ck_assert_int_eq(fake_buffer(&f, 2, LITTLE, false), 0);
    fake_send(&f, &schema_msg_f_buffer_create, &create, -1);
    fake_expect(&f, FRAME_KIND_W_BUFFER, &schema_msg_w_buffer, &exported);
    ck_assert_int_eq((int)exported.code, 0);
    const struct proto_ref arg = ref_as(ref_buffer(1, 0, LITTLE), ACCESS_INOUT);
    draft_init(&d, 1, 0);
    draft_launch(&d, 7, "fake_hang", 1, &arg, 1);
    draft_send(&d, &f);
    fake_send(&f, &schema_msg_f_buffer_free, &gone, -1);
    draft_init(&d, 2, 1);
    draft_fill(&d, ref_buffer(2, 0, LITTLE), "a", 1);
    draft_send(&d, &f);
    ck_assert_int_eq(fake_done(&f, 2, NULL), 0);
    ck_assert_uint_eq(made("cuMemUnmap"), 0);
    memfd_finish(&memory);
    finish();
}
END_TEST

/* Fills a new buffer of 4 MiB. Returns the code of the job's end. */
static int fill(uint64_t id, uint64_t deadline_ns)
{
    const uint8_t byte = (uint8_t)id;
    struct job_draft d;
    ck_assert_int_eq(fake_buffer(&f, id, 4 * MIB, false), 0);
    draft_init(&d, id, 0);
    draft_fill(&d, ref_buffer(id, 0, 4 * MIB), &byte, 1);
    if (deadline_ns != 0) {
        d.msg.deadline_ns = deadline_ns;
    }
    draft_send(&d, &f);
    return fake_done(&f, id, NULL);
}

static void check(uint64_t id)
{
    struct job_draft d;
    draft_init(&d, 1000 + id, 0);
    draft_move(&d, OP_READ, ref_buffer(id, 4 * MIB - 8, 8), 0);
    draft_send(&d, &f);
    ck_assert_int_eq(fake_done(&f, 1000 + id, NULL), 0);
    ck_assert(f.output.data[0] == (uint8_t)id && f.output.data[7] == (uint8_t)id);
}

/* FAULT 47: the driver takes long to register memory of the host for buffers of a full device,
 *   refuses it, or never answers
 * required: the job that needs it waits, and others go on; it fails as on a full host when the
 *   driver refuses, or after 10 s
 * defence: `worker/spill/spill_host.c`: make, on_come; `worker/spill/spill.c`: evict
 * also: `worker_beside_test`: memory_of_the_host_may_be_refused,
 *   memory_of_the_host_may_never_come
 * mutants: host-grows */
/* Memory for buffers that move to the host: more than what the worker begins with. */
START_TEST(memory_of_the_host_grows_beside_the_loop)
{
    enum { COUNT = 40 };
    if (!start("host_us=10", "268435456")) {
        return;
    }
    const unsigned before = made("cuMemHostRegister");
    ck_assert_uint_eq(before, 2); /* the pieces for copies, and a first chunk */
    for (uint64_t id = 1; id <= COUNT; id++) {
        ck_assert_int_eq(fill(id, 0), 0);
    }
    for (uint64_t id = 1; id <= COUNT; id++) {
        check(id);
    }
    ck_assert_uint_eq(made("cuMemHostRegister"), before);
    finish();
}
END_TEST

/* The driver registers some chunks and refuses others: the request is refused, as if the host were
 * full. What is there remains. */
START_TEST(memory_of_the_host_may_be_refused)
{
    struct msg_f_buffer_free gone;
    uint64_t id = 0;
    int code = 0;
    if (!start("cuMemHostRegister@20+=2", "1073741824")) {
        return;
    }
    while (code == 0 && id < 150) {
        code = fill(++id, 0);
    }
    ck_assert_int_eq(code, ERR_DEVICE_MEMORY);
    ck_assert_uint_gt(id, 20);
    gone.id = id - 1; /* on the full device: buffers can be exchanged again */
    fake_send(&f, &schema_msg_f_buffer_free, &gone, -1);
    for (uint64_t i = 1; i < id - 1; i++) {
        check(i);
    }
    finish();
}
END_TEST

/* A chunk never comes: its job waits until its deadline, and other jobs go on. */
START_TEST(memory_of_the_host_may_never_come)
{
    struct job_draft d;
    uint64_t id = 0;
    int code = 0;
    if (!start("cuMemHostRegister@20+=block", "1073741824")) {
        return;
    }
    while (code == 0 && id < 150) {
        code = fill(++id, clock_now_ns() + NS_PER_S);
    }
    ck_assert_int_eq(code, ERR_DEADLINE);
    draft_init(&d, 999, 1);
    draft_fill(&d, ref_buffer(id - 1, 0, 4 * MIB), "a", 1);
    draft_send(&d, &f);
    ck_assert_int_eq(fake_done(&f, 999, NULL), 0);
    fake_stop(&f);
    (void)unlink(report);
}
END_TEST

SUITE_MAIN("beside the loop", modules_and_arenas_are_known_beside_the_loop,
           the_worker_ends_with_modules_and_arenas, what_is_under_way_holds_up_no_job,
           exported_memory_goes_when_nothing_runs, memory_of_the_host_grows_beside_the_loop,
           memory_of_the_host_may_be_refused, memory_of_the_host_may_never_come)
