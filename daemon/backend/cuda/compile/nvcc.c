#include "daemon/backend/cuda/compile/nvcc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/backend/cuda/driver/toolkit.h"

#define SAID_FILE  "said"
#define SAID_MAX   (1024u * 1024u) /* limit in bytes of the output that is read */
#define LINE_BYTES 8192u

/* ---- where it is ----------------------------------------------------------------------------- */

static bool program_at(const char *folder, const char *below, char ret_file[PATH_MAX])
{
    char path[PATH_MAX];
    struct stat st;
    int n = snprintf(path, sizeof path, "%s%s", folder, below);
    return n > 0 && (size_t)n < sizeof path && path[0] == '/' && realpath(path, ret_file) != NULL &&
           stat(ret_file, &st) == 0 && S_ISREG(st.st_mode) && access(ret_file, X_OK) == 0;
}

bool nvcc_find(const char *path, char ret_file[PATH_MAX])
{
    const char *const folders[] = {getenv("CUDA_PATH"), getenv("CUDA_HOME"), GPUD_CUDA_TOOLKIT,
                                   "/usr/local/cuda", "/usr"};
    if (path[0] != '\0') {
        return program_at(path, "", ret_file) || program_at(path, "/nvcc", ret_file) ||
               program_at(path, "/bin/nvcc", ret_file);
    }
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        if (folders[i] != NULL && program_at(folders[i], "/bin/nvcc", ret_file)) {
            return true;
        }
    }
    return false;
}

/* ---- running it ------------------------------------------------------------------------------ */

/* The environment for nvcc has only what nvcc needs: no NVCC_PREPEND_FLAGS and the like. */
struct environment {
    char path[PATH_MAX + 64];
    char tmpdir[PATH_MAX + 8];
    char home[PATH_MAX + 8];
    char *list[6];
};

static void environment_make(const struct nvcc_run *r, struct environment *out)
{
    static char language[] = "LC_ALL=C"; /* quotes in messages are ASCII */
    int folder = (int)(strrchr(r->program, '/') - r->program);
    (void)snprintf(out->path, sizeof out->path, "PATH=%.*s:/usr/local/bin:/usr/bin:/bin", folder,
                   r->program);
    (void)snprintf(out->tmpdir, sizeof out->tmpdir, "TMPDIR=%s", r->folder);
    (void)snprintf(out->home, sizeof out->home, "HOME=%s", r->folder);
    out->list[0] = out->path;
    out->list[1] = out->tmpdir;
    out->list[2] = out->home;
    out->list[3] = language;
    out->list[4] = NULL;
}

static int start(const struct nvcc_run *r, int said, pid_t *ret_pid, struct err *e)
{
    struct environment env;
    posix_spawn_file_actions_t actions;
    char *argv[NVCC_ARGUMENTS_MAX + 2] = {(char *)(uintptr_t)r->program};
    for (size_t i = 0; i < NVCC_ARGUMENTS_MAX && r->argument[i] != NULL; i++) {
        argv[i + 1] = (char *)(uintptr_t)r->argument[i]; /* argv is only read */
    }
    environment_make(r, &env);
    int rc = posix_spawn_file_actions_init(&actions);
    if (rc == 0) {
        rc = posix_spawn_file_actions_adddup2(&actions, said, STDOUT_FILENO);
        rc = rc == 0 ? posix_spawn_file_actions_adddup2(&actions, said, STDERR_FILENO) : rc;
        rc = rc == 0 ? posix_spawn_file_actions_addchdir_np(&actions, r->folder) : rc;
        rc = rc == 0 ? posix_spawn(ret_pid, r->program, &actions, NULL, argv, env.list) : rc;
        (void)posix_spawn_file_actions_destroy(&actions);
    }
    errno = rc;
    return rc == 0 ? 0 : err_errno(e, ERR_IO, "starting %s", r->program);
}

static void said_read(int fd, struct capbuf *said)
{
    char *text = malloc(SAID_MAX);
    ssize_t n = text != NULL ? pread(fd, text, SAID_MAX, 0) : 0;
    if (n > 0) {
        (void)capbuf_append(said, text, strnlen(text, (size_t)n));
    }
    free(text);
}

static bool says(const struct capbuf *said, const char *words)
{
    return said->size > 0 && memmem(said->data, said->size, words, strlen(words)) != NULL;
}

/* Checks whether a limit was reached. Each step of nvcc has the limits of this process by
 * itself, and nvcc prints how it ended. */
static int limit_check(const struct capbuf *said, int status, struct err *e)
{
    bool time = (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU) || says(said, "(SIGXCPU") ||
                says(said, "CPU time limit exceeded");
    bool memory = says(said, "bad_alloc") || says(said, "out of memory") ||
                  says(said, "Cannot allocate memory") || says(said, "virtual memory exhausted");
    if (time) {
        return err_set(e, ERR_COMPILE_LIMIT, "nvcc took more CPU time than compile.cpu_s allows");
    }
    if (memory) {
        return err_set(e, ERR_COMPILE_LIMIT,
                       "nvcc took more memory than compile.memory_bytes allows");
    }
    return says(said, "(SIGXFSZ") || says(said, "File size limit exceeded")
               ? err_set(e, ERR_COMPILE_LIMIT, "nvcc wrote files larger than it may")
               : 0;
}

int nvcc_run(const struct nvcc_run *r, struct capbuf *said, bool *ret_done, struct err *e)
{
    char path[PATH_MAX];
    pid_t pid = 0;
    int status = 0;
    (void)snprintf(path, sizeof path, "%s/" SAID_FILE, r->folder);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        return err_errno(e, ERR_IO, "%s", path);
    }
    int rc = start(r, fd, &pid, e);
    if (rc == 0) {
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
        }
        said_read(fd, said);
        *ret_done = WIFEXITED(status) && WEXITSTATUS(status) == 0;
        rc = *ret_done ? 0 : limit_check(said, status, e);
    }
    (void)close(fd);
    return rc;
}

/* ---- what it read ---------------------------------------------------------------------------- */

static bool below(const char *path, const char *folder)
{
    size_t size = strlen(folder);
    return strncmp(path, folder, size) == 0 && path[size] == '/';
}

/* Is the file one that may be read? `written`: its path as the preprocessor wrote it, relative
 * to the folder. */
static bool path_allowed(const struct nvcc_run *r, const char *written)
{
    char whole[2 * PATH_MAX];
    char real[PATH_MAX];
    char toolkit[PATH_MAX];
    (void)snprintf(whole, sizeof whole, "%s%s%s", written[0] == '/' ? "" : r->folder,
                   written[0] == '/' ? "" : "/", written);
    (void)snprintf(toolkit, sizeof toolkit, "%s", r->program);
    for (int i = 0; i < 2 && strrchr(toolkit, '/') != NULL; i++) { /* from DIR/bin/nvcc to DIR */
        *strrchr(toolkit, '/') = '\0';
    }
    return realpath(whole, real) != NULL &&
           (below(real, "/usr") || below(real, r->folder) || below(real, toolkit));
}

/* Checks a line like "# 1 "/usr/include/stdio.h" 1 3 4": the 1 after the name says that a file
 * begins. */
static bool line_allowed(const struct nvcc_run *r, char *line)
{
    char *name = strchr(line, '"');
    char *close = name != NULL ? strrchr(line, '"') : NULL;
    if (strncmp(line, "# ", 2) != 0 || close == name || strncmp(close, "\" 1", 3) != 0) {
        return true;
    }
    *close = '\0';
    return name[1] == '<' || path_allowed(r, name + 1);
}

static bool file_allowed(const struct nvcc_run *r, int folder, const char *name)
{
    char line[LINE_BYTES];
    bool ok = true;
    /* at the beginning of a line, which may be longer than what is read at once */
    bool begins = true;
    int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    FILE *f = fd >= 0 ? fdopen(fd, "r") : NULL;
    if (f == NULL) {
        return false;
    }
    while (ok && fgets(line, sizeof line, f) != NULL) {
        bool whole = strchr(line, '\n') != NULL;
        ok = !begins || line_allowed(r, line);
        begins = whole;
    }
    ok = ok && ferror(f) == 0;
    (void)fclose(f);
    return ok;
}

bool nvcc_read_only_headers(const struct nvcc_run *r)
{
    DIR *d = opendir(r->folder);
    const struct dirent *entry;
    unsigned files = 0;
    bool ok = d != NULL;
    while (ok && (entry = readdir(d)) != NULL) {
        size_t size = strlen(entry->d_name);
        if (size > 3 && strcmp(entry->d_name + size - 3, ".ii") == 0) {
            ok = file_allowed(r, dirfd(d), entry->d_name);
            files++;
        }
    }
    if (d != NULL) {
        (void)closedir(d);
    }
    return ok && files > 0;
}
