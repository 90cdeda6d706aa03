#include "tests/sim/folder.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SUFFIX ".course"

static int is_course(const struct dirent *d)
{
    size_t size = strlen(d->d_name);
    return size > strlen(SUFFIX) && strcmp(d->d_name + size - strlen(SUFFIX), SUFFIX) == 0;
}

unsigned folder_play(const char *folder, play_file_fn play_file, const void *data)
{
    struct dirent **names = NULL;
    char path[512];
    unsigned broken = 0;
    int count = scandir(folder, &names, is_course, alphasort);
    for (int i = 0; i < count; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", folder, names[i]->d_name);
        broken += play_file(data, path);
        free(names[i]);
    }
    free(names);
    (void)printf("%d courses of %s, %u broke a rule\n", count < 0 ? 0 : count, folder, broken);
    return count > 0 ? broken : 1;
}
