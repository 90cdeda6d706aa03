/*
 * The CUDA back end against the double of its driver: what the contract suite, which is the same
 * for all, cannot ask. FAKECUDA is set before the driver is opened, in a process for each test.
 */
#include <check.h>
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "daemon/backend/cuda/run/binary.h"
#include "daemon/backend/cuda/run/stream.h"

#define MIB (UINT64_C(1) << 20)

static const struct backend *cuda;

static struct {
    struct backend_device *device;
    struct backend_info info;
    struct backend_stream *stream;
    atomic_uint wakes;
} b;

static void script(const char *text)
{
    ck_assert_int_eq(setenv("FAKECUDA", text, 1), 0);
    ck_assert_int_eq(setenv("FAKECUDA_STRICT", "1", 1), 0);
}

static void on_wake(void *data)
{
    (void)data;
    atomic_fetch_add(&b.wakes, 1);
}

static void start(const char *text, const char *options)
{
    struct err e = ERR_INIT;
    script(text);
    int rc = cuda->device->open(0, options, on_wake, NULL, &b.device, &e);
    ck_assert_msg(rc == 0, "%s", e.text);
    cuda->device->info(b.device, &b.info);
    ck_assert_int_eq(cuda->stream->create(b.device, 0, &b.stream, &e), 0);
}

static void stop(void)
{
    cuda->stream->destroy(b.stream);
    cuda->device->close(b.device);
}

static void fails(int rc, const struct err *e, int want, const char *says)
{
    ck_assert_msg(rc == want && e->code == want, "%s, not %s: %s", err_name(rc), err_name(want),
                  e->text);
    ck_assert_msg(strstr(e->text, says) != NULL, "\"%s\" does not say \"%s\"", e->text, says);
}

static struct backend_marker *mark(void)
{
    struct backend_marker *m = NULL;
    struct err e = ERR_INIT;
    ck_assert_msg(cuda->stream->mark(b.stream, &m, &e) == 0, "%s", e.text);
    return m;
}

static enum backend_state settle(struct backend_marker *m, struct err *e)
{
    const struct timespec pause = {0, 100000};
    enum backend_state state = cuda->marker->state(m, e);
    while (state != BACKEND_DONE && state != BACKEND_FAILED) {
        nanosleep(&pause, NULL);
        state = cuda->marker->state(m, e);
    }
    return state;
}

static void drain(void)
{
    struct err e = ERR_INIT;
    struct backend_marker *m = mark();
    ck_assert_msg(settle(m, &e) == BACKEND_DONE, "%s", e.text);
    cuda->marker->release(m);
}

/* ---- modules written by hand ----------------------------------------------------------------- */

#define PTX_HEAD ".version 8.0\n.target sm_75\n.address_size 64\n"

static int load(const char *ptx, const struct backend_compiled *kernels,
                struct backend_module **ret_module, struct err *e)
{
    struct backend_compiled c = kernels ? *kernels : (struct backend_compiled){.kernel_count = 0};
    ck_assert_int_eq(cuda_binary_wrap(b.info.arch, bytes_str(ptx), &c, e), 0);
    int rc = cuda->module->load(b.device, bytes_of(c.binary, c.binary_size), ret_module, e);
    free(c.binary);
    return rc;
}

static struct backend_module *module_of(const char *ptx)
{
    struct backend_module *m = NULL;
    struct err e = ERR_INIT;
    ck_assert_msg(load(ptx, NULL, &m, &e) == 0, "%s", e.text);
    return m;
}

static const char increment[] =
    PTX_HEAD ".visible .entry fake_increment(.param .u64 p, .param .u64 n)\n{\nret;\n}\n";
static const char nothing[] = PTX_HEAD ".visible .entry fake_nothing()\n{\nret;\n}\n";

static int launch(struct backend_module *m, const char *entry, uint64_t global, uint64_t local,
                  struct err *e)
{
    const struct backend_launch l = {.global = {global, 1, 1},
                                     .local = {local, local != 0, local != 0}};
    return cuda->stream->launch(b.stream, m, entry, &l, e);
}

/* ---- drivers --------------------------------------------------------------------------------- */

START_TEST(an_older_driver_is_no_device)
{
    struct err e = ERR_INIT;
    unsigned count = 0;
    script("driver=12030");
    fails(cuda->enumerate("", &count, &e), &e, ERR_NO_DEVICE, "too old: it serves CUDA 12.3");
}
END_TEST

START_TEST(a_driver_that_does_not_start_says_why)
{
    static const struct {
        const char *script, *says;
        int code;
    } drivers[] = {{"init=803", "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", 803},
                   {"init=999", "is there a /dev/nvidia-uvm?", 999}};
    struct err e = ERR_INIT;
    unsigned count = 0;
    script(drivers[_i].script);
    fails(cuda->enumerate("", &count, &e), &e, ERR_NO_DEVICE, drivers[_i].says);
    ck_assert_int_eq(e.vendor, drivers[_i].code);
}
END_TEST

START_TEST(a_driver_without_devices_says_so)
{
    struct err e = ERR_INIT;
    unsigned count = 0;
    script("devices=0");
    fails(cuda->enumerate("", &count, &e), &e, ERR_NO_DEVICE, "sees no GPU");
}
END_TEST

START_TEST(a_context_that_cannot_be_made_leaves_nothing)
{
    static const struct {
        const char *script;
        int code;
        const char *says;
    } table[] = {
        {"cuDevicePrimaryCtxRetain@1=2", ERR_DEVICE_MEMORY, "cuDevicePrimaryCtxRetain"},
        {"cuDevicePrimaryCtxRetain@1=46", ERR_NO_DEVICE, "exclusive"},
        {"cuCtxSetCurrent@1=999", ERR_DEVICE_LOST, "cuCtxSetCurrent"},
        {"cuStreamCreateWithPriority@1=2", ERR_DEVICE_MEMORY, "cuStreamCreateWithPriority"},
        {"cuEventCreate@2=2", ERR_DEVICE_MEMORY, "cuEventCreate"},
    };
    struct err e = ERR_INIT;
    struct backend_device *d = NULL;
    script(table[_i].script);
    fails(cuda->device->open(0, "", NULL, NULL, &d, &e), &e, table[_i].code, table[_i].says);
    ck_assert_ptr_null(d);
}
END_TEST

/* ---- which device ---------------------------------------------------------------------------- */

static unsigned devices(const struct cuda_driver *cu, const char *options,
                        CUdevice id[CUDA_DEVICES_MAX])
{
    unsigned count = 0;
    struct err e = ERR_INIT;
    ck_assert_msg(cuda_devices(cu, options, id, &count, &e) == 0, "%s", e.text);
    return count;
}

START_TEST(devices_are_in_the_order_of_the_bus)
{
    struct cuda_driver cu;
    CUdevice id[CUDA_DEVICES_MAX];
    int last = -1;
    script("devices=8");
    ck_assert_int_eq(cuda_driver_load(&cu, NULL), 0);
    ck_assert_uint_eq(devices(&cu, "", id), 8);
    for (unsigned i = 0; i < 8; i++) {
        int bus = 0;
        cu.DeviceGetAttribute(&bus, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, id[i]);
        ck_assert_int_gt(bus, last);
        last = bus;
    }
}
END_TEST

static void uuid_option(const struct cuda_driver *cu, CUdevice id, unsigned bytes, char *out)
{
    CUuuid uuid;
    ck_assert_int_eq(cu->DeviceGetUuid(&uuid, id), CUDA_SUCCESS);
    for (unsigned i = 0; i < bytes; i++) {
        const char *dash = i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "";
        out += sprintf(out, "%s%02X", dash, (unsigned char)uuid.bytes[i]);
    }
}

START_TEST(devices_are_named_by_uuid)
{
    struct cuda_driver cu;
    struct err e = ERR_INIT;
    CUdevice all[CUDA_DEVICES_MAX];
    CUdevice some[CUDA_DEVICES_MAX];
    char five[64];
    char two[64];
    char option[256];
    unsigned count = 0;
    script("devices=8");
    ck_assert_int_eq(cuda_driver_load(&cu, NULL), 0);
    ck_assert_uint_eq(devices(&cu, "", all), 8);
    uuid_option(&cu, all[5], 16, five);
    uuid_option(&cu, all[2], 16, two);
    (void)snprintf(option, sizeof option, "uuid=%s", five);
    ck_assert_uint_eq(devices(&cu, option, some), 1);
    ck_assert_int_eq(some[0], all[5]);
    (void)snprintf(option, sizeof option, "uuid=GPU-%s+MIG-%s", five, two);
    ck_assert_uint_eq(devices(&cu, option, some), 2);
    ck_assert_int_eq(some[0], all[2]);
    ck_assert_int_eq(some[1], all[5]);
    fails(cuda_devices(&cu, "uuid=GPU-0123456789", some, &count, &e), &e, ERR_NO_DEVICE,
          "none of 8 CUDA devices");
}
END_TEST

#define INSTANCE "MIG-fa4ec0da-0000-4000-8000-0000000000"

/* Of MIG instances a process sees one: the list has the instance that is named. */
START_TEST(instances_are_those_that_are_named)
{
    static const struct {
        const char *options, *pin; /* "": there is none */
        unsigned index, count;
    } ways[] = {{"uuid=" INSTANCE "05+" INSTANCE "02+" INSTANCE "00", INSTANCE "02", 1, 3},
                {"uuid=" INSTANCE "05+" INSTANCE "02", "", 2, 2},
                {"uuid=" INSTANCE "05+" INSTANCE "77", "", 1, 2},
                {"vmm=off,uuid=" INSTANCE "05,uuid=" INSTANCE "03", INSTANCE "03", 0, 1},
                {"", INSTANCE "07", 0, 1}};
    struct err e = ERR_INIT;
    unsigned count = 0;
    script("devices=8;mig=1");
    ck_assert_int_eq(cuda->enumerate(ways[_i].options, &count, &e), 0);
    ck_assert_uint_eq(count, ways[_i].count);
    int rc = cuda->device->open(ways[_i].index, ways[_i].options, NULL, NULL, &b.device, &e);
    if (ways[_i].pin[0] == '\0') {
        fails(rc, &e, ERR_NO_DEVICE, ways[_i].index < count ? INSTANCE "77" : "there are 2");
        return;
    }
    ck_assert_msg(rc == 0, "%s", e.text);
    cuda->device->info(b.device, &b.info);
    ck_assert_str_eq(b.info.pin + strlen("uuid="), ways[_i].pin);
    cuda->device->close(b.device);
}
END_TEST

/* A process whose environment limits the visible devices says so; a process that sets the variable
 * itself, to open a device, does not. */
START_TEST(who_chose_is_told)
{
    struct err e = ERR_INIT;
    script("devices=8;mig=1");
    (void)unsetenv("CUDA_VISIBLE_DEVICES");
    if (_i > 0) {
        (void)setenv("CUDA_VISIBLE_DEVICES", INSTANCE "05", 1);
    }
    int rc = cuda->device->open(0, _i == 1 ? "" : "uuid=" INSTANCE "05", NULL, NULL, &b.device, &e);
    ck_assert_msg(rc == 0, "%s", e.text);
    cuda->device->info(b.device, &b.info);
    ck_assert_str_eq(b.info.pin + strlen("uuid="), INSTANCE "05");
    ck_assert_int_eq(b.info.chosen, _i > 0);
    cuda->device->close(b.device);
}
END_TEST

#define WHOLE "GPU-fa4ec0da-0000-4000-8000-0000000000"

/* Beside instances the driver may show no GPU that is not named; the pin names it again. */
START_TEST(a_gpu_beside_instances_is_found_by_its_name)
{
    static const struct {
        const char *options, *pin; /* "": there is none */
        unsigned index;
    } ways[] = {{"uuid=" WHOLE "01", WHOLE "01", 0},
                {"uuid=" INSTANCE "03+" WHOLE "00", WHOLE "00", 1},
                {"uuid=" INSTANCE "03+" WHOLE "00,uuid=" WHOLE "00", WHOLE "00", 0},
                {"uuid=" WHOLE "77", "", 0}};
    struct err e = ERR_INIT;
    script("devices=4;mig=1;whole=2");
    int rc = cuda->device->open(ways[_i].index, ways[_i].options, NULL, NULL, &b.device, &e);
    if (ways[_i].pin[0] == '\0') {
        fails(rc, &e, ERR_NO_DEVICE, WHOLE "77");
        return;
    }
    ck_assert_msg(rc == 0, "%s", e.text);
    cuda->device->info(b.device, &b.info);
    ck_assert_str_eq(b.info.pin + strlen("uuid="), ways[_i].pin);
    cuda->device->close(b.device);
}
END_TEST

/* ---- memory ---------------------------------------------------------------------------------- */

START_TEST(memory_that_is_not_there_says_how_much_is)
{
    struct backend_block *block = NULL;
    struct err e = ERR_INIT;
    start("memory=1G;cuMemAlloc@1=2", "");
    uint64_t size = 700 * MIB;
    fails(cuda->memory->alloc(b.device, size, &block, &e), &e, ERR_DEVICE_MEMORY,
          "734003200 bytes wanted");
    ck_assert_ptr_null(block);
    ck_assert_int_eq(cuda->memory->alloc(b.device, size, &block, &e), 0);
    cuda->memory->free(b.device, block);
    stop();
}
END_TEST

START_TEST(places_beyond_four_gib)
{
    const uint64_t size = 5 * 1024 * MIB;
    uint64_t pattern = UINT64_C(0x0123456789abcdef);
    uint64_t back[4] = {0};
    struct backend_block *block = NULL;
    struct err e = ERR_INIT;
    start("memory=8G", "");
    ck_assert_int_eq(cuda->memory->alloc(b.device, size, &block, &e), 0);
    struct backend_ref ref = {block, size - sizeof back};
    ck_assert_int_eq(cuda->stream->fill(b.stream, ref, &pattern, sizeof pattern, sizeof back, &e),
                     0);
    ck_assert_int_eq(cuda->stream->read(b.stream, back, ref, sizeof back, &e), 0);
    drain();
    for (unsigned i = 0; i < 4; i++) {
        ck_assert_uint_eq(back[i], pattern);
    }
    cuda->memory->free(b.device, block);
    stop();
}
END_TEST

START_TEST(memory_that_may_only_be_read_is_registered)
{
    const size_t size = 65536;
    struct err e = ERR_INIT;
    int fd = memfd_create("input", MFD_CLOEXEC);
    ck_assert_int_eq(ftruncate(fd, (off_t)size), 0);
    void *data = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
    ck_assert(data != MAP_FAILED);
    start("", "");
    int rc = cuda->memory->register_host(b.device, data, size, false, &e);
    ck_assert_msg(rc == 0, "%s", e.text);
    cuda->memory->unregister_host(b.device, data, size);
    stop();
    munmap(data, size);
    close(fd);
}
END_TEST

/* Some kernels of Linux refuse to pin much at once, and no copy may reach from one registration
 * into the next, which the double refuses as drivers do. The memory begins inside of a piece. */
START_TEST(large_memory_is_registered_in_pieces)
{
    enum { PIECE = 65536, SIZE = 4 * PIECE };
    static const char *const ways[] = {"register_most=64K",
                                       "register_most=64K;cuMemHostRegister@3=1"};
    struct backend_block *block = NULL;
    struct backend_block *device = NULL;
    uint64_t align = 0;
    struct err e = ERR_INIT;
    uint8_t *all =
        mmap(NULL, SIZE + 2 * PIECE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert(all != MAP_FAILED);
    uint8_t *host = all + (PIECE - (uintptr_t)all % PIECE) % PIECE + 4096;
    start(ways[_i], "");
    b.device->host_piece = PIECE;
    if (_i == 1) { /* the registration is undone: else the next one fails */
        fails(cuda->memory->register_host(b.device, host, SIZE, true, &e), &e, ERR_INVALID,
              "cuMemHostRegister");
        err_init(&e);
    }
    ck_assert_int_eq(cuda->memory->register_host(b.device, host, SIZE, true, &e), 0);
    ck_assert_int_eq(cuda->memory->alloc(b.device, SIZE, &device, &e), 0);
    for (size_t i = 0; i < SIZE; i++) {
        host[i] = (uint8_t)(i % 251);
    }
    struct backend_ref ref = {device, 0};
    ck_assert_int_eq(cuda->stream->write(b.stream, ref, host, SIZE, &e), 0);
    drain();
    memset(host, 0, SIZE);
    ck_assert_int_eq(cuda->stream->read(b.stream, host, ref, SIZE, &e), 0);
    drain();
    for (size_t i = 0; i < SIZE; i++) {
        ck_assert_msg(host[i] == i % 251, "byte %zu", i);
    }
    const uint8_t *border = host + PIECE - 4096;
    const struct backend_write w[] = {{{device, 0}, border - 2, 4}, {{device, 8}, border + 2, 4}};
    fails(cuda->stream->write_batch(b.stream, w, 2, &e), &e, ERR_UNSUPPORTED, "one call each");
    ck_assert_int_eq(cuda->memory->import_host(b.device, host, SIZE, &block, &align, &e), 0);
    struct backend_ref at = {block, PIECE - 4096 - 8};
    ck_assert_int_eq(cuda->stream->copy(b.stream, ref, at, 8, &e), 0);
    drain();
    cuda->memory->release_host(b.device, block);
    cuda->memory->unregister_host(b.device, host, SIZE);
    cuda->memory->free(b.device, device);
    stop();
    (void)munmap(all, SIZE + 2 * PIECE);
}
END_TEST

/* ---- streams --------------------------------------------------------------------------------- */

static int priority_of(const struct backend_stream *s)
{
    int priority = 1;
    CUresult (*get)(CUstream, int *) = NULL;
    *(void **)&get = dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuStreamGetPriority");
    ck_assert_int_eq(get(s->stream, &priority), CUDA_SUCCESS);
    return priority;
}

/* CUDA counts downwards, from 0 to the greatest, which the double has as -5. */
START_TEST(streams_have_priorities)
{
    static const int wanted[][2] = {{0, 0}, {1, -1}, {5, -5}, {100, -5}, {-3, 0}};
    struct err e = ERR_INIT;
    start("", "");
    for (unsigned i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        struct backend_stream *s = NULL;
        ck_assert_int_eq(cuda->stream->create(b.device, wanted[i][0], &s, &e), 0);
        ck_assert_int_eq(priority_of(s), wanted[i][1]);
        cuda->stream->destroy(s);
    }
    stop();
}
END_TEST

/* What the driver does not take together is left to its caller, and the stream goes on; a fault is
 * one, however. */
START_TEST(a_batch_may_be_refused)
{
    static const struct {
        const char *script;
        int rc;
    } ways[] = {{"", 0},
                {"cuMemcpyBatchAsync@1+=801", ERR_UNSUPPORTED},
                {"cuMemcpyBatchAsync@1+=1", ERR_INVALID},
                {"host_pointers=0", ERR_UNSUPPORTED},
                {"cuMemcpyBatchAsync@1=700", ERR_KERNEL_FAULT}};
    struct backend_block *block = NULL;
    struct err e = ERR_INIT;
    static _Alignas(4096) uint8_t data[4096] = {1, 2, 3, 4};
    uint8_t back[8] = {0};
    start(ways[_i].script, "");
    ck_assert_int_eq(cuda->memory->register_host(b.device, data, sizeof data, true, &e), 0);
    ck_assert_int_eq(cuda->memory->alloc(b.device, 4096, &block, &e), 0);
    const struct backend_write w[] = {{{block, 1}, data, 2}, {{block, 5}, data + 2, 2}};
    int rc = cuda->stream->write_batch(b.stream, w, 2, &e);
    ck_assert_msg(rc == ways[_i].rc, "%s", e.text);
    if (rc == ERR_KERNEL_FAULT) {
        _exit(0); /* nothing else is promised */
    }
    for (unsigned i = 0; rc != 0 && i < 2; i++) {
        ck_assert_int_eq(cuda->stream->write(b.stream, w[i].dst, w[i].host, w[i].size, &e), 0);
    }
    ck_assert_int_eq(cuda->stream->read(b.stream, back, (struct backend_ref){block, 0}, 8, &e), 0);
    drain();
    ck_assert(back[1] == 1 && back[2] == 2 && back[5] == 3 && back[6] == 4);
    cuda->memory->unregister_host(b.device, data, sizeof data);
    cuda->memory->free(b.device, block);
    stop();
}
END_TEST

/* Memory for others is made of pages; a device without them, or without descriptors, says so. */
START_TEST(shared_memory_needs_pages)
{
    struct backend_block *block = NULL;
    struct err e = ERR_INIT;
    start("", "vmm=off");
    fails(cuda->memory->alloc_shared(b.device, 4096, &block, &e), &e, ERR_UNSUPPORTED, "vmm=off");
    stop();
}
END_TEST

/* Each call that may fail on the way leaves nothing behind: the double counts. */
START_TEST(shared_memory_that_fails_leaves_nothing)
{
    static const char *const calls[] = {"cuMemCreate@1=2", "cuMemAddressReserve@1=2",
                                        "cuMemMap@1=2", "cuMemSetAccess@1=2"};
    struct backend_block *block = NULL;
    struct err e = ERR_INIT;
    start(calls[_i], "");
    fails(cuda->memory->alloc_shared(b.device, 4096, &block, &e), &e, ERR_DEVICE_MEMORY,
          "CUDA_ERROR_OUT_OF_MEMORY");
    stop();
}
END_TEST

/* ---- launches -------------------------------------------------------------------------------- */

START_TEST(free_sizes_are_met_exactly)
{
    static const uint64_t counts[] = {1, 7, 32, 1000, 1021, 65536, 12345678};
    struct err e = ERR_INIT;
    start("", "");
    struct backend_module *m = module_of(nothing);
    for (unsigned i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        ck_assert_msg(launch(m, "fake_nothing", counts[i], 0, &e) == 0, "%s", e.text);
    }
    drain();
    cuda->module->unload(m);
    stop();
}
END_TEST

START_TEST(sizes_the_device_has_not_are_refused)
{
    static const struct {
        uint64_t global[3];
        uint64_t local[3];
        uint64_t shared;
        const char *says;
    } table[] = {
        {{1000, 1, 1}, {64, 1, 1}, 0, "no multiple of the group's 64"},
        {{2048, 1, 1}, {2048, 1, 1}, 0, "2048 work items in dimension 0, 1024 at most"},
        {{64, 64, 1}, {64, 64, 1}, 0, "make it smaller"},
        {{1, 1, 128}, {1, 1, 128}, 0, "in dimension 2, 64 at most"},
        {{1, 70000, 1}, {1, 1, 1}, 0, "70000 groups in dimension 1, the device takes 65535"},
        {{UINT64_C(1) << 40, 1, 1}, {1, 1, 1}, 0, "1099511627776 groups in dimension 0"},
        {{UINT64_MAX, 1, 1}, {0, 0, 0}, 0, "groups in dimension 0"},
        {{0, 1, 1}, {0, 0, 0}, 0, "no work items in dimension 0"},
        {{64, 1, 0}, {64, 1, 1}, 0, "no work items in dimension 2"},
        {{64, 1, 1}, {64, 1, 1}, 1 << 20, "1048576 bytes of shared memory"},
        {{64, 1, 1}, {64, 1, 1}, UINT64_MAX, "bytes of shared memory"},
    };
    start("", "");
    struct backend_module *m = module_of(nothing);
    for (unsigned i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct backend_launch l = {.shared = table[i].shared};
        struct err e = ERR_INIT;
        memcpy(l.global, table[i].global, sizeof l.global);
        memcpy(l.local, table[i].local, sizeof l.local);
        fails(cuda->stream->launch(b.stream, m, "fake_nothing", &l, &e), &e, ERR_LAUNCH,
              table[i].says);
    }
    ck_assert_int_eq(launch(m, "fake_nothing", 64, 64, NULL), 0);
    drain();
    cuda->module->unload(m);
    stop();
}
END_TEST

/* 48 KiB are every kernel's; more is asked for, once. */
START_TEST(much_shared_memory_is_asked_for)
{
    struct err e = ERR_INIT;
    struct backend_launch l = {.global = {32, 1, 1}, .local = {32, 1, 1}};
    start("cuFuncSetAttribute@2=1", "");
    struct backend_module *m = module_of(nothing);
    static const uint64_t sizes[] = {0, 48 << 10, 100 << 10, 64 << 10, 100 << 10};
    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        l.shared = sizes[i];
        ck_assert_msg(cuda->stream->launch(b.stream, m, "fake_nothing", &l, &e) == 0, "%s", e.text);
    }
    drain();
    cuda->module->unload(m);
    stop();
}
END_TEST

START_TEST(arguments_are_checked_before_the_launch)
{
    struct err e = ERR_INIT;
    struct backend_block *block = NULL;
    struct backend_compiled_kernel kernel = {
        .entry = "fake_increment", .arg_count = 2, .arg = {{.kind = 2}, {.kind = 1}}};
    struct backend_compiled compiled = {.kernels = &kernel, .kernel_count = 1};
    struct backend_module *m = NULL;
    uint64_t n = 1;
    start("", "");
    ck_assert_msg(load(increment, &compiled, &m, &e) == 0, "%s", e.text);
    ck_assert_int_eq(cuda->memory->alloc(b.device, 256, &block, &e), 0);
    const struct backend_arg memory = {.kind = BACKEND_ARG_MEMORY, .memory = {block, 0}};
    const struct backend_arg beyond = {.kind = BACKEND_ARG_MEMORY, .memory = {block, 256}};
    const struct backend_arg value = {.kind = BACKEND_ARG_VALUE, .value = &n, .size = 8};
    const struct backend_arg half = {.kind = BACKEND_ARG_VALUE, .value = &n, .size = 4};
    const struct backend_arg local = {.kind = BACKEND_ARG_LOCAL, .size = 64};
    const struct {
        struct backend_arg args[2];
        int code;
        const char *says;
    } table[] = {
        {{value, value}, ERR_ARG_TYPE, "argument 0: the kernel takes memory, not a value"},
        {{memory, memory}, ERR_ARG_TYPE, "argument 1: the kernel takes a value, not memory"},
        {{memory, half}, ERR_ARG_TYPE, "argument 1: 4 bytes given, the kernel takes 8"},
        {{memory, local}, ERR_ARG_TYPE, "shared"},
        {{beyond, value}, ERR_RANGE, "argument 0: offset 256 in a block of 256"},
    };
    for (unsigned i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct backend_launch l = {.global = {1, 1, 1}, .args = table[i].args, .arg_count = 2};
        e = ERR_INIT;
        fails(cuda->stream->launch(b.stream, m, "fake_increment", &l, &e), &e, table[i].code,
              table[i].says);
        ck_assert_ptr_nonnull(strstr(e.text, "kernel fake_increment"));
        ck_assert_int_ge(e.arg, 0);
    }
    struct backend_launch l = {.global = {1, 1, 1}, .args = table[0].args, .arg_count = 1};
    fails(cuda->stream->launch(b.stream, m, "fake_increment", &l, &e), &e, ERR_ARG_COUNT,
          "1 arguments given, 2 taken");
    cuda->memory->free(b.device, block);
    cuda->module->unload(m);
    stop();
}
END_TEST

/* ---- faults ---------------------------------------------------------------------------------- */

/* The marker behind it fails and names the kernel; so does all that comes later. */
START_TEST(a_fault_ends_the_device)
{
    static const int codes[] = {700, 702, 710, 714, 715, 716, 717, 718, 719, 226};
    char ptx[256];
    char entry[32];
    struct err e = ERR_INIT;
    start("", "");
    (void)snprintf(entry, sizeof entry, "fake_fault_%d", codes[_i]);
    (void)snprintf(ptx, sizeof ptx, PTX_HEAD ".visible .entry %s()\n{\nret;\n}\n", entry);
    struct backend_module *m = module_of(ptx);
    ck_assert_int_eq(launch(m, entry, 1, 1, &e), 0);
    struct backend_marker *marker = NULL;
    int rc = cuda->stream->mark(b.stream, &marker, &e); /* the kernel may have failed by now */
    ck_assert(rc != 0 || settle(marker, &e) == BACKEND_FAILED);
    fails(e.code, &e, ERR_KERNEL_FAULT, entry);
    ck_assert_int_eq(e.vendor, codes[_i]);
    ck_assert_ptr_nonnull(strstr(e.text, "CUDA_ERROR_"));
    e = ERR_INIT;
    fails(cuda->stream->mark(b.stream, &marker, &e), &e, ERR_KERNEL_FAULT, "CUDA_ERROR_");
    _exit(0); /* as a worker does: nothing can be given back */
}
END_TEST

/* A kernel that could not start because of an earlier kernel is not blamed. */
START_TEST(a_fault_is_not_the_next_kernels)
{
    struct err e = ERR_INIT;
    start("", "");
    struct backend_module *m = module_of(PTX_HEAD ".visible .entry fake_fault_700()\n{\nret;\n}\n"
                                                  ".visible .entry fake_nothing()\n{\nret;\n}\n");
    ck_assert_int_eq(launch(m, "fake_fault_700", 1, 1, &e), 0);
    struct backend_stream *other = NULL;
    struct backend_marker *marker = NULL;
    enum backend_state state = BACKEND_PENDING;
    int rc = cuda->stream->create(b.device, 0, &other, &e);
    while (rc == 0 && state != BACKEND_FAILED) { /* until the fault has happened */
        rc = cuda->stream->mark(other, &marker, &e);
        state = rc == 0 ? settle(marker, &e) : state;
    }
    e = ERR_INIT;
    fails(launch(m, "fake_nothing", 1, 1, &e), &e, ERR_KERNEL_FAULT, "kernel fake_fault_700 or");
    ck_assert_ptr_null(strstr(e.text, "fake_nothing"));
    _exit(0);
}
END_TEST

START_TEST(a_device_that_is_gone_is_lost)
{
    struct err e = ERR_INIT;
    start("cuMemcpyHtoDAsync@1=lost", "");
    struct backend_block *block = NULL;
    ck_assert_int_eq(cuda->memory->alloc(b.device, 256, &block, &e), 0);
    int rc = cuda->stream->write(b.stream, (struct backend_ref){block, 0}, "x", 1, &e);
    fails(rc, &e, ERR_DEVICE_LOST, "CUDA_ERROR_UNKNOWN");
    _exit(0);
}
END_TEST

/* An error of the question itself: the kernel may run on, so only the end of the process is safe.
 */
START_TEST(a_marker_that_cannot_be_asked_ends_the_device)
{
    struct err e = ERR_INIT;
    start("cuEventQuery@1=CUDA_ERROR_INVALID_VALUE", "");
    struct backend_module *m = module_of(nothing);
    ck_assert_int_eq(launch(m, "fake_nothing", 1, 1, &e), 0);
    struct backend_marker *marker = mark();
    ck_assert_int_eq(settle(marker, &e), BACKEND_FAILED);
    fails(e.code, &e, ERR_DEVICE_LOST, "cuEventQuery");
    ck_assert_int_eq(cuda->marker->state(marker, NULL), BACKEND_FAILED);
    _exit(0);
}
END_TEST

/* While a kernel runs, too: nothing is made for it then that the driver might let wait. */
START_TEST(an_armed_marker_calls)
{
    const struct timespec pause = {0, 1000000};
    int ms = 30;
    struct backend_arg arg = {.kind = BACKEND_ARG_VALUE, .value = &ms, .size = sizeof ms};
    struct backend_launch l = {.global = {1, 1, 1}, .args = &arg, .arg_count = 1};
    struct err e = ERR_INIT;
    start("", "");
    struct backend_module *m =
        module_of(PTX_HEAD ".visible .entry fake_sleep(.param .u32 ms)\n{\nret;\n}\n");
    for (unsigned i = 1; i <= 2; i++) {
        ck_assert_msg(cuda->stream->launch(b.stream, m, "fake_sleep", &l, &e) == 0, "%s", e.text);
        struct backend_marker *marker = mark();
        ck_assert_msg(cuda->marker->arm(marker, &e) == 0, "%s", e.text);
        while (atomic_load(&b.wakes) < i) {
            nanosleep(&pause, NULL);
        }
        ck_assert_int_eq(cuda->marker->state(marker, &e), BACKEND_DONE);
        cuda->marker->release(marker);
    }
    cuda->module->unload(m);
    stop();
}
END_TEST

/* ---- modules --------------------------------------------------------------------------------- */

START_TEST(images_that_are_none_are_refused)
{
    static const char *const images[] = {"", "nonsense",
                                         ".version 8.0\n.target sm_75\n.visible .entry k(",
                                         ".version 99.0\n.target sm_75\n"};
    struct backend_module *m = NULL;
    start("", "");
    for (unsigned i = 1; i < sizeof images / sizeof images[0]; i++) {
        struct err e = ERR_INIT;
        int rc = load(images[i], NULL, &m, &e);
        ck_assert_msg(rc != 0 && rc != ERR_INTERNAL && rc != ERR_DEVICE_LOST, "%u: %s", i, e.text);
        ck_assert_ptr_nonnull(strstr(e.text, "cuModuleLoadDataEx: CUDA_ERROR_"));
    }
    ck_assert_ptr_null(m);
    stop();
}
END_TEST

START_TEST(a_module_of_ten_thousand_kernels)
{
    enum { KERNELS = 10000 };
    struct capbuf text;
    struct err e = ERR_INIT;
    struct backend_kernel kernel;
    start("", "");
    capbuf_init(&text, 4 * MIB);
    ck_assert(capbuf_printf(&text, PTX_HEAD));
    for (unsigned i = 0; i < KERNELS; i++) {
        ck_assert(capbuf_printf(&text,
                                ".visible .entry fake_nothing_%u(.param .u64 p)\n{\nret;\n}\n", i));
    }
    ck_assert(capbuf_append(&text, "", 1));
    struct backend_module *m = module_of((const char *)text.data);
    ck_assert_uint_eq(cuda->module->kernel_count(m), KERNELS);
    for (unsigned i = 0; i < KERNELS; i++) {
        ck_assert_msg(cuda->module->kernel(m, i, &kernel, &e) == 0, "%s", e.text);
        ck_assert_uint_eq(kernel.arg_count, 1);
    }
    fails(launch(m, "fake_nothing_10000", 1, 1, &e), &e, ERR_NOT_FOUND, "fake_nothing_10000");
    cuda->module->unload(m);
    capbuf_finish(&text);
    stop();
}
END_TEST

START_TEST(a_kernel_is_loaded_before_its_launch)
{
    struct backend_kernel kernel;
    struct err e = ERR_INIT;
    start("cuFuncLoad@1=2;cuFuncLoad@3=2", "");
    struct backend_module *m = module_of(nothing);
    fails(cuda->module->kernel(m, 0, &kernel, &e), &e, ERR_DEVICE_MEMORY,
          "kernel fake_nothing: cuFuncLoad");
    ck_assert_int_eq(cuda->module->kernel(m, 0, &kernel, &e), 0);
    ck_assert_int_eq(launch(m, "fake_nothing", 1, 1, NULL), 0); /* once is enough */
    drain();
    cuda->module->unload(m);
    stop();
}
END_TEST

START_TEST(kernels_that_nobody_could_name_are_left_out)
{
    char ptx[1024];
    char name[300];
    start("", "");
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    (void)snprintf(ptx, sizeof ptx,
                   PTX_HEAD ".visible .entry %s()\n{\nret;\n}\n"
                            ".visible .entry fake_nothing()\n{\nret;\n}\n",
                   name);
    struct backend_module *m = module_of(ptx);
    ck_assert_uint_eq(cuda->module->kernel_count(m), 1);
    ck_assert_int_eq(launch(m, "fake_nothing", 1, 1, NULL), 0);
    drain();
    cuda->module->unload(m);
    stop();
}
END_TEST

START_TEST(a_kernel_of_too_many_parameters_spoils_no_other)
{
    enum { PARAMS = 140 };
    struct capbuf text;
    struct backend_kernel kernel;
    struct err e = ERR_INIT;
    start("", "");
    capbuf_init(&text, MIB);
    ck_assert(capbuf_printf(&text, PTX_HEAD ".visible .entry fake_nothing_many("));
    for (unsigned i = 0; i < PARAMS; i++) {
        ck_assert(capbuf_printf(&text, "%s.param .u32 p%u", i > 0 ? ", " : "", i));
    }
    ck_assert(capbuf_printf(&text, ")\n{\nret;\n}\n.visible .entry fake_nothing()\n{\nret;\n}\n"));
    ck_assert(capbuf_append(&text, "", 1));
    struct backend_module *m = module_of((const char *)text.data);
    ck_assert_uint_eq(cuda->module->kernel_count(m), 2);
    for (unsigned i = 0; i < 2; i++) {
        ck_assert_msg(cuda->module->kernel(m, i, &kernel, &e) == 0, "%s", e.text);
        ck_assert_uint_eq(kernel.arg_count, i == 0 ? 0 : PARAMS);
    }
    fails(launch(m, "fake_nothing_many", 1, 1, &e), &e, ERR_LIMIT, "140 parameters");
    ck_assert_int_eq(launch(m, "fake_nothing", 1, 1, NULL), 0);
    drain();
    cuda->module->unload(m);
    capbuf_finish(&text);
    stop();
}
END_TEST

/* ---- the suite ------------------------------------------------------------------------------- */

int main(void)
{
    cuda = backend_find("cuda");
    if (!cuda) {
        return EXIT_FAILURE;
    }
    Suite *suite = suite_create("cuda");
    TCase *t = tcase_create("cuda");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, an_older_driver_is_no_device);
    tcase_add_loop_test(t, a_driver_that_does_not_start_says_why, 0, 2);
    tcase_add_test(t, a_driver_without_devices_says_so);
    tcase_add_loop_test(t, a_context_that_cannot_be_made_leaves_nothing, 0, 5);
    tcase_add_test(t, devices_are_in_the_order_of_the_bus);
    tcase_add_test(t, devices_are_named_by_uuid);
    tcase_add_loop_test(t, instances_are_those_that_are_named, 0, 5);
    tcase_add_loop_test(t, who_chose_is_told, 0, 3);
    tcase_add_loop_test(t, a_gpu_beside_instances_is_found_by_its_name, 0, 4);
    tcase_add_test(t, memory_that_is_not_there_says_how_much_is);
    tcase_add_test(t, places_beyond_four_gib);
    tcase_add_test(t, memory_that_may_only_be_read_is_registered);
    tcase_add_loop_test(t, large_memory_is_registered_in_pieces, 0, 2);
    tcase_add_test(t, streams_have_priorities);
    tcase_add_loop_test(t, a_batch_may_be_refused, 0, 5);
    tcase_add_test(t, shared_memory_needs_pages);
    tcase_add_loop_test(t, shared_memory_that_fails_leaves_nothing, 0, 4);
    tcase_add_test(t, free_sizes_are_met_exactly);
    tcase_add_test(t, sizes_the_device_has_not_are_refused);
    tcase_add_test(t, much_shared_memory_is_asked_for);
    tcase_add_test(t, arguments_are_checked_before_the_launch);
    tcase_add_loop_test(t, a_fault_ends_the_device, 0, 10);
    tcase_add_test(t, a_fault_is_not_the_next_kernels);
    tcase_add_test(t, a_device_that_is_gone_is_lost);
    tcase_add_test(t, a_marker_that_cannot_be_asked_ends_the_device);
    tcase_add_test(t, an_armed_marker_calls);
    tcase_add_test(t, images_that_are_none_are_refused);
    tcase_add_test(t, a_module_of_ten_thousand_kernels);
    tcase_add_test(t, a_kernel_is_loaded_before_its_launch);
    tcase_add_test(t, kernels_that_nobody_could_name_are_left_out);
    tcase_add_test(t, a_kernel_of_too_many_parameters_spoils_no_other);
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
