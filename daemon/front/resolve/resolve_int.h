/* Structs and functions shared by the files of resolve/. Thread: the loop's. */
#ifndef FRONT_RESOLVE_RESOLVE_INT_H
#define FRONT_RESOLVE_RESOLVE_INT_H

#include "common/shape.h"
#include "daemon/front/resolve/resolve.h"

struct arena;
struct buffer;

#define RESOLVE_TEMPS_MAX 512u /* of the program, of inline arrays and of operations */

struct temp_info {
    unsigned index; /* in the work's temporaries */
    struct shape shape;
    bool written;
};

struct resolver {
    const struct resolve_input *in;
    struct work *work;
    struct proto_param params[PROTO_PARAMS_MAX];
    struct proto_arg bindings[PROTO_PARAMS_MAX];
    struct temp_info temps[RESOLVE_TEMPS_MAX];
    unsigned temp_count;
    unsigned step;               /* of the user's program */
    const struct kernel *kernel; /* of the launch whose argument is being resolved; else NULL */
    unsigned arg;                /* the argument being resolved */
};

enum operand_kind {
    OPERAND_BUFFER,
    OPERAND_TEMP,
    OPERAND_SCALAR,
    OPERAND_INLINE,
    OPERAND_STRUCT,
    OPERAND_LOCAL,
    OPERAND_ARENA,
    OPERAND_UNBOUND, /* a parameter without a value yet */
};

/* An argument with its parameter bound and its handle found. */
struct operand {
    enum operand_kind kind;
    struct buffer *buffer;
    struct arena *arena;
    bool direct;        /* of an arena: the client wants the kernel to work in it */
    int limit;          /* of an arena: the access of its binding, ACCESS_NONE = any */
    unsigned temp;      /* index in the resolver's `temps` */
    uint64_t offset;    /* bytes */
    struct shape shape; /* arrays: of the slice */
    uint64_t bytes;
    int access;        /* as declared; ACCESS_NONE = not declared */
    int dtype;         /* scalars */
    uint64_t bits;     /* scalars */
    struct bytes data; /* inline, struct */
    int param_kind;    /* OPERAND_UNBOUND */
};

int operand_of(struct resolver *r, const struct proto_arg *arg, struct operand *ret_operand,
               struct err *e);
bool operand_is_array(const struct operand *o);
/* Is it memory of the host (an inline array or an arena)? */
bool operand_is_host(const struct operand *o);
/* Lists an array as read or written by the step; checks seals, rights and undefined temporaries. */
int operand_reads(struct resolver *r, const struct operand *o, struct err *e);
int operand_writes(struct resolver *r, const struct operand *o, struct err *e);
/* ERR_SEALED or ERR_PERMISSION if the session may not write the buffer. */
int buffer_may_write(const struct resolver *r, const struct buffer *b, struct err *e);
/* Adds the array as an argument of the latest step. access: ACCESS_NONE if the operation defines
 * it. */
int operand_ref(struct resolver *r, const struct operand *o, struct err *e);
int operand_ref_as(struct resolver *r, const struct operand *o, int access, struct err *e);
/* Adds a step that writes `src`, an array of the host, to `dst`. */
int operand_write_from(struct resolver *r, const struct operand *dst, const struct operand *src,
                       struct err *e);

int resolve_launch(struct resolver *r, const struct proto_step *step, struct err *e);

#endif
