/*
 * The contract of back ends: how a worker reaches a device. Small tables of functions: backend,
 * device, memory, pages, stream, marker, module, library. A slot is mandatory unless its comment
 * says "optional" and what NULL means; backend_check() asserts this for each entry of
 * backend_list().
 *
 * Rules for all functions:
 * - A process opens one device. All calls come from one thread (the worker's loop) unless a comment
 *   says otherwise.
 * - No call waits for the device unless its comment says "blocks". Work is enqueued on streams. A
 *   stream runs its work in order; different streams run independently.
 * - Every enqueued operation completes exactly once: its marker becomes done or failed.
 * - Errors are ERR_* with the vendor's code in err.vendor; ret_ arguments are unchanged on failure.
 * - After ERR_DEVICE_LOST or ERR_KERNEL_FAULT the process has to end: no other call need work.
 * - Sizes and offsets are bytes. Blocks are aligned to at least BACKEND_ALIGN.
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
#define BACKEND_WRITES_MAX 64u /* limit of writes in a batch */

struct backend_device; /* opened device, owned by the worker */
struct backend_stream;
/* a point in a stream; its state can be polled, and other streams can wait for it */
struct backend_marker;
struct backend_module;
struct backend_block; /* a piece of device memory, or of host memory that a device can reach */

/* Properties of a device. Strings are NUL-terminated. */
struct backend_info {
    char backend[16];
    char name[128];
    char vendor[128];
    char driver[128];
    /* options that open this device as device 0 however devices are numbered; "": only the index
     * identifies it */
    char pin[64];
    /* key for compiled code: a binary runs only on devices of the same back end and arch */
    char arch[128];
    char note[256]; /* a fault that does not prevent service, for operators; "": none */
    bool cpu;       /* executes on the host's processor */
    bool simulated; /* nothing is executed on real hardware */
    bool chosen;    /* the environment of this process limits which devices are visible */
    bool f64;
    uint64_t memory;       /* bytes */
    uint64_t max_alloc;    /* limit in bytes of one block */
    uint64_t units;        /* compute units */
    uint64_t max_group;    /* limit of work items in a group */
    uint64_t max_local[3]; /* the same limit by dimension */
    uint64_t local_bytes;  /* bytes of local (shared) memory of a group */
    unsigned streams;      /* number of streams that are useful, 1 … 16 */
};

/* The memory operand of every command. */
struct backend_ref {
    struct backend_block *block;
    uint64_t offset;
};

struct backend_memory_ops {
    /* Allocates device memory; size > 0. ERR_DEVICE_MEMORY: none is left. May take long; only
     * the pool calls it. */
    int (*alloc)(struct backend_device *d, uint64_t size, struct backend_block **ret_block,
                 struct err *e);
    /* All commands on the block must have completed. Blocks if the back end has release_waits. */
    void (*free)(struct backend_device *d, struct backend_block *block);
    /* Optional (NULL: unknown): bytes that are free on the device now, for any process. While
     * host memory is being registered, the result may be out of date. Takes some microseconds. */
    int (*room)(struct backend_device *d, uint64_t *ret_bytes, struct err *e);
    /* Optional (NULL: host memory is not registered): makes host memory known to the device, so
     * that copies from and to it are fast. writes: the device may write it; otherwise it may be
     * registered for reading only. All of it or nothing is registered. Blocks: pinning takes about
     * a millisecond for a MiB, and may wait for running work. Any thread. unregister_host is then
     * mandatory. */
    int (*register_host)(struct backend_device *d, void *data, size_t size, bool writes,
                         struct err *e);
    /* Ends a registration, of the whole piece or of one of its slices. Blocks if the back end has
     * release_waits. Any thread. */
    void (*unregister_host)(struct backend_device *d, void *data, size_t size);
    /* Optional (NULL: none): bytes of the slice that begins at byte `at` of this memory; `at` is 0
     * or the end of another slice. Each slice may be registered by a call of its own, in any order;
     * once all are, the memory is registered as if by one call: commands reach across borders.
     * Does not block. Any thread. */
    uint64_t (*host_slice)(const struct backend_device *d, const void *data, uint64_t size,
                           uint64_t at);
    /* Optional (NULL: kernels work on copies): makes whole pages of host memory a block, memory
     * that is registered if the back end has register_host. Commands and kernels work on it in
     * place, and copies from and to it are fast. Its owner may write to it at any time, and keeps
     * it, registered, until the block is released. *ret_align: bytes, a power of two, that the
     * offset of each argument must be a multiple of. ERR_UNSUPPORTED: not on this device. */
    int (*import_host)(struct backend_device *d, void *data, size_t size,
                       struct backend_block **ret_block, uint64_t *ret_align, struct err *e);
    void (*release_host)(struct backend_device *d, struct backend_block *block);
    /* Optional (NULL: not supported; free_shared and share are then NULL, too): allocates device
     * memory that another process can map. ERR_DEVICE_MEMORY; ERR_UNSUPPORTED: not on this
     * device. */
    int (*alloc_shared)(struct backend_device *d, uint64_t size, struct backend_block **ret_block,
                        struct err *e);
    /* All commands of this process on the block must have completed. Does not wait for other
     * processes. Blocks if the back end has release_waits. */
    void (*free_shared)(struct backend_device *d, struct backend_block *block);
    /* Optional (NULL: not supported; the stream's `prefetch` is then NULL, too): allocates
     * memory that the driver migrates between host and device on use; `free` frees it.
     * ERR_DEVICE_MEMORY; ERR_UNSUPPORTED: not on this device. */
    int (*alloc_managed)(struct backend_device *d, uint64_t size, struct backend_block **ret_block,
                         struct err *e);
    /* A descriptor of the whole block, which the caller owns, and its bytes: `size` rounded up. */
    int (*share)(struct backend_device *d, struct backend_block *block, int *ret_fd,
                 uint64_t *ret_bytes, struct err *e);
};

/* Optional table (NULL: memory comes from `alloc`): handles of device memory, mapped at addresses
 * that the caller chooses. A range is a block: commands take (range, offset) like any other block,
 * also across borders of handles. Only the pool calls these functions; each may take long. */
struct backend_page_ops {
    /* Bytes of the smallest handle, a power of two; 0: this device has no handles. */
    uint64_t (*page_bytes)(struct backend_device *d);
    /* Bytes of the largest handle, page_bytes times a power of two. */
    uint64_t (*handle_max)(struct backend_device *d);
    /* Reserves `bytes` of addresses, whole pages, with no pages mapped. */
    int (*reserve)(struct backend_device *d, uint64_t bytes, struct backend_block **ret_range,
                   struct err *e);
    /* no page may be mapped */
    void (*release)(struct backend_device *d, struct backend_block *range);
    /* Creates a handle of `bytes` (page_bytes times a power of two) that is mapped nowhere. Its
     * name is not 0. ERR_DEVICE_MEMORY. */
    int (*create)(struct backend_device *d, uint64_t bytes, uint64_t *ret_handle, struct err *e);
    /* it must be mapped nowhere */
    void (*destroy)(struct backend_device *d, uint64_t handle, uint64_t bytes);
    /* Maps all of a handle, which may be mapped at several places at once. Later commands see at
     * each of them what completed commands wrote at any of them. */
    int (*map)(struct backend_device *d, struct backend_block *range, uint64_t at, uint64_t handle,
               uint64_t bytes, struct err *e);
    /* Ends a mapping as a whole. All commands that use the memory at this place must have
     * completed; commands that use it at other places may run. The handle keeps its bytes. */
    int (*unmap)(struct backend_device *d, struct backend_block *range, uint64_t at, uint64_t bytes,
                 struct err *e);
    /* Allows reads and writes of the memory mapped in [at, at + bytes). */
    int (*access)(struct backend_device *d, struct backend_block *range, uint64_t at,
                  uint64_t bytes, struct err *e);
    /* Optional: to be called once in another thread than the device's before it calls create,
     * destroy, map, unmap or access. One thread calls these at a time. */
    int (*enter)(struct backend_device *d, struct err *e);
};

/* One argument of a launch, in the kernel's order. */
struct backend_arg {
    enum { BACKEND_ARG_MEMORY, BACKEND_ARG_VALUE, BACKEND_ARG_LOCAL } kind;
    struct backend_ref memory; /* for MEMORY; block NULL passes a null pointer */
    const void *value;         /* for VALUE: `size` bytes, read during the call */
    size_t size; /* bytes. MEMORY: how far the kernel may access it; 0: up to the block's end */
};

struct backend_launch {
    uint64_t global[3]; /* work items, each ≥ 1 and a multiple of local where local is given */
    uint64_t local[3];  /* all 0: the back end chooses */
    uint64_t shared;    /* bytes of dynamic shared memory (CUDA); 0 on other back ends */
    const struct backend_arg *args;
    unsigned arg_count;
};

/* A copy to the device, as part of a batch. */
struct backend_write {
    struct backend_ref dst;
    const void *host;
    uint64_t size;
};

struct backend_stream_ops {
    /* priority: 0 is normal; higher ones go first where the device supports it. */
    int (*create)(struct backend_device *d, int priority, struct backend_stream **ret_stream,
                  struct err *e);
    void (*destroy)(struct backend_stream *s); /* idle */
    /* Commands. `host` must be valid until a later marker of the stream is done. size > 0. */
    int (*write)(struct backend_stream *s, struct backend_ref dst, const void *host, uint64_t size,
                 struct err *e);
    int (*read)(struct backend_stream *s, void *host, struct backend_ref src, uint64_t size,
                struct err *e);
    /* The ranges must not overlap. */
    int (*copy)(struct backend_stream *s, struct backend_ref dst, struct backend_ref src,
                uint64_t size, struct err *e);
    /* pattern of 1, 2, 4, 8 or 16 bytes; size and the offset of dst are multiples of its size. */
    int (*fill)(struct backend_stream *s, struct backend_ref dst, const void *pattern,
                size_t pattern_size, uint64_t size, struct err *e);
    int (*launch)(struct backend_stream *s, struct backend_module *m, const char *entry,
                  const struct backend_launch *launch, struct err *e);
    /* Makes a marker behind all that was enqueued so far. It must be released once. */
    int (*mark)(struct backend_stream *s, struct backend_marker **ret_marker, struct err *e);
    /* Optional (NULL: use `mark`): makes a marker whose end does not call wake() unless it is
     * armed; the wake() of a later marker of the stream serves for both. `arm` is then
     * mandatory. */
    int (*mark_quiet)(struct backend_stream *s, struct backend_marker **ret_marker, struct err *e);
    /* Optional (NULL: no gain): later commands need not start before flush(), which follows
     * soon. For a device on which starting one command costs as much as starting many. */
    void (*gather)(struct backend_stream *s);
    /* Makes later commands of `s` run after the marker, which may be of any stream of the
     * device. */
    int (*wait)(struct backend_stream *s, struct backend_marker *marker, struct err *e);
    /* Starts the enqueued commands. To be called after each batch. */
    int (*flush)(struct backend_stream *s, struct err *e);
    /* Optional (NULL: one `write` each): enqueues 1 to BACKEND_WRITES_MAX writes as one command,
     * in any order among themselves: no two write the same byte. `host` as for `write`, and
     * registered where the device has register_host. The array is read during the call. On
     * failure some of the writes may be enqueued, and single writes may still succeed. */
    int (*write_batch)(struct backend_stream *s, const struct backend_write *writes, unsigned count,
                       struct err *e);
    /* Optional: migrates managed memory to the device. */
    int (*prefetch)(struct backend_stream *s, struct backend_ref ref, uint64_t size, struct err *e);
};

/* A built-in operation, with the arguments of its signature in order, then its named sizes as
 * 8-byte values. */
struct backend_call {
    const char *operation; /* "gemm" */
    int dtype;             /* enum dtype: the T of the operation */
    const struct backend_arg *args;
    unsigned arg_count;
};

/* Optional table (NULL: none): the vendor's libraries. A library serves calls once it is
 * prepared. `workspace` and `run` return ERR_UNSUPPORTED if no library serves the call; no
 * command is enqueued then. */
struct backend_library_ops {
    /* The libraries that could replace kernels of this module and are not prepared yet, as a set
     * for `prepare`; 0: none. */
    unsigned (*wanted)(struct backend_module *m);
    /* Opens the libraries and makes their state for the device; the log reports failures.
     * Blocks, perhaps for seconds (files of hundreds of MiB, and drivers may wait for running
     * work). It is therefore called from another thread than the rest, one call at a time; all
     * other functions may be called meanwhile. */
    void (*prepare)(struct backend_device *d, unsigned wanted);
    /* Optional (NULL: no second try): the libraries whose preparation failed, perhaps for lack
     * of memory, and should be tried again now, as a set for `prepare`. Spaces the tries itself
     * and is cheap, so it may be called often, but not while `prepare` runs. */
    unsigned (*again)(struct backend_device *d);
    /* Bytes of device memory that the call needs as workspace; 0: none. Does not read addresses. */
    int (*workspace)(struct backend_stream *s, const struct backend_call *call, uint64_t *ret_bytes,
                     struct err *e);
    /* A command. workspace: at least that many bytes; block NULL: none needed. *ret_by: the
     * library ("cublas"), static. */
    int (*run)(struct backend_stream *s, const struct backend_call *call,
               struct backend_ref workspace, const char **ret_by, struct err *e);
    /* Optional (NULL: nothing to free): frees what the libraries no longer use. The driver may
     * wait for all work in flight, so this is called only while none is in flight, but often. */
    void (*tidy)(struct backend_device *d);
};

enum backend_state {
    BACKEND_PENDING = 0,
    BACKEND_RUNNING = 1,
    BACKEND_DONE = 2,
    BACKEND_FAILED = 3
};

/* Times are ns on the host's monotonic clock (clock_now_ns), converted from the device's. */
struct backend_marker_ops {
    /* The marker's state. FAILED: `e` gets the failure that preceded the marker on its stream. */
    enum backend_state (*state)(struct backend_marker *m, struct err *e);
    /* When the commands between the previous marker of the stream and this one began and ended;
     * valid when DONE. */
    void (*times)(struct backend_marker *m, uint64_t *ret_begin_ns, uint64_t *ret_end_ns);
    void (*release)(struct backend_marker *m);
    /* Optional (NULL: the worker goes on polling): asks for one wake() when the marker is done.
     * For a device that does not wake by itself, and for markers of mark_quiet. The worker calls
     * it for a marker that is still pending after some polling, when the call costs less than
     * more polls. A failure may come without a wake. */
    int (*arm)(struct backend_marker *m, struct err *e);
};

/* Properties of a kernel in a module. 0: unknown. */
struct backend_kernel {
    char entry[128];
    unsigned arg_count;
    uint64_t registers;          /* for a work item */
    uint64_t local_bytes;        /* bytes for a work item, beside its registers */
    uint64_t shared_bytes;       /* bytes for a group, without the dynamic part of a launch */
    uint64_t max_group;          /* limit of work items in a group */
    uint64_t required_local[3];  /* the only group size that its source allows; [0] is 0: any */
    uint64_t preferred_multiple; /* work items; groups that are no multiple of it waste some */
    /* work items that a compute unit runs at once with the best group size, in millionths of its
     * capacity */
    uint64_t occupancy;
};

struct backend_module_ops {
    /* Loads a binary that the back end's compiler made for this arch. Blocks (linking). This and
     * the first `kernel` call for each kernel may come from another thread than the rest, for
     * one module at a time. */
    int (*load)(struct backend_device *d, struct bytes binary, struct backend_module **ret_module,
                struct err *e);
    /* Its last launch must have completed. Blocks if the back end has release_waits, and may then
     * come from another thread than the rest, one module at a time. */
    void (*unload)(struct backend_module *m);
    unsigned (*kernel_count)(struct backend_module *m);
    int (*kernel)(struct backend_module *m, unsigned index, struct backend_kernel *ret_kernel,
                  struct err *e);
    /* Optional (NULL: not supported): finds a variable by its name in the binary, as a block of
     * *ret_bytes that the module owns. ERR_NOT_FOUND. */
    int (*variable)(struct backend_module *m, const char *name, struct backend_block **ret_block,
                    uint64_t *ret_bytes, struct err *e);
};

/* Tells the worker to poll, because a marker may have changed. Called from any thread; must be
 * quick. data: as given to open. Without such calls the worker polls by itself. */
typedef void (*backend_wake_fn)(void *data);

struct backend_device_ops {
    /* Opens device `index` of enumerate. Blocks (it makes a context). options: of the back end
     * ("key=value,…", may be ""). */
    int (*open)(unsigned index, const char *options, backend_wake_fn wake, void *wake_data,
                struct backend_device **ret_device, struct err *e);
    void (*close)(struct backend_device *d); /* Idle, and all its objects are destroyed. Blocks. */
    void (*info)(struct backend_device *d, struct backend_info *ret_info);
    /* Does wake() come for markers that are not armed? false: the worker polls while jobs are in
     * flight. true: it also polls, but seldom, because a failure may come without a wake. */
    bool (*wakes)(struct backend_device *d);
    /* Optional (NULL: nothing to do): called while nothing is in flight. Writes out what kernels
     * have printed. Takes some microseconds. */
    void (*idle)(struct backend_device *d);
};

/* The kind of a kernel's argument, with the numbers of proto's KARG. */
enum backend_kind {
    BACKEND_KIND_UNKNOWN, /* either an array or a value */
    BACKEND_KIND_SCALAR,
    BACKEND_KIND_ARRAY,
    BACKEND_KIND_STRUCT,
    BACKEND_KIND_LOCAL, /* local memory */
};

#define BACKEND_ARGS_MAX 128u /* limit of a kernel's arguments */

/* A kernel's argument, as a compiler reports it for code without a signature line. */
struct backend_compiled_arg {
    char name[64];
    char type[64];   /* as in the source; "" if unknown */
    unsigned kind;   /* enum backend_kind */
    unsigned access; /* enum access; arrays only */
    int dtype;       /* enum dtype; DTYPE_NONE if unknown */
    uint32_t bytes;  /* size of a scalar or struct; 0 if unknown */
    /* the code itself shows that it writes nothing through the argument; `const` in the source
     * does not show it, because a cast removes it */
    bool only_reads;
};

#define BACKEND_NAME_MAX 64u /* bytes; clients can ask for kernels with names up to this length */

struct backend_compiled_kernel {
    char entry[128]; /* its name in the binary */
    char name[128];  /* its name for users ("f<float>"); "": `entry` */
    unsigned arg_count;
    struct backend_compiled_arg arg[BACKEND_ARGS_MAX];
    uint64_t required_local[3]; /* 0: any */
    /* Resources as the compiler reports them; 0: unknown. The device may know more. */
    uint64_t registers;
    uint64_t local_bytes;
    uint64_t shared_bytes;
    uint64_t constant_bytes;
    uint64_t max_group;
    uint64_t preferred_multiple;
    /* Why it cannot be launched ("argument 3 (img) is an image2d_t, …"), and then it has no
     * args. "": it can be launched. */
    char unfit[192];
};

/* The result of a compiler. The caller owns it, and frees it with backend_compiled_finish. */
struct backend_compiled {
    uint8_t *binary;
    size_t binary_size;
    char *log; /* the compiler's messages with the user's file name, line and column; may be NULL */
    struct backend_compiled_kernel *kernels;
    unsigned kernel_count;
    /* The compiler's file if `arch` does not imply the compiler's version, else "". Cached
     * results of another version are not used. */
    char compiler[512];
};

/* Has the values of proto's enum proto_lang, which this folder does not include. */
enum backend_lang {
    BACKEND_LANG_DIALECT = 1,
    BACKEND_LANG_OPENCL = 2,
    BACKEND_LANG_CUDA = 3,
    BACKEND_LANG_PTX = 4,
    BACKEND_LANG_CUBIN = 5,
    BACKEND_LANG_SPIRV = 6,
};

struct backend_source {
    /* enum backend_lang; a source in the dialect was already translated to backend.dialect */
    int lang;
    struct bytes text; /* source or binary */
    const char *file;  /* name for messages, "" if none */
    const char *options;
    const char *arch;            /* arch of the target device */
    const char *backend_options; /* as for open; NULL or "": none */
    const char *cache_dir;       /* folder for the compiler's cache; NULL or "": none */
    bool confined;               /* this process can only read files that compilers need */
};

/* Runs in gpud-compile only, never in a worker. Blocks. On ERR_COMPILE only ret_compiled->log is
 * set. */
typedef int (*backend_compile_fn)(unsigned index, const struct backend_source *source,
                                  struct backend_compiled *ret_compiled, struct err *e);

struct backend {
    const char *name;
    int abi;          /* BACKEND_ABI */
    bool auto_choice; /* `--backend auto` may choose it (never true for sim) */
    /* enum backend_lang: the language that a source in the dialect is translated to for
     * compile(); BACKEND_LANG_DIALECT: it is not translated */
    int dialect;
    /* Counts the devices. ERR_NO_DEVICE with a reason and what to install. Blocks. */
    int (*enumerate)(const char *options, unsigned *ret_count, struct err *e);
    /* The driver may wait for all work in flight before it frees a module or a block of memory,
     * the host's included: the caller frees them while none is in flight. */
    bool release_waits;
    bool programs; /* the driver starts programs in a worker: a linker, say */
    /* enumerate loads the driver, and leaves nothing that binds the process to what the devices
     * were then: a worker may do it before it is needed */
    bool early;
    /* Optional (NULL: none but the driver's own below HOME): the folder where the driver keeps
     * compiled kernels, "" if it is not known. Called once, before a worker gives up its right to
     * make folders; it may choose a replacement, and makes it. Blocks on files. */
    int (*folder)(char *ret_path, size_t size, struct err *e);
    const struct backend_device_ops *device;
    const struct backend_memory_ops *memory;
    const struct backend_page_ops *pages; /* optional */
    const struct backend_stream_ops *stream;
    const struct backend_marker_ops *marker;
    const struct backend_module_ops *module;
    const struct backend_library_ops *library; /* optional */
    backend_compile_fn compile;                /* optional (NULL: no compiler, ERR_UNSUPPORTED) */
};

/* The back ends of this build in the order of preference; NULL-terminated. */
const struct backend *const *backend_list(void);
const struct backend *backend_find(const char *name); /* NULL: not built in */
/* checks that all mandatory slots are set */
int backend_check(const struct backend *b, struct err *e);
void backend_compiled_finish(struct backend_compiled *c);

#endif
