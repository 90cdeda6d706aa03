#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/backend/sim/sim.h"
#include "kernels/builtin.h"
#include "kernels/dialect.h"
#include "kernels/host.h"

#define BINARY_MAX (64u * 1024u) /* bytes */
#define MEMBERS    (DIALECT_KERNELS_MAX * SIG_TYPES)

static int member_append(const struct signature *sig, int dtype, struct capbuf *binary,
                         struct backend_compiled *out, struct err *e)
{
    struct backend_compiled_kernel *k = &out->kernels[out->kernel_count];
    int rc = signature_entry(sig, dtype, k->entry, sizeof k->entry, e);
    if (rc != 0) {
        return rc;
    }
    const struct host_kernel *host = host_kernel_find(k->entry);
    if (!host) {
        return err_set(e, ERR_UNSUPPORTED,
                       "simulated devices run built-in kernels only: %s is not built in", k->entry);
    }
    k->arg_count = host->arg_count;
    out->kernel_count++;
    return capbuf_printf(binary, "%s\n", k->entry)
               ? 0
               : err_set(e, ERR_NOMEM, "no memory for a module");
}

static int signatures_append(const struct signature *sigs, unsigned count, struct capbuf *binary,
                             struct backend_compiled *out, struct err *e)
{
    int rc = 0;
    for (unsigned s = 0; rc == 0 && s < count; s++) {
        unsigned members = sigs[s].type_count ? sigs[s].type_count : 1;
        for (unsigned t = 0; rc == 0 && t < members; t++) {
            int dtype = sigs[s].type_count ? sigs[s].type[t] : DTYPE_NONE;
            rc = member_append(&sigs[s], dtype, binary, out, e);
        }
    }
    return rc;
}

/* A user's kernel may have a built-in kernel's name, so the whole text must be that of the
 * built-in. */
static bool source_builtin(struct bytes text)
{
    for (unsigned m = 0; m < builtin_module_count(); m++) {
        if (bytes_equal(builtin_module_source(m), text)) {
            return true;
        }
    }
    return false;
}

static int module_make(const struct backend_source *source, struct capbuf *binary,
                       struct backend_compiled *out, struct err *e)
{
    unsigned count = 0;
    struct signature *sigs = calloc(DIALECT_KERNELS_MAX, sizeof *sigs);
    out->kernels = calloc(MEMBERS, sizeof *out->kernels);
    if (!sigs || !out->kernels || !capbuf_printf(binary, "%s", SIM_MAGIC)) {
        free(sigs);
        return err_set(e, ERR_NOMEM, "no memory for a module");
    }
    int rc = dialect_signatures(source->text, source->file ? source->file : "", sigs,
                                DIALECT_KERNELS_MAX, &count, e);
    if (rc == 0) {
        rc = signatures_append(sigs, count, binary, out, e);
    }
    free(sigs);
    return rc;
}

int sim_compile(unsigned index, const struct backend_source *source,
                struct backend_compiled *ret_compiled, struct err *e)
{
    (void)index;
    if (source->lang != BACKEND_LANG_DIALECT || !source_builtin(source->text)) {
        return err_set(e, ERR_UNSUPPORTED,
                       "simulated devices run built-in kernels only, not kernels from source");
    }
    struct capbuf binary;
    struct backend_compiled out = {0};
    capbuf_init(&binary, BINARY_MAX);
    int rc = module_make(source, &binary, &out, e);
    if (rc != 0) {
        capbuf_finish(&binary);
        backend_compiled_finish(&out);
        return rc;
    }
    out.binary = binary.data;
    out.binary_size = binary.size;
    *ret_compiled = out;
    return 0;
}
