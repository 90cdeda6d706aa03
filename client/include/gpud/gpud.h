/*
 * libgpud: send compute jobs to gpud, the GPU job server.
 *
 *   gpud_client *c;
 *   gpud_kernel axpy;
 *   float x[] = {1, 2, 3}, y[] = {1, 1, 1};
 *   if (gpud_open(NULL, NULL, &c) == 0 && gpud_kernel_find(c, "axpy", &axpy) == 0) {
 *       gpud_arg args[] = {gpud_f32(2), gpud_host(x, 3, GPUD_F32), gpud_host(y, 3, GPUD_F32)};
 *       if (gpud_call(c, axpy, args, 3, NULL) != 0) {
 *           fprintf(stderr, "%s\n", gpud_last_error()->text);
 *       }
 *   }
 *
 * Rules for all functions, unless a comment says otherwise:
 *
 * Errors. An `int` is 0 or a negative GPUD_ERR_* code; gpud_last_error() returns this thread's
 *   last failure with its chain. Outputs come last, are named ret_… and untouched on failure. Any
 *   function that takes a client can return INVALID, NOMEM, FORKED. Functions that send requests to
 *   the daemon also return CONNECT, TIMEOUT, CLOSED, PROTOCOL, PERMISSION, LIMIT and INTERNAL.
 *   Comments list the other codes.
 * Threads. Every function may be called from any thread at any time, with one exception:
 *   functions that free an object (gpud_close, gpud_job_free, gpud_program_free, gpud_table_free)
 *   must not run while another thread uses that object. A program under construction belongs to
 *   one thread at a time. The library has no threads, no signal handlers and no global state but
 *   the thread's last error; it never prints and never ends the process.
 * Blocking. A function blocks only if its comment says so, then at most gpud_options.timeout_ns.
 * Ownership. The library needs texts and arrays of the caller until the call returns, except host
 *   memory that a job writes to (gpud_host…).
 * Fork. A client that was opened before fork() answers FORKED in the child; the child may open a
 *   client of its own. It must not close the inherited client's descriptor by other means.
 * Units. Sizes are bytes, counts are elements, times are nanoseconds.
 * Versions. The caller sets the first member of a struct, `size`, to the struct's sizeof. Later
 *   versions of the library may append members. */
#ifndef GPUD_H
#define GPUD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define GPUD_API __attribute__((visibility("default")))
#else
#define GPUD_API
#endif

#define GPUD_VERSION_MAJOR 0
#define GPUD_VERSION_MINOR 2
#define GPUD_VERSION_PATCH 0

/* The version of the running library, as "MAJOR.MINOR.PATCH"; static. */
GPUD_API const char *gpud_version(void);

/* ---- errors -------------------------------------------------------------------------------- */

enum gpud_code {
    GPUD_OK = 0,
    GPUD_ERR_INVALID = -1,        /* invalid argument */
    GPUD_ERR_NOMEM = -2,          /* out of host memory */
    GPUD_ERR_IO = -3,             /* input/output error */
    GPUD_ERR_PROTOCOL = -4,       /* malformed or unexpected message */
    GPUD_ERR_VERSION = -5,        /* protocol version not supported */
    GPUD_ERR_CONNECT = -6,        /* daemon not reachable */
    GPUD_ERR_CLOSED = -7,         /* closed */
    GPUD_ERR_TIMEOUT = -8,        /* not finished within the time waited */
    GPUD_ERR_FORKED = -9,         /* client was opened before fork */
    GPUD_ERR_PERMISSION = -10,    /* not permitted */
    GPUD_ERR_BUSY = -11,          /* queue is full */
    GPUD_ERR_LIMIT = -12,         /* over a limit */
    GPUD_ERR_DRAINING = -13,      /* daemon is draining */
    GPUD_ERR_NO_DEVICE = -14,     /* no device can serve this */
    GPUD_ERR_DEVICE_LOST = -15,   /* device is lost */
    GPUD_ERR_WORKER_LOST = -16,   /* worker ended while the job was running */
    GPUD_ERR_DEVICE_MEMORY = -17, /* out of device memory */
    GPUD_ERR_BAD_HANDLE = -18,    /* no such handle */
    GPUD_ERR_STALE_HANDLE = -19,  /* handle was freed or lost */
    GPUD_ERR_NOT_FOUND = -20,     /* not found */
    GPUD_ERR_EXISTS = -21,        /* already exists */
    GPUD_ERR_ARG_COUNT = -22,     /* wrong number of arguments */
    GPUD_ERR_ARG_TYPE = -23,      /* argument of the wrong type */
    GPUD_ERR_ARG_SHAPE = -24,     /* argument of the wrong shape */
    GPUD_ERR_ARG_ACCESS = -25,    /* argument with the wrong access */
    GPUD_ERR_RANGE = -26,         /* out of range */
    GPUD_ERR_UNDEFINED = -27,     /* content is undefined until fully written */
    GPUD_ERR_SEALED = -28,        /* sealed: cannot be written */
    GPUD_ERR_COMPILE = -29,       /* source does not compile */
    GPUD_ERR_COMPILE_LIMIT = -30, /* compiler stopped at its limits */
    GPUD_ERR_LAUNCH = -31,        /* launch refused by the device */
    GPUD_ERR_KERNEL_FAULT = -32,  /* kernel ended its worker */
    GPUD_ERR_TIME_LIMIT = -33,    /* time limit of the job passed */
    GPUD_ERR_DEADLINE = -34,      /* deadline passed */
    GPUD_ERR_CANCELLED = -35,     /* cancelled */
    GPUD_ERR_QUARANTINED = -36,   /* kernel or tenant is quarantined after repeated faults */
    GPUD_ERR_UNSUPPORTED = -37,   /* not supported here */
    GPUD_ERR_INTERNAL = -38,      /* internal error */
    GPUD_ERR_BUFFER_LOST = -39,   /* buffer was lost with its worker */
    GPUD_ERR_STATE = -40          /* not possible in this state */
};

/* Did the failed operation change anything outside itself? */
enum gpud_effects { GPUD_EFFECTS_NONE = 0, GPUD_EFFECTS_MAYBE = 1, GPUD_EFFECTS_YES = 2 };

#define GPUD_ERROR_TEXT 1024 /* bytes, with the NUL */

typedef struct gpud_error {
    size_t size;                /* of this struct, where the caller passes it */
    int code;                   /* GPUD_ERR_*, 0 = no error */
    int vendor;                 /* the vendor's code, 0 if none */
    int step;                   /* index of the program's step, -1 if none */
    int arg;                    /* index of the argument, -1 if none */
    int effects;                /* enum gpud_effects */
    int retriable;              /* 1: the same request may succeed later */
    uint64_t retry_after_ns;    /* 0: no hint */
    char text[GPUD_ERROR_TEXT]; /* the whole chain: "launch axpy, step 2: argument y: …" */
} gpud_error;

/* A sentence for a code; static, never NULL. */
GPUD_API const char *gpud_strerror(int code);
/* "BUSY" for GPUD_ERR_BUSY; "UNKNOWN" for a code not in the list; static. */
GPUD_API const char *gpud_err_name(int code);
/* This thread's last failure in any gpud function, until its next one; never NULL. */
GPUD_API const gpud_error *gpud_last_error(void);

/* ---- values -------------------------------------------------------------------------------- */

enum gpud_dtype {
    GPUD_NONE = 0,
    GPUD_I8 = 1,
    GPUD_U8 = 2,
    GPUD_I16 = 3,
    GPUD_U16 = 4,
    GPUD_I32 = 5,
    GPUD_U32 = 6,
    GPUD_I64 = 7,
    GPUD_U64 = 8,
    GPUD_F16 = 9,
    GPUD_F32 = 10,
    GPUD_F64 = 11
};

enum gpud_access { GPUD_AS_KERNEL = 0, GPUD_IN = 1, GPUD_OUT = 2, GPUD_INOUT = 3 };

/* Fixed limits. gpud_limits reports the limits of a session; gpud_query "config", section tenants,
 * the limits of all sessions of a tenant together. A request beyond a limit is refused: LIMIT,
 * ARG_COUNT (arguments), INVALID (a struct by value). */
#define GPUD_MAX_DIMS          4
#define GPUD_MAX_ARGS          128      /* of a kernel; 24 where it has a signature line */
#define GPUD_MAX_STEPS         256      /* of a program */
#define GPUD_MAX_PARAMS        64       /* of a program */
#define GPUD_MAX_TEMPS         64       /* of a program */
#define GPUD_MAX_JOB_BUFFERS   256      /* different buffers in a job, parts of arenas included */
#define GPUD_MAX_OUTPUTS       512      /* of a job: read steps and arrays written by launches */
#define GPUD_MAX_KERNELS       256      /* of a module */
#define GPUD_MAX_SOURCE        1048576  /* bytes: a module's source or binary, headers included */
#define GPUD_MAX_HEADERS       256      /* of a module */
#define GPUD_MAX_HEADER_NAME   256      /* bytes */
#define GPUD_MAX_BUILD_OPTIONS 4096     /* bytes: gpud_module_options.options */
#define GPUD_MAX_SIGNATURE     1024     /* bytes: gpud_module_options.signature */
#define GPUD_MAX_LOG           65536    /* bytes: a compiler's output */
#define GPUD_MAX_STRUCT        1024     /* bytes: gpud_bytes */
#define GPUD_MAX_TOKEN         256      /* bytes */
#define GPUD_MAX_INLINE        16777216 /* bytes: an array that travels with a job */
#define GPUD_NAME              65       /* bytes of a name or label, with the NUL */
#define GPUD_FOREVER           UINT64_MAX
#define GPUD_REST              UINT64_MAX /* a count: all elements to the end */

GPUD_API size_t gpud_dtype_size(int dtype);          /* bytes of one element; 0 if unknown */
GPUD_API const char *gpud_dtype_name(int dtype);     /* "f32"; "none" if unknown; static */
GPUD_API int gpud_dtype_from_name(const char *name); /* GPUD_NONE if unknown */

/* 1 to 4 dimensions, the last one varies fastest. */
typedef struct gpud_shape {
    uint32_t dtype; /* enum gpud_dtype */
    uint32_t ndim;
    uint64_t dim[GPUD_MAX_DIMS];
} gpud_shape;

GPUD_API gpud_shape gpud_shape_1d(int dtype, uint64_t n);
GPUD_API gpud_shape gpud_shape_2d(int dtype, uint64_t rows, uint64_t columns);
GPUD_API gpud_shape gpud_shape_3d(int dtype, uint64_t d0, uint64_t d1, uint64_t d2);
GPUD_API gpud_shape gpud_shape_4d(int dtype, uint64_t d0, uint64_t d1, uint64_t d2, uint64_t d3);
/* Elements and bytes; 0 for a shape that is not valid. */
GPUD_API uint64_t gpud_shape_count(gpud_shape shape);
GPUD_API uint64_t gpud_shape_bytes(gpud_shape shape);

/* Handles, by value (id 0: none), of one client. They survive reconnections and daemon restarts. */
typedef struct gpud_buffer {
    uint64_t id;
} gpud_buffer;
typedef struct gpud_kernel {
    uint64_t id;
} gpud_kernel;
typedef struct gpud_module {
    uint64_t id;
} gpud_module;

typedef struct gpud_client gpud_client;
typedef struct gpud_program gpud_program;
typedef struct gpud_job gpud_job;
typedef struct gpud_table gpud_table;

/* ---- client -------------------------------------------------------------------------------- */

typedef struct gpud_options {
    size_t size;
    const char *name;            /* shown in `gpuctl sessions`; NULL = the program's name */
    const void *token;           /* over tcp; NULL: of $GPUD_TOKEN_FILE, if that is set */
    size_t token_size;           /* at most 256 */
    uint64_t connect_timeout_ns; /* for gpud_open; 0 = 5 s; looking up a name is not counted */
    uint64_t timeout_ns;   /* for each blocking call; 0 = $GPUD_TIMEOUT_MS, else GPUD_FOREVER */
    uint64_t reconnect_ns; /* how long calls and jobs outlive a lost connection; 0 = 30 s */
    /* for tls+tcp: the CA (NULL = the system's), the client's own certificate, both in PEM, and the
     * name in the daemon's (NULL = the URL's host). NULL = $GPUD_CA_FILE, …_CERT_FILE, … first */
    const char *ca_file, *cert_file, *key_file, *server_name;
} gpud_options;

/* Connects and opens a session. url: "ipc:///path", "tcp://host:port" (the daemon's own host) or
 * "tls+tcp://host:port"; NULL = $GPUD_URL, else "ipc:///run/gpud/gpud.sock". options may be NULL.
 * Blocks up to connect_timeout_ns, also while no daemon listens, because one may be about to start.
 * The time of getaddrinfo for a host's name is not counted. CONNECT, VERSION, PERMISSION (also: a
 * certificate or token that is not good), BUSY (too many connections). */
GPUD_API int gpud_open(const char *url, const gpud_options *options, gpud_client **ret_client);
/* Ends the session and frees its buffers and programs: without a connection after linger_ns.
 * Pending jobs end with CLOSED. The daemon cancels jobs without GPUD_SUBMIT_DETACHED; steps that
 * have begun run to their end. Pending callbacks run in this call: they may read results, while
 * functions of the client return CLOSED. Blocks at most 1 s until the daemon has read it. Jobs and
 * programs must still be freed. NULL is allowed. In a forked child it only frees memory. */
GPUD_API void gpud_close(gpud_client *client);
/* Waits for the end of all earlier jobs, good or bad; runs callbacks. Blocks up to timeout_ns. */
GPUD_API int gpud_flush(gpud_client *client, uint64_t timeout_ns);

/* One descriptor for any event loop: when it is readable, call gpud_dispatch. It stays the same and
 * belongs to the client: only wait for it, never read or close it. -1 in a forked child. */
GPUD_API int gpud_fd(const gpud_client *client);
/* Reads arrived messages, continues connecting (0, not CONNECT, until it is), runs callbacks.
 * Blocks for at most 250 ms while a restarted daemon gets the memory of gpud_host_alloc again. */
GPUD_API int gpud_dispatch(gpud_client *client);

enum gpud_event_kind {
    GPUD_EVENT_DISCONNECTED = 1,  /* the connection broke; reconnecting */
    GPUD_EVENT_RECONNECTED = 2,   /* the same session continues */
    GPUD_EVENT_RESTARTED = 3,     /* another daemon answered; modules and programs were restored */
    GPUD_EVENT_BUFFER_LOST = 4,   /* buffer (id 0: this client has no handle of it); comes before
                                     RESTARTED for buffers that another daemon does not have */
    GPUD_EVENT_DRAINING = 5,      /* the daemon takes no new jobs */
    GPUD_EVENT_RESUMED = 6,       /* the daemon takes jobs again */
    GPUD_EVENT_RESTORE_FAILED = 7 /* a module, kernel or program could not be restored: text */
};
typedef struct gpud_event {
    size_t size;
    int kind; /* enum gpud_event_kind */
    gpud_buffer buffer;
    const char *text; /* valid during the callback */
} gpud_event;
typedef void (*gpud_event_cb)(gpud_client *client, const gpud_event *event, void *user);

/* Callbacks run only inside gpud_dispatch, gpud_wait, gpud_wait_any, gpud_flush and gpud_close, in
 * the calling thread, without any lock: they may call everything but gpud_close. NULL: none. */
GPUD_API int gpud_set_event_cb(gpud_client *client, gpud_event_cb cb, void *user);

/* Blocks for one round trip. ret_ns may be NULL. */
GPUD_API int gpud_ping(gpud_client *client, uint64_t *ret_ns);

/* Limits and names from the daemon that the client is, or was last, connected to. */
typedef struct gpud_limits_desc {
    size_t size;
    uint32_t major, minor;  /* the daemon's protocol */
    uint64_t max_message;   /* bytes */
    uint64_t max_inline;    /* bytes of one array that travels with a job */
    uint64_t max_in_flight; /* jobs of this session that have not ended; unanswered requests, too */
    uint64_t linger_ns;     /* how long the session outlives a broken connection */
    uint64_t session;       /* the session's number, as in `gpuctl sessions` */
    bool may_load;          /* this tenant may load kernels */
    bool connected;
    char build[GPUD_NAME];
    char tenant[GPUD_NAME];
    uint64_t max_arena; /* bytes of memory shared with the daemon; 0: it shares none */
    /* the members below are 0 if the daemon does not report them */
    uint64_t max_requests; /* unanswered requests of one connection; more end it */
    uint64_t max_unacked;  /* requests whose answers the library has not acknowledged */
    uint64_t max_kept;     /* bytes of these answers */
    uint64_t max_early;    /* bytes of requests that arrived before their turn */
    uint64_t max_reorder;  /* numbers by which they may be early */
    uint64_t max_buffers;  /* of the session, as the next three */
    uint64_t max_arenas;
    uint64_t max_modules;
    uint64_t max_programs;
} gpud_limits_desc;
GPUD_API int gpud_limits(gpud_client *client, gpud_limits_desc *ret_limits);

/* A device's id counts from 0: in descriptions, gpud_buffer_create_on and gpud_pool_read. Members
 * and arguments that may leave the choice to the daemon take GPUD_ON(id) instead, and 0 for any
 * device: gpud_submit_options, gpud_module_variable, gpud_pool_options. */
#define GPUD_ON(id) ((uint64_t)(id) + 1)

typedef struct gpud_device_desc {
    size_t size;
    uint64_t id; /* GPUD_ON(id) where 0 is "any" */
    uint64_t memory_bytes;
    uint64_t memory_used; /* by buffers, of all tenants */
    bool cpu;             /* computes on the host's processor */
    bool simulated;       /* computes slowly, times are invented */
    char name[128];
    char backend[GPUD_NAME]; /* "cuda", "opencl", "sim" */
    char state[GPUD_NAME];   /* "ready", "held", "absent", … */
} gpud_device_desc;
/* The device at an index from 0; blocks. NOT_FOUND after the last one. */
GPUD_API int gpud_device_info(gpud_client *client, uint32_t index, gpud_device_desc *ret_device);

/* ---- buffers ------------------------------------------------------------------------------- */

enum gpud_buffer_flag {
    GPUD_BUFFER_ZERO = 1,     /* starts as zeros; otherwise undefined */
    GPUD_BUFFER_EXPORT = 2,   /* separate memory, which gpud_buffer_export exports */
    GPUD_BUFFER_VARIABLE = 4, /* in descriptions only: made by gpud_module_variable */
    GPUD_BUFFER_STAY = 16,    /* never moves to the host; up to stay_percent; alone or with ZERO */
    GPUD_BUFFER_MANAGED = 8 /* memory that the driver moves between host and device (CUDA), brought
                               to the device before each job; up to the daemon's managed_limit */
};
enum gpud_buffer_state {
    GPUD_BUFFER_DEFINED = 1,
    GPUD_BUFFER_UNDEFINED = 2, /* not written yet, or a writer failed */
    GPUD_BUFFER_SEALED = 3,
    GPUD_BUFFER_LOST = 4
};
typedef struct gpud_buffer_desc {
    size_t size;
    gpud_shape shape;
    uint32_t flags;
    uint32_t state;      /* enum gpud_buffer_state */
    uint64_t device;     /* its id, not GPUD_ON(id) */
    uint64_t generation; /* grows each time the content is lost or restored */
    char label[GPUD_NAME];
    char name[GPUD_NAME]; /* if published */
} gpud_buffer_desc;

/* Memory on a device of the daemon's choice, owned by the session: the one with most of its buffers
 * while that has room, else the one with most room, host included. A job's buffers move to one
 * device, unless it only copies; STATE if they cannot. flags: enum gpud_buffer_flag; label may be
 * NULL. Blocks. ARG_SHAPE, NO_DEVICE, DEVICE_MEMORY, UNSUPPORTED (EXPORT, MANAGED), LIMIT (STAY) */
GPUD_API int gpud_buffer_create(gpud_client *client, gpud_shape shape, uint32_t flags,
                                const char *label, gpud_buffer *ret_buffer);
/* The same on one device, until a job moves it: its id, not GPUD_ON(id). */
GPUD_API int gpud_buffer_create_on(gpud_client *client, uint64_t device, gpud_shape shape,
                                   uint32_t flags, const char *label, gpud_buffer *ret_buffer);
/* Earlier jobs still use it; the handle is stale at once. Does not block. BAD_HANDLE, STALE_HANDLE.
 */
GPUD_API int gpud_buffer_free(gpud_client *client, gpud_buffer buffer);
/* Blocks. BAD_HANDLE, STALE_HANDLE. */
GPUD_API int gpud_buffer_info(gpud_client *client, gpud_buffer buffer, gpud_buffer_desc *ret_desc);
/* Makes the buffer immutable after earlier jobs. From then on the daemon restores it if its worker
 * ends. Blocks. BAD_HANDLE, STALE_HANDLE, UNDEFINED. */
GPUD_API int gpud_buffer_seal(gpud_client *client, gpud_buffer buffer);
/* Gives the buffer a name by which other sessions of the tenant open it. rights: GPUD_IN or
 * GPUD_INOUT. The buffer outlives its last user by linger_ns (at most 24 h). Blocks. BAD_HANDLE,
 * STALE_HANDLE, EXISTS. */
GPUD_API int gpud_buffer_publish(gpud_client *client, gpud_buffer buffer, const char *name,
                                 int rights, uint64_t linger_ns);
/* Opens a published buffer; free the handle like any other. Blocks. NOT_FOUND, PERMISSION. */
GPUD_API int gpud_buffer_open(gpud_client *client, const char *name, gpud_buffer *ret_buffer);
/* As gpud_buffer_publish, for reading, of a sealed buffer: clients of the named tenants ("a b",
 * NULL: none) may also open copies, which stay when it goes. And STATE, BUSY, UNSUPPORTED. */
GPUD_API int gpud_buffer_grant(gpud_client *client, gpud_buffer buffer, const char *name,
                               const char *tenants, uint64_t linger_ns);
/* Opens what `tenant` granted: a sealed buffer of the caller's own, freed and charged as such.
 * Blocks. NOT_FOUND, also without the right to it; errors of gpud_buffer_create. */
GPUD_API int gpud_buffer_open_granted(gpud_client *client, const char *tenant, const char *name,
                                      gpud_buffer *ret_buffer);

typedef struct gpud_export_desc {
    size_t size;
    int fd;                 /* the caller's, close-on-exec */
    uint64_t bytes;         /* of the memory, which begins with the buffer's first element */
    char device[GPUD_NAME]; /* "uuid=…": the GPU that it is on */
} gpud_export_desc;
/* A descriptor by which CUDA in this or another process maps the buffer:
 * cuMemImportFromShareableHandle with CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, then cuMemMap of
 * all of `bytes`. The buffer was created with GPUD_BUFFER_EXPORT, by this session. Writes of jobs
 * are visible when the jobs are done; gpud does not see writes of others. The memory is freed with
 * the buffer and its last mapping. After the end of its worker it is no longer the buffer's.
 * Blocks. STATE without the flag, UNSUPPORTED by this back end or daemon, BUFFER_LOST, TIMEOUT. */
GPUD_API int gpud_buffer_export(gpud_client *client, gpud_buffer buffer,
                                gpud_export_desc *ret_export);

typedef struct gpud_transfer {
    size_t size;
    /* Called between parts, in the calling thread; false stops the transfer with CANCELLED. */
    bool (*progress)(uint64_t done_bytes, uint64_t total_bytes, void *user);
    void *user;
    /* Bytes of a part, at most 16 MiB; 0 = 2 to 16 MiB as suits, with `progress` at most 4 */
    uint64_t part_bytes;
} gpud_transfer;

/* Copies between host memory and `count` elements from `first` on (GPUD_REST: to the end; 0: none).
 * dtype must be the buffer's, GPUD_NONE skips that check. Large transfers go in parts: one that
 * fails leaves its range undefined. Goes behind earlier jobs. Blocks while it makes progress.
 * options may be NULL. BAD_HANDLE, STALE_HANDLE, ARG_TYPE, RANGE, SEALED, UNDEFINED, BUFFER_LOST.
 */
GPUD_API int gpud_write(gpud_client *client, gpud_buffer buffer, int dtype, uint64_t first,
                        uint64_t count, const void *data, const gpud_transfer *options);
GPUD_API int gpud_read(gpud_client *client, gpud_buffer buffer, int dtype, uint64_t first,
                       uint64_t count, void *data, const gpud_transfer *options);

/* ---- host memory shared with the daemon ------------------------------------------------------ */

/*
 * On one host, arrays of 64 KiB and more pass through memory that library and daemon share: one
 * copy instead of the way through the socket. Memory from the functions below is shared itself, so
 * copied to and from the device only. gpud_host…, gpud_write, gpud_read know it by its address.
 *
 * The memory belongs to the caller, except while a submitted job names it: the caller must not
 * change the parts that the job reads, nor use the parts that it writes. Jobs of one client that
 * name overlapping parts run in the order of their submission if one of them writes. A failed job
 * may have written any part of its outputs; after CONNECT, TIME_LIMIT, DEADLINE, WORKER_LOST and
 * RESTARTED it may still do so. Children of fork() share the memory. It outlives workers and
 * restarts of the daemon and is freed with the client. */

/* `bytes` of undefined memory, aligned to 256, whose pages are allocated now and charged to
 * this process. Where no memory can be shared (tcp, a daemon in another container) it is plain
 * memory: jobs that name it carry its bytes, up to gpud_limits.max_inline for an array, and
 * programs cannot write to it (ARG_ACCESS, in gpud_program_read_to ARG_TYPE; use
 * gpud_program_read). Blocks if the daemon must give more. LIMIT (gpud_limits.max_arena), NOMEM. */
GPUD_API int gpud_host_alloc(gpud_client *client, size_t bytes, void **ret_memory);
/* Maps a whole memfd of the caller to share it the same way. It must be writable and sealed against
 * shrinking (F_SEAL_SHRINK); huge pages are refused. The descriptor still belongs to the caller and
 * may be closed. The same memory imported twice counts twice. Blocks. ret_bytes may be NULL.
 * INVALID (not sealed, no memfd), UNSUPPORTED (huge pages, tcp), LIMIT. */
GPUD_API int gpud_host_import(gpud_client *client, int memfd, void **ret_memory, size_t *ret_bytes);
/* Frees memory of gpud_host_alloc or gpud_host_import; what a job may still write is not allocated
 * again. Waits until the jobs that name it, directly or by their program, have ended. Programs that
 * name it must not be submitted afterwards. NULL is allowed. INVALID: no such memory, or free. */
GPUD_API int gpud_host_free(gpud_client *client, void *memory);

/* ---- arguments ----------------------------------------------------------------------------- */

/* Made by the functions below. The members are for them, and for bindings of other languages. */
typedef struct gpud_arg {
    uint32_t kind;
    uint32_t access; /* enum gpud_access */
    uint32_t dtype;
    uint32_t ndim;
    uint64_t handle;
    uint64_t first;
    uint64_t count;
    uint64_t bits;
    void *data;
    uint64_t bytes;
    uint64_t dim[GPUD_MAX_DIMS];
    uint64_t view; /* enum gpud_dtype; GPUD_NONE: the array's own */
} gpud_arg;

GPUD_API gpud_arg gpud_in(gpud_buffer buffer);
GPUD_API gpud_arg gpud_out(gpud_buffer buffer);
GPUD_API gpud_arg gpud_inout(gpud_buffer buffer);
/* `count` elements from `first` on (GPUD_REST: all; 0: none); access as the kernel declares it. */
GPUD_API gpud_arg gpud_slice(gpud_buffer buffer, uint64_t first, uint64_t count);
/* The same of any array argument (buffer, parameter, temporary, slice). 0 elements of a parameter
 * or temporary cannot be expressed: INVALID where the argument is used. */
GPUD_API gpud_arg gpud_arg_slice(gpud_arg arg, uint64_t first, uint64_t count);
/* The same argument with another access. */
GPUD_API gpud_arg gpud_arg_with(gpud_arg arg, int access);

/* A view: the same array with its bytes as elements of another type. Without a view, a kernel
 * refuses an array of another type than its own (ARG_TYPE); only pointers to char and void take
 * any. The bytes must be whole elements of that type (ARG_SHAPE) and begin at a multiple of its
 * size (RANGE). A slice counts the array's own elements, in either order of the two calls. The last
 * dimension is counted in the new type; if its bytes are not whole elements, the array gets one
 * dimension. GPUD_NONE: no view. For an argument that is not an array: ARG_TYPE when it is used. */
GPUD_API gpud_arg gpud_arg_as(gpud_arg arg, int dtype);

/* n elements of host memory, sent with the job; the kernel gives the access of `gpud_host`. Inputs
 * are copied before the call returns. Outputs are stored at the job's end: the memory must live
 * until then, or until gpud_job_free. Memory of gpud_host_alloc, gpud_host_import is not copied. */
GPUD_API gpud_arg gpud_host(void *data, uint64_t n, int dtype);
GPUD_API gpud_arg gpud_host_in(const void *data, uint64_t n, int dtype);
GPUD_API gpud_arg gpud_host_out(void *data, uint64_t n, int dtype);
GPUD_API gpud_arg gpud_host_inout(void *data, uint64_t n, int dtype);
/* The same argument, and kernels may access memory of gpud_host_alloc directly instead of a copy on
 * the device, where the device can: over a GPU's bus that is faster for data that is used once. A
 * device that is the host's processor always does. No effect on other arguments. */
GPUD_API gpud_arg gpud_arg_direct(gpud_arg arg);
/* With a shape of several dimensions. */
GPUD_API gpud_arg gpud_host_shaped(void *data, gpud_shape shape, int access);

GPUD_API gpud_arg gpud_i8(int8_t value);
GPUD_API gpud_arg gpud_u8(uint8_t value);
GPUD_API gpud_arg gpud_i16(int16_t value);
GPUD_API gpud_arg gpud_u16(uint16_t value);
GPUD_API gpud_arg gpud_i32(int32_t value);
GPUD_API gpud_arg gpud_u32(uint32_t value);
GPUD_API gpud_arg gpud_i64(int64_t value);
GPUD_API gpud_arg gpud_u64(uint64_t value);
GPUD_API gpud_arg gpud_f16(uint16_t bits); /* IEEE half, its bits */
GPUD_API gpud_arg gpud_f32(float value);
GPUD_API gpud_arg gpud_f64(double value);
/* A struct by value; at most GPUD_MAX_STRUCT bytes. */
GPUD_API gpud_arg gpud_bytes(const void *data, size_t bytes);
/* Local (shared) memory of a kernel that takes it as an argument. */
GPUD_API gpud_arg gpud_local(uint64_t bytes);

/* ---- kernels and modules ------------------------------------------------------------------- */

enum gpud_lang {
    GPUD_LANG_DIALECT = 1, /* .gk: the portable dialect */
    GPUD_LANG_OPENCL = 2,  /* .cl */
    GPUD_LANG_CUDA = 3,    /* .cu */
    GPUD_LANG_PTX = 4,
    GPUD_LANG_CUBIN = 5, /* fatbins, too */
    GPUD_LANG_SPIRV = 6  /* no back end takes it so far: UNSUPPORTED */
};

/* A built-in kernel: "axpy", or "axpy@3" for one version. Blocks the first time. NOT_FOUND. */
GPUD_API int gpud_kernel_find(gpud_client *client, const char *name, gpud_kernel *ret_kernel);

#define GPUD_SIGNATURE 1025

typedef struct gpud_kernel_desc {
    size_t size;
    uint64_t version;
    uint32_t arg_count;
    bool auto_grid; /* sizes follow from the data: no gpud_grid is needed */
    char name[GPUD_NAME];
    char signature[GPUD_SIGNATURE]; /* the source line; empty if the code had none */
    /* Resources on the first kind of device that it was compiled for; for a family of types, of the
     * member that needs most. 0 = not known, or none. */
    uint64_t registers;      /* of a work item */
    uint64_t item_bytes;     /* memory of a work item beside its registers */
    uint64_t group_bytes;    /* memory that a group shares, without gpud_local arguments */
    uint64_t max_group;      /* work items of the largest group */
    uint64_t group_multiple; /* group sizes of a multiple of it use all lanes of the device */
    uint64_t occupancy_ppm; /* share of the work items that a unit of the device can hold at once */
} gpud_kernel_desc;

enum gpud_arg_kind {
    GPUD_ARG_SCALAR = 1,
    GPUD_ARG_ARRAY = 2,
    GPUD_ARG_STRUCT = 3,
    GPUD_ARG_LOCAL = 4
};

typedef struct gpud_kernel_arg_desc {
    size_t size;
    uint32_t kind;   /* enum gpud_arg_kind */
    uint32_t access; /* enum gpud_access; 0 = not known */
    uint32_t dtype;  /* GPUD_NONE: not known, or any type of the kernel's family */
    uint64_t bytes;  /* of a scalar or struct, 0 = not known */
    char name[GPUD_NAME];
    char type[GPUD_NAME]; /* as in the source; "" if the code does not have it */
} gpud_kernel_arg_desc;

/* The description from when the kernel was found; does not block. BAD_HANDLE, STALE_HANDLE. */
GPUD_API int gpud_kernel_info(gpud_client *client, gpud_kernel kernel, gpud_kernel_desc *ret_desc);
GPUD_API int gpud_kernel_arg(gpud_client *client, gpud_kernel kernel, uint32_t index,
                             gpud_kernel_arg_desc *ret_arg);

/* A text that a source includes, by the name in its #include: "util.h", "math/vec.h". */
typedef struct gpud_header {
    const char *name;
    const void *text;
    size_t bytes;
} gpud_header;

typedef struct gpud_module_options {
    size_t size;
    const char *name;      /* NULL: none */
    const char *options;   /* compiler options: "-DN=4 …"; NULL: none */
    const char *signature; /* signature lines for code without them; NULL: none */
    const char *file; /* name in the compiler's messages; its last 64 bytes count; NULL: none */
    char *log;        /* receives the compiler's output, also after a failure; NULL: not wanted */
    size_t log_bytes; /* size of `log`, with the NUL; 64 KiB are always enough */
    /* Headers that OpenCL C, CUDA C and the dialect include, because the daemon reads no files.
     * "name" is searched beside the including header first, then by its name; <name> by its name
     * only. CUDA C may include the toolkit's headers as well. UNSUPPORTED by daemons of protocol
     * 0.3. */
    const gpud_header *headers;
    uint32_t header_count; /* at most GPUD_MAX_HEADERS */
} gpud_module_options;

/* Compiles source, or loads a binary, of at most 1 MiB. options may be NULL. Blocks until the
 * module is compiled, and before that until a device has opened, or none will (NO_DEVICE).
 * PERMISSION, COMPILE (text: "file:line:col: …"; the whole log: options.log), COMPILE_LIMIT,
 * UNSUPPORTED, QUARANTINED, BUSY (too many wait for the compiler). */
GPUD_API int gpud_module_load(gpud_client *client, int lang, const void *source, size_t bytes,
                              const gpud_module_options *options, gpud_module *ret_module);
/* A kernel of the module by name, or by index from 0 in the module's order; valid until the module
 * is unloaded. Blocks only for a name that the module does not list, to ask the daemon for the
 * reason. NOT_FOUND (the text lists the module's kernels), UNSUPPORTED (the kernel cannot be
 * launched, for the reason in the text), BAD_HANDLE, STALE_HANDLE. */
GPUD_API int gpud_module_kernel(gpud_client *client, gpud_module module, const char *name,
                                gpud_kernel *ret_kernel);
GPUD_API int gpud_module_kernel_at(gpud_client *client, gpud_module module, uint32_t index,
                                   gpud_kernel *ret_kernel);
/* A variable of a module that this client loaded (CUDA: `__constant__`, `__device__`) as a buffer,
 * which is written, read, copied and passed to kernels as any other. name: as in the binary;
 * outside of namespaces also as in the source. shape: as many bytes as the variable. kernels: the
 * access of the module's kernels, GPUD_IN (they may overlap) or GPUD_INOUT. device: GPUD_ON(id); 0
 * = the device of the module. It starts with the module's value. From then on each launch of a
 * kernel of the module uses the variable, in order with writes and reads, and on that device only:
 * load the module again for another device. The buffer can be freed, which keeps the value, but not
 * sealed, published or exported. If its worker ends, the variable is lost; launches of the module
 * then fail until it is freed. Blocks. BAD_HANDLE, NOT_FOUND, ARG_SHAPE (its size), EXISTS (it is a
 * buffer already), BUSY (an unfinished job that launches the module's kernels uses as many buffers
 * as a job can), UNSUPPORTED by the back end. */
GPUD_API int gpud_module_variable(gpud_client *client, gpud_module module, const char *name,
                                  gpud_shape shape, int kernels, uint64_t device,
                                  gpud_buffer *ret_buffer);
/* Unloads it after its jobs; handles are stale now. Does not block. BAD_HANDLE, STALE_HANDLE. */
GPUD_API int gpud_module_unload(gpud_client *client, gpud_module module);

/* Sizes in work items, x first, for kernels whose signature does not give them. Other kernels
 * (auto_grid) refuse a grid: INVALID. 0 = the daemon chooses. */
typedef struct gpud_grid {
    size_t size;
    uint64_t global[3];
    uint64_t local[3];
    uint64_t shared_bytes; /* dynamic local memory */
} gpud_grid;

/* ---- programs ------------------------------------------------------------------------------ */

enum gpud_param_kind {
    GPUD_PARAM_BUFFER = 1, /* bound to a buffer or slice */
    GPUD_PARAM_SCALAR = 2, /* bound to a scalar */
    /* bound to host memory, the source of a write; kernels and gpud_program_read_to may write to
     * memory of gpud_host_alloc that is bound with gpud_host_out or gpud_host_inout */
    GPUD_PARAM_DATA = 3
};

/* Starts a program: steps that run in order as one job. The program keeps the first error of
 * the calls that build it; gpud_program_seal returns it. name may be NULL. */
GPUD_API int gpud_program_create(gpud_client *client, const char *name, gpud_program **ret_program);
/* Declares a parameter; values are given at submit in the order of declaration. shape.ndim 0: any
 * shape of that type. Steps use the result as an argument. */
GPUD_API gpud_arg gpud_program_param(gpud_program *program, const char *name, int kind,
                                     gpud_shape shape);
/* Memory that lives while a job of the program runs. Steps use the result as an argument. */
GPUD_API gpud_arg gpud_program_temp(gpud_program *program, gpud_shape shape);
/* Each adds a step and returns its index or a negative code; copies inputs. grid may be NULL. */
GPUD_API int gpud_program_launch(gpud_program *program, gpud_kernel kernel, const gpud_arg *args,
                                 uint32_t count, const gpud_grid *grid);
GPUD_API int gpud_program_write(gpud_program *program, gpud_arg to, gpud_arg from);
GPUD_API int gpud_program_copy(gpud_program *program, gpud_arg to, gpud_arg from);
GPUD_API int gpud_program_fill(gpud_program *program, gpud_arg to, gpud_arg scalar);
/* The job keeps the bytes: gpud_job_output(job, step, 0, …). */
GPUD_API int gpud_program_read(gpud_program *program, gpud_arg from);
/* Stores the bytes in `to` instead: a parameter of kind GPUD_PARAM_DATA, or memory of
 * gpud_host_alloc (gpud_host_out). ARG_TYPE. */
GPUD_API int gpud_program_read_to(gpud_program *program, gpud_arg to, gpud_arg from);
/* Sends the program to the daemon, which checks it. From then on it is immutable, and many threads
 * may use it. A program without steps goes to the worker and back, which measures a round trip.
 * Blocks. Returns the first error of the calls that built it, or the daemon's. */
GPUD_API int gpud_program_seal(gpud_program *program);
/* Submitted jobs go on. NULL is allowed. Does not block. Needed, and allowed, after gpud_close. */
GPUD_API void gpud_program_free(gpud_program *program);

/* ---- jobs ---------------------------------------------------------------------------------- */

enum gpud_submit_flag {
    /* Wait for room in the queue instead of failing with BUSY; later jobs without this flag do not
     * overtake it. Later requests of the client wait with it, except cancelling and queries. */
    GPUD_SUBMIT_BLOCK = 1,
    /* One answer, at the end of the job: half the messages for tiny jobs. Until then the job has no
     * id (gpud_job_id is 0), so gpud_cancel returns STATE and gpud_explain cannot name it. */
    GPUD_SUBMIT_HELD = 2,
    /* The job goes on after the end of its session (gpud_close, the end of the process) and keeps
     * its buffers until its own end; a published buffer takes its result. BUSY: the daemon ends for
     * a restart, or the tenant has as many such jobs as a session may have jobs. */
    GPUD_SUBMIT_DETACHED = 4,
    GPUD_SUBMIT_ONCE = 8 /* gpud_run: a refusal (BUSY) is final */
};

/* Runs once when the job has ended or was refused. It may read all results and free the job. code:
 * the job's error, 0 after success; gpud_last_error() has the text. gpud_job_id(job) is 0 if the
 * daemon refused the job before it had a number. */
typedef void (*gpud_done_cb)(gpud_job *job, int code, void *user);

/* Jobs of a class go before those of the next. Within it tenants share devices by their weights.
 * The tenant's own class (gpud.conf) is the first that its jobs can have. */
enum gpud_class {
    GPUD_CLASS_USUAL = 0, /* interactive */
    GPUD_CLASS_REALTIME = 1,
    GPUD_CLASS_INTERACTIVE = 2,
    GPUD_CLASS_BATCH = 3 /* one at a time beside jobs of other classes */
};

typedef struct gpud_submit_options {
    size_t size;
    uint32_t flags; /* enum gpud_submit_flag; INVALID if there is another bit */
    /* Higher runs earlier, among the tenant's own jobs of a class. Each level, up to 16 either way,
     * is worth one second of waiting, so no job is overtaken for longer. */
    int32_t priority;
    /* From now; 0 = none. A job that has not begun on its device by then ends with DEADLINE. With
     * effects none it never begins; with effects maybe the device may run it late. If by the times
     * of earlier jobs it cannot begin by then, the daemon refuses it with DEADLINE at once. */
    uint64_t deadline_ns;
    /* Of execution, counted from the end of earlier work on the device; 0 = the time_limit_ms of
     * the daemon or the tenant's section, which is also the most. A job beyond it ends with
     * TIME_LIMIT. If the limit is below time_limit_ms, a kernel that still runs goes on, and its
     * outputs remain blocked and undefined until it ends. The worker is ended only if a loaded
     * kernel of this tenant runs there and no other tenant uses the worker. */
    uint64_t time_limit_ns;
    uint64_t device;   /* GPUD_ON(id), where its buffers move; 0 = the daemon chooses */
    uint64_t trace_id; /* 0 = none */
    const char *label; /* NULL: none */
    gpud_done_cb done; /* see gpud_set_event_cb for where it runs; NULL: none */
    void *user;
    uint32_t job_class; /* enum gpud_class; another value is INVALID */
} gpud_submit_options;

/* Submits a sealed program with a value for each parameter. options may be NULL. Does not block
 * without GPUD_SUBMIT_BLOCK. A refusal of the daemon is the job's error. Free the job.
 * BUSY, DRAINING, ARG_COUNT, ARG_TYPE, BAD_HANDLE, STALE_HANDLE, BUFFER_LOST, STATE (unsealed). */
GPUD_API int gpud_submit(gpud_client *client, const gpud_program *program, const gpud_arg *args,
                         uint32_t count, const gpud_submit_options *options, gpud_job **ret_job);
/* Submits a program and waits; returns the job's error as well. ret_job: NULL, or it gets the ended
 * job with its outputs, also if the job failed (the code is not 0); free it. It is untouched if no
 * job was submitted. BUSY is tried again until timeout_ns or deadline_ns, if either is set (without
 * GPUD_SUBMIT_BLOCK and `done`). Blocks. TIMEOUT (gpud_options.timeout_ns): a submitted job goes on
 * and may still write to memory of gpud_host_alloc that it names. Other host memory is not written
 * once the job is freed, at once if ret_job is NULL. So do gpud_call, gpud_copy, gpud_fill. */
GPUD_API int gpud_run(gpud_client *client, const gpud_program *program, const gpud_arg *args,
                      uint32_t count, const gpud_submit_options *options, gpud_job **ret_job);
/* One kernel; grid, options may be NULL. As gpud_submit; host arrays must fit a message (LIMIT). */
GPUD_API int gpud_launch(gpud_client *client, gpud_kernel kernel, const gpud_arg *args,
                         uint32_t count, const gpud_grid *grid, const gpud_submit_options *options,
                         gpud_job **ret_job);
/* One kernel, blocking, with host arrays of any size. grid may be NULL. TIMEOUT as in gpud_run;
 * arrays that together exceed a message go through buffers, and the time starts again for each
 * step. Memory of gpud_host_alloc is used in place; others from 64 KiB on are copied through shared
 * memory. A call costs: a loop in the client is faster for sums or simple maps below some hundred
 * thousand elements, or many more if arrays must be copied first (docs/performance.md). */
GPUD_API int gpud_call(gpud_client *client, gpud_kernel kernel, const gpud_arg *args,
                       uint32_t count, const gpud_grid *grid);
/* One copy or fill between buffers or slices; blocking. A copy between buffers on different devices
 * goes in pieces through memory that their workers share (over tcp through this process). Other
 * jobs may see a part of it, and a failed copy may have written a part. */
GPUD_API int gpud_copy(gpud_client *client, gpud_arg to, gpud_arg from);
GPUD_API int gpud_fill(gpud_client *client, gpud_arg to, gpud_arg scalar);

/* Waits for the end of the job. Returns the job's error, or TIMEOUT if it has not ended (it goes
 * on). timeout_ns 0 only checks. Runs callbacks. Blocks. */
GPUD_API int gpud_wait(gpud_job *job, uint64_t timeout_ns);
/* The same for the first of several jobs of one client; NULLs are skipped. 0 or TIMEOUT (the job
 * has its error); INVALID without a job. ret_index may be NULL. */
GPUD_API int gpud_wait_any(gpud_job *const *jobs, uint32_t count, uint64_t timeout_ns,
                           uint32_t *ret_index);
GPUD_API bool gpud_job_done(const gpud_job *job); /* has it ended? */
/* Asks for the job's end. The job still completes once, with CANCELLED if the request came in time.
 * Steps that have begun on the device run to their end; later steps do not begin. A job that waits
 * ends at once. Blocks. STATE for a GPUD_SUBMIT_HELD job; 0 for one that has ended. */
GPUD_API int gpud_cancel(gpud_job *job);
/* As gpud_cancel, but a job on a device ends with its worker: CANCELLED, and it may have had
 * effects. The tenant's other jobs there run again or are lost, as after a fault. STATE, and
 * nothing is done: other tenants share the worker. UNSUPPORTED by older daemons. */
GPUD_API int gpud_kill(gpud_job *job);
/* Its error; code 0 while it runs and after success. */
GPUD_API int gpud_job_error(const gpud_job *job, gpud_error *ret_error);
/* The daemon's number of the job, 0 while it is not known. For a job that went through a ring, the
 * first call requests the number and a later call returns it. */
GPUD_API uint64_t gpud_job_id(const gpud_job *job);
/* The output of a step, aligned to 64 bytes; the memory belongs to the job and lives until
 * gpud_job_free. arg is 0 for read steps, the argument's index for host arrays a launch wrote.
 * Either ret may be NULL. STATE before the job has ended, NOT_FOUND, NOMEM, or the job's error. */
GPUD_API int gpud_job_output(const gpud_job *job, uint32_t step, uint32_t arg,
                             const void **ret_data, size_t *ret_bytes);

typedef struct gpud_job_times {
    size_t size;
    uint64_t device;      /* its id, not GPUD_ON(id) */
    uint64_t queued_ns;   /* waited in the daemon */
    uint64_t executed_ns; /* on the device */
    uint64_t replays;     /* times it was run again after a worker's death */
    uint32_t step_count;  /* measured steps, for gpud_job_step_time */
    /* implementations of operations that have several: "cublas", "cufft, portable"; else "" */
    char implementation[GPUD_NAME];
} gpud_job_times;
/* STATE before the job has ended. */
GPUD_API int gpud_job_timing(const gpud_job *job, gpud_job_times *ret_times);
/* The index-th measured step: begin and end relative to the start of execution. NOT_FOUND. */
GPUD_API int gpud_job_step_time(const gpud_job *job, uint32_t index, uint32_t *ret_step,
                                uint64_t *ret_begin_ns, uint64_t *ret_end_ns);
/* Frees the object without cancelling: the job goes on, its done callback will not run, and host
 * memory is no longer written. NULL is allowed. Also needed, and allowed, after gpud_close. */
GPUD_API void gpud_job_free(gpud_job *job);

/* ---- queries and control -------------------------------------------------------------------- */

#define GPUD_NO_DEVICE UINT64_MAX /* in place of a device's id */

typedef struct gpud_job_desc {
    size_t size;
    uint64_t id;
    int code;        /* GPUD_ERR_* if it failed */
    uint64_t device; /* its id, not GPUD_ON(id); GPUD_NO_DEVICE: none yet */
    uint64_t stream, replays;
    uint64_t submitted_ns; /* the daemon's monotonic clock; 0 = not yet, as the next three */
    uint64_t dispatched_ns, started_ns, ended_ns, trace_id;
    char state[GPUD_NAME]; /* "queued", "dispatched", "running", "done", "failed", … */
    char label[GPUD_NAME];
    char text[GPUD_ERROR_TEXT];
    char implementation[GPUD_NAME]; /* as in gpud_job_times */
    uint64_t now_ns;                /* that clock at the time of the answer */
    uint64_t begins_ns, ends_ns;    /* as expected, by that clock; 0 = not known, or it has ended */
} gpud_job_desc;

/* By the daemon's number of a job, of any session the caller may see. All block. NOT_FOUND. */
GPUD_API int gpud_job_info(gpud_client *client, uint64_t job, gpud_job_desc *ret_desc);
GPUD_API int gpud_job_cancel(gpud_client *client, uint64_t job);
GPUD_API int gpud_job_kill(gpud_client *client, uint64_t job);
/* Why the job waits, as text; cut to `bytes` with the NUL. */
GPUD_API int gpud_explain(gpud_client *client, uint64_t job, char *ret_text, size_t bytes);

/* Tables: what = "status", "devices", "pool", "kernels", "jobs", "sessions", "tenants", "config",
 * "timeline", "accounts", "domains", "trace", "buffers", "program", "record"; filter: NULL, or
 * only rows with a text that contains it. See gpuctl(1). Blocks. NOT_FOUND. Free the table. */
GPUD_API int gpud_query(gpud_client *client, const char *what, const char *filter,
                        gpud_table **ret_table);

/* Chooses rows; from `state` to `limit`, of "jobs" and "timeline", the newest job first. */
typedef struct gpud_query_options {
    size_t size;
    const char *filter; /* as for gpud_query */
    const char *state;  /* "queued", "running", "failed", …; NULL or "": any */
    uint64_t session;   /* column "session" of "sessions"; 0: any */
    const char *tenant; /* NULL or "": any */
    uint64_t limit;     /* the most rows; 0: as many as fit a table */
    uint64_t job;       /* the job of "program" */
} gpud_query_options;

/* As gpud_query; options NULL: all rows. */
GPUD_API int gpud_query_with(gpud_client *client, const char *what,
                             const gpud_query_options *options, gpud_table **ret_table);
/* what = "drain", "resume", "drain-device" (value: "1", "1 finish"), "resume-device", "reload"
 * (blocks), "log-level" (error, warn, info, debug), "session-kill", "record-start", "record-stop",
 * "pool-trim", "accounts-reset". PERMISSION, NOT_FOUND, INVALID (value, settings), STATE. */
GPUD_API int gpud_control(gpud_client *client, const char *what, const char *value);

/* Snapshots of the devices' memory pools, when all workers have reported or the time is over. A
 * device without a report has a row with the reason in `note` and "-" for its numbers. */
enum gpud_pool_flag { GPUD_POOL_DETAIL = 1 /* with pieces and events */ };

typedef struct gpud_pool_options {
    size_t size;
    uint64_t device;     /* GPUD_ON(id); 0: all */
    uint64_t flags;      /* GPUD_POOL_* */
    uint64_t timeout_ns; /* 0: 2 s; at most 30 s */
} gpud_pool_options;

/* Takes a snapshot; options may be NULL. The table `pool` has a row for each device; its column
 * `picture` is the number for gpud_pool_read, `pieces` and `events` say how many there are. Blocks.
 * NOT_FOUND for an unknown device, BUSY during too many other snapshots. Free the table. */
GPUD_API int gpud_pool_take(gpud_client *client, const gpud_pool_options *options,
                            gpud_table **ret_table);

enum gpud_pool_part {
    GPUD_POOL_METERS = 1, /* sums of tiers, classes and tenants; first and count are not used */
    GPUD_POOL_PIECES = 2, /* by address */
    GPUD_POOL_EVENTS = 3  /* in order */
};

/* Reads `count` entries from `first` on of a part of a device's pool, at most 4096; device: its id,
 * not GPUD_ON(id). Pieces of other tenants are merged, without names, their events left out, unless
 * the caller may see them. Blocks. NOT_FOUND a minute after the last read. Free the table. */
GPUD_API int gpud_pool_read(gpud_client *client, uint64_t picture, uint64_t device, int part,
                            uint64_t first, uint64_t count, gpud_table **ret_table);

enum gpud_column_kind {
    GPUD_COLUMN_TEXT = 1,
    GPUD_COLUMN_UINT = 2,
    GPUD_COLUMN_INT = 3, /* the value is two's complement */
    GPUD_COLUMN_BYTES = 4,
    GPUD_COLUMN_NS = 5,
    GPUD_COLUMN_PPM = 6, /* parts of a million */
    GPUD_COLUMN_HANDLE = 7,
    GPUD_COLUMN_BOOL = 8
};

/* Accessors of a table: constant time, texts live as long as the table, never NULL; an index out of
 * range gives 0, false or "". Thread: any, a table never changes. */
GPUD_API const char *gpud_table_name(const gpud_table *table);
GPUD_API uint32_t gpud_table_columns(const gpud_table *table);
GPUD_API uint32_t gpud_table_rows(const gpud_table *table);
GPUD_API const char *gpud_table_column_name(const gpud_table *table, uint32_t column);
GPUD_API int gpud_table_column_kind(const gpud_table *table, uint32_t column);
GPUD_API bool gpud_table_column_wide(const gpud_table *table, uint32_t column);
GPUD_API const char *gpud_table_text(const gpud_table *table, uint32_t row, uint32_t column);
GPUD_API uint64_t gpud_table_value(const gpud_table *table, uint32_t row, uint32_t column);
/* The index of a column by name, -1 if there is none. */
GPUD_API int gpud_table_find(const gpud_table *table, const char *column);
GPUD_API void gpud_table_free(gpud_table *table); /* NULL is allowed */

#ifdef __cplusplus
}
#endif

#endif
