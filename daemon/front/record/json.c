#include "daemon/front/record/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base64.h"
#include "common/utf8.h"

static void put(struct capbuf *out, const char *text)
{
    (void)capbuf_append(out, text, strlen(text));
}

static void begin(struct capbuf *out, const char *name)
{
    uint8_t last = out->size > 0 ? out->data[out->size - 1] : '\n';
    if (last != '{' && last != '[' && last != '\n' && last != ':') {
        put(out, ",");
    }
    if (name != NULL) {
        put(out, "\"");
        put(out, name);
        put(out, "\":");
    }
}

void json_open(struct capbuf *out, const char *name, char bracket)
{
    begin(out, name);
    (void)capbuf_append(out, &bracket, 1);
}

void json_close(struct capbuf *out, char bracket)
{
    (void)capbuf_append(out, &bracket, 1);
}

static bool plain(uint8_t byte)
{
    return byte >= 0x20 && byte < 0x7f && byte != '"' && byte != '\\';
}

static void put_byte(struct capbuf *out, uint8_t byte)
{
    char escaped[8];
    if (byte == '"' || byte == '\\') {
        const char pair[2] = {'\\', (char)byte};
        (void)capbuf_append(out, pair, 2);
    } else if (byte == '\n') {
        put(out, "\\n");
    } else {
        (void)snprintf(escaped, sizeof escaped, "\\u%04x", byte);
        put(out, escaped);
    }
}

static void put_text(struct capbuf *out, struct bytes text)
{
    size_t at = 0;
    while (at < text.size && !out->failed) {
        size_t run = at;
        while (run < text.size && plain(text.data[run])) {
            run++;
        }
        (void)capbuf_append(out, text.data + at, run - at);
        at = run;
        size_t size = at < text.size ? utf8_size(text.data + at, text.size - at) : 0;
        if (size > 1) {
            (void)capbuf_append(out, text.data + at, size);
        } else if (size == 1) {
            put_byte(out, text.data[at]);
        } else if (at < text.size) {
            put(out, "?");
            size = 1;
        }
        at += size;
    }
}

void json_text(struct capbuf *out, const char *name, struct bytes text)
{
    begin(out, name);
    put(out, "\"");
    put_text(out, text);
    put(out, "\"");
}

void json_str(struct capbuf *out, const char *name, const char *text)
{
    if (text[0] != '\0') {
        json_text(out, name, bytes_str(text));
    }
}

/* Readers keep 63 bits of a number. */
void json_uint(struct capbuf *out, const char *name, uint64_t value)
{
    char text[32];
    begin(out, name);
    (void)snprintf(text, sizeof text, value <= INT64_MAX ? "%" PRIu64 : "\"%" PRIu64 "\"", value);
    put(out, text);
}

void json_int(struct capbuf *out, const char *name, int64_t value)
{
    char text[32];
    begin(out, name);
    (void)snprintf(text, sizeof text, "%" PRId64, value);
    put(out, text);
}

void json_handle(struct capbuf *out, const char *name, uint64_t value)
{
    char text[32];
    begin(out, name);
    (void)snprintf(text, sizeof text, "\"0x%" PRIx64 "\"", value);
    put(out, text);
}

void json_bool(struct capbuf *out, const char *name, bool value)
{
    begin(out, name);
    put(out, value ? "true" : "false");
}

void json_base64(struct capbuf *out, const char *name, struct bytes data)
{
    begin(out, name);
    put(out, "\"");
    uint8_t *at = capbuf_extend(out, BASE64_BYTES(data.size));
    if (at != NULL) {
        base64_encode(data, (char *)at);
        out->size--; /* its NUL */
    }
    put(out, "\"");
}
