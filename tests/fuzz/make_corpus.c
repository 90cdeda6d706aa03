/* Writes two seeds for each message into a folder: make_corpus FOLDER. The same ones each time. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/proto/sample.h"

static int seed_write(const char *folder, const struct schema *schema, uint64_t seed)
{
    struct sample s;
    struct sample_value value;
    struct capbuf out;
    sample_init(&s, seed * 1000 + schema->kind, true);
    sample_make(&s, schema, &value);
    capbuf_init(&out, PROTO_MESSAGE_MAX);
    uint8_t kind = (uint8_t)schema->kind;
    bool ok = capbuf_append(&out, &kind, 1) && proto_encode(schema, &value, &out, NULL) == 0;
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/%s-%d", folder, schema->name, (int)seed);
    FILE *file = ok ? fopen(path, "wb") : NULL;
    ok = file != NULL && fwrite(out.data, 1, out.size, file) == out.size;
    if (file != NULL && fclose(file) != 0) {
        ok = false;
    }
    if (!ok) {
        perror(path);
    }
    capbuf_finish(&out);
    sample_finish(&s);
    return ok ? 0 : -1;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        (void)fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
        return EXIT_FAILURE;
    }
    for (size_t i = 0; sample_schemas[i] != NULL; i++) {
        for (uint64_t seed = 0; seed < 2; seed++) {
            if (seed_write(argv[1], sample_schemas[i], seed) != 0) {
                return EXIT_FAILURE;
            }
        }
    }
    return EXIT_SUCCESS;
}
