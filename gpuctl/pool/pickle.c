#include "gpuctl/pool/pickle.h"

#include <string.h>

#include "common/utf8.h"

#define BATCH 1000u

/* opcodes */
#define PROTO      0x80
#define STOP       '.'
#define EMPTY_DICT '}'
#define EMPTY_LIST ']'
#define MARK       '('
#define SETITEMS   'u'
#define APPENDS    'e'
#define BININT1    'K'
#define BININT2    'M'
#define LONG1      0x8a
#define BINUNICODE 'X'
#define BINPUT     'q'
#define BINGET     'h'

static void little(struct pickle *p, uint64_t value, unsigned size)
{
    for (unsigned i = 0; i < size; i++) {
        putc((int)(value >> 8 * i & 0xff), p->out);
    }
}

void pickle_begin(struct pickle *p, FILE *out)
{
    *p = (struct pickle){.out = out};
    putc(PROTO, out);
    putc(2, out);
}

void pickle_end(struct pickle *p)
{
    putc(STOP, p->out);
}

void pickle_dict(struct pickle *p)
{
    putc(EMPTY_DICT, p->out);
    putc(MARK, p->out);
}

void pickle_dict_end(struct pickle *p)
{
    putc(SETITEMS, p->out);
}

void pickle_key(struct pickle *p, const char *key)
{
    unsigned i = 0;
    while (i < p->keys && strcmp(p->key[i], key) != 0) {
        i++;
    }
    if (i < p->keys) {
        putc(BINGET, p->out);
        putc((int)i, p->out);
        return;
    }
    pickle_text(p, key);
    if (p->keys < PICKLE_KEYS) {
        putc(BINPUT, p->out);
        putc((int)p->keys, p->out);
        p->key[p->keys++] = key;
    }
}

struct pickle_list pickle_list(struct pickle *p)
{
    putc(EMPTY_LIST, p->out);
    putc(MARK, p->out);
    return (struct pickle_list){.items = 0};
}

void pickle_item(struct pickle *p, struct pickle_list *list)
{
    if (list->items == BATCH) {
        putc(APPENDS, p->out);
        putc(MARK, p->out);
        list->items = 0;
    }
    list->items++;
}

void pickle_list_end(struct pickle *p)
{
    putc(APPENDS, p->out);
}

void pickle_uint(struct pickle *p, uint64_t value)
{
    if (value <= UINT16_MAX) {
        putc(value <= UINT8_MAX ? BININT1 : BININT2, p->out);
        little(p, value, value <= UINT8_MAX ? 1 : 2);
        return;
    }
    unsigned size = 3; /* bytes; the highest bit must be free for the sign */
    while (size < 8 && value >> (8 * size - 1) != 0) {
        size++;
    }
    bool long_sign = size == 8 && value >> 63 != 0;
    putc(LONG1, p->out);
    putc((int)(long_sign ? 9 : size), p->out);
    little(p, value, size);
    if (long_sign) {
        putc(0, p->out);
    }
}

void pickle_text(struct pickle *p, const char *text)
{
    size_t size = strlen(text);
    const uint8_t *end = (const uint8_t *)text + size;
    putc(BINUNICODE, p->out);
    little(p, size, 4);
    for (const uint8_t *at = (const uint8_t *)text; at < end;) {
        size_t length = utf8_size(at, (size_t)(end - at));
        if (length == 0) {
            putc('?', p->out);
        } else {
            (void)fwrite(at, 1, length, p->out);
        }
        at += length > 0 ? length : 1;
    }
}
