#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/fakecuda/fake.h"

/* Appended in one write: several processes share the file, and the lines of a process that is
 * killed are complete. */
static void line_write(const char *what, const char *format, va_list args)
{
    const char *path = setting("_REPORT");
    char line[1024];
    int at = snprintf(line, sizeof line, "%d %s: ", (int)getpid(), what);
    int size = at + vsnprintf(line + at, sizeof line - (size_t)at, format, args);
    size = size > (int)sizeof line - 1 ? (int)sizeof line - 1 : size;
    line[size++] = '\n';
    if (!path) {
        return;
    }
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0 || write(fd, line, (size_t)size) != size) {
        fprintf(stderr, "fakecuda: %s: %s\n", path, strerror(errno));
    }
    if (fd >= 0) {
        close(fd);
    }
}

void misuse(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fake.misuses++;
    line_write("misuse", format, args);
    va_end(args);
}

void leak(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fake.leaks++;
    line_write("leak", format, args);
    va_end(args);
}

void note(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    line_write("note", format, args);
    va_end(args);
}

static void told(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void told(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    line_write("end", format, args);
    va_end(args);
}

/* Objects in a context that has failed are no leaks: they cannot be freed. */
static void object_report(struct object *o, void *data)
{
    const struct stream *s = o->kind == KIND_STREAM ? (const struct stream *)o : NULL;
    const struct context *c = o->context;
    (void)data;
    if ((s && (s->closing || s == c->legacy || s == c->per_thread)) ||
        (c && c->poison != CUDA_SUCCESS)) {
        return;
    }
    leak("%s %#llx", kind_name(o->kind), (unsigned long long)o->handle);
}

static void context_report(struct object *o, void *data)
{
    struct context *c = (struct context *)o;
    (void)data;
    if (c->poison != CUDA_SUCCESS) {
        return;
    }
    if (c->primary) {
        leak("primary context of device %d, retained %u times", c->device->index, c->refs);
    } else {
        leak("context %#llx of device %d", (unsigned long long)o->handle, c->device->index);
    }
}

static bool of_poisoned(const struct range *r)
{
    return r->context && r->context->poison != CUDA_SUCCESS;
}

static void report(void)
{
    static const enum kind plain[] = {KIND_MODULE, KIND_LIBRARY, KIND_STREAM, KIND_EVENT};
    for (const struct range *r = range_next(NULL); r; r = range_next(r)) {
        if (r->kind != RANGE_GLOBAL && !of_poisoned(r)) {
            leak("%s memory %#llx, %llu bytes", range_name(r->kind), (unsigned long long)r->base,
                 (unsigned long long)r->size);
        }
    }
    vmm_report();
    pool_report();
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++) {
        object_each(plain[i], object_report, NULL);
    }
    object_each(KIND_CONTEXT, context_report, NULL);
}

__attribute__((destructor)) static void end(void)
{
    const char *strict = setting("_STRICT");
    pthread_mutex_lock(&fake.lock);
    bool mine = fake.initialized && fake.pid == getpid();
    if (mine) {
        report();
        told("%u leaks, %u misuses", fake.leaks, fake.misuses);
    }
    bool bad = mine && fake.leaks + fake.misuses > 0;
    pthread_mutex_unlock(&fake.lock);
    if (bad && strict && strcmp(strict, "1") == 0) {
        fflush(NULL);
        _exit(EXIT_STRICT);
    }
}
