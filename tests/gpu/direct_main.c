/* gpu-direct ITEM: one of the items that need no daemon. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/gpu/items.h"

static const struct {
    const char *name;
    void (*run)(void);
} items[] = {
    {"attributes", item_attributes},
    {"beside", item_beside},
    {"copies", item_copies},
    {"ends", item_ends},
    {"faulted", item_faulted},
    {"fill", item_fill},
    {"filling", item_filling},
    {"opening", item_opening},
    {"overlap", item_overlap},
    {"pages", item_pages},
    {"pinning", item_pinning},
    {"plain", item_plain},
    {"pool", item_pool},
    {"remaps", item_remaps},
    {"turns", item_turns},
};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc == 2 && i < sizeof items / sizeof items[0]; i++) {
        if (strcmp(argv[1], items[i].name) == 0) {
            items[i].run();
            return EXIT_SUCCESS;
        }
    }
    (void)fputs("usage: gpu-direct ITEM, one of:", stderr);
    for (size_t i = 0; i < sizeof items / sizeof items[0]; i++) {
        (void)fprintf(stderr, " %s", items[i].name);
    }
    (void)fputs("\n", stderr);
    return 2;
}
