/*
 * The host as checks see it: where files, programs and libraries lie, and what the caller may. A
 * test puts broken ones in their place. The functions read files of the system; they block on
 * these only.
 */
#ifndef GPUCTL_DOCTOR_HOST_H
#define GPUCTL_DOCTOR_HOST_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#define HOST_GROUPS 64u

struct user {
    uid_t uid;
    gid_t groups[HOST_GROUPS];
    unsigned group_count;
};

struct host {
    const char *root;        /* goes before every absolute path of a file; "": none */
    const char *url;         /* the daemon's address */
    const char *search;      /* folders of commands, as in PATH */
    const char *libraries;   /* folders of libraries that come before the system's, by colons */
    const char *cuda;        /* folder of a CUDA toolkit that comes first; "": none */
    char programs[PATH_MAX]; /* folder of gpud */
    char helpers[PATH_MAX];  /* folder of gpud-launcher and the others */
    struct user caller;
    int landlock;         /* version of Landlock in the kernel; below 1: none */
    uint64_t timeout_ms;  /* for each answer of the daemon or a program */
    uint64_t disk_low;    /* bytes: a disk with less is full */
    uint64_t descriptors; /* the caller's limits, which a daemon started by hand has */
    uint64_t memlock;     /* bytes, or UINT64_MAX */
};

/* The host as it is. url: NULL = $GPUD_URL, else the default; not copied. timeout_ms: 0 = 3 s. */
void host_init(struct host *h, const char *url, uint64_t timeout_ms);

/* A path below the host's root; cut to PATH_MAX. Returns out. */
const char *host_path(const struct host *h, char out[PATH_MAX], const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
bool host_exists(const struct host *h, const char *path);
/* The begin of a file, terminated; false if it cannot be read. path: as for host_path, complete. */
bool host_read(const char *path, char *out, size_t size);
/* Is gpud started by systemd? */
bool host_has_units(const struct host *h);
/* Number of NVIDIA's GPUs on the PCI bus, or by the driver's folder in /proc. */
unsigned host_nvidia_gpus(const struct host *h);

/* Finds a library as the dynamic loader would; out gets the file behind all links. */
bool host_library(const struct host *h, const char *name, char out[PATH_MAX]);
/* Finds a command in `search`. */
bool host_command(const struct host *h, const char *name, char out[PATH_MAX]);
/* Finds one of gpud's programs. */
bool host_program(const struct host *h, const char *name, char out[PATH_MAX]);
/* Runs a program with up to two arguments (NULL: none) and captures its output. False if it did not
 * start, failed or did not end in time; out then has the reason or its messages. */
bool host_run(const struct host *h, const char *path, const char *first, const char *second,
              char *out, size_t size);

/* Numbers of a version, "535.183.01"; missing ones are 0. false without any. */
struct version {
    unsigned part[3];
};
bool version_read(const char *text, struct version *ret_version);
int version_compare(const struct version *a, const struct version *b); /* as strcmp */

/* A user of the host by name, from /etc/passwd and /etc/group. */
bool host_user(const struct host *h, const char *name, struct user *ret_user);
bool host_group(const struct host *h, const char *name, gid_t *ret_group);
/* The name of a group; its number without a name. Returns out. */
const char *host_group_name(const struct host *h, gid_t group, char *out, size_t size);
bool user_in_group(const struct user *user, gid_t group);
/* May the user read and write it? By owner, group and mode; ACLs are not known. */
bool user_may_use(const struct user *user, const struct stat *file);

#endif
