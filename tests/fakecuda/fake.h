/*
 * A double of libcuda.so.1: what the driver API promises, in host memory and on host threads, so
 * that everything above it is tested where there is no GPU. Found by LD_LIBRARY_PATH; nothing of
 * the project knows of it.
 *
 * What it is
 * - Device memory is host memory at its own addresses; unmapped pages fault, and a fault in a
 *   kernel or a copy is error 700, which stays (as in the driver).
 * - A stream is a thread. Nothing that is asynchronous in the driver is done when a call returns;
 *   FAKECUDA's delay_us makes missing waits show.
 * - Kernels are found by their entry's name: the project's built-in kernels as host code
 *   (kernels/host.h) and the double's own (kernels.c). The device code itself is not executed: an
 *   entry that is neither cannot be launched (801) and the report says so.
 * - Each process has its devices for itself: memory used by one is not missing in another.
 *
 * Misuse (double free, use of what was destroyed, a wrong context, memory freed under pending work,
 * …) gives the error that the driver gives, or none where the driver gives none, and is always
 * recorded: report.c. FAKECUDA_REPORT names the file it is appended to, one line each
 * ("PID misuse: …", "PID leak: …", "PID note: …"; at a normal end "PID end: L leaks, M misuses").
 * FAKECUDA_STRICT=1 ends the process with 66 at its exit if there was any misuse or leak.
 *
 * FAKECUDA = item[;item]…   (also separated by commas; a wrong item ends the process with 67)
 *   devices=N         how many (1); 0: cuInit gives 100
 *   driver=VERSION    as cuDriverGetVersion tells it (that of the header): 12040 is 12.4
 *   init=CODE         what cuInit gives
 *   arch=NN           compute capability (90)
 *   name=TEXT         (NVIDIA H200)
 *   memory=SIZE       bytes of a device (8G); beyond it: 2. SIZE takes K, M, G
 *   context=SIZE      what a context takes of it (256M)
 *   mig=0|1           devices are MIG instances, of which a process sees one: the first that
 *                     CUDA_VISIBLE_DEVICES names by its whole UUID, or the first at all
 *   whole=N           the first N of them are GPUs as a whole (0); a process sees either these or
 *                     one instance, whichever comes first
 *   peer=0|1          devices reach each other's memory (1)
 *   ats=0|1           pageable host memory is reachable by kernels (0)
 *   host_pointers=0|1 registered host memory has the host's address on the device, too (1)
 *   remap_waits=0|1   cuMemUnmap and cuMemSetAccess wait for all work of the context (0): cuda.h
 *                     lets them; what else the caller's thread has to do waits then, too
 *   remap_us=N        above 0: cuMemCreate, cuMemMap, cuMemUnmap, cuMemRelease and cuMemSetAccess
 *                     take so long each, and wait for all work of the context (0)
 *   host_us=N         above 0: cuMemHostRegister and cuMemHostUnregister take so long for each MiB
 *                     that they begin, and wait for all work of the context (0)
 *   load_us=N         above 0: loading and unloading a module takes so long, and waits likewise (0)
 *   main_notes=0|1    a note for each call that may take long and is made by the process's first
 *                     thread (0): memory, its mapping and registering, modules
 *   pageable_waits=0|1  the call that copies from pageable memory waits for all that came before it
 *                     in its stream, however little it copies (0); it may. Of more it does always
 *   addresses=SIZE    the most that can be reserved in one piece (64 TiB)
 *   register_most=SIZE  the most that one cuMemHostRegister takes; beyond it: 1 (any)
 *   copy_rate=SIZE    bytes per second of a copy (as fast as it goes)
 *   units=N           kernels and memsets of a context that run at a time (0: any number)
 *   kernel_us=N       what a kernel takes at least (0)
 *   delay_us=N        pause before each operation of a stream (20)
 *   unknown=fail|noop kernels that the double does not have: 801, or launched and doing nothing
 *   [D:]CALL@N=ACT    the Nth call of CALL (in this process), on device D if given
 *   [D:]CALL@N+=ACT   the Nth and all later ones
 * CALL is a function's name without the ABI version (cuMemAlloc), or entry.NAME: launches of a
 * kernel by its entry's name. ACT:
 *   CODE              the call returns it and does nothing: a number or CUDA_ERROR_…; codes that
 *                     poison a context (700, 716, …) poison it
 *   fault:CODE        the call succeeds, the enqueued work fails with CODE
 *   stall             the call succeeds, the enqueued work never ends
 *   block             the call never returns
 *   lost              the device is gone: CODE 999 from now on for everything on it
 * FAKECUDA_STATE=DIR  each rule with a plain N fires once among all processes that share DIR, and
 *                     devices that are lost stay so.
 * Each of these variables may also begin with CUDA_FAKE instead of FAKECUDA (CUDA_FAKE_REPORT): the
 * launcher hands only CUDA_… on to workers.
 * CUDA_VISIBLE_DEVICES (indices, GPU-… and MIG-… prefixes) and CUDA_DEVICE_ORDER are obeyed;
 * without PCI_BUS_ID the order is the reverse of it, so that who forgets it finds out.
 *
 * Inside: one process-wide state (`fake`), one lock. API functions are thin: call_enter (takes the
 * lock, checks what every call needs), the work, call_leave. Functions of this header run with the
 * lock held unless they say otherwise.
 */
#ifndef FAKECUDA_FAKE_H
#define FAKECUDA_FAKE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(default)
#include <cuda.h>
#pragma GCC visibility pop

#define DEVICES_MAX   64
#define NAME_SIZE     256
#define GRANULARITY   (UINT64_C(2) << 20)
#define EXIT_STRICT   66
#define EXIT_SCRIPT   67
#define PARAMS_MAX    256
#define NS_PER_US     UINT64_C(1000)
#define NS_PER_SECOND UINT64_C(1000000000)

/* ---- the script (script.c) ------------------------------------------------------------------- */

enum act { ACT_NONE, ACT_CODE, ACT_FAULT, ACT_STALL, ACT_BLOCK, ACT_LOST };

struct action {
    enum act act;
    CUresult code;
};

struct rule {
    char call[NAME_SIZE];
    int device; /* -1: any */
    uint64_t nth;
    bool onward;
    struct action action;
    uint64_t seen;
};

#define RULES_MAX 64

struct script {
    int devices;
    int driver;
    int init;
    int arch;
    char name[NAME_SIZE];
    uint64_t memory;
    uint64_t context;
    uint64_t addresses; /* that can be reserved in one piece */
    bool mig;
    int whole;
    bool peer;
    bool ats;
    bool host_pointers;
    uint64_t remap_us; /* what a call takes that maps memory, and it waits for all work */
    uint64_t host_us;  /* what registering a MiB takes, which waits, too */
    uint64_t load_us;  /* what loading a module takes, which waits, too */
    bool main_notes;
    bool remap_waits; /* cuMemUnmap and cuMemSetAccess do, for all work */
    bool pageable_waits;
    bool noop; /* unknown kernels do nothing */
    uint64_t copy_rate;
    uint64_t units;         /* 0: any number */
    uint64_t register_most; /* 0: any number of bytes */
    uint64_t kernel_us;
    uint64_t delay_us;
    struct rule rule[RULES_MAX];
    unsigned rule_count;
};

/* The variable FAKECUDA<suffix>, or CUDA_FAKE<suffix>; NULL: not set. */
const char *setting(const char *suffix);
/* false: the text is wrong and `ret_wrong` points at the item. No lock. */
bool script_parse(const char *text, struct script *ret_script, const char **ret_wrong);
struct action script_next(const char *call, int device);

/* ---- objects (object.c) ---------------------------------------------------------------------- */

enum kind {
    KIND_CONTEXT,
    KIND_STREAM,
    KIND_EVENT,
    KIND_MODULE,
    KIND_LIBRARY,
    KIND_FUNCTION,
    KIND_KERNEL,
    KIND_POOL,
    KIND_HANDLE, /* of physical memory */
    KIND_COUNT
};

/* What every handle stands for; first member of each. Handles are numbers that are never given
 * twice, so that the use of a dead one is seen. */
struct object {
    enum kind kind;
    uint64_t handle;
    struct context *context; /* NULL: of no context */
};

void object_add(struct object *o, enum kind kind, struct context *context);
void object_remove(struct object *o); /* the handle is dead from now on */
/* NULL: no such object or a dead one, recorded as misuse of the running call. */
void *object_get(const void *handle, enum kind kind);
void *object_peek(const void *handle, enum kind kind); /* the same, nothing is recorded */
/* For each live object of a kind, also while `each` removes it. */
void object_each(enum kind kind, void (*each)(struct object *o, void *data), void *data);
const char *kind_name(enum kind kind);

/* ---- state (core.c) -------------------------------------------------------------------------- */

struct device {
    int index;  /* as the process counts */
    int number; /* as the host counts */
    uint64_t used;
    CUresult lost; /* not 0: the device is gone */
    struct context *primary;
    unsigned primary_flags;
    struct pool *default_pool, *pool;
};

struct fake {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* something was completed, or has failed */
    struct script script;
    bool initialized;
    int pid; /* that called cuInit */
    struct device device[DEVICES_MAX];
    int device_count;
    unsigned leaks, misuses;
};

extern struct fake fake;

enum need {
    NEED_NOTHING = 0,
    NEED_INIT = 1,
    NEED_CONTEXT = 2 | NEED_INIT, /* a current one that is not poisoned */
};

/* Takes the lock, which call_leave gives back whatever came out. `name` is static. */
CUresult call_enter(const char *name, unsigned needs);
/* The same for calls that name the device they are about. */
CUresult call_enter_device(const char *name, unsigned needs, CUdevice device);
CUresult call_leave(CUresult r);
const char *call_name(void); /* of the running call of this thread */
/* What the script wants of the work that this call enqueues. */
struct action call_action(void);
void call_set_action(struct action a);
void host_callback(bool inside); /* calls of this thread are forbidden now */

bool code_poisons(CUresult code);
struct device *device_at(CUdevice index); /* NULL: none */
void device_lose(struct device *d);
uint64_t clock_ns(void);
/* Sleeps without the lock. */
void pause_ns(uint64_t ns);
/* Does not come back. Lock held; it is given up. */
void block_forever(void) __attribute__((noreturn));

/* ---- report (report.c) ----------------------------------------------------------------------- */

void misuse(const char *format, ...) __attribute__((format(printf, 1, 2)));
void leak(const char *format, ...) __attribute__((format(printf, 1, 2)));
void note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- contexts (context.c) -------------------------------------------------------------------- */

struct context {
    struct object object;
    struct device *device;
    unsigned refs; /* of a primary one */
    bool primary;
    unsigned flags;
    CUresult poison; /* what every call gives from now on */
    struct stream *legacy, *per_thread;
    unsigned threads; /* of its streams that have not ended */
    uint64_t running; /* kernels and memsets */
    uint64_t peers;   /* bits of devices whose memory may be used */
    uint64_t limit[CU_LIMIT_MAX];
    struct context *next; /* of freed ones */
};

struct context *context_current(void); /* NULL: none */
void context_poison(struct context *c, CUresult code);

/* ---- streams and events (stream.c, event.c) -------------------------------------------------- */

struct span {
    uint64_t base, size;
    bool write;
    bool host; /* pageable: not checked */
};

struct op {
    struct op *next;
    struct stream *stream;
    struct action action;
    uint64_t seq;
    const char *call;   /* that enqueued it */
    struct span *spans; /* memory it uses; owned */
    unsigned span_count;
    /* The work; without the lock. Not 0: the context is poisoned with it. */
    CUresult (*run)(struct op *op);
    /* With the lock, when the work is done or dropped; frees nothing of `op` itself. Optional. */
    void (*finish)(struct op *op, bool done);
    struct event *event; /* recorded or waited for; a reference */
    uint64_t generation;
    struct stream *other; /* waited for up to other_seq; a reference */
    uint64_t other_seq;
    uint64_t cost_bytes; /* for copy_rate */
    bool kernel;
    bool set;  /* a memset, which kernels do */
    bool copy; /* reaches the memory of every device */
};

struct stream {
    struct object object;
    pthread_t thread;
    pthread_cond_t wake;
    struct op *head, *tail; /* the head is the one that runs */
    uint64_t enqueued, completed;
    unsigned refs;
    unsigned flags;
    int priority;
    bool started, closing;
};

struct event {
    struct object object;
    unsigned refs;
    unsigned flags;
    uint64_t asked, reached; /* recordings */
    uint64_t time_ns;
    bool destroyed;
};

/* The stream behind a handle of the current context; NULL: recorded as misuse. */
struct stream *stream_of(CUstream handle, CUresult *ret_why);
struct stream *stream_create(struct context *c, unsigned flags, int priority);
void stream_close(struct stream *s); /* its handle is dead; pending work goes on */
void stream_unref(struct stream *s);
/* An operation of `size` bytes that begins with a struct op, zeroed. */
void *op_new(size_t size, CUresult (*run)(struct op *op));
void op_span(struct op *op, uint64_t base, uint64_t size, bool write, bool host);
void op_enqueue(struct stream *s, struct op *op); /* takes `op` */
/* Waits until all up to `seq` is done; the context's poison. */
CUresult stream_wait(struct stream *s, uint64_t seq);
CUresult context_wait(struct context *c); /* for all its streams */
/* A call that takes long: sleeps without the lock, and then waits for all work. ns 0: neither. */
CUresult context_linger(uint64_t ns);
/* Whether an operation that is not done uses the memory; names the call that enqueued it. */
const char *memory_pending(uint64_t base, uint64_t size);
CUresult memory_wait(uint64_t base, uint64_t size);
void event_unref(struct event *e);

/* ---- memory (range.c and its users) ---------------------------------------------------------- */

enum range_kind {
    RANGE_DEVICE,     /* cuMemAlloc */
    RANGE_POOL,       /* cuMemAllocAsync */
    RANGE_MAPPED,     /* cuMemMap */
    RANGE_MANAGED,    /* cuMemAllocManaged */
    RANGE_HOST,       /* cuMemHostAlloc */
    RANGE_REGISTERED, /* cuMemHostRegister */
    RANGE_GLOBAL,     /* of a module */
};

struct range {
    uint64_t base, size;
    enum range_kind kind;
    unsigned flags;
    struct context *context;
    struct device *device;
    struct handle *handle;       /* MAPPED */
    struct pool *pool;           /* POOL */
    uint64_t mapped;             /* bytes behind it, to be unmapped with it */
    uint64_t readable, writable; /* MAPPED: bits of devices */
    bool freeing;                /* POOL: a free is enqueued */
    uint64_t id;
};

struct range *range_add(const struct range *r); /* NULL: no memory */
void range_remove(struct range *r);
struct range *range_at(uint64_t address);                  /* the one that holds it; NULL */
struct range *range_overlap(uint64_t base, uint64_t size); /* the first; NULL */
struct range *range_next(const struct range *r);           /* by address; NULL: the first */
const char *range_name(enum range_kind kind);
bool range_is_device(const struct range *r); /* not host memory */
/* Fresh zeroed host pages with a guard behind them; 0 = none. */
uint64_t pages_new(uint64_t size, uint64_t *ret_mapped);
void pages_free(uint64_t base, uint64_t mapped);
/* The initial contents of device memory are undefined: unusual bytes, up to this many at each end.
 * The bytes between them stay zero, and take no memory. */
void pages_taint(uint64_t base, uint64_t size, uint64_t at_ends);
/* Whether [base, base + size) is memory that the device of `c` may read (write). */
/* c NULL: any device may. */
bool memory_usable(const struct context *c, uint64_t base, uint64_t size, bool write);
CUresult device_take(struct device *d, uint64_t size); /* 2 when there is not so much */
void memory_drop_context(struct context *c);           /* counts leaks */
void vmm_report(void);
void pool_report(void);
void pool_take_back(struct range *r);
struct pool *pool_default(struct device *d);

/* ---- modules (image.c, ptx.c, cubin.c, module.c, launch.c) ----------------------------------- */

struct param {
    uint32_t offset, size;
};

struct entry {
    char *name;
    struct param *param;
    unsigned param_count;
    uint32_t param_bytes;
    uint32_t registers, shared, local, max_threads, constant;
    uint32_t max_dynamic; /* shared bytes a launch may ask for; set by cuFuncSetAttribute */
    struct object function, kernel; /* its handles */
    unsigned running;               /* launches that are not done */
    struct module *module;
};

struct variable {
    char *name;
    uint64_t size;
    uint64_t address; /* in device memory */
    uint8_t *init;    /* NULL: zeroed */
    uint64_t init_size;
    bool managed;
};

/* What a module's code holds. Arrays and their names are owned. */
struct image {
    struct entry **entries;
    unsigned entry_count;
    struct variable **variables;
    unsigned variable_count;
    int arch; /* of the code */
    int ptx;  /* its version * 10, 0: a cubin */
};

struct module {
    struct object object; /* of a module or a library */
    struct image image;
    bool library;
};

/* No lock needed. Not 0: why not, with a text for the JIT's log. */
CUresult image_parse(const void *data, int arch, struct image *ret_image, char *ret_log,
                     size_t log_size);
CUresult ptx_parse(const char *text, size_t size, int arch, struct image *ret_image, char *ret_log,
                   size_t log_size);
CUresult cubin_parse(const uint8_t *data, size_t size, int arch, struct image *ret_image);
void image_finish(struct image *i);
struct entry *image_entry(struct image *i, const char *name, size_t size);       /* a new one */
struct variable *image_variable(struct image *i, const char *name, size_t size); /* a new one */
struct entry *image_find(const struct image *i, const char *name);               /* NULL: none */
bool entry_param(struct entry *e, unsigned index, struct param p);
void module_drop(struct module *m);
/* The entry behind a CUfunction or a CUkernel; NULL: recorded as misuse. */
struct entry *entry_of(CUfunction handle);

/* ---- kernels (kernels.c) --------------------------------------------------------------------- */

struct grid {
    unsigned grid[3], block[3];
};

/* One launch of a kernel. Without the lock. Not 0: what the context is poisoned with.
 * params[i] points at the value of the i-th parameter. */
typedef CUresult (*kernel_fn)(const char *entry, const struct grid *g, void *const *params,
                              unsigned count);
kernel_fn kernel_find(const char *entry, unsigned param_count); /* NULL: the double has none */
/* What kernels printed, kept until a call that waits or launches. */
void kernels_put_out(void);
/* Bit i: the i-th parameter is an address. ~0: not known. */
uint64_t kernel_pointers(const char *entry);

#endif
