/* How often the driver is asked, and for what: the CUDA back end against the double of its driver.
 */
#include <check.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "daemon/backend/cuda/run/binary.h"
#include "daemon/backend/cuda/run/stream.h"
#include "tests/unit/common/suite.h"

#define MIB (UINT64_C(1) << 20)

static const struct backend *cuda;
static struct backend_device *device;
static struct backend_stream *stream;

#define ok(call)                                                                                   \
    do {                                                                                           \
        struct err ok_e = ERR_INIT;                                                                \
        struct err *e = &ok_e;                                                                     \
        ck_assert_msg((call) == 0, "%s: %s", #call, ok_e.text);                                    \
    } while (0)

static void start(const char *script)
{
    ck_assert_int_eq(setenv("FAKECUDA", script, 1), 0);
    ck_assert_int_eq(setenv("FAKECUDA_STRICT", "1", 1), 0);
    cuda = backend_find("cuda");
    ok(cuda->device->open(0, "", NULL, NULL, &device, e));
    ok(cuda->stream->create(device, 0, &stream, e));
}

static void drain(void)
{
    const struct timespec pause = {0, 100000};
    struct backend_marker *m = NULL;
    struct err why = ERR_INIT;
    enum backend_state state = BACKEND_PENDING;
    ok(cuda->stream->mark(stream, &m, e));
    while (state != BACKEND_DONE) {
        nanosleep(&pause, NULL);
        state = cuda->marker->state(m, &why);
        ck_assert_msg(state != BACKEND_FAILED, "%s", why.text);
    }
    cuda->marker->release(m);
}

static void stop(void)
{
    cuda->stream->destroy(stream);
    cuda->device->close(device);
}

/* ---- fills ----------------------------------------------------------------------------------- */

static struct {
    PFN_cuMemsetD2D32Async_v3020 set;
    PFN_cuMemcpyDtoDAsync_v3020 copy;
    uint64_t rows;
    unsigned sets, copies;
} counted;

static CUresult counted_set(CUdeviceptr at, size_t pitch, unsigned value, size_t width,
                            size_t height, CUstream on)
{
    counted.sets++;
    counted.rows += height;
    return counted.set(at, pitch, value, width, height, on);
}

static CUresult counted_copy(CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream on)
{
    counted.copies++;
    return counted.copy(dst, src, size, on);
}

/* The driver sets one word of a row after the other: of long patterns that is done for a piece. */
START_TEST(long_patterns_are_doubled)
{
    static const struct {
        size_t pattern;
        uint64_t size;
        unsigned sets, copies;
        uint64_t rows;
    } table[] = {{8, 8, 2, 0, 2},
                 {16, 65536, 4, 0, 4 * 4096},
                 {8, 65544, 2, 1, 2 * 8192},
                 {16, 131072, 4, 1, 4 * 4096},
                 {16, 131088, 4, 2, 4 * 4096},
                 {8, 64 * MIB, 2, 10, 2 * 8192},
                 {4, 64 * MIB, 0, 0, 0}};
    static const uint8_t pattern[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    struct backend_block *block = NULL;
    start("");
    counted.set = device->cu.MemsetD2D32Async;
    counted.copy = device->cu.MemcpyDtoDAsync;
    device->cu.MemsetD2D32Async = counted_set;
    device->cu.MemcpyDtoDAsync = counted_copy;
    ok(cuda->memory->alloc(device, 64 * MIB, &block, e));
    for (unsigned i = 0; i < sizeof table / sizeof table[0]; i++) {
        counted.sets = counted.copies = 0;
        counted.rows = 0;
        ok(cuda->stream->fill(stream, (struct backend_ref){block, 0}, pattern, table[i].pattern,
                              table[i].size, e));
        ck_assert_uint_eq(counted.sets, table[i].sets);
        ck_assert_uint_eq(counted.copies, table[i].copies);
        ck_assert_uint_eq(counted.rows, table[i].rows);
    }
    drain();
    cuda->memory->free(device, block);
    stop();
}
END_TEST

/* ---- launches -------------------------------------------------------------------------------- */

static struct backend_module *module_of(const char *ptx)
{
    struct backend_compiled c = {.kernel_count = 0};
    struct backend_info info;
    struct backend_module *m = NULL;
    cuda->device->info(device, &info);
    ok(cuda_binary_wrap(info.arch, bytes_str(ptx), &c, e));
    ok(cuda->module->load(device, bytes_of(c.binary, c.binary_size), &m, e));
    free(c.binary);
    return m;
}

static struct {
    PFN_cuModuleLoadDataEx_v2010 load;
    bool ended; /* by a NUL */
} loaded;

static const char printing[] = ".version 8.0\n.target sm_75\n.address_size 64\n"
                               ".visible .entry fake_print()\n{\nret;\n}\n";

static CUresult loaded_check(CUmodule *module, const void *image, unsigned count,
                             CUjit_option *options, void **values)
{
    loaded.ended = memcmp(image, printing, sizeof printing) == 0;
    return loaded.load(module, image, count, options, values);
}

/* The driver gets a PTX without its size, so the text has to end with a NUL. */
START_TEST(a_ptx_goes_to_the_driver_with_a_nul)
{
    start("");
    loaded.load = device->cu.ModuleLoadDataEx;
    device->cu.ModuleLoadDataEx = loaded_check;
    (void)mallopt(M_PERTURB, 0x5a); /* no NUL by chance; sanitizers fill it themselves */
    struct backend_module *m = module_of(printing);
    ck_assert(loaded.ended);
    cuda->module->unload(m);
    stop();
}
END_TEST

/* A launch takes some microseconds in all: what the driver once said is not asked again. */
START_TEST(the_best_group_is_asked_for_once)
{
    static const char ptx[] = ".version 8.0\n.target sm_75\n.address_size 64\n"
                              ".visible .entry fake_nothing()\n{\nret;\n}\n";
    const struct backend_launch plain = {.global = {1000, 1, 1}};
    const struct backend_launch with_shared = {.global = {64, 1, 1}, .shared = 1024};
    struct backend_kernel k;
    struct err why = ERR_INIT;
    start("cuOccupancyMaxPotentialBlockSize@2+=1");
    struct backend_module *m = module_of(ptx);
    ok(cuda->module->kernel(m, 0, &k, e));
    ck_assert_uint_gt(k.occupancy, 0);
    for (unsigned i = 0; i < 3; i++) {
        ok(cuda->stream->launch(stream, m, "fake_nothing", &plain, e));
    }
    ck_assert_int_ne(cuda->stream->launch(stream, m, "fake_nothing", &with_shared, &why), 0);
    ck_assert_ptr_nonnull(strstr(why.text, "cuOccupancyMaxPotentialBlockSize"));
    drain();
    cuda->module->unload(m);
    stop();
}
END_TEST

/* ---- what kernels print ---------------------------------------------------------------------- */

static long said(FILE *out)
{
    ck_assert_int_eq(fseek(out, 0, SEEK_END), 0);
    return ftell(out);
}

/* The driver keeps printed text until a call that waits; the test makes none. */
START_TEST(what_kernels_print_comes_when_nothing_runs)
{
    const struct backend_launch one = {.global = {1, 1, 1}};
    FILE *out = tmpfile();
    ck_assert_ptr_nonnull(out);
    ck_assert_int_ge(dup2(fileno(out), STDOUT_FILENO), 0);
    start("cuStreamSynchronize@2=1");
    struct backend_module *m = module_of(printing);
    ok(cuda->stream->launch(stream, m, "fake_print", &one, e));
    drain();
    ck_assert_int_eq(said(out), 0); /* as the driver does it */
    cuda->device->idle(device);
    ck_assert_int_eq(said(out), (long)strlen("printed by a kernel\n"));
    cuda->device->idle(device); /* nothing was launched since: the driver is not asked */
    ck_assert_int_eq((int)device->cu.StreamSynchronize(NULL), 1); /* the second time */
    cuda->module->unload(m);
    stop();
}
END_TEST

/* ---- starting -------------------------------------------------------------------------------- */

static int started(const char *visible)
{
    static const char pin[] = "uuid=fa4ec0da-0000-4000-8000-000000000002";
    struct backend_info info;
    int count = 0;
    ck_assert_int_eq(setenv("FAKECUDA", "devices=4", 1), 0);
    int rc = visible != NULL ? setenv("CUDA_VISIBLE_DEVICES", visible, 1)
                             : unsetenv("CUDA_VISIBLE_DEVICES");
    ck_assert_int_eq(rc, 0);
    cuda = backend_find("cuda");
    ok(cuda->device->open(0, pin, NULL, NULL, &device, e));
    ck_assert_int_eq((int)device->cu.DeviceGetCount(&count), 0);
    cuda->device->info(device, &info);
    ck_assert_str_eq(info.pin, pin);
    cuda->device->close(device);
    return count;
}

/* A worker that is started again has the pin of its device, and no use for the others. */
START_TEST(only_the_device_of_a_pin_is_started)
{
    ck_assert_int_eq(started(NULL), 1);
}
END_TEST

START_TEST(what_somebody_chose_to_be_seen_stays)
{
    ck_assert_int_eq(started("1,2,3"), 3);
}
END_TEST

/* FAULT 1: a kernel's pointer goes astray where the driver lets kernels reach all memory of
 *   their process (HMM; ATS)
 * required: an address in the worker's memory does not fault: the kernel may read and write the
 *   worker's own memory, staging memory and arenas of others. The worker's log says so when it
 *   opens the device. `docs/operating.md` says how to turn HMM off; ATS cannot be turned off,
 *   so load rights are for users who trust each other. Elsewhere as 1-5
 * defence: `backend/cuda/device.c`: describe; the right to load kernels: `front/model/rights.c`:
 *   rights_loads
 * also: `contract_cuda_ats` */
/* The log says so, since an operator can turn it off. */
START_TEST(that_kernels_reach_everything_is_told)
{
    char text[4096] = "";
    FILE *out = tmpfile();
    ck_assert_ptr_nonnull(out);
    ck_assert_int_ge(dup2(fileno(out), STDERR_FILENO), 0);
    start("ats=1");
    rewind(out);
    (void)fread(text, 1, sizeof text - 1, out);
    ck_assert_msg(strstr(text, "HMM or ATS") != NULL, "%s", text);
    stop();
}
END_TEST

/* ---- room ------------------------------------------------------------------------------------ */

static PFN_cuMemHostRegister_v6050 register_plain;
static PFN_cuMemGetInfo_v3020 info_plain;
static unsigned infos;
static uint64_t meanwhile; /* what the room was said to be during a registration */

static CUresult info_counted(size_t *unused, size_t *total)
{
    infos++;
    return info_plain(unused, total);
}

static CUresult register_asked_in(void *data, size_t size, unsigned flags)
{
    ok(cuda->memory->room(device, &meanwhile, e));
    return register_plain(data, size, flags);
}

/* The driver's lock is held meanwhile, which the call would wait for. */
static PFN_cuMemHostGetDevicePointer_v3020 pointer_plain;

static CUresult pointer_other(CUdeviceptr *ret, void *host, unsigned flags)
{
    CUresult rc = pointer_plain(ret, host, flags);
    *ret += UINT64_C(1) << 40;
    return rc;
}

/* Memory of several registrations, whose addresses on the device the driver chooses, is no piece of
 * memory for kernels. */
START_TEST(pieces_at_other_addresses_are_not_imported)
{
    static _Alignas(4096) uint8_t data[3 * 4096];
    struct backend_block *block = NULL;
    struct err why = ERR_INIT;
    uint64_t align = 0;
    start("");
    device->host_piece = 4096;
    pointer_plain = device->cu.MemHostGetDevicePointer;
    ok(cuda->memory->register_host(device, data, sizeof data, true, e));
    ok(cuda->memory->import_host(device, data, sizeof data, &block, &align, e));
    cuda->memory->release_host(device, block);
    device->cu.MemHostGetDevicePointer = pointer_other;
    ck_assert_int_eq(cuda->memory->import_host(device, data, sizeof data, &block, &align, &why),
                     ERR_UNSUPPORTED);
    ok(cuda->memory->import_host(device, data, 4096, &block, &align, e)); /* one registration */
    cuda->memory->release_host(device, block);
    cuda->memory->unregister_host(device, data, sizeof data);
    stop();
}
END_TEST

START_TEST(nobody_asks_for_the_room_during_a_registration)
{
    static _Alignas(4096) uint8_t data[4096];
    uint64_t before = 0;
    uint64_t after = 0;
    struct backend_block *block = NULL;
    start("");
    register_plain = device->cu.MemHostRegister;
    info_plain = device->cu.MemGetInfo;
    device->cu.MemHostRegister = register_asked_in;
    device->cu.MemGetInfo = info_counted;
    ok(cuda->memory->register_host(device, data, sizeof data, true, e));
    ck_assert(infos == 0 && meanwhile == UINT64_MAX); /* not known yet */
    cuda->memory->unregister_host(device, data, sizeof data);
    ok(cuda->memory->room(device, &before, e));
    ok(cuda->memory->alloc(device, 64 * MIB, &block, e));
    ok(cuda->memory->register_host(device, data, sizeof data, true, e));
    ck_assert(infos == 1 && meanwhile == before);
    ok(cuda->memory->room(device, &after, e));
    ck_assert(infos == 2 && after + 64 * MIB == before);
    cuda->memory->unregister_host(device, data, sizeof data);
    cuda->memory->free(device, block);
    stop();
}
END_TEST

/* The eighth attribute is a limit of a group. */
START_TEST(a_device_whose_limits_are_not_told_does_not_open)
{
    struct err e = ERR_INIT;
    ck_assert_int_eq(setenv("FAKECUDA", "cuDeviceGetAttribute@8=2", 1), 0);
    ck_assert_int_eq(setenv("FAKECUDA_STRICT", "1", 1), 0);
    cuda = backend_find("cuda");
    ck_assert_int_eq(cuda->device->open(0, "", NULL, NULL, &device, &e), ERR_DEVICE_MEMORY);
    ck_assert_msg(strstr(e.text, "cuDeviceGetAttribute") != NULL, "%s", e.text);
}
END_TEST

/* Opens the second of the three devices that the option names. */
static int open_second(const char *script, struct err *e)
{
    static const char options[] = "uuid=GPU-fa4ec0da-0000-4000-8000-000000000000+"
                                  "GPU-fa4ec0da-0000-4000-8000-000000000001+"
                                  "GPU-fa4ec0da-0000-4000-8000-000000000002";
    ck_assert_int_eq(setenv("FAKECUDA", script, 1), 0);
    ck_assert_int_eq(setenv("FAKECUDA_STRICT", "1", 1), 0);
    cuda = backend_find("cuda");
    return cuda->device->open(1, options, NULL, NULL, &device, e);
}

static void uuid_fails(const char *script)
{
    struct err e = ERR_INIT;
    ck_assert_int_eq(open_second(script, &e), ERR_DEVICE_MEMORY);
    ck_assert_msg(strstr(e.text, "cuDeviceGetUuid") != NULL, "%s", e.text);
}

/* Of the device that is the first on the bus. The double lists it last. */
START_TEST(a_uuid_that_is_not_told_moves_no_device)
{
    uuid_fails("devices=3;cuDeviceGetUuid@3=2");
}
END_TEST

/* The list has asked for three UUIDs. */
START_TEST(a_device_without_a_pin_does_not_open)
{
    uuid_fails("devices=3;cuDeviceGetUuid@4=2");
}
END_TEST

START_TEST(the_second_named_device_opens)
{
    struct backend_info info;
    ok(open_second("devices=3", e));
    cuda->device->info(device, &info);
    ck_assert_str_eq(info.pin, "uuid=fa4ec0da-0000-4000-8000-000000000001");
    cuda->device->close(device);
}
END_TEST

/* Toolkit 13.1 on driver 580, which is 13.0's: minor versions are compatible. */
START_TEST(a_driver_of_the_same_major_version_serves)
{
    ck_assert(cuda_driver_serves(13000, 13010));
    ck_assert(cuda_driver_serves(13020, 13010));
    ck_assert(cuda_driver_serves(14000, 13010));
    ck_assert(!cuda_driver_serves(12090, 13000));
}
END_TEST

SUITE_MAIN("cuda calls", long_patterns_are_doubled, a_ptx_goes_to_the_driver_with_a_nul,
           the_best_group_is_asked_for_once, what_kernels_print_comes_when_nothing_runs,
           only_the_device_of_a_pin_is_started, what_somebody_chose_to_be_seen_stays,
           pieces_at_other_addresses_are_not_imported,
           nobody_asks_for_the_room_during_a_registration, that_kernels_reach_everything_is_told,
           a_device_whose_limits_are_not_told_does_not_open,
           a_uuid_that_is_not_told_moves_no_device, a_device_without_a_pin_does_not_open,
           the_second_named_device_opens, a_driver_of_the_same_major_version_serves)
