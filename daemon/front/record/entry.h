/*
 * What the loop hands to the thread of a recording: an entry for each event, in memory of the
 * queue. An entry has a fixed part and then bytes, whose lengths the fixed part has. Bytes of
 * clients stay in the encoding of the wire, so that the loop copies and decodes nothing twice: the
 * thread decodes them. Pure data.
 */
#ifndef FRONT_RECORD_ENTRY_H
#define FRONT_RECORD_ENTRY_H

#include <stdbool.h>
#include <stdint.h>

#include "common/hash.h"
#include "common/shape.h"
#include "proto/messages.h"
#include "proto/sp.h"

#define ENTRY_ALIGN 8u

enum entry_kind {
    ENTRY_GAP,     /* entries found no room here */
    ENTRY_KERNELS, /* names of handles; struct entry_kernel, `count` of them, follow */
    ENTRY_MODULE,
    ENTRY_PROGRAM,
    ENTRY_BUFFER,
    ENTRY_FREE,
    ENTRY_JOB,
    ENTRY_END,
};

/* What a buffer holds when its entry is made. */
enum entry_content { CONTENT_NONE, CONTENT_ZERO, CONTENT_UNKNOWN };

struct entry_kernel {
    uint64_t handle;
    uint64_t module; /* 0: built in */
    char name[PROTO_NAME_MAX + 1];
};

/* A list in its encoding, which follows the entry. */
struct entry_list {
    uint64_t count;
    size_t size;
};

/* Bytes that a job reads or wrote, which follow the entry, rounded up to ENTRY_ALIGN. */
struct entry_chunk {
    uint64_t arena; /* 0: an output in the answer */
    uint64_t first; /* byte in the arena; the step of an output */
    uint64_t arg;   /* of the step */
    size_t size;
};

struct entry {
    enum entry_kind kind;
    size_t size;    /* of all of it, a multiple of ENTRY_ALIGN */
    uint64_t at_ns; /* the daemon's clock */
    uint64_t id;    /* of the job, or the handle */
    union {
        uint64_t lost;  /* GAP */
        uint64_t count; /* KERNELS */
        struct {
            bool loaded; /* by a client; else built in, without texts */
            int lang;
            struct hash hash;
            size_t text, options, signature; /* bytes that follow, in this order */
            struct entry_list headers;
            char name[PROTO_NAME_MAX + 1];
            char file[PROTO_LABEL_MAX + 1];
        } module;
        struct {
            struct entry_list params, temps, steps;
            char name[PROTO_NAME_MAX + 1];
        } program;
        struct {
            uint64_t session; /* 0: its session ended */
            uint64_t flags;
            unsigned device;
            struct shape shape;
            enum entry_content content;
            char tenant[PROTO_NAME_MAX + 1];
            char label[PROTO_LABEL_MAX + 1];
            char name[PROTO_NAME_MAX + 1];
        } buffer;
        struct {
            uint64_t session;
            uint64_t job_class;
            struct message *body; /* SUBMIT, a reference that the entry owns; NULL: it follows */
            size_t bytes;         /* of SUBMIT, if it follows */
            unsigned chunks;      /* struct entry_chunk and their bytes follow it */
            char tenant[PROTO_NAME_MAX + 1];
            char client[PROTO_NAME_MAX + 1];
        } job;
        struct {
            unsigned state; /* enum job_state */
            int code;
            int step;
            uint64_t device;
            bool placed; /* it had a device */
            bool began;
            uint64_t queued_ns, executed_ns;
            unsigned chunks;
            char text[256]; /* of the error, cut */
        } end;
    };
};

static inline size_t entry_round(size_t size)
{
    return (size + ENTRY_ALIGN - 1) / ENTRY_ALIGN * ENTRY_ALIGN;
}

#endif
