/*
 * JSON written straight to a stream, for outputs of many thousand entries. The writer puts commas
 * and quotes; the caller sees to it that what is opened is closed. Thread: one.
 */
#ifndef GPUCTL_POOL_JSON_OUT_H
#define GPUCTL_POOL_JSON_OUT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <gpud/gpud.h>

struct json_out {
    FILE *out;  /* not owned; ferror tells of failures */
    bool comma; /* something stands before the next value */
};

/* name NULL: an element of an array, or the whole */
void jout_open(struct json_out *j, const char *name, char bracket); /* '{' or '[' */
void jout_close(struct json_out *j, char bracket);
/* The next value begins a line. */
void jout_line(struct json_out *j);
void jout_uint(struct json_out *j, const char *name, uint64_t value);
/* Bytes that are no UTF-8 become '?'. '<' is escaped, so that the text may stand in a page. */
void jout_text(struct json_out *j, const char *name, const char *text);
/* As text: "0x…". Handles have more bits than numbers of JSON are read with. */
void jout_handle(struct json_out *j, const char *name, uint64_t handle);
/* text: a number as JSON has it */
void jout_number(struct json_out *j, const char *name, const char *text);
void jout_null(struct json_out *j, const char *name);
/* A row of a daemon's table: an object of its columns. As in sheet_write: null for what is not
 * known. */
void jout_row(struct json_out *j, const char *name, const gpud_table *table, uint32_t row);

#endif
