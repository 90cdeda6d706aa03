#include "tests/torture/shim.h"

#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define FRAMES_MAX 40
#define RANGES_MAX 8

struct range {
    uintptr_t begin, end;
};

static struct {
    struct torture_page *page; /* NULL: none, or not yet */
    struct torture_process *process;
    enum role role;
    struct range own[RANGES_MAX]; /* code whose calls count */
    unsigned own_count;
    char path[256], program[256];
} shim;

static const struct {
    const char *program;
    const char *own;
} roles[] = {
#define X(name, text, program, own) {program, own},
    ROLES(X)
#undef X
};

static const int numbers[] = {
#define X(name, text, number) number,
    KINDS(X)
#undef X
};

static _Thread_local bool busy; /* in a trace, which calls much itself */

void *shim_next(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

const char *shim_path(void)
{
    return shim.path;
}

/* ---- which calls count ---------------------------------------------------------------------- */

static bool is_own(const void *caller)
{
    uintptr_t at = (uintptr_t)caller;
    for (unsigned i = 0; i < shim.own_count; i++) {
        if (at >= shim.own[i].begin && at < shim.own[i].end) {
            return true;
        }
    }
    return false;
}

static int add_object(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    const char *own = data; /* NULL: the program, whose name is "" */
    const char *slash = strrchr(info->dlpi_name, '/');
    const char *name = slash != NULL ? slash + 1 : info->dlpi_name;
    if (own == NULL ? name[0] != '\0' : strncmp(name, own, strlen(own)) != 0) {
        return 0;
    }
    for (unsigned i = 0; i < info->dlpi_phnum && shim.own_count < RANGES_MAX; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type == PT_LOAD && (p->p_flags & PF_X) != 0) {
            uintptr_t begin = info->dlpi_addr + p->p_vaddr;
            shim.own[shim.own_count++] = (struct range){begin, begin + p->p_memsz};
        }
    }
    return 1;
}

/* ---- what is told --------------------------------------------------------------------------- */

static void trace_write(char *out)
{
    void *frames[FRAMES_MAX];
    size_t used = 0;
    int count = backtrace(frames, FRAMES_MAX);
    out[0] = '\0';
    for (int i = 0; i < count && used + 300 < TRACE_TEXT; i++) {
        Dl_info info = {0};
        struct link_map *map = NULL;
        if (dladdr1(frames[i], &info, (void **)&map, RTLD_DL_LINKMAP) == 0 || map == NULL) {
            continue;
        }
        int n = snprintf(out + used, TRACE_TEXT - used, "%.200s+0x%lx\n",
                         map->l_name[0] != '\0' ? map->l_name : shim.program,
                         (unsigned long)((uintptr_t)frames[i] - map->l_addr));
        used += n > 0 ? (size_t)n : 0;
    }
}

static void tell_hit(const char *call)
{
    struct torture_hit *hit = &shim.page->hit;
    if (atomic_fetch_add(&hit->count, 1) == 0) {
        busy = true;
        hit->pid = (int)getpid();
        (void)snprintf(hit->call, sizeof hit->call, "%s", call);
        trace_write(hit->trace);
        busy = false;
    }
}

static void on_crash(int number)
{
    struct torture_crash *crash = &shim.page->crash;
    if (atomic_fetch_add(&crash->count, 1) == 0) {
        busy = true;
        crash->pid = (int)getpid();
        crash->signal = number;
        crash->role = shim.role;
        trace_write(crash->trace);
    }
    (void)signal(number, SIG_DFL);
    (void)raise(number);
}

/* An exit with a status other than 0: who called it. */
static void tell_exit(int status)
{
    struct torture_end *end = shim.page != NULL ? &shim.page->end[shim.role] : NULL;
    if (end != NULL && status != 0 && getpid() == shim.process->pid) {
        busy = true;
        end->status = status;
        trace_write(end->trace);
        busy = false;
    }
}

SHIM void exit(int status)
{
    void (*next)(int) = NULL;
    *(void **)&next = shim_next("exit");
    tell_exit(status);
    next(status);
    abort();
}

SHIM void _exit(int status)
{
    void (*next)(int) = NULL;
    *(void **)&next = shim_next("_exit");
    tell_exit(status);
    next(status);
    abort();
}

/* ---- failing -------------------------------------------------------------------------------- */

bool shim_fails(enum kind kind, const char *call, const void *caller)
{
    struct torture_page *page = shim.page;
    if (page == NULL || busy || (caller != NULL && !is_own(caller))) {
        return false;
    }
    uint64_t at = atomic_fetch_add(&page->calls[shim.role][kind], 1);
    if (!atomic_load(&page->armed) || page->role != shim.role || page->kind != kind ||
        at < page->first || at - page->first >= page->count) {
        return false;
    }
    tell_hit(call);
    errno = numbers[kind];
    return true;
}

bool shim_fails_on_file(enum kind kind, const char *call, int fd, const void *caller)
{
    struct stat st;
    int kept = errno;
    if (shim.page == NULL || busy || !is_own(caller) || fstat(fd, &st) != 0 ||
        !S_ISREG(st.st_mode)) {
        errno = kept;
        return false;
    }
    return shim_fails(kind, call, caller);
}

/* ---- the beginning -------------------------------------------------------------------------- */

static void process_take(void)
{
    for (unsigned i = 0; i < PROCESSES_MAX; i++) {
        int none = 0;
        struct torture_process *p = &shim.page->process[i];
        if (atomic_compare_exchange_strong(&p->pid, &none, (int)getpid())) {
            p->role = shim.role;
            atomic_store(&p->blocks, 0);
            atomic_store(&p->bytes, 0);
            shim.process = p;
            return;
        }
    }
}

static bool role_find(void)
{
    ssize_t n = readlink("/proc/self/exe", shim.program, sizeof shim.program - 1);
    shim.program[n > 0 ? n : 0] = '\0';
    const char *slash = strrchr(shim.program, '/');
    for (unsigned i = 0; slash != NULL && i < ROLE_COUNT; i++) {
        if (strcmp(slash + 1, roles[i].program) == 0) {
            shim.role = (enum role)i;
            return true;
        }
    }
    return false;
}

__attribute__((constructor)) static void begin(void)
{
    static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
    const char *path = getenv(TORTURE_PAGE);
    Dl_info self = {0};
    int fd = path != NULL && role_find() ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0) {
        return;
    }
    void *page = mmap(NULL, sizeof(struct torture_page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    (void)close(fd);
    if (page == MAP_FAILED || dladdr((const void *)(uintptr_t)&shim_path, &self) == 0) {
        return;
    }
    (void)snprintf(shim.path, sizeof shim.path, "%s", self.dli_fname);
    (void)dl_iterate_phdr(add_object, (void *)(uintptr_t)roles[shim.role].own);
    void *frame = NULL;
    (void)backtrace(&frame, 1); /* loads what it needs now */
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        const struct sigaction action = {.sa_handler = on_crash, .sa_flags = (int)SA_RESETHAND};
        (void)sigaction(signals[i], &action, NULL);
    }
    shim.page = page;
    process_take();
}

/* ---- the heap ------------------------------------------------------------------------------- */

/* Blocks that count where others do not (page.h: driver_keeps): each lies in one of NEAR places
 * from its hash on. One that finds no place is not counted. */
#define PLACES 65536u
#define NEAR   32u
static _Atomic uintptr_t places[PLACES];

static bool place_change(const void *block, uintptr_t from, uintptr_t to)
{
    uint32_t hash = (uint32_t)((uintptr_t)block >> 4) * UINT32_C(2654435761);
    for (unsigned i = 0; i < NEAR; i++) {
        uintptr_t expected = from;
        if (atomic_compare_exchange_strong(&places[((hash >> 16) + i) % PLACES], &expected, to)) {
            return true;
        }
    }
    return false;
}

static bool counts_own(void)
{
    return shim.role == ROLE_WORKER && shim.page->driver_keeps;
}

static void heap_add(void *block, int delta)
{
    extern size_t malloc_usable_size(void *);
    atomic_fetch_add(&shim.process->blocks, delta);
    atomic_fetch_add(&shim.process->bytes, delta * (int64_t)malloc_usable_size(block));
}

void shim_heap_take(void *block, const void *caller)
{
    if (shim.process != NULL && block != NULL &&
        (!counts_own() || (is_own(caller) && place_change(block, 0, (uintptr_t)block)))) {
        heap_add(block, 1);
    }
}

void shim_heap_give(void *block)
{
    if (shim.process != NULL && block != NULL &&
        (!counts_own() || place_change(block, (uintptr_t)block, 0))) {
        heap_add(block, -1);
    }
}
