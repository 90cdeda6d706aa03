#include <stdio.h>
#include <stdlib.h>

#include "daemon/backend/options.h"
#include "daemon/backend/sim/sim.h"
#include "kernels/builtin.h"

#define DEVICES_MAX 4096u
#define SCRIPT_MAX  1024u /* bytes */

/* The defaults resemble a GPU of average speed. */
int sim_config_parse(const char *options, struct sim_config *ret_config, struct err *e)
{
    struct sim_config c = {
        .devices = 1,
        .memory = UINT64_C(1) << 30,
        .streams = 4,
        .speed = 1.0,
        .bandwidth = UINT64_C(16) << 30,
        .items = UINT64_C(1) << 30,
        .launch_ns = 5000,
        .kernels = SIM_SLOTS_MAX,
        .pages = true,
    };
    const struct {
        const char *key;
        uint64_t min, max;
        uint64_t *value;
    } numbers[] = {
        {"devices", 0, DEVICES_MAX, &c.devices},
        {"memory", BACKEND_ALIGN, UINT64_C(1) << 50, &c.memory},
        {"streams", 1, 16, &c.streams},
        {"bandwidth", 1, UINT64_C(1) << 50, &c.bandwidth},
        {"items", 1, UINT64_C(1) << 60, &c.items},
        {"launch_ns", 0, UINT64_C(1000000000), &c.launch_ns},
        {"kernels", 1, SIM_SLOTS_MAX, &c.kernels},
        {"map_us", 0, 1000000, &c.map_us},
        {"host_us", 0, 1000000, &c.host_us},
        {"load_us", 0, 100000000, &c.load_us},
    };
    char script[SCRIPT_MAX] = "";
    int rc = options_check(options,
                           "devices memory streams speed bandwidth items launch_ns kernels map_us "
                           "host_us load_us pages "
                           "script gate",
                           e);
    for (unsigned i = 0; rc == 0 && i < sizeof numbers / sizeof numbers[0]; i++) {
        rc = option_u64(options, numbers[i].key, numbers[i].min, numbers[i].max, numbers[i].value,
                        e);
    }
    if (rc == 0) {
        rc = option_double(options, "speed", 0.0, 1e9, &c.speed, e);
    }
    rc = rc == 0 ? option_bool(options, "pages", &c.pages, e) : rc;
    option_text(options, "script", script, sizeof script);
    option_text(options, "gate", c.gate, sizeof c.gate);
    if (rc == 0) {
        rc = script_parse(script, &c.script, e);
    }
    if (rc == 0) {
        *ret_config = c;
    }
    return rc;
}

static int enumerate(const char *options, unsigned *ret_count, struct err *e)
{
    struct sim_config c;
    int rc = sim_config_parse(options, &c, e);
    if (rc == 0 && c.devices == 0) {
        rc = err_set(e, ERR_NO_DEVICE, "no simulated device: option devices=0");
    }
    if (rc == 0) {
        *ret_count = (unsigned)c.devices;
    }
    return rc;
}

static int device_open(unsigned index, const char *options, backend_wake_fn wake, void *wake_data,
                       struct backend_device **ret_device, struct err *e)
{
    struct sim_config c;
    int rc = sim_config_parse(options, &c, e);
    if (rc == 0) {
        rc = builtin_init(e);
    }
    if (rc == 0) {
        rc = sim_action_error(script_next(&c.script, SIM_OPEN), SIM_OPEN, e);
    }
    if (rc != 0) {
        return rc;
    }
    if (index >= c.devices) {
        return err_set(e, ERR_NO_DEVICE, "no simulated device %u: there are %llu", index,
                       (unsigned long long)c.devices);
    }
    struct backend_device *d = calloc(1, sizeof *d);
    if (!d) {
        return err_set(e, ERR_NOMEM, "no memory for a device");
    }
    d->config = c;
    d->index = index;
    d->compute.slots = (unsigned)c.kernels;
    d->to_device.slots = d->from_device.slots = 1;
    d->wake = wake;
    d->wake_data = wake_data;
    pthread_mutex_init(&d->lock, NULL);
    pthread_cond_init(&d->changed, NULL);
    *ret_device = d;
    return 0;
}

static void device_close(struct backend_device *d)
{
    if (!d) {
        return;
    }
    sim_pages_finish(d);
    pthread_cond_destroy(&d->changed);
    pthread_mutex_destroy(&d->lock);
    free(d);
}

static void device_info(struct backend_device *d, struct backend_info *ret_info)
{
    struct backend_info info = {
        .backend = "sim",
        .vendor = "gpud",
        .driver = "1",
        .arch = SIM_ARCH,
        .simulated = true,
        .f64 = true,
        .memory = d->config.memory,
        .max_alloc = d->config.memory,
        .units = 1,
        .max_group = SIM_MAX_GROUP,
        .max_local = {SIM_MAX_GROUP, SIM_MAX_GROUP, 64},
        .local_bytes = UINT64_C(64) << 10,
        .streams = (unsigned)d->config.streams,
    };
    snprintf(info.name, sizeof info.name, "simulated device %u", d->index);
    *ret_info = info;
}

static bool device_wakes(struct backend_device *d)
{
    (void)d;
    return true;
}

static const struct backend_device_ops device_ops = {
    .open = device_open,
    .close = device_close,
    .info = device_info,
    .wakes = device_wakes,
};

const struct backend backend_sim = {
    .name = "sim",
    .abi = BACKEND_ABI,
    .auto_choice = false,
    .dialect = BACKEND_LANG_DIALECT,
    .enumerate = enumerate,
    .early = true,
    .device = &device_ops,
    .memory = &sim_memory_ops,
    .pages = &sim_page_ops,
    .stream = &sim_stream_ops,
    .marker = &sim_marker_ops,
    .module = &sim_module_ops,
    .compile = sim_compile,
};
