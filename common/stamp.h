/*
 * Which version of a file something was made with, as text: its size, its time and its path. Files
 * are looked at, not read. Thread: any.
 */
#ifndef COMMON_STAMP_H
#define COMMON_STAMP_H

#include <stdbool.h>
#include <stddef.h>

/* "" (in out) if the file is not there or its path does not fit. Returns out. */
const char *stamp_make(const char *path, char *out, size_t size);
/* Is the file another one now? One that is gone is no other: nothing can be made better. */
bool stamp_changed(const char *stamp);

#endif
