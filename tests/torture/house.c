#include "tests/torture/house.h"

#include <dirent.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- orders --------------------------------------------------------------------------------- */

void house_arm(struct house *h, enum role role, enum kind kind, uint64_t n, uint64_t count)
{
    struct torture_page *p = h->page;
    atomic_store(&p->armed, false);
    atomic_store(&p->hit.count, 0);
    memset(p->end, 0, sizeof p->end);
    p->role = role;
    p->kind = kind;
    p->first = atomic_load(&p->calls[role][kind]) + n;
    p->count = count;
    atomic_store(&p->armed, true);
}

void house_disarm(struct house *h)
{
    atomic_store(&h->page->armed, false);
}

/* ---- processes ------------------------------------------------------------------------------ */

/* A zombie has ended, too. */
static bool lives(pid_t pid)
{
    char path[64];
    char state[256] = "";
    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "re");
    if (f == NULL) {
        return false;
    }
    size_t n = fread(state, 1, sizeof state - 1, f);
    (void)fclose(f);
    state[n] = '\0';
    const char *end = strrchr(state, ')');
    return end != NULL && end[1] == ' ' && end[2] != 'Z' && end[2] != 'X';
}

static struct torture_process *process_of(const struct house *h, enum role role)
{
    for (unsigned i = 0; i < PROCESSES_MAX; i++) {
        struct torture_process *p = &h->page->process[i];
        int pid = atomic_load(&p->pid);
        if (pid != 0 && p->role == role && lives(pid)) {
            return p;
        }
    }
    return NULL;
}

pid_t house_process(const struct house *h, enum role role)
{
    const struct torture_process *p = process_of(h, role);
    return p != NULL ? atomic_load(&p->pid) : 0;
}

void house_forget_ended(struct house *h)
{
    for (unsigned i = 0; i < PROCESSES_MAX; i++) {
        struct torture_process *p = &h->page->process[i];
        int pid = atomic_load(&p->pid);
        if (pid != 0 && !lives(pid)) {
            atomic_store(&p->pid, 0);
        }
    }
}

static int64_t descriptors_of(pid_t pid)
{
    char path[64];
    int64_t count = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    DIR *dir = opendir(path);
    while (dir != NULL && readdir(dir) != NULL) {
        count++;
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    return count;
}

static int64_t shared_of(pid_t pid)
{
    char path[64];
    char line[512];
    int64_t count = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    FILE *f = fopen(path, "re");
    while (f != NULL && fgets(line, sizeof line, f) != NULL) {
        count += strstr(line, " /memfd:") != NULL || strstr(line, " /dev/shm/") != NULL;
    }
    if (f != NULL) {
        (void)fclose(f);
    }
    return count;
}

struct holding house_holding(const struct house *h, enum role role)
{
    struct torture_process *p = process_of(h, role);
    if (p == NULL) {
        return (struct holding){0};
    }
    /* the page has the parent of this process as the client: Check forks for each test */
    pid_t pid = role == ROLE_CLIENT ? getpid() : atomic_load(&p->pid);
    return (struct holding){.blocks = atomic_load(&p->blocks),
                            .descriptors = descriptors_of(pid),
                            .shared = shared_of(pid)};
}

/* ---- files ---------------------------------------------------------------------------------- */

static int64_t files;          /* nftw takes no data */
static const char *kernels_in; /* the folder whose finished files do not count */

static int count_file(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    bool kernel = strncmp(path, kernels_in, strlen(kernels_in)) == 0 &&
                  strncmp(path + at->base, "new.", 4) != 0;
    files += !kernel;
    return 0;
}

int64_t house_files(const struct house *h)
{
    const char *const folders[] = {h->d.dir, h->scratch, h->cache};
    files = 0;
    kernels_in = h->cache;
    for (unsigned i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        (void)nftw(folders[i], count_file, 16, FTW_PHYS);
    }
    return files;
}

/* ---- start and end -------------------------------------------------------------------------- */

bool house_compiles(const struct house *h)
{
    return strcmp(h->device, "opencl") == 0;
}

void house_prepare(struct house *h)
{
    static const char settings[] = "[jobs]\nwindow = 0\nsession_linger_ms = 1000\n"
                                   "[staging]\ninput_bytes = 4M\noutput_bytes = 4M\n";
    const char *options = strcmp(h->device, "sim") == 0 ? "devices=1,speed=0" : "";
    daemon_prepare(&h->d, "--backend", h->device, "--backend-options", options, "--config",
                   h->config, "--cache-dir", h->cache, NULL);
    (void)snprintf(h->config, sizeof h->config, "%s/gpud.conf", h->d.dir);
    file_write(h->config, settings, sizeof settings - 1);
    (void)chmod(h->d.dir, 0755);
    int parent = (int)(strrchr(h->d.dir, '/') - h->d.dir);
    (void)snprintf(h->cache, sizeof h->cache, SYSTEM_CACHE "/torture");
    (void)snprintf(h->scratch, sizeof h->scratch, "%.*s/scratch", parent, h->d.dir);
    (void)mkdir(h->cache, 0700);
    (void)mkdir(h->scratch, 0777);
    (void)setenv("TMPDIR", h->scratch, 1);
    h->page->driver_keeps = strcmp(h->device, "opencl") == 0;
    if (strcmp(h->device, "cuda") == 0) {
        (void)setenv("CUDA_FAKE", "devices=1;delay_us=0", 1);
        (void)setenv("LD_LIBRARY_PATH", TORTURE_FAKECUDA, 1);
    }
}

/* What gpud left comes to this process, which reaps it. */
static bool reap_all(uint64_t end_ns)
{
    for (;;) {
        pid_t pid = waitpid(-1, NULL, WNOHANG);
        if (pid < 0) {
            return true;
        }
        if (pid == 0 && now_ns() > end_ns) {
            return false;
        }
        if (pid == 0) {
            pause_ms(2);
        }
    }
}

static bool wait_front(struct house *h, uint64_t end_ns, int *ret_status)
{
    int status = 0;
    while (h->d.pid != 0) {
        pid_t pid = waitpid(h->d.pid, &status, WNOHANG);
        if (pid != 0) {
            h->d.pid = 0;
            *ret_status = pid < 0               ? -1
                          : WIFSIGNALED(status) ? 128 + WTERMSIG(status)
                                                : WEXITSTATUS(status);
            return true;
        }
        if (now_ns() > end_ns) {
            return false;
        }
        pause_ms(2);
    }
    *ret_status = -1;
    return true;
}

int house_wait(struct house *h)
{
    int status = -1;
    return wait_front(h, now_ns() + PATIENCE, &status) ? status : -1;
}

bool house_lives(struct house *h)
{
    return h->d.pid != 0 && lives(h->d.pid);
}

int house_start(struct house *h, uint64_t patience)
{
    daemon_spawn(&h->d);
    return house_await(h, patience);
}

int house_await(struct house *h, uint64_t patience)
{
    uint64_t end_ns = now_ns() + patience;
    int status = 0;
    while (!daemon_serves(&h->d)) {
        if (wait_front(h, 0, &status)) {
            return status;
        }
        if (now_ns() > end_ns) {
            return -1;
        }
        pause_ms(5);
    }
    return 0;
}

/* Children of this process; orphans of the daemon come to it. */
static void kill_children(void)
{
    char path[64];
    char child[16];
    (void)snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    FILE *f = fopen(path, "re");
    while (f != NULL && fscanf(f, "%15s", child) == 1) {
        pid_t pid = (pid_t)strtol(child, NULL, 10);
        if (pid > 0) {
            (void)kill(pid, SIGKILL);
        }
    }
    if (f != NULL) {
        (void)fclose(f);
    }
}

void house_abandon(struct house *h)
{
    uint64_t end_ns = now_ns() + PATIENCE;
    while (!reap_all(now_ns())) {
        kill_children();
        ck_assert_msg(now_ns() < end_ns, "processes cannot be killed");
        pause_ms(5);
    }
    h->d.pid = 0;
    house_forget_ended(h);
}

int house_stop(struct house *h)
{
    int status = -1;
    if (h->d.pid != 0) {
        (void)kill(h->d.pid, SIGTERM);
        status = house_wait(h);
    }
    if (h->d.pid != 0 || !reap_all(now_ns() + PATIENCE)) {
        status = -1;
    }
    house_abandon(h);
    return status;
}
