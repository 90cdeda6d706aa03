/* What the files of resolve share. */
#ifndef FRONT_RESOLVE_RESOLVE_INT_H
#define FRONT_RESOLVE_RESOLVE_INT_H

#include "common/shape.h"
#include "daemon/front/resolve/resolve.h"

struct arena;
struct buffer;

#define RESOLVE_TEMPS_MAX 512u /* the program's, inline arrays and those of operations */

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
    unsigned step;               /* the user's */
    const struct kernel *kernel; /* of the launch whose argument is looked at; else NULL */
    unsigned arg;                /* that argument */
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

/* An argument with its parameter replaced and its handle found. */
struct operand {
    enum operand_kind kind;
    struct buffer *buffer;
    struct arena *arena;
    bool direct;        /* of an arena: asked for by the client */
    int limit;          /* of an arena: the access that it was bound with, ACCESS_NONE = any */
    unsigned temp;      /* in the resolver's list */
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
/* Is it host memory that the device has no copy of? */
bool operand_is_host(const struct operand *o);
/* Notes that the step reads or writes an array; checks sealed, rights and undefined temporaries. */
int operand_reads(struct resolver *r, const struct operand *o, struct err *e);
int operand_writes(struct resolver *r, const struct operand *o, struct err *e);
/* SEALED or PERMISSION where the session may not write the buffer. */
int buffer_may_write(const struct resolver *r, const struct buffer *b, struct err *e);
/* Adds the array as an argument of the step added last; access: ACCESS_NONE where the operation
 * says what it does to it. */
int operand_ref(struct resolver *r, const struct operand *o, struct err *e);
int operand_ref_as(struct resolver *r, const struct operand *o, int access, struct err *e);

int resolve_launch(struct resolver *r, const struct proto_step *step, struct err *e);

#endif
