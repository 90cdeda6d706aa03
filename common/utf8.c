#include "common/utf8.h"

/* The second byte's range excludes overlong forms, surrogates and characters above U+10FFFF. */
static const struct form {
    uint8_t first, last; /* of the first byte */
    uint8_t least, most; /* of the second */
    uint8_t size;
} forms[] = {
    {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3}, {0xe1, 0xec, 0x80, 0xbf, 3},
    {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3}, {0xf0, 0xf0, 0x90, 0xbf, 4},
    {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
};

static const struct form *form_of(uint8_t first)
{
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        if (first >= forms[i].first && first <= forms[i].last) {
            return &forms[i];
        }
    }
    return NULL;
}

size_t utf8_size(const uint8_t *text, size_t left)
{
    if (left == 0 || text[0] < 0x80) {
        return left > 0;
    }
    const struct form *f = form_of(text[0]);
    if (f == NULL || f->size > left || text[1] < f->least || text[1] > f->most) {
        return 0;
    }
    for (size_t i = 2; i < f->size; i++) {
        if ((text[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    return f->size;
}

bool utf8_valid(struct bytes text)
{
    size_t at = 0;
    while (at < text.size) {
        size_t size = utf8_size(text.data + at, text.size - at);
        if (size == 0) {
            return false;
        }
        at += size;
    }
    return true;
}

void utf8_mend(char *text, size_t size)
{
    for (size_t at = 0; at < size;) {
        size_t step = utf8_size((const uint8_t *)text + at, size - at);
        if (step == 0) {
            text[at] = '?';
            step = 1;
        }
        at += step;
    }
}
