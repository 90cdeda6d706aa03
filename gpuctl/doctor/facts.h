/* What a running daemon reports of itself, for checks. */
#ifndef GPUCTL_DOCTOR_FACTS_H
#define GPUCTL_DOCTOR_FACTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <gpud/gpud.h>

#define FACTS_DEVICES 64u
#define FACTS_TEXT    128u

struct facts_device {
    uint64_t id;
    pid_t worker;        /* 0: none now */
    uint64_t ecc_errors; /* 0 also where unknown */
    char backend[16];
    char state[24];
    char throttled[FACTS_TEXT]; /* "no", "heat, power cap", or why it is not known */
    char recovery[FACTS_TEXT];  /* "none", or what the driver asks for */
};

struct facts {
    bool reached;             /* it answered; the members below behind `pid` are known */
    int code;                 /* GPUD_ERR_* if it did not */
    char error[512];          /* the reason; "": it was not asked */
    bool listening;           /* a process accepts connections on its socket */
    pid_t pid;                /* of this process; 0: unknown */
    char build[GPUD_NAME];    /* of the front */
    char state[32];           /* "ready" … */
    char problem[512];        /* "": none */
    char warning[512];        /* what will become a problem; "": nothing */
    char cache_dir[256];      /* "": unknown */
    uint64_t connections_max; /* 0: unknown */
    unsigned device_count;
    struct facts_device device[FACTS_DEVICES];
};

/* Connects to a socket and closes the connection. Returns 0 or errno. ret_pid: NULL, or it gets the
 * process that listens. Does not block: EAGAIN if too many connections wait there. */
int facts_connect(const char *path, pid_t *ret_pid);
/* Asks the daemon at `url`. Blocks, at most five times timeout_ms. */
void facts_ask(const char *url, uint64_t timeout_ms, struct facts *ret_facts);

#endif
