#include "client/src/base/error.h"

#include <stdio.h>

#include "client/src/base/client.h"
#include "common/shape.h"

/* errors.def and gpud.h name the same errors with the same values. An error that is only in
 * errors.def fails to compile here; an error that is only in gpud.h changes the count. */
#define ERR(name, value, retriable, text)                                                          \
    _Static_assert((int)GPUD_ERR_##name == (int)ERR_##name, "GPUD_ERR_" #name);
#include "common/errors.def"
#undef ERR
enum {
    ERRORS_DEFINED = 0
#define ERR(name, value, retriable, text) +1
#include "common/errors.def"
#undef ERR
};
_Static_assert(ERRORS_DEFINED == -(int)GPUD_ERR_STATE, "the header names errors of its own");

#define X(name, value, bytes) _Static_assert((int)GPUD_##name == (int)DTYPE_##name, #name);
DTYPES(X)
#undef X
_Static_assert((int)GPUD_IN == (int)ACCESS_IN && (int)GPUD_OUT == (int)ACCESS_OUT &&
                   (int)GPUD_INOUT == (int)ACCESS_INOUT,
               "access");
_Static_assert((int)GPUD_EFFECTS_MAYBE == (int)ERR_EFFECTS_MAYBE &&
                   (int)GPUD_EFFECTS_YES == (int)ERR_EFFECTS_YES,
               "effects");

static _Thread_local gpud_error last;

void error_fill(gpud_error *ret_error, const struct err *e)
{
    size_t size = ret_error->size;
    *ret_error = (gpud_error){
        .size = size,
        .code = e->code,
        .vendor = e->vendor,
        .step = e->step,
        .arg = e->arg,
        .effects = e->effects,
        .retriable = err_retriable(e->code),
        .retry_after_ns = e->retry_after_ns,
    };
    (void)snprintf(ret_error->text, sizeof ret_error->text, "%s", e->text);
}

int error_report(int rc, const struct err *e)
{
    if (rc < 0) {
        last.size = sizeof last;
        error_fill(&last, e);
        last.code = rc;
        last.retriable = err_retriable(rc);
    }
    return rc;
}

void error_restore(const gpud_error *kept)
{
    last = *kept;
}

const gpud_error *gpud_last_error(void)
{
    if (last.size == 0) {
        last.size = sizeof last;
        last.step = -1;
        last.arg = -1;
    }
    return &last;
}

const char *gpud_strerror(int code)
{
    return code == GPUD_OK ? "success" : err_text(code);
}

const char *gpud_err_name(int code)
{
    return code == GPUD_OK ? "OK" : err_name(code);
}
