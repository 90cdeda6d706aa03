/* Arrays in memory: loaded from files, lists and standard input, and saved to files. */
#ifndef GPUCTL_INPUT_ARRAY_H
#define GPUCTL_INPUT_ARRAY_H

#include <gpud/gpud.h>

#include "gpuctl/base/ctl_err.h"
#include "gpuctl/base/file.h"
#include "gpuctl/base/save.h"
#include "gpuctl/input/spec.h"

#define ARRAY_BYTES_MAX (UINT64_C(1) << 36) /* of one array on the command line */

struct array {
    gpud_shape shape;
    void *data; /* owned; NULL if the array is empty */
};

/* An array of zeros. */
int array_create(gpud_shape shape, struct array *ret_array, struct ctl_err *e);
/* Makes the described array from its file or list, with zeros if it has neither. May block. */
int array_load(const struct spec *spec, struct file_limit limit, struct array *ret_array,
               struct ctl_err *e);
void array_finish(struct array *array); /* a zeroed array is allowed */

/* Writes the array as .npy, or its bytes only, and commits `save`. */
int array_save(const struct array *array, struct save *save, bool raw, struct ctl_err *e);

/* The first elements as text, followed by "..." if there are more. Always terminated. */
void array_text(const struct array *array, unsigned elements, char *out, size_t size);

#endif
