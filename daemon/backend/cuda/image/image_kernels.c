#include "daemon/backend/cuda/image/image_kernels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool image_arch_read(const char *text, struct image_arch *ret_arch)
{
    const char *digits = strncmp(text, "sm_", 3) == 0        ? text + 3
                         : strncmp(text, "compute_", 8) == 0 ? text + 8
                                                             : "";
    size_t n = strspn(digits, "0123456789");
    const char *rest = digits + n;
    bool variant = rest[0] == 'a' || rest[0] == 'f';
    if (n < 2 || n > 4 || rest[variant] != '\0') {
        return false;
    }
    *ret_arch = (struct image_arch){.number = (unsigned)strtoul(digits, NULL, 10),
                                    .variant = variant ? rest[0] : '\0'};
    return true;
}

void image_finish(struct image *i)
{
    free(i->kernels);
    *i = (struct image){0};
}

int image_kernel_add(struct image *i, const char *entry,
                     struct backend_compiled_kernel **ret_kernel, struct err *e)
{
    size_t size = strlen(entry) + 1;
    bool kept = size <= sizeof i->kernels->entry;
    if (kept && i->kernel_count == IMAGE_KERNELS_MAX) {
        return err_set(e, ERR_LIMIT, "more than %u kernels in a module: split it",
                       IMAGE_KERNELS_MAX);
    }
    if (i->kernels == NULL) {
        i->kernels = malloc((IMAGE_KERNELS_MAX + 1) * sizeof *i->kernels);
    }
    if (i->kernels == NULL) {
        return err_set(e, ERR_NOMEM, "no memory for a module's kernels");
    }
    struct backend_compiled_kernel *k = &i->kernels[i->kernel_count];
    memset(k, 0, sizeof *k);
    if (kept) {
        memcpy(k->entry, entry, size);
        i->kernel_count++;
    } else {
        snprintf(i->left_out_name, sizeof i->left_out_name, "%s", entry);
        i->left_out++;
    }
    *ret_kernel = k;
    return 0;
}

int image_done(struct image *made, int rc, struct image *ret_image)
{
    if (rc != 0) {
        image_finish(made);
        return rc;
    }
    for (unsigned i = 0; i < made->kernel_count; i++) {
        struct backend_compiled_kernel *k = &made->kernels[i];
        if (k->arg_count > IMAGE_ARGS_MAX) {
            k->arg_count = 0;
            snprintf(k->unfit, sizeof k->unfit,
                     "it takes over %u arguments: put them into a struct", IMAGE_ARGS_MAX);
        }
    }
    *ret_image = *made;
    return 0;
}
