/* Fixed limits of the wire. A session's own limits, in WELCOME, can be lower. */
#ifndef PROTO_LIMITS_H
#define PROTO_LIMITS_H

#define PROTO_MAJOR 0
#define PROTO_MINOR 4

/* The minor version that introduced: */
#define PROTO_MINOR_ARGS   4 /* 128 arguments of a kernel; views; headers of a module */
#define PROTO_MINOR_JOBS   4 /* QUERY chooses among jobs */
#define PROTO_MINOR_KILL   4 /* CANCEL ends workers */
#define PROTO_MINOR_GRANTS 4 /* buffers for other tenants */

#define PROTO_INLINE_MAX (16u * 1024u * 1024u) /* bytes of one inline value */
#define PROTO_MESSAGE_MAX                                                                          \
    (PROTO_INLINE_MAX + 256u * 1024u) /* bytes of a message without SP header */
#define PROTO_CLIENT_ID_BYTES 16u
#define PROTO_NONCE_BYTES     16u
#define PROTO_SOCKET_MAX      107u   /* bytes of a local socket's path */
#define PROTO_SOCKET_SHM      ".shm" /* ends the path of a tenant's socket for CLAIM */
#define PROTO_NAME_MAX        64u    /* bytes: kernels, modules, published buffers, parameters */
#define PROTO_LABEL_MAX       64u    /* bytes */
#define PROTO_GRANTS_MAX      1024u  /* bytes: names of tenants, with spaces between them */
#define PROTO_TOKEN_MAX       256u   /* bytes */
#define PROTO_TEXT_MAX        1024u  /* bytes: error texts, signatures */
#define PROTO_LOG_MAX         65536u /* bytes: compiler's log */
#define PROTO_SOURCE_MAX      (1024u * 1024u) /* bytes: kernel source or binary */
#define PROTO_HEADERS_MAX     256u            /* of a module */
#define PROTO_HEADER_NAME_MAX 256u            /* bytes */
#define PROTO_OPTIONS_MAX     4096u           /* bytes: compiler options */
#define PROTO_STEPS_MAX       256u            /* of a program */
#define PROTO_ARGS_MAX        128u            /* of a step */
#define PROTO_ARGS_OLD        32u             /* of a step, for clients of minor 3 and less */
#define PROTO_PARAMS_MAX      64u             /* of a program */
#define PROTO_TEMPS_MAX       64u             /* of a program */
#define PROTO_OUTPUTS_MAX     512u            /* of a job */
#define PROTO_KERNELS_MAX     256u            /* of a module */
#define PROTO_EVENTS_MAX      256u            /* completions and notices of one EVENTS */
#define PROTO_COLUMNS_MAX     64u             /* of a table */
#define PROTO_ROWS_MAX        65536u          /* of a table */
#define PROTO_POOL_ROWS_MAX   4096u           /* of one POOL_READ */

/* Jobs of a smaller class go before those of a greater one. */
enum proto_class {
    CLASS_USUAL = 0, /* in requests only: CLASS_INTERACTIVE, or the tenant's if that is greater */
    CLASS_REALTIME = 1,
    CLASS_INTERACTIVE = 2,
    CLASS_BATCH = 3,
};

#endif
