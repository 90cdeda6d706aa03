#include "gpuctl/sheet/sheet_fit.h"

#include <stdlib.h>
#include <string.h>
#include <wchar.h>

/* A wrapped text has lines of at least so many columns; narrower lines are unreadable. */
#define TEXT_LEAST 16u

/* Bytes of the first character of `text`, which is not empty, and the columns that it takes. */
static size_t character(const char *text, size_t *ret_columns)
{
    mbstate_t state = {0};
    wchar_t letter;
    size_t bytes = mbrtowc(&letter, text, strlen(text), &state);
    *ret_columns = 1;
    if (bytes == 0 || bytes == (size_t)-1 || bytes == (size_t)-2) {
        return 1;
    }
    int columns = wcwidth(letter);
    *ret_columns = columns >= 0 ? (size_t)columns : 1;
    return bytes;
}

size_t fit_width(const char *text)
{
    size_t width = 0;
    while (*text != '\0') {
        size_t columns;
        text += character(text, &columns);
        width += columns;
    }
    return width;
}

size_t fit_cut(const char *text, size_t width)
{
    size_t at = 0, used = 0;
    while (text[at] != '\0') {
        size_t columns;
        size_t bytes = character(text + at, &columns);
        used += columns;
        if (used > width) {
            break;
        }
        at += bytes;
    }
    return at;
}

static size_t least(const struct fit_column *c)
{
    size_t wrapped = c->head > TEXT_LEAST ? c->head : TEXT_LEAST;
    return c->text && c->width > wrapped ? wrapped : c->width;
}

/* The width of a line if every shown column has its least width. */
static size_t line_width(const struct fit_column *columns, size_t count)
{
    size_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        sum += columns[i].shown ? least(&columns[i]) + (sum > 0 ? 1 : 0) : 0;
    }
    return sum;
}

/* Leaves out the rightmost column, or the rightmost column without values. false: there is none. */
static bool leave_out(struct fit_column *columns, size_t count, bool only_empty)
{
    for (size_t i = count; i-- > 1;) {
        if (columns[i].shown && (columns[i].empty || !only_empty)) {
            columns[i].shown = false;
            return true;
        }
    }
    return false;
}

void fit_columns(struct fit_column *columns, size_t count, size_t room)
{
    for (size_t i = 0; i < count; i++) {
        columns[i].shown = true;
        columns[i].given = columns[i].width;
    }
    if (room == 0) {
        return;
    }
    while (line_width(columns, count) > room &&
           (leave_out(columns, count, true) || leave_out(columns, count, false))) {
    }
    size_t line = line_width(columns, count);
    size_t spare = room > line ? room - line : 0;
    for (size_t i = 0; i < count; i++) {
        if (columns[i].shown) {
            size_t wanted = columns[i].width - least(&columns[i]);
            size_t more = wanted < spare ? wanted : spare;
            columns[i].given = least(&columns[i]) + more;
            spare -= more;
        }
    }
}

/* Bytes of the first line of `text`, at most `width` columns, and the bytes up to the next one. */
static size_t first_line(const char *text, size_t width, size_t *ret_next)
{
    size_t at = 0, used = 0, blank = 0;
    while (text[at] != '\0') {
        size_t columns;
        size_t bytes = character(text + at, &columns);
        if (used + columns > width && at > 0) {
            break;
        }
        blank = text[at] == ' ' ? at : blank;
        used += columns;
        at += bytes;
    }
    bool whole = text[at] == '\0' || text[at] == ' ' || blank == 0;
    size_t end = whole ? at : blank;
    *ret_next = text[end] == ' ' ? end + 1 : end;
    return end;
}

char *fit_wrap(const char *text, size_t width)
{
    /* each line takes at least one byte of the text and adds one */
    char *lines = malloc(2 * strlen(text) + 1);
    size_t used = 0;
    while (lines != NULL && *text != '\0') {
        size_t next;
        size_t size = first_line(text, width, &next);
        memcpy(lines + used, text, size);
        used += size;
        text += next;
        if (*text != '\0') {
            lines[used++] = '\n';
        }
    }
    if (lines != NULL) {
        lines[used] = '\0';
    }
    return lines;
}
