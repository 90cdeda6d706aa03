/*
 * Makes JSON values (jansson) in the form of all of gpuctl's output. The functions return NULL if
 * memory is out; the caller owns the value. Thread: one.
 */
#ifndef GPUCTL_SHEET_JSON_VALUE_H
#define GPUCTL_SHEET_JSON_VALUE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <gpud/gpud.h>

#include "gpuctl/base/ctl_err.h"

/* Text with '?' in place of bytes that are not UTF-8: labels of other users must not break the
 * output. */
json_t *json_of_text(const char *text);
/* A number. From 2^63 on its digits as text, because jansson's integers end there and a real would
 * not be exact. */
json_t *json_of_uint(uint64_t value);
/* A handle as text, "0x…": many readers of JSON keep only 53 bits of a number. */
json_t *json_of_handle(uint64_t handle);
/* A cell of a column of this kind (enum gpud_column_kind). A text in place of a value is null: the
 * value is not known. */
json_t *json_of_cell(int kind, uint64_t value, const char *text);
/* A row of a daemon's table: an object with a member for each column. */
json_t *json_of_row(const gpud_table *table, uint32_t row);

/* Writes the value, an object or array, on one line without blanks, and frees it. members: writes
 * only the text between its brackets. '<' is escaped, so that the text can be part of an HTML page.
 * false for a NULL value, and if the stream fails. */
bool json_put(json_t *value, bool members, FILE *out);
/* Writes the value with a line for each member; numbers are exact. file NULL: to standard output.
 */
int json_save(const json_t *value, const char *file, struct ctl_err *e);

#endif
