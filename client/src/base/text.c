#include "client/src/base/text.h"

#include <string.h>

#include "common/utf8.h"

void text_copy(char *out, size_t size, struct bytes text)
{
    size_t n = text.size < size ? text.size : size - 1;
    if (n < text.size) {
        while (n > 0 && (text.data[n] & 0xc0) == 0x80) {
            n--; /* do not split a UTF-8 sequence */
        }
    }
    if (n > 0) {
        memcpy(out, text.data, n);
    }
    out[n] = '\0';
}

struct bytes text_mended(struct bytes text, char room[PROTO_LABEL_MAX])
{
    if (text.size > PROTO_LABEL_MAX || utf8_valid(text)) {
        return text;
    }
    memcpy(room, text.data, text.size);
    utf8_mend(room, text.size);
    return bytes_of(room, text.size);
}

int desc_return(void *ret_desc, const void *desc, size_t size, struct err *e)
{
    size_t known;
    if (ret_desc == NULL) {
        return err_set(e, ERR_INVALID, "no struct to fill");
    }
    memcpy(&known, ret_desc, sizeof known);
    if (known < sizeof known || known > 1u << 20) {
        return err_set(e, ERR_INVALID, "the struct's size member is %zu: set it to its sizeof",
                       known);
    }
    size_t copy = known < size ? known : size;
    if (copy > sizeof known) {
        memcpy((char *)ret_desc + sizeof known, (const char *)desc + sizeof known,
               copy - sizeof known);
    }
    return 0;
}
