#include "daemon/backend/cuda/driver/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/log.h"
#include "daemon/backend/cuda/compile/compile.h"
#include "daemon/backend/cuda/library/library.h"
#include "daemon/backend/options.h"

#define KNOWN_OPTIONS "uuid vmm nvrtc nvcc compiler libraries"
#define PAGE          (UINT64_C(2) << 20)
/* A driver pins some MiB in as many milliseconds, and calls of other threads may wait for that.
 * Linux 6.11 to 6.13 pin less than 2 GiB at once. */
#define HOST_PIECE (UINT64_C(16) << 20)
#define NAME_SIZE  64u                            /* bytes of "MIG-" and a UUID */
#define UUID_SIZE  36u                            /* characters of a UUID */
#define NAMES_SIZE (CUDA_DEVICES_MAX * NAME_SIZE) /* bytes of all names, joined */

/* ---- which devices there are ----------------------------------------------------------------- */

struct candidate {
    CUdevice id;
    uint64_t place; /* position on the PCI bus */
};

/* What the driver was asked for; the first failure counts. */
struct asked {
    const struct cuda_driver *cu;
    CUdevice id;
    int rc;
    struct err *e;
};

/* An attribute of the device; 0 if the driver does not know it. Any other failure makes the answer
 * unusable: with a limit of 0 no kernel would run, for as long as the worker lives. */
static uint64_t number(struct asked *a, CUdevice_attribute what)
{
    int value = 0;
    CUresult rc = a->cu->DeviceGetAttribute(&value, what, a->id);
    if (rc != CUDA_SUCCESS && rc != CUDA_ERROR_INVALID_VALUE && a->rc == 0) {
        a->rc = cuda_error(rc, "cuDeviceGetAttribute", a->e);
    }
    return rc == CUDA_SUCCESS && value > 0 ? (uint64_t)value : 0;
}

static uint64_t place_of(struct asked *a)
{
    return number(a, CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID) << 32 |
           number(a, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID) << 16 |
           number(a, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID);
}

/* Devices at one position, which other drivers may have, keep the driver's order. */
static int candidate_compare(const void *a, const void *b)
{
    const struct candidate *x = a;
    const struct candidate *y = b;
    if (x->place != y->place) {
        return x->place < y->place ? -1 : 1;
    }
    return x->id < y->id ? -1 : x->id > y->id;
}

/* The device's UUID as nvidia-smi writes it, without "GPU-" or "MIG-". */
static int uuid_text(const struct cuda_driver *cu, CUdevice id, char out[40], struct err *e)
{
    CUuuid uuid = {{0}};
    char *at = out;
    int rc = CUDA_CALL(cu, e, DeviceGetUuid, &uuid, id);
    for (unsigned i = 0; rc == 0 && i < 16; i++) {
        const char *dash = i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "";
        at += sprintf(at, "%s%02x", dash, (unsigned char)uuid.bytes[i]);
    }
    return rc;
}

/* `wanted`: beginnings of UUIDs, joined by '+'; "" means all devices. */
static bool uuid_matches(const char *text, const char *wanted)
{
    for (const char *at = wanted; *at;) {
        size_t length = strcspn(at, "+");
        size_t prefix = strncasecmp(at, "GPU-", 4) == 0 || strncasecmp(at, "MIG-", 4) == 0 ? 4 : 0;
        if (length > prefix && strncasecmp(text, at + prefix, length - prefix) == 0) {
            return true;
        }
        at += length + (at[length] == '+');
    }
    return wanted[0] == '\0';
}

/* Without the UUID of one device the list is not known: the devices behind it would move up, and a
 * worker would open the device of another worker. */
static int uuid_wanted(const struct cuda_driver *cu, CUdevice id, const char *wanted,
                       bool *ret_wanted, struct err *e)
{
    char text[40] = "";
    int rc = wanted[0] != '\0' ? uuid_text(cu, id, text, e) : 0;
    *ret_wanted = rc == 0 && uuid_matches(text, wanted);
    return rc;
}

int cuda_devices(const struct cuda_driver *cu, const char *options,
                 CUdevice ret_device[CUDA_DEVICES_MAX], unsigned *ret_count, struct err *e)
{
    struct candidate found[CUDA_DEVICES_MAX];
    char wanted[NAMES_SIZE] = "";
    int all = 0;
    unsigned count = 0;
    (void)option_text(options, "uuid", wanted, sizeof wanted);
    int rc = CUDA_CALL(cu, e, DeviceGetCount, &all);
    for (int i = 0; rc == 0 && i < all && count < CUDA_DEVICES_MAX; i++) {
        CUdevice id = 0;
        bool is_wanted = false;
        rc = CUDA_CALL(cu, e, DeviceGet, &id, i);
        rc = rc == 0 ? uuid_wanted(cu, id, wanted, &is_wanted, e) : rc;
        if (is_wanted) {
            struct asked a = {cu, id, 0, e};
            found[count++] = (struct candidate){id, place_of(&a)};
            rc = a.rc;
        }
    }
    if (rc != 0) {
        return rc;
    }
    if (count == 0) {
        return all == 0 ? cuda_error(CUDA_ERROR_NO_DEVICE, "cuDeviceGetCount", e)
                        : err_set(e, ERR_NO_DEVICE, "none of %d CUDA devices has the UUID \"%s\"",
                                  all, wanted);
    }
    qsort(found, count, sizeof found[0], candidate_compare);
    for (unsigned i = 0; i < count; i++) {
        ret_device[i] = found[i].id;
    }
    *ret_count = count;
    return 0;
}

/* Is it "GPU-" and a whole UUID? Then the driver can be made to show this device alone. */
static bool whole_name(const char *name)
{
    return strncasecmp(name, "GPU-", 4) == 0 && strlen(name) == strlen("GPU-") + UUID_SIZE;
}

/* Handles devices that are opened by their name: instances of MIG, and a single GPU named in
 * full. A process sees one instance of MIG, and perhaps no GPU beside it, so it cannot list
 * them. The names are those of the option "uuid", else of CUDA_VISIBLE_DEVICES, in that order.
 *
 * Returns the number of names; 0 unless one of them is an instance, or the option names one GPU
 * in full. *ret_name: the name at `index`. */
static unsigned opened_by_name(const char *options, unsigned index, char ret_name[NAME_SIZE])
{
    char names[NAMES_SIZE] = "";
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    unsigned count = 0;
    (void)snprintf(names, sizeof names, "%s", visible != NULL ? visible : "");
    bool by_name = option_text(options, "uuid", names, sizeof names) && whole_name(names);
    char *rest = names;
    for (char *name = strsep(&rest, "+,"); name != NULL; name = strsep(&rest, "+,")) {
        if (name[0] == '\0') {
            continue;
        }
        by_name = by_name || strncasecmp(name, "MIG-", 4) == 0;
        if (count++ == index) {
            (void)snprintf(ret_name, NAME_SIZE, "%s", name);
        }
    }
    return by_name ? count : 0;
}

/* Is the option a whole UUID without a prefix, as in pins? The driver shows that GPU by default,
 * but it would start all GPUs, so the device is opened by its name. CUDA_VISIBLE_DEVICES has
 * precedence. */
static bool bare_name(const char *options, char ret_name[NAME_SIZE])
{
    char uuid[NAMES_SIZE];
    bool bare = getenv("CUDA_VISIBLE_DEVICES") == NULL &&
                option_text(options, "uuid", uuid, sizeof uuid) && strlen(uuid) == UUID_SIZE &&
                strspn(uuid, "0123456789abcdefABCDEF-") == UUID_SIZE;
    if (bare) {
        (void)snprintf(ret_name, NAME_SIZE, "GPU-%.*s", (int)UUID_SIZE, uuid);
    }
    return bare;
}

static int enumerate(const char *options, unsigned *ret_count, struct err *e)
{
    struct cuda_driver cu;
    CUdevice device[CUDA_DEVICES_MAX];
    char name[NAME_SIZE];
    unsigned named = opened_by_name(options, 0, name);
    if (named > 0 || bare_name(options, name)) {
        /* the driver is started by the open, and with that device alone */
        *ret_count = named > 0 ? named : 1;
        return 0;
    }
    int rc = cuda_driver_load(&cu, e);
    return rc != 0 ? rc : cuda_devices(&cu, options, device, ret_count, e);
}

/* ---- one device ------------------------------------------------------------------------------ */

static void describe_limits(struct backend_device *d, struct asked *a)
{
    const struct {
        CUdevice_attribute what;
        uint64_t *ret_value;
    } table[] = {
        {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &d->info.units},
        {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &d->info.max_group},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, &d->info.max_local[0]},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, &d->info.max_local[1]},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, &d->info.max_local[2]},
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, &d->max_grid[0]},
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, &d->max_grid[1]},
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, &d->max_grid[2]},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &d->info.local_bytes},
        {CU_DEVICE_ATTRIBUTE_WARP_SIZE, &d->warp},
        {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, &d->unit_items},
    };
    for (unsigned i = 0; i < sizeof table / sizeof table[0]; i++) {
        *table[i].ret_value = number(a, table[i].what);
    }
    d->host_pointers = number(a, CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM) != 0;
    d->host_piece = d->host_pointers ? HOST_PIECE : UINT64_C(1) << 63;
    d->exports = number(a, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED) != 0;
    d->register_read = number(a, CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED) != 0;
}

static int describe(struct backend_device *d, struct err *e)
{
    size_t memory = 0;
    int version = 0;
    d->info = (struct backend_info){
        .backend = "cuda", .vendor = "NVIDIA Corporation", .f64 = true, .streams = 4};
    int rc = CUDA_CALL(&d->cu, e, DeviceGetName, d->info.name, (int)sizeof d->info.name - 1, d->id);
    rc = rc == 0 ? CUDA_CALL(&d->cu, e, DeviceTotalMem, &memory, d->id) : rc;
    rc = rc == 0 ? CUDA_CALL(&d->cu, e, DriverGetVersion, &version) : rc;
    /* without its UUID the next worker would open the device that has the number then */
    char uuid[40] = "";
    rc = rc == 0 ? uuid_text(&d->cu, d->id, uuid, e) : rc;
    struct asked a = {&d->cu, d->id, rc, e};
    d->info.memory = d->info.max_alloc = memory;
    (void)snprintf(d->info.driver, sizeof d->info.driver, "CUDA %d.%d", version / 1000,
                   version % 1000 / 10);
    d->major = (unsigned)number(&a, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    (void)snprintf(d->info.arch, sizeof d->info.arch, "sm_%u%u", d->major,
                   (unsigned)number(&a, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
    /* the driver ends the name of an instance with " MIG 1g.18gb" */
    const char *kind = strstr(d->info.name, " MIG ") != NULL ? "uuid=MIG-"
                       : d->alone                            ? "uuid=GPU-"
                                                             : "uuid=";
    (void)snprintf(d->info.pin, sizeof d->info.pin, "%s%s", kind, uuid);
    describe_limits(d, &a);
    if (number(&a, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS) != 0) {
        log_say(LOG_HOST_REACHABLE,
                "kernels can reach the memory of this process, too (HMM or ATS): a stray pointer "
                "into it does not end the worker, but may corrupt the jobs of others");
    }
    return a.rc;
}

/* Chooses pages of 2 MiB, so that each can be taken back alone. If the device has none, or the
 * option is vmm=off, memory comes from cuMemAlloc. */
static int page_choose(struct backend_device *d, const char *options, struct err *e)
{
    bool vmm = true;
    size_t granularity = 0;
    int rc = option_bool(options, "vmm", &vmm, e);
    struct asked a = {&d->cu, d->id, 0, e};
    if (rc != 0 || !vmm ||
        number(&a, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) == 0) {
        return rc != 0 ? rc : a.rc;
    }
    d->page_prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    d->page_prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    d->page_prop.location.id = d->id;
    rc = CUDA_CALL(&d->cu, e, MemGetAllocationGranularity, &granularity, &d->page_prop,
                   CU_MEM_ALLOC_GRANULARITY_MINIMUM);
    if (rc == 0) {
        d->page = granularity > PAGE ? granularity : PAGE;
    }
    return rc;
}

static int absent(unsigned index, unsigned count, struct err *e)
{
    return err_set(e, ERR_NO_DEVICE, "no CUDA device %u: there are %u", index, count);
}

static int choose_named(struct backend_device *d, const char *name, struct err *e)
{
    CUdevice device[CUDA_DEVICES_MAX];
    char option[NAME_SIZE + 8];
    unsigned count = 0;
    /* only the driver understands names of another form */
    (void)snprintf(option, sizeof option, "uuid=%s", strchr(name, '/') == NULL ? name : "");
    d->alone = true;
    int rc = cuda_driver_load_named(name, &d->cu, e);
    rc = rc == 0 ? cuda_devices(&d->cu, option, device, &count, e) : rc;
    if (rc == 0) {
        d->id = device[0];
    }
    return rc;
}

static int choose(struct backend_device *d, unsigned index, const char *options, struct err *e)
{
    CUdevice device[CUDA_DEVICES_MAX];
    char name[NAME_SIZE] = "";
    unsigned count = 0;
    int rc = options_check(options, KNOWN_OPTIONS, e);
    if (rc == 0 && index == 0 && bare_name(options, name)) {
        rc = choose_named(d, name, e);
        d->alone = false;
        return rc;
    }
    unsigned named = opened_by_name(options, index, name);
    if (rc == 0 && named > 0) {
        return index < named ? choose_named(d, name, e) : absent(index, named, e);
    }
    rc = rc == 0 ? cuda_driver_load(&d->cu, e) : rc;
    rc = rc == 0 ? cuda_devices(&d->cu, options, device, &count, e) : rc;
    if (rc == 0 && index >= count) {
        rc = absent(index, count, e);
    }
    if (rc == 0) {
        d->id = device[index];
    }
    return rc;
}

static int context_make(struct backend_device *d, struct err *e)
{
    uint64_t begin_ns = clock_now_ns();
    int rc = CUDA_CALL(&d->cu, e, DevicePrimaryCtxRetain, &d->context, d->id);
    if (rc != 0) {
        d->context = NULL;
        return rc;
    }
    log_say(LOG_DEVICE_OPENED, "the context was made in %.0f ms",
            (double)(clock_now_ns() - begin_ns) / 1e6);
    rc = CUDA_CALL(&d->cu, e, CtxSetCurrent, d->context);
    return rc == 0 ? CUDA_CALL(&d->cu, e, CtxGetStreamPriorityRange, &d->priority_least,
                               &d->priority_greatest)
                   : rc;
}

static void device_close(struct backend_device *d)
{
    if (!d) {
        return;
    }
    cuda_library_close(d);
    while (d->event_count > 0) {
        d->cu.EventDestroy(d->event[--d->event_count]);
    }
    cuda_clock_finish(&d->clock);
    if (d->context) {
        d->cu.CtxSetCurrent(NULL);
        d->cu.DevicePrimaryCtxRelease(d->id);
    }
    free(d);
}

static int device_open(unsigned index, const char *options, backend_wake_fn wake, void *wake_data,
                       struct backend_device **ret_device, struct err *e)
{
    bool chosen = getenv("CUDA_VISIBLE_DEVICES") != NULL; /* before choose() puts a name there */
    struct backend_device *d = calloc(1, sizeof *d);
    if (!d) {
        return err_set(e, ERR_NOMEM, "no memory for a device");
    }
    d->room = UINT64_MAX; /* not queried yet */
    d->wake = wake;
    d->wake_data = wake_data;
    int rc = choose(d, index, options, e);
    rc = rc == 0 ? describe(d, e) : rc;
    d->info.chosen = chosen;
    rc = rc == 0 ? page_choose(d, options, e) : rc;
    rc = rc == 0 ? context_make(d, e) : rc;
    rc = rc == 0 ? cuda_clock_init(&d->clock, &d->cu, e) : rc;
    rc = rc == 0 ? cuda_library_init(d, options, e) : rc;
    if (rc != 0) {
        device_close(d);
        return rc;
    }
    *ret_device = d;
    return 0;
}

static void device_info(struct backend_device *d, struct backend_info *ret_info)
{
    *ret_info = d->info;
}

/* Markers do not wake by themselves: a callback behind each would delay its stream until the
 * host has run it. Markers that take long are armed. */
static bool device_wakes(struct backend_device *d)
{
    (void)d;
    return false;
}

/* The driver keeps what kernels print until a launch, a module or a synchronization makes it
 * write. The clock's stream is one that nobody has to wait for. */
static void device_idle(struct backend_device *d)
{
    if (d->launched) {
        d->launched = false;
        d->cu.StreamSynchronize(d->clock.stream); /* the next call returns an error */
    }
}

static const struct backend_device_ops device_ops = {
    .open = device_open,
    .close = device_close,
    .info = device_info,
    .wakes = device_wakes,
    .idle = device_idle,
};

const struct backend backend_cuda = {
    .name = "cuda",
    .abi = BACKEND_ABI,
    .auto_choice = true,
    .dialect = BACKEND_LANG_CUDA,
    .enumerate = enumerate,
    .release_waits = true,
    .device = &device_ops,
    .memory = &cuda_memory_ops,
    .pages = &cuda_page_ops,
    .stream = &cuda_stream_ops,
    .marker = &cuda_marker_ops,
    .module = &cuda_module_ops,
    .library = &cuda_library_ops,
    .compile = cuda_compile,
};
