#include "daemon/backend/cuda/compile/nvrtc_pch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/hash.h"
#include "common/stamp.h"
#include "daemon/backend/cuda/source/header.h"

#define OPTIONS_MAX 16u
#define ABANDONED_S 600 /* seconds after which an unfinished file is given up */
#define VERSION_LEN 8   /* digits of the version in a file's name */

struct paths {
    char folder[PATH_MAX - 128];
    char name[2 * HASH_TEXT_BYTES]; /* version and key */
    char file[PATH_MAX];
    char sum[PATH_MAX]; /* its checksum's file */
    char made[PATH_MAX];
};

/* Identifies the NVRTC and the text from which a header is made, our own headers included. Files
 * of another version are useless. */
static struct hash version_of(const char *nvrtc_stamp)
{
    struct hash_part part[2 + 2 * HEADERS_MAX];
    const char *name[HEADERS_MAX];
    const char *text[HEADERS_MAX];
    unsigned headers = headers_given(true, name, text);
    size_t count = 0;
    part[count++] = (struct hash_part){nvrtc_stamp, strlen(nvrtc_stamp)};
    part[count++] = (struct hash_part){NVRTC_PCH_PREFIX, sizeof NVRTC_PCH_PREFIX - 1};
    for (unsigned i = 0; i < headers; i++) {
        part[count++] = (struct hash_part){name[i], strlen(name[i])};
        part[count++] = (struct hash_part){text[i], strlen(text[i])};
    }
    return hash_parts(part, count);
}

static bool paths_make(const struct nvrtc *n, const struct nvrtc_pch *p, struct paths *out)
{
    char stamp[PATH_MAX];
    char version[HASH_TEXT_BYTES];
    char key[HASH_TEXT_BYTES];
    struct hash_part part[OPTIONS_MAX];
    for (unsigned i = 0; i < p->option_count; i++) {
        part[i] = (struct hash_part){p->options[i], strlen(p->options[i])};
    }
    (void)stamp_make(n->file, stamp, sizeof stamp);
    (void)hash_text(version_of(stamp), version);
    (void)hash_text(hash_parts(part, p->option_count), key);
    int used = snprintf(out->folder, sizeof out->folder, "%s/pch", p->cache_dir);
    (void)snprintf(out->name, sizeof out->name, "%.*s-%s", VERSION_LEN, version, key);
    (void)snprintf(out->file, sizeof out->file, "%s/%s.pch", out->folder, out->name);
    (void)snprintf(out->sum, sizeof out->sum, "%s/%s.sum", out->folder, out->name);
    (void)snprintf(out->made, sizeof out->made, "%s/new.%d", out->folder, (int)getpid());
    return stamp[0] != '\0' && used > 0 && (size_t)used < sizeof out->folder;
}

/* ---- verifying a file ------------------------------------------------------------------------ */

static bool file_hash(const char *path, struct hash *ret_hash)
{
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    bool ok = fd >= 0 && hash_file(fd, ret_hash);
    if (fd >= 0) {
        (void)close(fd);
    }
    return ok;
}

static bool verified(const struct paths *p)
{
    struct hash expected;
    struct hash is;
    FILE *f = fopen(p->sum, "rb");
    bool read = f != NULL && fread(&expected, 1, sizeof expected, f) == sizeof expected;
    if (f != NULL) {
        (void)fclose(f);
    }
    return read && file_hash(p->file, &is) && hash_equal(expected, is);
}

/* ---- making one --------------------------------------------------------------------------- */

/* Removes files of other versions, and files that were never finished. */
static void folder_clear(const struct paths *p)
{
    DIR *d = opendir(p->folder);
    const struct dirent *entry;
    while (d != NULL && (entry = readdir(d)) != NULL) {
        struct stat st;
        bool temporary = strncmp(entry->d_name, "new.", 4) == 0;
        bool ours = strncmp(entry->d_name, p->name, VERSION_LEN + 1) == 0;
        if (entry->d_name[0] == '.' || ours ||
            fstatat(dirfd(d), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
            (temporary && time(NULL) - st.st_mtime < ABANDONED_S)) {
            continue;
        }
        (void)unlinkat(dirfd(d), entry->d_name, 0);
    }
    if (d != NULL) {
        (void)closedir(d);
    }
}

static bool header_compile(const struct nvrtc *n, const struct nvrtc_pch *p, const char *file)
{
    const char *name[HEADERS_MAX];
    const char *text[HEADERS_MAX];
    const char *option[OPTIONS_MAX + 1];
    char create[PATH_MAX + 16];
    nvrtc_program program = NULL;
    unsigned headers = headers_given(true, name, text);
    (void)snprintf(create, sizeof create, "--create-pch=%s", file);
    for (unsigned i = 0; i < p->option_count; i++) {
        option[i] = p->options[i];
    }
    option[p->option_count] = create;
    if (n->CreateProgram(&program, NVRTC_PCH_PREFIX, NVRTC_PCH_PROGRAM, (int)headers, text, name) !=
        NVRTC_SUCCESS) {
        return false;
    }
    bool made = n->CompileProgram(program, (int)p->option_count + 1, option) == NVRTC_SUCCESS &&
                n->GetPCHCreateStatus(program) == NVRTC_SUCCESS;
    (void)n->DestroyProgram(&program);
    return made;
}

static bool sum_write(const struct paths *p)
{
    struct hash h;
    if (!file_hash(p->made, &h)) {
        return false;
    }
    FILE *f = fopen(p->sum, "wb");
    bool ok = f != NULL && fwrite(&h, 1, sizeof h, f) == sizeof h;
    return f != NULL && fclose(f) == 0 && ok;
}

static bool make(const struct nvrtc *n, const struct nvrtc_pch *p, const struct paths *paths)
{
    if (mkdir(paths->folder, 0700) != 0 && errno != EEXIST) {
        return false;
    }
    folder_clear(paths);
    bool ok = header_compile(n, p, paths->made) && sum_write(paths) &&
              rename(paths->made, paths->file) == 0;
    if (!ok) {
        (void)unlink(paths->made);
    }
    return ok;
}

bool nvrtc_pch_obtain(const struct nvrtc *n, const struct nvrtc_pch *p, char ret_option[PATH_MAX])
{
    struct paths paths;
    bool able = p->cache_dir != NULL && p->cache_dir[0] == '/' && n->GetPCHCreateStatus != NULL &&
                p->option_count <= OPTIONS_MAX;
    if (!able || !paths_make(n, p, &paths) || (!verified(&paths) && !make(n, p, &paths))) {
        return false;
    }
    int used = snprintf(ret_option, PATH_MAX, "--use-pch=%s", paths.file);
    return used > 0 && used < PATH_MAX;
}
