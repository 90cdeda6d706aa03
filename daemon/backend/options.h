/*
 * Options of a back end: "key=value,key=value". Values contain no comma. The last value of a key
 * counts. Pure. Thread: any.
 */
#ifndef BACKEND_OPTIONS_H
#define BACKEND_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

/* Checks that every item is key=value with a key of the list ("memory speed …"). ERR_INVALID
 * names the item that is not. */
int options_check(const char *options, const char *known, struct err *e);
/* Copies the value, truncated to fit. Returns false if there is no such key; `out` is then
 * unchanged. */
bool option_text(const char *options, const char *key, char *out, size_t size);
/* Parse a value. *ret_value is unchanged if there is no such key. ERR_INVALID: malformed;
 * ERR_RANGE: outside of [min, max]. Sizes may end in K, M or G (1024). */
int option_u64(const char *options, const char *key, uint64_t min, uint64_t max,
               uint64_t *ret_value, struct err *e);
int option_double(const char *options, const char *key, double min, double max, double *ret_value,
                  struct err *e);
int option_bool(const char *options, const char *key, bool *ret_value, struct err *e);

#endif
