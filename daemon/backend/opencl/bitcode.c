#include "daemon/backend/opencl/bitcode.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

/* limit of values derived from one argument; beyond it the argument counts as written */
#define VALUES_MAX 4096u

/* From LLVM's C interface, whose numbers do not change (llvm-c/Core.h). */
enum opcode {
    OP_LOAD = 27,
    OP_GEP = 29,
    OP_BITCAST = 41,
    OP_ICMP = 42,
    OP_PHI = 44,
    OP_CALL = 45,
    OP_SELECT = 46,
    OP_ADDRSPACECAST = 60,
    OP_FREEZE = 68,
};

typedef void *value;

#define LLVM_ENTRIES(X)                                                                            \
    X(void *, ContextCreate, (void))                                                               \
    X(void, ContextDispose, (void *context))                                                       \
    X(void, ContextSetDiagnosticHandler,                                                           \
      (void *context, void (*handler)(void *diagnostic, void *data), void *data))                  \
    X(void *, CreateMemoryBufferWithMemoryRangeCopy,                                               \
      (const char *data, size_t size, const char *name))                                           \
    X(void, DisposeMemoryBuffer, (void *buffer))                                                   \
    X(int, ParseBitcodeInContext2, (void *context, void *buffer, void **ret_module))               \
    X(void, DisposeModule, (void *module))                                                         \
    X(value, GetNamedFunction, (void *module, const char *name))                                   \
    X(unsigned, CountParams, (value function))                                                     \
    X(value, GetParam, (value function, unsigned index))                                           \
    X(void *, GetFirstUse, (value of))                                                             \
    X(void *, GetNextUse, (void *use))                                                             \
    X(value, GetUser, (void *use))                                                                 \
    X(value, IsAInstruction, (value of))                                                           \
    X(value, IsAFunction, (value of))                                                              \
    X(int, IsDeclaration, (value of))                                                              \
    X(int, GetInstructionOpcode, (value of))                                                       \
    X(value, GetCalledValue, (value of))                                                           \
    X(unsigned, GetNumArgOperands, (value of))                                                     \
    X(value, GetOperand, (value of, unsigned index))                                               \
    X(const char *, GetValueName2, (value of, size_t * ret_size))

struct llvm {
#define X(type, name, args) type(*name) args;
    LLVM_ENTRIES(X)
#undef X
};

/* ---- LLVM, if the process has loaded it ----------------------------------------------------- */

static int note_library(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    const char *name = strrchr(info->dlpi_name, '/');
    if (name == NULL || strncmp(name, "/libLLVM", strlen("/libLLVM")) != 0) {
        return 0;
    }
    *(void **)data = dlopen(info->dlpi_name, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    return *(void **)data != NULL;
}

static bool llvm_find(struct llvm *ret_llvm)
{
    void *lib = NULL;
    struct llvm llvm = {0};
    bool all = dl_iterate_phdr(note_library, &lib) != 0;
#define X(type, name, args)                                                                        \
    *(void **)&llvm.name = all ? dlsym(lib, "LLVM" #name) : NULL;                                  \
    all = llvm.name != NULL;
    LLVM_ENTRIES(X)
#undef X
    *ret_llvm = llvm;
    return all;
}

/* Without a handler LLVM ends the process at the first error. */
static void ignore(void *diagnostic, void *data)
{
    (void)diagnostic;
    (void)data;
}

/* ---- uses ----------------------------------------------------------------------------------- */

/* The values derived from one argument. */
struct walk {
    const struct llvm *llvm;
    unsigned count;
    value of[VALUES_MAX];
};

static bool follow(struct walk *w, value v)
{
    for (unsigned i = 0; i < w->count; i++) {
        if (w->of[i] == v) {
            return true;
        }
    }
    if (w->count == VALUES_MAX) {
        return false;
    }
    w->of[w->count++] = v;
    return true;
}

/* Does this function without a body, which is LLVM's own, only read through this argument? */
static bool intrinsic_reads(const struct llvm *llvm, value callee, unsigned arg)
{
    static const struct {
        const char *name;
        int arg; /* the one argument that it reads through; -1: it reads and writes none */
    } known[] = {{"llvm.lifetime.", -1}, {"llvm.dbg.", -1},   {"llvm.assume", -1},
                 {"llvm.prefetch.", -1}, {"llvm.memcpy.", 1}, {"llvm.memmove.", 1}};
    size_t size = 0;
    const char *name = llvm->GetValueName2(callee, &size);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        size_t prefix = strlen(known[i].name);
        if (size >= prefix && memcmp(name, known[i].name, prefix) == 0) {
            return known[i].arg < 0 || known[i].arg == (int)arg;
        }
    }
    return false;
}

static bool call_reads(struct walk *w, value call, value v)
{
    const struct llvm *llvm = w->llvm;
    value callee = llvm->IsAFunction(llvm->GetCalledValue(call));
    if (callee == NULL) {
        return false; /* a call through a pointer, or assembly */
    }
    bool reads = true;
    unsigned passed = 0;
    for (unsigned i = 0; reads && i < llvm->GetNumArgOperands(call); i++) {
        if (llvm->GetOperand(call, i) != v) {
            continue;
        }
        passed++;
        reads = llvm->IsDeclaration(callee)
                    ? intrinsic_reads(llvm, callee, i)
                    : i < llvm->CountParams(callee) && follow(w, llvm->GetParam(callee, i));
    }
    return reads && passed > 0;
}

/* Does this use only read? The result of a comparison is not a pointer. A store writes through
 * the pointer, or saves it where it is not followed. */
static bool use_reads(struct walk *w, value user, value v)
{
    if (w->llvm->IsAInstruction(user) == NULL) {
        return false;
    }
    switch (w->llvm->GetInstructionOpcode(user)) {
    case OP_LOAD:
    case OP_ICMP:
        return true;
    case OP_GEP:
    case OP_BITCAST:
    case OP_PHI:
    case OP_SELECT:
    case OP_ADDRSPACECAST:
    case OP_FREEZE:
        return follow(w, user);
    case OP_CALL:
        return call_reads(w, user, v);
    default:
        return false;
    }
}

static bool only_reads(struct walk *w, value argument)
{
    const struct llvm *llvm = w->llvm;
    w->count = 0;
    bool reads = follow(w, argument);
    for (unsigned i = 0; reads && i < w->count; i++) {
        void *use = llvm->GetFirstUse(w->of[i]);
        for (; reads && use != NULL; use = llvm->GetNextUse(use)) {
            reads = use_reads(w, llvm->GetUser(use), w->of[i]);
        }
    }
    return reads;
}

/* ---- a binary ------------------------------------------------------------------------------- */

/* Finds the bitcode in one of PoCL's binaries. Its size precedes it. */
static struct bytes bitcode_of(struct bytes binary)
{
    static const uint8_t magic[] = {'B', 'C', 0xC0, 0xDE};
    const struct bytes none = {0};
    uint32_t size = 0;
    const uint8_t *at =
        binary.size > 0 ? memmem(binary.data, binary.size, magic, sizeof magic) : NULL;
    if (at == NULL || at - binary.data < (ptrdiff_t)sizeof size ||
        memcmp(binary.data, "poclbin", strlen("poclbin")) != 0) {
        return none;
    }
    memcpy(&size, at - sizeof size, sizeof size);
    return size <= binary.size - (size_t)(at - binary.data) ? bytes_of(at, size) : none;
}

static void module_learn(const struct llvm *llvm, void *module, struct backend_compiled *compiled)
{
    struct walk *w = malloc(sizeof *w);
    if (w == NULL) {
        return;
    }
    w->llvm = llvm;
    for (unsigned k = 0; k < compiled->kernel_count; k++) {
        struct backend_compiled_kernel *kernel = &compiled->kernels[k];
        value function = llvm->GetNamedFunction(module, kernel->entry);
        if (function == NULL || llvm->IsDeclaration(function) ||
            llvm->CountParams(function) != kernel->arg_count) {
            continue;
        }
        for (unsigned a = 0; a < kernel->arg_count; a++) {
            struct backend_compiled_arg *arg = &kernel->arg[a];
            arg->only_reads =
                arg->kind == BACKEND_KIND_ARRAY && only_reads(w, llvm->GetParam(function, a));
        }
    }
    free(w);
}

void opencl_bitcode_learn(struct bytes binary, struct backend_compiled *compiled)
{
    struct llvm llvm;
    struct bytes code = bitcode_of(binary);
    if (code.size == 0 || !llvm_find(&llvm)) {
        return;
    }
    void *module = NULL;
    void *context = llvm.ContextCreate();
    llvm.ContextSetDiagnosticHandler(context, ignore, NULL);
    void *buffer =
        llvm.CreateMemoryBufferWithMemoryRangeCopy((const char *)code.data, code.size, "kernels");
    if (llvm.ParseBitcodeInContext2(context, buffer, &module) == 0) {
        module_learn(&llvm, module, compiled);
        llvm.DisposeModule(module);
    }
    llvm.DisposeMemoryBuffer(buffer);
    llvm.ContextDispose(context);
}
