#include "daemon/backend/cuda/compile/compile_failed.h"

#include <string.h>

#include "daemon/backend/cuda/compile/nvrtc_log.h"

static const char *hint_for(struct bytes log)
{
    static const struct {
        const char *said, *hint;
    } hints[] = {
        {"requires separate compilation mode",
         "kernels that launch kernels need the device's runtime, which is not linked here: launch "
         "the inner one from the host, as a job or a step of its own"},
        {"texture is not a template", "texture references (texture<float, 1> name;) were removed "
                                      "in CUDA 12: kernels read such data through a const pointer"},
        {"identifier \"__shfl", "the shuffles and votes without _sync were removed from CUDA: "
                                "__shfl_down(x, d) is __shfl_down_sync(0xffffffff, x, d)"},
        {"considered a host function",
         "functions for the device are __device__; NVRTC's option -default-device makes all so"},
        {"considered a host variable", "variables of the device are __device__ or __constant__"},
        {"open source file",
         "no files are read except for the toolkit's own headers; give yours with the source "
         "(gpud_module_options.headers; gpuctl looks for them with -I)"},
        {"No such file or directory",
         "no files are read except for the toolkit's and the system's own headers; give yours with "
         "the source (gpud_module_options.headers; gpuctl looks for them with -I)"},
    };
    for (size_t i = 0; log.size > 0 && i < sizeof hints / sizeof hints[0]; i++) {
        if (memmem(log.data, log.size, hints[i].said, strlen(hints[i].said)) != NULL) {
            return hints[i].hint;
        }
    }
    return NULL;
}

int compile_failed(const char *file, struct capbuf *log, struct err *e)
{
    const char *hint = hint_for(capbuf_view(log));
    if (hint != NULL) {
        (void)capbuf_printf(log, "%s: note: %s\n", file, hint);
    }
    struct bytes first = nvrtc_log_error(capbuf_view(log));
    if (first.size == 0) {
        return err_set(e, ERR_COMPILE, "%s: the compiler refused it", file);
    }
    return err_set(e, ERR_COMPILE, "%.*s", (int)(first.size < 200 ? first.size : 200),
                   (const char *)first.data);
}
