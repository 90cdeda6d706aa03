#include "client/src/wire/environment.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>

const char *environment_text(const char *name)
{
    const char *text = getenv(name);
    return text != NULL && text[0] != '\0' ? text : NULL;
}

int environment_number(const char *name, uint64_t most, uint64_t otherwise, uint64_t *ret_number,
                       struct err *e)
{
    const char *text = environment_text(name);
    char *end = NULL;
    if (text == NULL) {
        *ret_number = otherwise;
        return 0;
    }
    errno = 0;
    /* strtoull would skip spaces and take a sign, and "-1" as the largest number */
    uint64_t number = isdigit((unsigned char)text[0]) ? strtoull(text, &end, 10) : 0;
    if (end == NULL || *end != '\0' || errno != 0 || number > most) {
        return err_set(e, ERR_INVALID, "%s is '%.32s', not a whole number up to %" PRIu64, name,
                       text, most);
    }
    *ret_number = number;
    return 0;
}
