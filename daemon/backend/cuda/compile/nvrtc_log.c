#include "daemon/backend/cuda/compile/nvrtc_log.h"

#include <ctype.h>
#include <string.h>

#define CARET_LINES 40u /* limit of lines in a message and the source lines that it shows */
#define INDENT      2u  /* indentation of a source line that is shown, and of its caret */

/* the file name that NVRTC uses for name expressions */
static const char name_map[] = "__nv_name_map";

static struct bytes line_at(const char *at)
{
    return bytes_of(at, strcspn(at, "\n"));
}

static const char *line_after(const char *at, struct bytes line)
{
    return at + line.size + (at[line.size] == '\n');
}

/* The head of a message, at the beginning of a line: "name(12): error: …", perhaps with the
 * number of a warning. */
struct head {
    size_t name;      /* bytes of the name */
    struct bytes row; /* digits */
    const char *rest; /* "error: …" */
};

static bool head_read(struct bytes line, struct head *ret)
{
    const char *text = (const char *)line.data;
    const char *close = memmem(text, line.size, "): ", 3);
    if (close == NULL || isspace((unsigned char)text[0])) {
        return false;
    }
    const char *digits = close;
    while (digits > text && isdigit((unsigned char)digits[-1])) {
        digits--;
    }
    if (digits == close || digits < text + 2 || digits[-1] != '(') {
        return false;
    }
    *ret = (struct head){.name = (size_t)(digits - 1 - text),
                         .row = bytes_of(digits, (size_t)(close - digits)),
                         .rest = close + 3};
    return true;
}

/* Finds the column of the next caret before another message begins; 0 if there is none. */
static size_t column_find(const char *at)
{
    struct head h;
    for (unsigned i = 0; i < CARET_LINES && *at != '\0'; i++) {
        struct bytes line = line_at(at);
        size_t blanks = strspn(at, " \t");
        if (i > 0 && head_read(line, &h)) {
            return 0;
        }
        if (blanks >= INDENT && at[blanks] == '^' &&
            at[blanks + 1 + strspn(at + blanks + 1, " \t~")] == '\n') {
            return blanks - INDENT + 1;
        }
        at = line_after(at, line);
    }
    return 0;
}

/* Appends a line, with the internal name replaced. */
static void text_add(struct capbuf *out, struct bytes line, const char *internal, const char *file)
{
    const char *text = (const char *)line.data;
    const char *found = memmem(text, line.size, internal, strlen(internal));
    if (found == NULL) {
        (void)capbuf_printf(out, "%.*s\n", (int)line.size, text);
        return;
    }
    size_t before = (size_t)(found - text);
    size_t used = before + strlen(internal);
    (void)capbuf_printf(out, "%.*s%s", (int)before, text, file);
    text_add(out, bytes_of(text + used, line.size - used), internal, file);
}

/* The name to show in a message's head. */
static struct bytes name_shown(struct bytes name, const char *internal, const char *file)
{
    return bytes_equal_str(name, internal)   ? bytes_str(file)
           : bytes_equal_str(name, name_map) ? bytes_str("name expression")
                                             : name;
}

static void message_add(struct capbuf *out, const char *at, struct bytes line, const struct head *h,
                        struct bytes name)
{
    const char *end = (const char *)line.data + line.size;
    size_t column = column_find(at);
    bool fatal = strncmp(h->rest, "catastrophic error", 18) == 0;
    const char *rest = h->rest + (fatal ? 18 : 0);
    (void)capbuf_printf(out, "%.*s:%.*s:", (int)name.size, (const char *)name.data,
                        (int)h->row.size, (const char *)h->row.data);
    if (column > 0) {
        (void)capbuf_printf(out, "%zu:", column);
    }
    (void)capbuf_printf(out, " %s%.*s\n", fatal ? "fatal error" : "", (int)(end - rest), rest);
}

void nvrtc_log_rewrite(const char *raw, const char *internal, const char *file, struct capbuf *out)
{
    for (const char *at = raw; *at != '\0' && !out->failed;) {
        struct bytes line = line_at(at);
        struct head h;
        bool empty = line.size == 0;
        if (empty) {
            /* NVRTC puts empty lines between its messages */
        } else if (head_read(line, &h)) {
            struct bytes name = bytes_of(line.data, h.name);
            message_add(out, at, line, &h, name_shown(name, internal, file));
        } else {
            text_add(out, line, internal, file);
        }
        at = line_after(at, line);
    }
}

struct bytes nvrtc_log_error(struct bytes log)
{
    static const char *const marks[] = {"error: ", "ptxas error", "error   :", "error:"};
    for (size_t m = 0; m < sizeof marks / sizeof marks[0] && log.size > 0; m++) {
        const char *text = (const char *)log.data;
        const char *found = memmem(text, log.size, marks[m], strlen(marks[m]));
        if (found == NULL) {
            continue;
        }
        const char *begin = found;
        while (begin > text && begin[-1] != '\n') {
            begin--;
        }
        const char *stop = memchr(found, '\n', log.size - (size_t)(found - text));
        return bytes_of(begin, (size_t)((stop != NULL ? stop : text + log.size) - begin));
    }
    return bytes_of(NULL, 0);
}
