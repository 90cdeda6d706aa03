/*
 * The back-end contract: how a worker reaches a device. Small tables of functions: backend,
 * device, memory, pages, stream, marker, module, library. A slot is mandatory unless its comment
 * says "optional" and what NULL means; backend_check() asserts this for each entry of
 * backend_list().
 *
 * Rules for all of it
 * - One device is opened by one process; all calls come from one thread (the worker's loop) unless
 * a comment says otherwise.
 * - Nothing waits for the device unless its comment says "blocks". Work is enqueued on streams; a
 *   stream runs its work in order; different streams run independently.
 * - Every operation that was enqueued completes exactly once: its marker turns done or failed.
 * - Errors are ERR_* with the vendor's code in err.vendor; ret_ arguments are untouched on failure.
 * - After ERR_DEVICE_LOST or ERR_KERNEL_FAULT the process is to be ended: nothing else is promised.
 * - Sizes and offsets are bytes. Blocks are aligned to BACKEND_ALIGN at least.
 */
#ifndef BACKEND_BACKEND_H
#define BACKEND_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/bytes.h"
#include "common/err.h"

#define BACKEND_ALIGN      256u /* bytes */
#define BACKEND_ABI        1
#define BACKEND_WRITES_MAX 64u /* of a batch */

struct backend_device; /* opened device, owned by the worker */
struct backend_stream;
struct backend_marker; /* a point in a stream that can be asked and waited for */
struct backend_module;
struct backend_block; /* a piece of device memory, or of host memory a device can reach */

/* What a device is. Texts are terminated. */
struct backend_info {
    char backend[16];
    char name[128];
    char vendor[128];
    char driver[128];
    char pin[64];   /* options that open this very device, as device 0, whatever number it has by
                       then; "" = its number is all there is */
    char arch[128]; /* key for compiled code: binaries are good for the same (backend, arch) only */
    char note[256]; /* what is wrong with it though it serves, for operators; "": nothing */
    bool cpu;       /* executes on the host's processor */
    bool simulated; /* nothing is executed on real hardware */
    bool chosen;    /* this process's environment says which devices it may see */
    bool f64;
    uint64_t memory;       /* bytes */
    uint64_t max_alloc;    /* bytes of one block */
    uint64_t units;        /* compute units */
    uint64_t max_group;    /* work items of a group */
    uint64_t max_local[3]; /* work items of a group by dimension */
    uint64_t local_bytes;  /* local (shared) memory of a group */
    unsigned streams;      /* how many streams make sense, 1 … 16 */
};

/* (block, offset): what a pool hands out and every command takes */
struct backend_ref {
    struct backend_block *block;
    uint64_t offset;
};

struct backend_memory_ops {
    /* Device memory, size > 0. ERR_DEVICE_MEMORY if there is none. May take long; called by the
     * pool only. */
    int (*alloc)(struct backend_device *d, uint64_t size, struct backend_block **ret_block,
                 struct err *e);
    /* All commands on the block have completed. Blocks where the back end says release_waits. */
    void (*free)(struct backend_device *d, struct backend_block *block);
    /* Optional (NULL: unknown): bytes that the device could give now, to any process; while
     * host memory is being registered perhaps what they were before. Takes some microseconds. */
    int (*room)(struct backend_device *d, uint64_t *ret_bytes, struct err *e);
    /* Optional (NULL: staging memory is used as it is): makes host memory known to the device so
     * that copies from and to it are fast; in any thread. `unregister` is then mandatory. */
    int (*register_host)(struct backend_device *d, void *data, size_t size, struct err *e);
    /* All of it, as it was registered. Blocks where the back end says release_waits. */
    void (*unregister_host)(struct backend_device *d, void *data, size_t size);
    /* Optional (NULL: kernels work on copies): host memory of whole pages as a block, so that
     * commands and kernels work on it as it is, and copies from and to it are as fast as they get.
     * Its owner may write there at any time; it stays until the block was released. ret_align:
     * bytes, a power of two; arguments begin at multiples of it. May take long, and may be called
     * from another thread than the rest, one call at a time. ERR_UNSUPPORTED where this device
     * cannot. */
    int (*import_host)(struct backend_device *d, void *data, size_t size,
                       struct backend_block **ret_block, uint64_t *ret_align, struct err *e);
    /* As free. Blocks where the back end says release_waits. */
    void (*release_host)(struct backend_device *d, struct backend_block *block);
    /* Optional (NULL: there is none; then the other two are NULL as well): device memory that
     * another process can map. ERR_DEVICE_MEMORY; ERR_UNSUPPORTED where this device has none. */
    int (*alloc_shared)(struct backend_device *d, uint64_t size, struct backend_block **ret_block,
                        struct err *e);
    /* All commands on the block have completed; in this process. Does not wait for others. */
    void (*free_shared)(struct backend_device *d, struct backend_block *block);
    /* Optional (NULL: there is none; then the stream's `prefetch` is NULL as well): memory that the
     * driver moves between host and device as it is used; `free` frees it. ERR_DEVICE_MEMORY;
     * ERR_UNSUPPORTED where this device has none. */
    int (*alloc_managed)(struct backend_device *d, uint64_t size, struct backend_block **ret_block,
                         struct err *e);
    /* A descriptor of all of it, the caller's, and how many bytes that is: `size` rounded up. */
    int (*share)(struct backend_device *d, struct backend_block *block, int *ret_fd,
                 uint64_t *ret_bytes, struct err *e);
};

/* Optional table (NULL: memory comes by `alloc`): pages of device memory at addresses of the
 * caller's choice. A range is a block: commands take (range, offset) as any other, over borders of
 * pages too. Called by the pool only; each may take long. */
struct backend_page_ops {
    /* Bytes of a page, a power of two; 0: this device has none. */
    uint64_t (*page_bytes)(struct backend_device *d);
    /* `bytes` of addresses, whole pages; nothing behind them. */
    int (*reserve)(struct backend_device *d, uint64_t bytes, struct backend_block **ret_range,
                   struct err *e);
    void (*release)(struct backend_device *d, struct backend_block *range); /* nothing is mapped */
    /* A page, mapped nowhere; its name is not 0. ERR_DEVICE_MEMORY. */
    int (*create)(struct backend_device *d, uint64_t *ret_page, struct err *e);
    void (*destroy)(struct backend_device *d, uint64_t page); /* mapped nowhere */
    int (*map)(struct backend_device *d, struct backend_block *range, uint64_t at, uint64_t page,
               struct err *e);
    /* All commands that came to the page through this place have completed; those that came through
     * others may run. Its bytes stay. */
    int (*unmap)(struct backend_device *d, struct backend_block *range, uint64_t at, struct err *e);
    /* What was mapped in [at, at + bytes) may be read and written from now on. */
    int (*access)(struct backend_device *d, struct backend_block *range, uint64_t at,
                  uint64_t bytes, struct err *e);
    /* A page may be mapped at several places at once, and what commands that have completed wrote
     * at one of them is there at all of them, for later commands. */
    bool aliases;
};

/* One argument of a launch, in the kernel's order. */
struct backend_arg {
    enum { BACKEND_ARG_MEMORY, BACKEND_ARG_VALUE, BACKEND_ARG_LOCAL } kind;
    struct backend_ref memory; /* MEMORY; block NULL passes a null pointer */
    const void *value;         /* VALUE: `size` bytes, read during the call */
    size_t size; /* bytes. MEMORY: what the kernel may touch there; 0: up to the block's end */
};

struct backend_launch {
    uint64_t global[3]; /* work items, each ≥ 1, a multiple of local where local is given */
    uint64_t local[3];  /* all 0: the back end chooses */
    uint64_t shared;    /* bytes of dynamic shared memory (CUDA); 0 elsewhere */
    const struct backend_arg *args;
    unsigned arg_count;
};

/* A copy to the device as one of several. */
struct backend_write {
    struct backend_ref dst;
    const void *host;
    uint64_t size;
};

struct backend_stream_ops {
    /* priority: 0 is the usual one, larger ones go first where the device can. */
    int (*create)(struct backend_device *d, int priority, struct backend_stream **ret_stream,
                  struct err *e);
    void (*destroy)(struct backend_stream *s); /* idle */
    /* Commands. `host` stays valid until a later marker of the stream is done. size > 0. */
    int (*write)(struct backend_stream *s, struct backend_ref dst, const void *host, uint64_t size,
                 struct err *e);
    int (*read)(struct backend_stream *s, void *host, struct backend_ref src, uint64_t size,
                struct err *e);
    /* the ranges do not overlap */
    int (*copy)(struct backend_stream *s, struct backend_ref dst, struct backend_ref src,
                uint64_t size, struct err *e);
    /* pattern of 1, 2, 4, 8 or 16 bytes; size and dst's offset are multiples of it */
    int (*fill)(struct backend_stream *s, struct backend_ref dst, const void *pattern,
                size_t pattern_size, uint64_t size, struct err *e);
    int (*launch)(struct backend_stream *s, struct backend_module *m, const char *entry,
                  const struct backend_launch *launch, struct err *e);
    /* A marker after all that was enqueued so far. Must be released once. */
    int (*mark)(struct backend_stream *s, struct backend_marker **ret_marker, struct err *e);
    /* Optional (NULL: as `mark`): a marker whose end no wake() tells, unless it is armed: one that
     * comes later in the stream tells of both. `arm` is then mandatory. */
    int (*mark_quiet)(struct backend_stream *s, struct backend_marker **ret_marker, struct err *e);
    /* Optional (NULL: nothing would be gained): what is enqueued from now on need not start before
     * flush(), which comes soon. For a device that starts a command as soon as it is enqueued, and
     * pays for that once for many that way. */
    void (*gather)(struct backend_stream *s);
    /* Later commands of `s` run after the marker (of any stream of the device). */
    int (*wait)(struct backend_stream *s, struct backend_marker *marker, struct err *e);
    /* Starts what was enqueued; called after each batch. */
    int (*flush)(struct backend_stream *s, struct err *e);
    /* Optional (NULL: one `write` each): 1 to BACKEND_WRITES_MAX writes as one command, in any
     * order among themselves: no two write the same byte. `host` as for `write`, and known to the
     * device where that has register_host; the array is read during the call. On failure some of
     * them may have been enqueued, and one `write` each may succeed. */
    int (*write_batch)(struct backend_stream *s, const struct backend_write *writes, unsigned count,
                       struct err *e);
    /* Optional: brings managed memory to the device. */
    int (*prefetch)(struct backend_stream *s, struct backend_ref ref, uint64_t size, struct err *e);
};

/* A whole operation with the arguments of its signature in order, then the sizes that it names as
 * values of 8 bytes. */
struct backend_call {
    const char *operation; /* "gemm" */
    int dtype;             /* enum dtype: its T */
    const struct backend_arg *args;
    unsigned arg_count;
};

/* Optional table (NULL: there are none): the vendor's libraries. One that was not prepared, or
 * could not be, serves nothing. `workspace` and `run` give ERR_UNSUPPORTED where none serves the
 * call; then nothing was enqueued. */
struct backend_library_ops {
    /* Those that may do what kernels of this module do, and are not prepared yet: a set for
     * `prepare`, 0: none. */
    unsigned (*wanted)(struct backend_module *m);
    /* Opens them and makes what they need for a device; the log reports failures. Blocks,
     * perhaps for seconds (files of hundreds of MiB, and drivers may wait for what runs): to be
     * called from another thread than the rest, one call at a time; all others may be called
     * meanwhile. */
    void (*prepare)(struct backend_device *d, unsigned wanted);
    /* Optional (NULL: what failed is not tried again): those that could not be prepared, for want
     * of memory perhaps, and may be now; a set for `prepare`. Bounded by its own pauses, and cheap:
     * it may be asked often, but not while `prepare` runs. */
    unsigned (*again)(struct backend_device *d);
    /* Bytes of device memory that the call works in, 0: none. Addresses are not looked at. */
    int (*workspace)(struct backend_stream *s, const struct backend_call *call, uint64_t *ret_bytes,
                     struct err *e);
    /* A command. workspace: of at least so many bytes, block NULL where it needs none. ret_by: what
     * serves it ("cublas"), static. */
    int (*run)(struct backend_stream *s, const struct backend_call *call,
               struct backend_ref workspace, const char **ret_by, struct err *e);
    /* Optional (NULL: nothing is kept): ends what the libraries gave up, for which the driver may
     * wait for all that is in flight; called while nothing is, often. */
    void (*tidy)(struct backend_device *d);
};

enum backend_state {
    BACKEND_PENDING = 0,
    BACKEND_RUNNING = 1,
    BACKEND_DONE = 2,
    BACKEND_FAILED = 3
};

/* When a marker's point in the stream was passed, on the host's monotonic clock (clock_now_ns),
 * converted from the device's. */
struct backend_marker_ops {
    /* Where the marker is; FAILED fills `e` with what went wrong before it on its stream. */
    enum backend_state (*state)(struct backend_marker *m, struct err *e);
    /* ns at which the commands between the previous marker of the stream and this one began and
     * ended; valid when DONE. */
    void (*times)(struct backend_marker *m, uint64_t *ret_begin_ns, uint64_t *ret_end_ns);
    void (*release)(struct backend_marker *m);
    /* Optional (NULL: the worker polls on): one wake() when the marker is done, of a device that
     * does not wake by itself, or for one of mark_quiet; done already is done. For a marker that is
     * still pending after a while of polling: then a call costs less than asking on. A failure may
     * come without it. */
    int (*arm)(struct backend_marker *m, struct err *e);
};

/* What is known of a kernel of a module. 0 = unknown. */
struct backend_kernel {
    char entry[128];
    unsigned arg_count;
    uint64_t registers;          /* of a work item */
    uint64_t local_bytes;        /* of a work item, beside its registers */
    uint64_t shared_bytes;       /* of a group, without what a launch adds */
    uint64_t max_group;          /* work items */
    uint64_t required_local[3];  /* the only group that its source allows; the first is 0: any */
    uint64_t preferred_multiple; /* work items; groups of other sizes leave some idle */
    /* work items that a unit has at once, in groups of the size that suits best, in parts of a
     * million of what it can hold */
    uint64_t occupancy;
};

struct backend_module_ops {
    /* A binary that the back end's compiler made for this arch. Blocks (linking). This and what is
     * asked of its kernels at first may be called from another thread than the rest, for one module
     * at a time. */
    int (*load)(struct backend_device *d, struct bytes binary, struct backend_module **ret_module,
                struct err *e);
    /* After its last launch completed. Blocks where the back end says release_waits. */
    void (*unload)(struct backend_module *m);
    unsigned (*kernel_count)(struct backend_module *m);
    int (*kernel)(struct backend_module *m, unsigned index, struct backend_kernel *ret_kernel,
                  struct err *e);
    /* Optional (NULL: none can be reached): a variable by its name in the binary, as a block of
     * `ret_bytes` that is the module's and goes with it. ERR_NOT_FOUND. */
    int (*variable)(struct backend_module *m, const char *name, struct backend_block **ret_block,
                    uint64_t *ret_bytes, struct err *e);
};

/* How a back end tells the worker that a marker may have changed. Called from any thread; must be
 * quick; `data` as given to open. A back end that cannot tell leaves it to polling. */
typedef void (*backend_wake_fn)(void *data);

struct backend_device_ops {
    /* Opens device `index` of enumerate. Blocks (a context in the making). `options` is the
     * back end's own text ("key=value,…", may be ""). */
    int (*open)(unsigned index, const char *options, backend_wake_fn wake, void *wake_data,
                struct backend_device **ret_device, struct err *e);
    void (*close)(struct backend_device *d); /* idle, all objects gone. Blocks. */
    void (*info)(struct backend_device *d, struct backend_info *ret_info);
    /* Does wake() come for markers by itself? false: the worker polls while jobs are in flight.
     * true: a failure may still come without a wake, so it polls too, but seldom. */
    bool (*wakes)(struct backend_device *d);
    /* Optional (NULL: there is nothing to do): nothing is in flight. What kernels printed comes out
     * now, if it has not come before. Takes some microseconds. */
    void (*idle)(struct backend_device *d);
};

/* What a kernel's argument is, in numbers of proto's KARG. */
enum backend_kind {
    BACKEND_KIND_UNKNOWN, /* an array or a value */
    BACKEND_KIND_SCALAR,
    BACKEND_KIND_ARRAY,
    BACKEND_KIND_STRUCT,
    BACKEND_KIND_LOCAL, /* local memory */
};

#define BACKEND_ARGS_MAX 128u /* of a kernel */

/* A kernel argument as a compiler reports it for code without a signature line. */
struct backend_compiled_arg {
    char name[64];
    char type[64];   /* as in the source, "" if unknown */
    unsigned kind;   /* enum backend_kind */
    unsigned access; /* enum access; arrays only */
    int dtype;       /* enum dtype, DTYPE_NONE if unknown */
    uint32_t bytes;  /* of a scalar or struct, 0 if unknown */
    bool only_reads; /* shown from the code itself: nothing is written through it. What the source
                        declares does not show it, as a cast takes `const` away. */
};

#define BACKEND_NAME_MAX 64u /* bytes: clients can ask for kernels with names of that length */

struct backend_compiled_kernel {
    char entry[128]; /* its name in the binary */
    char name[128];  /* what users call it where that is another ("f<float>"), else "" */
    unsigned arg_count;
    struct backend_compiled_arg arg[BACKEND_ARGS_MAX];
    uint64_t required_local[3]; /* 0 = free */
    /* what the compiler knows of its needs, 0 = unknown; the device may tell more */
    uint64_t registers;
    uint64_t local_bytes;
    uint64_t shared_bytes;
    uint64_t constant_bytes;
    uint64_t max_group;
    uint64_t preferred_multiple;
    /* why it cannot be launched ("argument 3 (img) is an image2d_t, …"): then it has no args;
     * "" = it can be launched */
    char unfit[192];
};

/* What a compiler makes; owned by the caller, freed by backend_compiled_finish. */
struct backend_compiled {
    uint8_t *binary;
    size_t binary_size;
    char *log; /* the compiler's messages with the user's file name, line and column; may be NULL */
    struct backend_compiled_kernel *kernels;
    unsigned kernel_count;
    /* the file of the compiler where `arch` does not tell its version, else "": what was kept of
     * another version is made anew */
    char compiler[512];
};

/* The values of proto's enum proto_lang, which this folder does not see. */
enum backend_lang {
    BACKEND_LANG_DIALECT = 1,
    BACKEND_LANG_OPENCL = 2,
    BACKEND_LANG_CUDA = 3,
    BACKEND_LANG_PTX = 4,
    BACKEND_LANG_CUBIN = 5,
    BACKEND_LANG_SPIRV = 6,
};

struct backend_source {
    int lang; /* enum backend_lang; a source in the dialect was translated to backend.dialect */
    struct bytes text; /* source or binary */
    const char *file;  /* name for messages, "" if none */
    const char *options;
    const char *arch;            /* of the device it is for */
    const char *backend_options; /* as given to open; NULL or "" if there are none */
    const char *cache_dir;       /* where the compiler may keep files; NULL or "": nowhere */
    bool confined; /* this process can read no file that a compiler has no business with */
};

/* Runs in gpud-compile only, never in a worker. Blocks. On ERR_COMPILE ret_compiled->log is set
 * (and only it). */
typedef int (*backend_compile_fn)(unsigned index, const struct backend_source *source,
                                  struct backend_compiled *ret_compiled, struct err *e);

struct backend {
    const char *name;
    int abi;          /* BACKEND_ABI */
    bool auto_choice; /* may be chosen by --backend auto (never true for sim) */
    int dialect;      /* enum backend_lang: what compile() takes for a source in the dialect;
                         BACKEND_LANG_DIALECT = the source as it is */
    /* Number of devices; ERR_NO_DEVICE with a reason and what to install. Blocks. */
    int (*enumerate)(const char *options, unsigned *ret_count, struct err *e);
    bool release_waits; /* the driver may end all that is in flight before it lets go of a block of
                           memory, also of the host's, or of a module: the caller does that while
                           nothing is */
    const struct backend_device_ops *device;
    const struct backend_memory_ops *memory;
    const struct backend_page_ops *pages; /* optional */
    const struct backend_stream_ops *stream;
    const struct backend_marker_ops *marker;
    const struct backend_module_ops *module;
    const struct backend_library_ops *library; /* optional */
    backend_compile_fn compile;                /* optional: NULL = no compiler, ERR_UNSUPPORTED */
};

/* In order of preference; NULL-terminated; what was not built in is absent. */
const struct backend *const *backend_list(void);
const struct backend *backend_find(const char *name);      /* NULL if not built in */
int backend_check(const struct backend *b, struct err *e); /* mandatory slots are there */
void backend_compiled_finish(struct backend_compiled *c);

#endif
