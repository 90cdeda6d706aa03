/*
 * Input: the kind of a message (one byte), then the message. Whatever is accepted must survive
 * being encoded and decoded again. Built with libFuzzer, or with replay.c for the ordinary tests.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/proto/sample.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct schema *schema = size > 0 ? schema_find(data[0]) : NULL;
    if (schema == NULL) {
        return 0;
    }
    const char *wrong = sample_check(schema, bytes_of(data + 1, size - 1), NULL);
    if (wrong != NULL) {
        (void)fprintf(stderr, "%s: %s\n", schema->name, wrong);
        abort();
    }
    return 0;
}
