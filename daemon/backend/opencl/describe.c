/* Finds the devices, and reads their properties from the driver. */
#include <stdio.h>
#include <string.h>

#include "common/hash.h"
#include "daemon/backend/opencl/opencl.h"
#include "daemon/backend/options.h"

#define PLATFORMS_MAX 16u

static void append_devices(const struct opencl_api *cl, cl_platform_id platform,
                           cl_device_type type, struct opencl_choice *choice, unsigned *count)
{
    cl_device_id id[OPENCL_DEVICES_MAX];
    cl_uint found = 0;
    if (cl->GetDeviceIDs(platform, type, OPENCL_DEVICES_MAX, id, &found) != CL_SUCCESS) {
        return;
    }
    for (cl_uint i = 0; i < found && i < OPENCL_DEVICES_MAX && *count < OPENCL_DEVICES_MAX; i++) {
        choice[(*count)++] = (struct opencl_choice){platform, id[i]};
    }
}

static bool platform_wanted(const struct opencl_api *cl, cl_platform_id platform, const char *part)
{
    char name[256] = "";
    cl_int rc = cl->GetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof name - 1, name, NULL);
    return rc == CL_SUCCESS && strcasestr(name, part) != NULL;
}

int opencl_devices(const struct opencl_api *cl, const char *options,
                   struct opencl_choice ret_choice[OPENCL_DEVICES_MAX], unsigned *ret_count,
                   struct err *e)
{
    static const cl_device_type order[] = {CL_DEVICE_TYPE_GPU, CL_DEVICE_TYPE_ACCELERATOR,
                                           CL_DEVICE_TYPE_CPU};
    char part[128] = "";
    option_text(options, "platform", part, sizeof part);
    cl_platform_id platform[PLATFORMS_MAX];
    cl_uint platforms = 0;
    if (cl->GetPlatformIDs(PLATFORMS_MAX, platform, &platforms) != CL_SUCCESS) {
        platforms = 0;
    }
    unsigned count = 0;
    for (unsigned t = 0; t < sizeof order / sizeof order[0]; t++) {
        for (cl_uint p = 0; p < platforms && p < PLATFORMS_MAX; p++) {
            if (platform_wanted(cl, platform[p], part)) {
                append_devices(cl, platform[p], order[t], ret_choice, &count);
            }
        }
    }
    if (count == 0) {
        return part[0] ? err_set(e, ERR_NO_DEVICE, "%s (platform \"%s\" was asked for)",
                                 OPENCL_NO_DEVICE, part)
                       : err_set(e, ERR_NO_DEVICE, "%s", OPENCL_NO_DEVICE);
    }
    *ret_count = count;
    return 0;
}

static void device_text(const struct opencl_api *cl, cl_device_id id, cl_device_info what,
                        char *out, size_t size)
{
    size_t need = 0;
    char text[512] = "";
    if (cl->GetDeviceInfo(id, what, 0, NULL, &need) != CL_SUCCESS || need > sizeof text ||
        cl->GetDeviceInfo(id, what, sizeof text, text, NULL) != CL_SUCCESS) {
        text[0] = '\0';
    }
    snprintf(out, size, "%s", text);
}

uint64_t opencl_device_number(const struct opencl_api *cl, cl_device_id id, cl_device_info what)
{
    uint64_t value = 0;
    return cl->GetDeviceInfo(id, what, sizeof value, &value, NULL) == CL_SUCCESS ? value : 0;
}

/* The platform's version identifies the compiler, whose binaries do not fit another version. */
static void describe_arch(const struct opencl_api *cl, struct opencl_choice id,
                          struct backend_info *info)
{
    char version[256] = "";
    cl_int rc =
        cl->GetPlatformInfo(id.platform, CL_PLATFORM_VERSION, sizeof version - 1, version, NULL);
    struct hash_part part[] = {
        {info->name, strlen(info->name)},
        {info->driver, strlen(info->driver)},
        {version, rc == CL_SUCCESS ? strlen(version) : 0},
    };
    char text[HASH_TEXT_BYTES];
    hash_text(hash_parts(part, sizeof part / sizeof part[0]), text);
    snprintf(info->arch, sizeof info->arch, "%.64s %.16s", info->name, text);
}

void opencl_describe(const struct opencl_api *cl, struct opencl_choice id,
                     struct backend_info *ret_info)
{
    struct backend_info info = {.backend = "opencl", .streams = 4};
    cl_device_id d = id.device;
    device_text(cl, d, CL_DEVICE_NAME, info.name, sizeof info.name);
    device_text(cl, d, CL_DEVICE_VENDOR, info.vendor, sizeof info.vendor);
    device_text(cl, d, CL_DRIVER_VERSION, info.driver, sizeof info.driver);
    describe_arch(cl, id, &info);
    info.cpu = (opencl_device_number(cl, d, CL_DEVICE_TYPE) & CL_DEVICE_TYPE_CPU) != 0;
    info.f64 = opencl_device_number(cl, d, CL_DEVICE_DOUBLE_FP_CONFIG) != 0;
    info.memory = opencl_device_number(cl, d, CL_DEVICE_GLOBAL_MEM_SIZE);
    info.max_alloc = opencl_device_number(cl, d, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
    info.units = opencl_device_number(cl, d, CL_DEVICE_MAX_COMPUTE_UNITS);
    info.max_group = opencl_device_number(cl, d, CL_DEVICE_MAX_WORK_GROUP_SIZE);
    info.local_bytes = opencl_device_number(cl, d, CL_DEVICE_LOCAL_MEM_SIZE);
    size_t local[8] = {0};
    if (cl->GetDeviceInfo(d, CL_DEVICE_MAX_WORK_ITEM_SIZES, sizeof local, local, NULL) ==
        CL_SUCCESS) {
        for (unsigned i = 0; i < 3; i++) {
            info.max_local[i] = local[i];
        }
    }
    *ret_info = info;
}
