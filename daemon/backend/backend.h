/*
 * The back-end contract: how a worker reaches a device. Small tables of functions: backend,
 * device, memory, pages, stream, marker, module, library. A slot is mandatory unless its comment
 * says "optional" and what NULL means; backend_check() asserts this for each entry of
 * backend_list().
 *
 * Rules for all of it
 * - A process opens one device. All calls come from one thread (the worker's loop) unless a comment
 *   says otherwise.
 * - No call waits for the device unless its comment says "blocks". Work is enqueued on streams. A
 *   stream runs its work in order; different streams run independently.
 * - Every enqueued operation completes exactly once: its marker becomes done or failed.
 * - Errors are ERR_* with the vendor's code in err.vendor; ret_ arguments are untouched on failure.
 * - After ERR_DEVICE_LOST or ERR_KERNEL_FAULT the process has to end: no other call is promised to
 *   work.
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
#define BACKEND_WRITES_MAX 64u /* writes of a batch */

struct backend_device; /* opened device, owned by the worker */
struct backend_stream;
struct backend_marker; /* a point in a stream; its state can be asked, and other streams can wait
                          for it */
struct backend_module;
struct backend_block; /* a piece of device memory, or of host memory that a device can reach */

/* Properties of a device. Texts are terminated. */
struct backend_info {
    char backend[16];
    char name[128];
    char vendor[128];
    char driver[128];
    char pin[64];   /* options that open this device as device 0 under any later numbering; "": only
                       its   number identifies it */
    char arch[128]; /* key for compiled code: a binary serves the same (backend, arch) only */
    char note[256]; /* a fault that does not keep it from serving, for operators; "": none */
    bool cpu;       /* executes on the host's processor */
    bool simulated; /* nothing is executed on real hardware */
    bool chosen;    /* this process's environment limits the visible devices */
    bool f64;
    uint64_t memory;       /* bytes */
    uint64_t max_alloc;    /* bytes of one block */
    uint64_t units;        /* compute units */
    uint64_t max_group;    /* work items of a group */
    uint64_t max_local[3]; /* work items of a group by dimension */
    uint64_t local_bytes;  /* local (shared) memory of a group */
    unsigned streams;      /* number of streams worth having, 1 … 16 */
};

/* (block, offset): the memory operand of every command */
struct backend_ref {
    struct backend_block *block;
    uint64_t offset;
};

struct backend_memory_ops {
    /* Device memory, size > 0. ERR_DEVICE_MEMORY: none is left. May take long; only the pool
     * calls it. */
    int (*alloc)(struct backend_device *d, uint64_t size, struct backend_block **ret_block,
                 struct err *e);
    /* All commands on the block have completed. Blocks where the back end says release_waits. */
    void (*free)(struct backend_device *d, struct backend_block *block);
    /* Optional (NULL: unknown): bytes free on the device now, for any process. While host memory is
     * being registered, it may be an earlier figure. Takes some microseconds. */
    int (*room)(struct backend_device *d, uint64_t *ret_bytes, struct err *e);
    /* Optional (NULL: staging memory is not registered): makes host memory known to the device, so
     * that copies from and to it are fast. In any thread. unregister_host is then mandatory. */
    int (*register_host)(struct backend_device *d, void *data, size_t size, struct err *e);
    /* The same piece that was registered. Blocks where the back end says release_waits. */
    void (*unregister_host)(struct backend_device *d, void *data, size_t size);
    /* Optional (NULL: kernels work on copies): host memory of whole pages as a block. Commands and
     * kernels work on it in place, and copies from and to it are fast. Its owner may write there at
     * any time, and keeps it until the block is released. ret_align: bytes, a power of two, of
     * which arguments' offsets are multiples. May take long. May be called from another thread than
     * the rest, one call at a time. ERR_UNSUPPORTED: not on this device. */
    int (*import_host)(struct backend_device *d, void *data, size_t size,
                       struct backend_block **ret_block, uint64_t *ret_align, struct err *e);
    /* As free. Blocks where the back end says release_waits. */
    void (*release_host)(struct backend_device *d, struct backend_block *block);
    /* Optional (NULL: none; then free_shared and share are NULL as well): device memory that
     * another process can map. ERR_DEVICE_MEMORY; ERR_UNSUPPORTED: not on this device. */
    int (*alloc_shared)(struct backend_device *d, uint64_t size, struct backend_block **ret_block,
                        struct err *e);
    /* All commands of this process on the block have completed. Does not wait for other processes.
     */
    void (*free_shared)(struct backend_device *d, struct backend_block *block);
    /* Optional (NULL: none; then the stream's `prefetch` is NULL as well): memory that the driver
     * moves between host and device on use; `free` frees it. ERR_DEVICE_MEMORY; ERR_UNSUPPORTED:
     * not on this device. */
    int (*alloc_managed)(struct backend_device *d, uint64_t size, struct backend_block **ret_block,
                         struct err *e);
    /* A descriptor of the whole block, the caller's, and its bytes: `size` rounded up. */
    int (*share)(struct backend_device *d, struct backend_block *block, int *ret_fd,
                 uint64_t *ret_bytes, struct err *e);
};

/* Optional table (NULL: memory comes from `alloc`): pages of device memory at addresses of the
 * caller's choice. A range is a block: commands take (range, offset) as they take any other block,
 * across borders of pages too. Only the pool calls these functions; each may take long. */
struct backend_page_ops {
    /* Bytes of a page, a power of two; 0: this device has no pages. */
    uint64_t (*page_bytes)(struct backend_device *d);
    /* `bytes` of addresses, whole pages, without pages mapped. */
    int (*reserve)(struct backend_device *d, uint64_t bytes, struct backend_block **ret_range,
                   struct err *e);
    void (*release)(struct backend_device *d, struct backend_block *range); /* no page is mapped */
    /* A page, mapped nowhere. Its name is not 0. ERR_DEVICE_MEMORY. */
    int (*create)(struct backend_device *d, uint64_t *ret_page, struct err *e);
    void (*destroy)(struct backend_device *d, uint64_t page); /* mapped nowhere */
    int (*map)(struct backend_device *d, struct backend_block *range, uint64_t at, uint64_t page,
               struct err *e);
    /* All commands that use the page at this place have completed; commands that use it at other
     * places may run. The page keeps its bytes. */
    int (*unmap)(struct backend_device *d, struct backend_block *range, uint64_t at, struct err *e);
    /* Allows reads and writes of the pages mapped in [at, at + bytes). */
    int (*access)(struct backend_device *d, struct backend_block *range, uint64_t at,
                  uint64_t bytes, struct err *e);
    /* A page may be mapped at several places at once. Later commands see the writes of completed
     * commands at all of them. */
    bool aliases;
};

/* One argument of a launch, in the kernel's order. */
struct backend_arg {
    enum { BACKEND_ARG_MEMORY, BACKEND_ARG_VALUE, BACKEND_ARG_LOCAL } kind;
    struct backend_ref memory; /* MEMORY; block NULL passes a null pointer */
    const void *value;         /* VALUE: `size` bytes, read during the call */
    size_t size; /* bytes. MEMORY: how far the kernel may access it; 0: up to the block's end */
};

struct backend_launch {
    uint64_t global[3]; /* work items, each ≥ 1, a multiple of local where local is given */
    uint64_t local[3];  /* all 0: the back end chooses */
    uint64_t shared;    /* bytes of dynamic shared memory (CUDA); 0 elsewhere */
    const struct backend_arg *args;
    unsigned arg_count;
};

/* One copy to the device of a batch. */
struct backend_write {
    struct backend_ref dst;
    const void *host;
    uint64_t size;
};

struct backend_stream_ops {
    /* priority: 0 is the usual one; larger ones go first where the device supports it. */
    int (*create)(struct backend_device *d, int priority, struct backend_stream **ret_stream,
                  struct err *e);
    void (*destroy)(struct backend_stream *s); /* idle */
    /* Commands. `host` is valid until a later marker of the stream is done. size > 0. */
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
    /* Optional (NULL: as `mark`): a marker whose end calls no wake() unless it is armed; a later
     * marker of the stream wakes for both. `arm` is then mandatory. */
    int (*mark_quiet)(struct backend_stream *s, struct backend_marker **ret_marker, struct err *e);
    /* Optional (NULL: no gain): later commands need not start before flush(), which follows soon.
     * For a device on which starting one command costs as much as starting many. */
    void (*gather)(struct backend_stream *s);
    /* Later commands of `s` run after the marker (of any stream of the device). */
    int (*wait)(struct backend_stream *s, struct backend_marker *marker, struct err *e);
    /* Starts the enqueued commands; called after each batch. */
    int (*flush)(struct backend_stream *s, struct err *e);
    /* Optional (NULL: one `write` each): 1 to BACKEND_WRITES_MAX writes as one command, in any
     * order among themselves: no two write the same byte. `host` as for `write`, and registered
     * where the device has register_host. The array is read during the call. On failure some of the
     * writes may be enqueued, and one `write` each may succeed. */
    int (*write_batch)(struct backend_stream *s, const struct backend_write *writes, unsigned count,
                       struct err *e);
    /* Optional: brings managed memory to the device. */
    int (*prefetch)(struct backend_stream *s, struct backend_ref ref, uint64_t size, struct err *e);
};

/* A built-in operation with the arguments of its signature in order, then its named sizes as values
 * of 8 bytes. */
struct backend_call {
    const char *operation; /* "gemm" */
    int dtype;             /* enum dtype: its T */
    const struct backend_arg *args;
    unsigned arg_count;
};

/* Optional table (NULL: none): the vendor's libraries. A library serves calls once it is prepared.
 * `workspace` and `run` return ERR_UNSUPPORTED where no library serves the call; then no command is
 * enqueued. */
struct backend_library_ops {
    /* The libraries that could replace kernels of this module and are not prepared yet: a set for
     * `prepare`; 0: none. */
    unsigned (*wanted)(struct backend_module *m);
    /* Opens the libraries and makes their state for the device; the log reports failures. Blocks,
     * perhaps for seconds (files of hundreds of MiB, and drivers may wait for running work). So it
     * is called from another thread than the rest, one call at a time; all other functions may be
     * called meanwhile. */
    void (*prepare)(struct backend_device *d, unsigned wanted);
    /* Optional (NULL: no second try): the libraries whose preparation failed, for want of memory
     * perhaps, and is to be tried again now: a set for `prepare`. It pauses between tries and is
     * cheap, so it may be called often, but not while `prepare` runs. */
    unsigned (*again)(struct backend_device *d);
    /* Bytes of device memory for the call's workspace; 0: none. Does not read addresses. */
    int (*workspace)(struct backend_stream *s, const struct backend_call *call, uint64_t *ret_bytes,
                     struct err *e);
    /* A command. workspace: at least that many bytes; block NULL: none needed. ret_by: the library
     * ("cublas"), static. */
    int (*run)(struct backend_stream *s, const struct backend_call *call,
               struct backend_ref workspace, const char **ret_by, struct err *e);
    /* Optional (NULL: nothing to free): frees what the libraries no longer use. The driver may wait
     * for all work in flight then, so it is called, often, while none is. */
    void (*tidy)(struct backend_device *d);
};

enum backend_state {
    BACKEND_PENDING = 0,
    BACKEND_RUNNING = 1,
    BACKEND_DONE = 2,
    BACKEND_FAILED = 3
};

/* Times are on the host's monotonic clock (clock_now_ns), converted from the device's. */
struct backend_marker_ops {
    /* The marker's state. FAILED: `e` has the failure before it on its stream. */
    enum backend_state (*state)(struct backend_marker *m, struct err *e);
    /* ns at which the commands between the previous marker of the stream and this one began and
     * ended; valid when DONE. */
    void (*times)(struct backend_marker *m, uint64_t *ret_begin_ns, uint64_t *ret_end_ns);
    void (*release)(struct backend_marker *m);
    /* Optional (NULL: the worker goes on polling): asks for one wake() when the marker is done, on
     * a device that does not wake by itself, or for a marker of mark_quiet. The worker uses it for
     * a marker that is still pending after some polling, when the call costs less than more polls.
     * A failure may come without a wake. */
    int (*arm)(struct backend_marker *m, struct err *e);
};

/* Properties of a kernel of a module. 0: unknown. */
struct backend_kernel {
    char entry[128];
    unsigned arg_count;
    uint64_t registers;          /* of a work item */
    uint64_t local_bytes;        /* of a work item, beside its registers */
    uint64_t shared_bytes;       /* of a group, without the dynamic part of a launch */
    uint64_t max_group;          /* work items */
    uint64_t required_local[3];  /* the only group size that its source allows; [0] is 0: any */
    uint64_t preferred_multiple; /* work items; groups of other sizes waste some */
    /* work items of a unit at once with the best group size, in millionths of its capacity */
    uint64_t occupancy;
};

struct backend_module_ops {
    /* A binary that the back end's compiler made for this arch. Blocks (linking). This and the
     * first `kernel` of each kernel may be called from another thread than the rest, for one module
     * at a time. */
    int (*load)(struct backend_device *d, struct bytes binary, struct backend_module **ret_module,
                struct err *e);
    /* After its last launch completed. Blocks where the back end says release_waits. */
    void (*unload)(struct backend_module *m);
    unsigned (*kernel_count)(struct backend_module *m);
    int (*kernel)(struct backend_module *m, unsigned index, struct backend_kernel *ret_kernel,
                  struct err *e);
    /* Optional (NULL: not supported): a variable by its name in the binary, as a block of
     * `ret_bytes` that the module owns. ERR_NOT_FOUND. */
    int (*variable)(struct backend_module *m, const char *name, struct backend_block **ret_block,
                    uint64_t *ret_bytes, struct err *e);
};

/* Reports to the worker that a marker may have changed. Called from any thread; must be quick.
 * data: as given to open. Without such calls the worker polls. */
typedef void (*backend_wake_fn)(void *data);

struct backend_device_ops {
    /* Opens device `index` of enumerate. Blocks (it makes a context). options: of the back end
     * ("key=value,…", may be ""). */
    int (*open)(unsigned index, const char *options, backend_wake_fn wake, void *wake_data,
                struct backend_device **ret_device, struct err *e);
    void (*close)(struct backend_device *d); /* idle, without objects. Blocks. */
    void (*info)(struct backend_device *d, struct backend_info *ret_info);
    /* Whether wake() comes for markers without arming. false: the worker polls while jobs are in
     * flight. true: it polls as well, but seldom, as a failure may come without a wake. */
    bool (*wakes)(struct backend_device *d);
    /* Optional (NULL: nothing to do): called when nothing is in flight. Writes out what kernels
     * have printed. Takes some microseconds. */
    void (*idle)(struct backend_device *d);
};

/* The kind of a kernel's argument, in the numbers of proto's KARG. */
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
    bool only_reads; /* the code itself shows that it writes nothing through the argument; a `const`
                        in the source does not show it, as a cast removes it */
};

#define BACKEND_NAME_MAX 64u /* bytes: clients can ask for kernels with names of that length */

struct backend_compiled_kernel {
    char entry[128]; /* its name in the binary */
    char name[128];  /* its name for users ("f<float>"); "": `entry` */
    unsigned arg_count;
    struct backend_compiled_arg arg[BACKEND_ARGS_MAX];
    uint64_t required_local[3]; /* 0 = free */
    /* resources by the compiler; 0: unknown. The device may know more. */
    uint64_t registers;
    uint64_t local_bytes;
    uint64_t shared_bytes;
    uint64_t constant_bytes;
    uint64_t max_group;
    uint64_t preferred_multiple;
    /* reason why it cannot be launched ("argument 3 (img) is an image2d_t, …"); then it has no
     * args.
     * "": it can be launched */
    char unfit[192];
};

/* The result of a compiler; owned by the caller, freed by backend_compiled_finish. */
struct backend_compiled {
    uint8_t *binary;
    size_t binary_size;
    char *log; /* the compiler's messages with the user's file name, line and column; may be NULL */
    struct backend_compiled_kernel *kernels;
    unsigned kernel_count;
    /* the compiler's file where `arch` does not imply its version, else "". Cached results of
     * another version are not used. */
    char compiler[512];
};

/* The values of proto's enum proto_lang, which this folder does not include. */
enum backend_lang {
    BACKEND_LANG_DIALECT = 1,
    BACKEND_LANG_OPENCL = 2,
    BACKEND_LANG_CUDA = 3,
    BACKEND_LANG_PTX = 4,
    BACKEND_LANG_CUBIN = 5,
    BACKEND_LANG_SPIRV = 6,
};

struct backend_source {
    int lang; /* enum backend_lang; a source in the dialect is translated to backend.dialect before
               */
    struct bytes text; /* source or binary */
    const char *file;  /* name for messages, "" if none */
    const char *options;
    const char *arch;            /* of the target device */
    const char *backend_options; /* as given to open; NULL or "": none */
    const char *cache_dir;       /* folder for the compiler's files; NULL or "": none */
    bool confined;               /* this process can read only files that compilers need */
};

/* Runs in gpud-compile only, never in a worker. Blocks. On ERR_COMPILE only ret_compiled->log is
 * set. */
typedef int (*backend_compile_fn)(unsigned index, const struct backend_source *source,
                                  struct backend_compiled *ret_compiled, struct err *e);

struct backend {
    const char *name;
    int abi;          /* BACKEND_ABI */
    bool auto_choice; /* --backend auto may choose it (never true for sim) */
    int dialect;      /* enum backend_lang: the language into which a source in the dialect is
                         translated for compile(); BACKEND_LANG_DIALECT: not translated */
    /* Number of devices; ERR_NO_DEVICE with a reason and what to install. Blocks. */
    int (*enumerate)(const char *options, unsigned *ret_count, struct err *e);
    bool release_waits; /* the driver may wait for all work in flight before it frees a block of
                           memory, of the host too, or a module: the caller frees while none is in
                           flight */
    const struct backend_device_ops *device;
    const struct backend_memory_ops *memory;
    const struct backend_page_ops *pages; /* optional */
    const struct backend_stream_ops *stream;
    const struct backend_marker_ops *marker;
    const struct backend_module_ops *module;
    const struct backend_library_ops *library; /* optional */
    backend_compile_fn compile;                /* optional: NULL = no compiler, ERR_UNSUPPORTED */
};

/* The back ends of this build in order of preference; NULL-terminated. */
const struct backend *const *backend_list(void);
const struct backend *backend_find(const char *name);      /* NULL if not built in */
int backend_check(const struct backend *b, struct err *e); /* mandatory slots are set */
void backend_compiled_finish(struct backend_compiled *c);

#endif
