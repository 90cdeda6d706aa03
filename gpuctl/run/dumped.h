/*
 * The stages of `gpuctl run --job`: file → modules → buffers → program → job → results. Only
 * run_dumped.c knows their order. `gpuctl replay` uses the same for each job of a recording, whose
 * lines have the members of such a file (replay.h). The file comes from outside: each number and
 * text is checked where it is read, and before memory is taken for it. Thread: one.
 */
#ifndef GPUCTL_RUN_DUMPED_H
#define GPUCTL_RUN_DUMPED_H

#include "gpuctl/run/run.h"
#include "gpuctl/sheet/json_value.h"

#define DUMPED_MODULES 256u
#define DUMPED_MEMORY  1024u
#define DUMPED_WORDS   64u /* bytes of a result's name, with the NUL */

struct dumped_buffer {
    uint64_t handle; /* in the file */
    gpud_buffer buffer;
    gpud_shape shape;
    bool written;
};

struct dumped_module {
    uint64_t handle; /* in the file */
    gpud_module module;
};

/* Memory of an argument, until the job has ended. */
struct dumped_memory {
    void *data; /* the client's, or owned */
    uint64_t bytes;
    bool host;    /* not from malloc: of gpud_host_alloc, freed with the client, or of `take` */
    bool written; /* the job may write there */
    char name[DUMPED_WORDS];
};

/* Memory for arrays that the job may write, and for those that the daemon shares. */
struct dumped_source {
    int (*take)(struct dumped_source *s, uint64_t bytes, void **ret_data, struct ctl_err *e);
    uint64_t seed; /* of data that the file does not have; changes */
};

struct dumped {
    struct dumped_source *source; /* not owned; NULL: gpud_host_alloc, and zeros for data */
    gpud_client *client;          /* not owned, as the next two */
    const struct run_options *options;
    struct run *run; /* its job */
    json_t *root;    /* owned: the file */
    gpud_program *program;
    struct dumped_module module[DUMPED_MODULES];
    uint32_t module_count;
    struct dumped_buffer buffer[GPUD_MAX_JOB_BUFFERS];
    uint32_t buffer_count;
    /* Those of the file. Behind them is one for each array to which a step writes, because programs
     * write to host memory through parameters only. */
    gpud_arg param[GPUD_MAX_PARAMS];
    gpud_arg value[GPUD_MAX_PARAMS];
    uint32_t param_count;
    uint32_t own_params; /* of the file */
    gpud_arg temp[GPUD_MAX_TEMPS];
    uint32_t temp_count;
    struct dumped_memory memory[DUMPED_MEMORY];
    uint32_t memory_count;
    uint64_t host_most;   /* bytes of one array that travels with the job, */
    uint64_t inline_most; /* and outside of memory that the daemon shares */
    bool built;           /* the program has its steps */
    uint32_t zeros;       /* arrays without content in the file */
};

/* ---- the file (dumped_file.c) ---- */

/* Reads it and checks its form. */
int dumped_load(const char *path, json_t **ret_root, struct ctl_err *e);
/* A member of an object: 0, "" or an empty list if it is missing. A number may be text, also
 * hexadecimal. INVALID: it has another type, or is too large. Texts and lists belong to the object.
 */
int dumped_number(const json_t *o, const char *name, uint64_t most, uint64_t *ret_value,
                  struct ctl_err *e);
int dumped_text(const json_t *o, const char *name, size_t most, const char **ret_text,
                struct ctl_err *e);
int dumped_list(const json_t *o, const char *name, size_t most, const json_t **ret_list,
                struct ctl_err *e);
/* From `type` and `shape`; with no dimensions only if `any`. */
int dumped_shape(const json_t *o, bool any, gpud_shape *ret_shape, struct ctl_err *e);
/* From `name`, or `name`_base64: at most `most` bytes, which the caller frees. NULL: the file does
 * not have them. INVALID: they have another hash than `name`_hash. */
int dumped_content(const json_t *o, const char *name, size_t most, char **ret_data,
                   size_t *ret_size, struct ctl_err *e);
/* INVALID if `name`_hash of the object is there and is not that of the bytes. */
int dumped_check(const json_t *o, const char *name, const void *data, size_t size,
                 struct ctl_err *e);

/* ---- modules and arguments (dumped_module.c, dumped_args.c) ---- */

/* Loads the modules that are not built in. Blocks. */
int dumped_modules(struct dumped *d, struct ctl_err *e);
/* The kernel of a step. Blocks. */
int dumped_kernel(const struct dumped *d, const json_t *step, gpud_kernel *ret_kernel,
                  struct ctl_err *e);
/* An argument of a step, or, once the program is built, the value of a parameter. access: of arrays
 * that travel with the job, if the file has none. where: the name of an array's result, such as
 * "step 2 argument 1". */
int dumped_arg(struct dumped *d, const json_t *o, int access, const char *where, gpud_arg *ret_arg,
               struct ctl_err *e);

/* ---- the program (run_dumped.c) ---- */

/* Makes the program of `root`: parameters, temporaries, steps. Blocks. */
int dumped_build(struct dumped *d, struct ctl_err *e);
/* The values of its parameters. */
int dumped_values(struct dumped *d, const json_t *root, struct ctl_err *e);
/* Loads one module. Blocks. */
int dumped_load_module(struct dumped *d, const json_t *o, struct ctl_err *e);
/* Frees the program, and the arrays from malloc. */
void dumped_release(struct dumped *d);
/* Fills an array with data by the seed: floats from 0 to 1, whole numbers from 0 to 15. */
void dumped_invent(uint64_t *seed, gpud_shape shape, void *data);

/* ---- results (dumped_results.c) ---- */

/* Shows the hashes of what the job wrote, and compares them with those of the file. Returns
 * EXIT_FAILED, said, if they differ. Blocks. */
int dumped_results(struct ctl *ctl, struct dumped *d, struct ctl_err *e);

#endif
