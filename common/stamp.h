/*
 * The version of a file as text: its size, its time and its path. The file itself is not read.
 * Thread: any.
 */
#ifndef COMMON_STAMP_H
#define COMMON_STAMP_H

#include <stdbool.h>
#include <stddef.h>

/* The file's stamp in out; "" if there is no such file or its path does not fit. Returns out. */
const char *stamp_make(const char *path, char *out, size_t size);
/* Whether the file has changed. false if it no longer exists: there is no new version to use. */
bool stamp_changed(const char *stamp);

#endif
