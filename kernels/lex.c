#include <string.h>

#include "kernels/signature_int.h"

bool lex_is_name_start(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool lex_is_name(int c)
{
    return lex_is_name_start(c) || (c >= '0' && c <= '9');
}

bool lex_is_space(int c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v';
}

static bool at(struct bytes text, size_t pos, const char *what)
{
    size_t len = strlen(what);
    return text.size - pos >= len && memcmp(text.data + pos, what, len) == 0;
}

static size_t skip_block_comment(struct bytes text, size_t pos)
{
    for (pos += 2; pos < text.size; pos++) {
        if (at(text, pos, "*/")) {
            return pos + 2;
        }
    }
    return text.size;
}

static size_t skip_literal(struct bytes text, size_t pos)
{
    uint8_t quote = text.data[pos];
    for (pos++; pos < text.size; pos++) {
        if (text.data[pos] == '\\') {
            pos++;
        } else if (text.data[pos] == quote) {
            return pos + 1;
        } else if (text.data[pos] == '\n') {
            return pos;
        }
    }
    return text.size;
}

size_t lex_skip(struct bytes text, size_t pos)
{
    if (at(text, pos, "/*")) {
        return skip_block_comment(text, pos);
    }
    if (at(text, pos, "//")) {
        while (pos < text.size && text.data[pos] != '\n') {
            pos++;
        }
        return pos;
    }
    if (text.data[pos] == '"' || text.data[pos] == '\'') {
        return skip_literal(text, pos);
    }
    return pos;
}

bool lex_uses(struct bytes text, const char *word)
{
    size_t len = strlen(word);
    size_t pos = 0;
    while (pos < text.size) {
        size_t after = lex_skip(text, pos);
        if (after != pos) {
            pos = after;
            continue;
        }
        if (!lex_is_name(text.data[pos])) {
            pos++;
            continue;
        }
        size_t begin = pos;
        while (pos < text.size && lex_is_name(text.data[pos])) {
            pos++;
        }
        if (pos - begin == len && memcmp(text.data + begin, word, len) == 0) {
            return true;
        }
    }
    return false;
}
