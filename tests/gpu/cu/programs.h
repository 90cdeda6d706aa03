/*
 * The programs of tests/gpu/cu: the arguments of each kernel, and the expected results, computed on
 * the host. The binaries of both compilers get the same arguments. Thread: one. Does not block.
 */
#ifndef GPU_PROGRAMS_H
#define GPU_PROGRAMS_H

#include <gpud/gpud.h>

#define PROGRAM_BUFFERS 6u
#define PROGRAM_BYTES   32768u /* of a buffer */
#define PROGRAM_VALUES  8192u  /* of an output */
#define PROGRAM_ARGS    8u
#define PROGRAM_OUTPUTS 3u

enum program_type { PROGRAM_F32, PROGRAM_F64, PROGRAM_I32, PROGRAM_U64, PROGRAM_U8 };

struct program_output {
    unsigned buffer;
    enum program_type type;
    unsigned count;
    double tolerance; /* of a value, as a part of it and 1 */
    unsigned odd;     /* values that may be beyond it: points at an edge */
    double want[PROGRAM_VALUES];
};

struct program_arg {
    bool is_buffer;
    unsigned buffer;
    gpud_arg value; /* else */
};

/* The arguments of one launch. Buffers have initial contents. */
struct program_run {
    const char *name; /* its program's */
    unsigned buffers, args, outputs;
    int dtype[PROGRAM_BUFFERS];
    size_t bytes[PROGRAM_BUFFERS];
    unsigned char data[PROGRAM_BUFFERS][PROGRAM_BYTES];
    struct program_arg arg[PROGRAM_ARGS];
    struct program_output output[PROGRAM_OUTPUTS];
    gpud_grid grid;
    uint32_t random;
};

struct program {
    const char *name; /* of its source, without .cu */
    void (*prepare)(struct program_run *r);
};

extern const struct program programs[];
extern const unsigned program_count;

/* Clears *r, and prepares it. */
void program_prepare(const struct program *p, struct program_run *r);
/* Value `i` of an output in the bytes read back. */
double program_value(const struct program_output *o, const void *data, unsigned i);
/* Its values that are not as they should be; *ret_first: the first of them. */
unsigned program_wrong(const struct program_output *o, const void *data, unsigned *ret_first);

#endif
