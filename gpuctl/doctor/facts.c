#include "gpuctl/doctor/facts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/clock.h"
#include "gpuctl/sheet/sheet.h"

#define IPC "ipc://"

int facts_connect(const char *path, pid_t *ret_pid)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct ucred peer = {0};
    socklen_t size = sizeof peer;
    size_t length = strlen(path);
    if (length >= sizeof address.sun_path) {
        return ENAMETOOLONG;
    }
    memcpy(address.sun_path, path, length);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return errno;
    }
    int number = connect(fd, (const struct sockaddr *)&address, sizeof address) != 0 ? errno : 0;
    if (number == 0 && ret_pid != NULL &&
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0) {
        *ret_pid = peer.pid;
    }
    (void)close(fd);
    return number;
}

static void copy(char *out, size_t size, const char *text)
{
    (void)snprintf(out, size, "%s", text);
}

static void take_status(const gpud_table *t, struct facts *f)
{
    copy(f->state, sizeof f->state, table_text_of(t, 0, "state"));
    copy(f->problem, sizeof f->problem, table_text_of(t, 0, "problem"));
    copy(f->warning, sizeof f->warning, table_text_of(t, 0, "warning"));
}

static void take_devices(const gpud_table *t, struct facts *f)
{
    for (uint32_t r = 0; r < gpud_table_rows(t) && f->device_count < FACTS_DEVICES; r++) {
        struct facts_device *d = &f->device[f->device_count++];
        *d = (struct facts_device){.id = table_value_of(t, r, "device"),
                                   .worker = (pid_t)table_value_of(t, r, "worker"),
                                   .ecc_errors = table_value_of(t, r, "ecc_errors")};
        copy(d->backend, sizeof d->backend, table_text_of(t, r, "backend"));
        copy(d->state, sizeof d->state, table_text_of(t, r, "state"));
        copy(d->throttled, sizeof d->throttled, table_text_of(t, r, "throttled"));
        copy(d->recovery, sizeof d->recovery, table_text_of(t, r, "recovery"));
    }
}

static void take_config(const gpud_table *t, struct facts *f)
{
    for (uint32_t r = 0; r < gpud_table_rows(t); r++) {
        const char *key = table_text_of(t, r, "key");
        const char *value = table_text_of(t, r, "value");
        if (strcmp(key, "cache_dir") == 0) {
            copy(f->cache_dir, sizeof f->cache_dir, value);
        } else if (strcmp(key, "connections_max") == 0) {
            f->connections_max = strtoull(value, NULL, 10);
        }
    }
}

static int ask_table(gpud_client *client, const char *what, struct facts *f,
                     void (*take)(const gpud_table *t, struct facts *f))
{
    gpud_table *table = NULL;
    int rc = gpud_query(client, what, NULL, &table);
    if (rc == 0) {
        take(table, f);
        gpud_table_free(table);
    }
    return rc;
}

static int ask(const char *url, uint64_t timeout_ms, struct facts *f)
{
    const gpud_options o = {.size = sizeof o,
                            .name = "gpuctl doctor",
                            .connect_timeout_ns = timeout_ms * NS_PER_MS,
                            .timeout_ns = timeout_ms * NS_PER_MS,
                            .reconnect_ns = NS_PER_MS};
    gpud_client *client = NULL;
    gpud_limits_desc limits = {.size = sizeof limits};
    int rc = gpud_open(url, &o, &client);
    rc = rc == 0 ? gpud_limits(client, &limits) : rc;
    rc = rc == 0 ? ask_table(client, "status", f, take_status) : rc;
    rc = rc == 0 ? ask_table(client, "devices", f, take_devices) : rc;
    rc = rc == 0 ? ask_table(client, "config", f, take_config) : rc;
    if (rc == 0) {
        copy(f->build, sizeof f->build, limits.build);
    } else {
        copy(f->error, sizeof f->error, gpud_last_error()->text);
    }
    gpud_close(client);
    return rc;
}

void facts_ask(const char *url, uint64_t timeout_ms, struct facts *ret_facts)
{
    struct facts f = {.code = GPUD_ERR_CONNECT};
    bool ipc = strncmp(url, IPC, strlen(IPC)) == 0;
    int number = ipc ? facts_connect(url + strlen(IPC), &f.pid) : 0;
    f.listening = ipc && number == 0;
    if (number != 0) { /* gpud_open would wait for a daemon that starts */
        f.code = number == EACCES || number == EPERM ? GPUD_ERR_PERMISSION : f.code;
        copy(f.error, sizeof f.error, strerror(number));
    } else {
        f.code = ask(url, timeout_ms, &f);
        f.reached = f.code == 0;
    }
    *ret_facts = f;
}
