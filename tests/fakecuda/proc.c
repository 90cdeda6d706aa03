#include <stddef.h>
#include <string.h>

#include "tests/fakecuda/fake.h"

/* Functions that cuda.h renames are declared by their symbols here, without a prototype: only their
 * addresses are used. */
#undef cuGetProcAddress
CUresult cuGetProcAddress(const char *symbol, void **pfn, int version, cuuint64_t flags);

typedef void (*any_fn)(void);
#define CALL(name, since, symbol) extern __typeof__(void(void)) fake_##symbol __asm__(#symbol);
#include "tests/fakecuda/calls.def"
#undef CALL

/* CALL(name, since, symbol): the ABI of a call that came with a version of CUDA. */
static const struct {
    const char *name;
    int since;
    any_fn fn;
} calls[] = {
#define CALL(name, since, symbol) {#name, since, fake_##symbol},
#include "tests/fakecuda/calls.def"
#undef CALL
};

/* The newest ABI that both the caller and the driver know. */
static CUdriverProcAddressQueryResult find(const char *symbol, int version, any_fn *ret_fn)
{
    CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    int best = 0;
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        if (strcmp(calls[i].name, symbol) != 0 || calls[i].since > fake.script.driver) {
            continue;
        }
        if (best == 0) {
            found = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
        }
        if (calls[i].since <= version && calls[i].since > best) {
            best = calls[i].since;
            *ret_fn = calls[i].fn;
            found = CU_GET_PROC_ADDRESS_SUCCESS;
        }
    }
    return found;
}

static CUresult get(const char *symbol, void **pfn, int version,
                    CUdriverProcAddressQueryResult *status)
{
    any_fn fn = NULL;
    if (!symbol || !pfn || version > fake.script.driver) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUdriverProcAddressQueryResult found = find(symbol, version, &fn);
    *(any_fn *)pfn = fn;
    if (status) {
        *status = found;
        return CUDA_SUCCESS;
    }
    return fn ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

__attribute__((visibility("default"))) CUresult cuGetProcAddress(const char *symbol, void **pfn,
                                                                 int version, cuuint64_t flags)
{
    CUresult r = call_enter("cuGetProcAddress", NEED_NOTHING);
    (void)flags;
    return call_leave(r ? r : get(symbol, pfn, version, NULL));
}

CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *status)
{
    CUresult r = call_enter("cuGetProcAddress", NEED_NOTHING);
    (void)flags;
    return call_leave(r ? r : get(symbol, pfn, version, status));
}

/* The driver's private tables, which the double has none of. NVRTC asks for one, and takes a driver
 * without this call for one that has it. */
CUresult cuGetExportTable(const void **ppExportTable, const CUuuid *pExportTableId)
{
    CUresult r = call_enter("cuGetExportTable", NEED_NOTHING);
    (void)pExportTableId;
    *ppExportTable = NULL;
    return call_leave(r ? r : CUDA_ERROR_NOT_FOUND);
}
