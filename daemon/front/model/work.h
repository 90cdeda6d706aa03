/*
 * The work of a job: its program with every parameter bound, checked, and broken down into the
 * primitive steps that a worker takes. Offsets in staging memory are relative to the job's own
 * ranges, which dispatch allocates. Pure data; owned by its job.
 */
#ifndef FRONT_MODEL_WORK_H
#define FRONT_MODEL_WORK_H

#include <stdbool.h>
#include <stdint.h>

#include "common/bytes.h"
#include "common/err.h"
#include "daemon/front/model/spans.h"
#include "proto/frames.h"

struct arena;
struct buffer;
struct buffer_use;
struct job;
struct kernel;
struct module;

struct work_ref {
    unsigned tag; /* enum frame_ref_tag */
    uint64_t id;  /* REF_BUFFER, REF_ARENA: handle; REF_TEMP: index */
    uint64_t offset;
    uint64_t size;
    int access;        /* of an array of a launch; ACCESS_NONE: unknown */
    uint8_t value[64]; /* REF_VALUE of up to 64 bytes */
    uint8_t *large;    /* longer REF_VALUE; owned */
};

struct work_step {
    unsigned op;   /* enum proto_op, FRAME_OP_LIBRARY */
    unsigned step; /* of the user's program */
    unsigned first_ref;
    unsigned ref_count;
    uint64_t stage; /* offset in the job's input or output range */
    uint8_t pattern[FRAME_PATTERN_MAX];
    unsigned pattern_size;
    struct module *module;
    char entry[2 * PROTO_NAME_MAX + 1];
    uint64_t global[3];
    uint64_t local[3];
    uint64_t shared;
    int dtype;              /* this and the next two: FRAME_OP_LIBRARY */
    unsigned after, covers; /* numbers of steps behind it (proto/frames.h) */
};

/* Inline bytes, which dispatch copies into the job's input range. */
struct work_input {
    struct bytes data; /* in the job's request or program */
    uint64_t offset;
};

struct work_output {
    unsigned step;
    unsigned arg;
    uint64_t offset; /* in the job's output range */
    uint64_t size;
};

#define WORK_PARTS 4u /* written parts of one buffer, apart from each other */

/* A buffer that the job uses: the union of all accesses, the part that it needs defined, and the
 * part that it writes. */
struct work_use {
    struct buffer *buffer;
    int access;
    bool reads_before_write; /* needs [read_begin, read_end) to be defined */
    uint64_t read_begin, read_end;
    uint64_t write_begin, write_end; /* bounds of what it writes */
    unsigned step, arg;              /* of the user's program: the first read of the buffer */
    const struct kernel *reader;     /* kernel of that step; NULL: it is no launch */
    /* parts of the bounds of which it writes all bytes (spans.h): they are defined then */
    struct span part[WORK_PARTS];
    unsigned part_count;
    struct buffer_use *entry; /* hazard.c's; NULL: the job is not entered */
};

/* A part of an arena that the job reads or writes. Overlapping parts are not merged. */
struct work_arena {
    struct arena *arena;
    int access;
    uint64_t begin, end; /* bytes */
    struct job *job;     /* the unfinished job in whose name it is in arena->parts; NULL: is not */
    struct work_arena *prev_part, *next_part;
};

/* A copy of a buffer that the job may only read. A kernel that may write there works on the
 * copy. */
struct work_copy {
    unsigned step; /* of the user's program */
    unsigned arg;
    uint64_t bytes;
};

#define WORK_STEPS_MAX 4096u
#define WORK_REFS_MAX  (WORK_STEPS_MAX * 16u)
#define WORK_USES_MAX  256u

struct work {
    struct work_step *steps; /* owned */
    unsigned step_count, step_room;
    struct work_ref *refs; /* owned */
    unsigned ref_count, ref_room;
    uint64_t *temps; /* owned: bytes of each */
    unsigned temp_count, temp_room;
    struct work_input *inputs; /* owned */
    unsigned input_count, input_room;
    uint64_t input_bytes;
    struct work_output *outputs; /* owned */
    unsigned output_count, output_room;
    uint64_t output_bytes;
    struct work_use *uses; /* owned */
    unsigned use_count, use_room;
    struct work_arena *arenas; /* owned; owned; must not move while the job is entered */
    unsigned arena_count, arena_room;
    struct module **modules; /* owned array of modules to load; not the modules */
    unsigned module_count, module_room;
    int device;            /* index; -1: any */
    struct work_copy copy; /* the largest copy; bytes 0: none */
    bool no_memory;        /* an element could not be added for lack of memory */
};

/* Does it write all bytes of its bounds? */
static inline bool work_fills(const struct work_use *u)
{
    return span_cover(u->part, u->part_count, u->write_begin, u->write_end);
}

const char *work_op_name(uint64_t op);      /* "write"; NULL: no operation of a program */
const char *work_arg_name(uint64_t tag);    /* of enum proto_arg_tag, "array"; "": there is none */
const char *work_param_name(uint64_t kind); /* "buffer"; "": there is none */
void work_init(struct work *w);
void work_finish(struct work *w);
/* Each adds one zeroed element. NULL: no memory, or the limit is reached. */
struct work_step *work_add_step(struct work *w, unsigned op, unsigned step, struct err *e);
struct work_ref *work_add_ref(struct work *w);                  /* belongs to the step added last */
struct work_use *work_use_of(struct work *w, struct buffer *b); /* finds or adds it */
struct work_arena *work_add_arena(struct work *w, struct arena *a); /* limit: WORK_USES_MAX */
/* Units of the loop's work (turn_work) that resolving or encoding it costs: one for each
 * element. */
unsigned work_units(const struct work *w);
/* Bytes that its copies move to the device, and back. */
void work_moves(const struct work *w, uint64_t *ret_to, uint64_t *ret_from);
/* Bytes that a client hands over or gets: inputs, outputs, parts of arenas. Unlike in work_moves,
 * parts count that kernels use in place. */
uint64_t work_transfers(const struct work *w);
/* Whether it writes bytes of an arena that it also reads, so that it cannot run twice. */
bool work_changes_arena(const struct work *w);
int work_add_temp(struct work *w, uint64_t size, unsigned *ret_index, struct err *e);
int work_add_input(struct work *w, struct bytes data, uint64_t *ret_offset, struct err *e);
int work_add_output(struct work *w, unsigned step, unsigned arg, uint64_t size,
                    uint64_t *ret_offset, struct err *e);
int work_add_module(struct work *w, struct module *m, struct err *e);

#endif
