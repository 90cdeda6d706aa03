/* Runs a fuzz target once over each file of a folder: replay FOLDER. Fails on an empty folder. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay(const char *folder, const char *name)
{
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        perror(path);
        return -1;
    }
    static uint8_t data[1 << 20];
    size_t size = fread(data, 1, sizeof data, file);
    int broken = ferror(file);
    (void)fclose(file);
    return broken != 0 ? -1 : LLVMFuzzerTestOneInput(data, size);
}

int main(int argc, char **argv)
{
    DIR *dir = argc == 2 ? opendir(argv[1]) : NULL;
    if (dir == NULL) {
        (void)fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
        return EXIT_FAILURE;
    }
    unsigned done = 0;
    unsigned failed = 0;
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        if (entry->d_name[0] != '.') {
            done++;
            failed += replay(argv[1], entry->d_name) != 0;
        }
    }
    (void)closedir(dir);
    (void)printf("%u inputs, %u failed\n", done, failed);
    return done > 0 && failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
