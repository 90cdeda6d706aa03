/*
 * Messages as text, by their schemas: `name field=value …`. Fields that are 0 or empty are left
 * out. A number is decimal or 0x…; a text is "…"; bytes are x'…' in hexadecimal, x'…'*N repeats
 * them; a list is [{field=value …} …]. Errors fail the test: they name what could not be read.
 * Thread: one.
 */
#ifndef TEST_SIM_TEXT_H
#define TEST_SIM_TEXT_H

#include <stdio.h>

#include "proto/codec.h"

#define TEXT_SHOWN_MAX 64u /* bytes that are printed as they are; of more, size and hash */

/* The schema of a message or frame by its name; NULL: unknown. */
const struct schema *text_schema(const char *name);
/* Reads `text`, without the name, into *ret_msg (s->size bytes), whose texts and lists live until
 * text_free. */
void text_read(const struct schema *s, const char *text, void *ret_msg);
void text_free(void);
/* `x'…'` or `"…"` at *at, which is moved behind it; lives until text_free. */
struct bytes text_bytes(const char **at);
void text_print(FILE *out, const struct schema *s, const void *msg);

#endif
