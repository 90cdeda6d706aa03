#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base64.h"
#include "common/hash.h"
#include "common/shape.h"
#include "gpuctl/base/file.h"
#include "gpuctl/run/dumped.h"

#define FILE_MAX     (64u * 1024u * 1024u) /* bytes; the daemon's content is much less */
#define VERSION      1u
#define CONTENT_MOST ((size_t)FILE_MAX)

int dumped_load(const char *path, json_t **ret_root, struct ctl_err *e)
{
    struct file file = {.data = NULL};
    json_error_t why;
    uint64_t version = 0;
    const char *format = "";
    int rc = file_load(path, (struct file_limit){FILE_MAX, FILE_MAX}, &file, e);
    if (rc != 0) {
        return rc;
    }
    json_t *root = json_loadb(file.data, file.size, JSON_REJECT_DUPLICATES, &why);
    file_finish(&file);
    if (root == NULL) {
        return ctl_err_set(e, GPUD_ERR_INVALID, "%s: line %d: %s", path, why.line, why.text);
    }
    rc = json_is_object(root) ? dumped_text(root, "format", 64, &format, e) : 0;
    if (rc == 0 && strcmp(format, "gpud-job") != 0) {
        rc = ctl_err_set(e, GPUD_ERR_INVALID, "no file of gpuctl job dump");
    }
    rc = rc == 0 ? dumped_number(root, "version", UINT64_MAX, &version, e) : rc;
    if (rc == 0 && version != VERSION) {
        rc = ctl_err_set(e, GPUD_ERR_INVALID, "version %" PRIu64 ", this gpuctl reads version %u",
                         version, VERSION);
    }
    if (rc != 0) {
        json_decref(root);
        return ctl_err_wrap(e, "%s", path);
    }
    *ret_root = root;
    return 0;
}

static bool number_of(const json_t *value, uint64_t *ret_value)
{
    if (json_is_integer(value)) {
        *ret_value = (uint64_t)json_integer_value(value);
        return json_integer_value(value) >= 0;
    }
    const char *text = json_string_value(value);
    char *end = NULL;
    if (text == NULL || text[0] < '0' || text[0] > '9') {
        return false;
    }
    errno = 0;
    *ret_value = strtoull(text, &end, text[1] == 'x' ? 16 : 10);
    return errno == 0 && *end == '\0';
}

int dumped_number(const json_t *o, const char *name, uint64_t most, uint64_t *ret_value,
                  struct ctl_err *e)
{
    const json_t *value = json_object_get(o, name);
    uint64_t number = 0;
    if (value != NULL && !number_of(value, &number)) {
        return ctl_err_set(e, GPUD_ERR_INVALID, "%s is no number", name);
    }
    if (number > most) {
        return ctl_err_set(e, GPUD_ERR_INVALID,
                           "%s is %" PRIu64 ", at most %" PRIu64 " is possible", name, number,
                           most);
    }
    *ret_value = number;
    return 0;
}

int dumped_text(const json_t *o, const char *name, size_t most, const char **ret_text,
                struct ctl_err *e)
{
    const json_t *value = json_object_get(o, name);
    if (value != NULL && !json_is_string(value)) {
        return ctl_err_set(e, GPUD_ERR_INVALID, "%s is no text", name);
    }
    if (json_string_length(value) > most) {
        return ctl_err_set(e, GPUD_ERR_INVALID, "%s has %zu bytes, at most %zu are possible", name,
                           json_string_length(value), most);
    }
    *ret_text = value != NULL ? json_string_value(value) : "";
    return 0;
}

int dumped_list(const json_t *o, const char *name, size_t most, const json_t **ret_list,
                struct ctl_err *e)
{
    const json_t *value = json_object_get(o, name);
    if (value != NULL && !json_is_array(value)) {
        return ctl_err_set(e, GPUD_ERR_INVALID, "%s is no list", name);
    }
    if (json_array_size(value) > most) {
        return ctl_err_set(e, GPUD_ERR_INVALID, "%s has %zu entries, at most %zu are possible",
                           name, json_array_size(value), most);
    }
    *ret_list = value;
    return 0;
}

int dumped_shape(const json_t *o, bool any, gpud_shape *ret_shape, struct ctl_err *e)
{
    const json_t *list = NULL;
    const char *type = "";
    gpud_shape shape = {0};
    struct shape checked;
    struct err why = ERR_INIT;
    int rc = dumped_text(o, "type", GPUD_NAME, &type, e);
    rc = rc == 0 ? dumped_list(o, "shape", GPUD_MAX_DIMS, &list, e) : rc;
    if (rc != 0) {
        return rc;
    }
    shape.dtype = (uint32_t)gpud_dtype_from_name(type);
    shape.ndim = (uint32_t)json_array_size(list);
    for (uint32_t i = 0; i < shape.ndim; i++) {
        if (!number_of(json_array_get(list, i), &shape.dim[i])) {
            return ctl_err_set(e, GPUD_ERR_INVALID, "shape has an entry that is no number");
        }
    }
    bool untyped = any && shape.ndim == 0;
    if (!untyped && shape_make((int)shape.dtype, shape.ndim, shape.dim, &checked, &why) != 0) {
        return ctl_err_set(e, GPUD_ERR_INVALID, "type \"%s\" and shape: %s", type, why.text);
    }
    *ret_shape = shape;
    return 0;
}

int dumped_check(const json_t *o, const char *name, const void *data, size_t size,
                 struct ctl_err *e)
{
    char member[64];
    char hash[HASH_TEXT_BYTES];
    const char *wanted = "";
    (void)snprintf(member, sizeof member, "%s_hash", name);
    int rc = dumped_text(o, member, HASH_TEXT_BYTES - 1, &wanted, e);
    if (rc != 0 || wanted[0] == '\0') {
        return rc;
    }
    (void)hash_text(hash_of(data, size), hash);
    return strcmp(hash, wanted) == 0
               ? 0
               : ctl_err_set(e, GPUD_ERR_INVALID, "%s has the hash %s, %s has %s", name, hash,
                             member, wanted);
}

int dumped_content(const json_t *o, const char *name, size_t most, char **ret_data,
                   size_t *ret_size, struct ctl_err *e)
{
    char member[64];
    const char *text = "";
    const char *encoded = "";
    (void)snprintf(member, sizeof member, "%s_base64", name);
    int rc = dumped_text(o, name, most, &text, e);
    rc = rc == 0 ? dumped_text(o, member, CONTENT_MOST, &encoded, e) : rc;
    if (rc != 0) {
        return rc;
    }
    const char *given = encoded[0] != '\0' ? encoded : text;
    size_t size = strlen(given);
    if (size == 0) {
        *ret_data = NULL;
        *ret_size = 0;
        return 0;
    }
    char *data = malloc(size + 1);
    if (data == NULL) {
        return ctl_err_set(e, GPUD_ERR_NOMEM, "out of memory");
    }
    memcpy(data, given, size + 1);
    if (encoded[0] != '\0' && !base64_decode(data, size, &size)) {
        rc = ctl_err_set(e, GPUD_ERR_INVALID, "%s is no base64", member);
    } else if (size > most) {
        rc = ctl_err_set(e, GPUD_ERR_INVALID, "%s has %zu bytes, at most %zu are possible", name,
                         size, most);
    }
    rc = rc == 0 ? dumped_check(o, name, data, size, e) : rc;
    if (rc != 0) {
        free(data);
        return rc;
    }
    *ret_data = data;
    *ret_size = size;
    return 0;
}
