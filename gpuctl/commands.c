#include <stdio.h>
#include <string.h>

#include "gpuctl/ctl/ctl.h"
#include "gpuctl/ctl/near.h"

static const char run_help[] =
    "  --source FILE           compile this file; its language follows from the suffix\n"
    "                          (.cl .cu .ptx .cubin .fatbin .gk; no back end takes .spv,\n"
    "                          SPIR-V, so far)\n"
    "  --lang LANG             opencl, cuda, ptx, cubin (also fatbin), spirv or dialect\n"
    "  -D, --define N[=V]      define a macro\n"
    "  --build-option OPTION   pass an option to the compiler; -cl-... needs no --build-option\n"
    "  --compiler NAME         CUDA C: auto (NVRTC, and nvcc where NVRTC refuses), nvrtc or nvcc\n"
    "  -I, --include DIR       search this folder for headers that the source includes\n"
    "  -a, --arg [NAME=]VALUE  an argument, in the kernel's order or by name:\n"
    "      i32:7  f32:2.5      a scalar; bare 2.5 where the kernel gives the type\n"
    "      f32:1,2,3,4         a vector by value\n"
    "      in:@x.npy           an array from a file; inout:@x.npy (\"-\": standard input)\n"
    "      in:u8+raw:1920x1080@frame.bin    from a file without a header\n"
    "      in:f32=1,2,3        written out\n"
    "      out:f32:1024x16     an array the kernel fills; inout:... starts as zeros\n"
    "      in:%NAME            a published buffer\n"
    "      bytes:@FILE         a struct by value, the bytes of the file\n"
    "      inout:f32/u8:1024   with a view: the array's type / the type the kernel sees;\n"
    "      in:/u8@x.npy        its bytes must be whole elements of the view\n"
    "      local:BYTES         local (shared) memory (also scratch:BYTES)\n"
    "  --variable NAME=VALUE   a variable of the source (CUDA: __constant__, __device__):\n"
    "                          i32:7, in:f32=1,2,3, in:@x.npy; out:... is shown afterwards\n"
    "  --save NAME|INDEX=FILE.npy   save an array (raw:FILE without a header)\n"
    "  --global X[,Y[,Z]]      work items, if they do not follow from the signature\n"
    "  --local X[,Y[,Z]]       work items of a group\n"
    "  --device ID|auto        where to run\n"
    "  --repeat N              run N times, inputs uploaded anew each time\n"
    "  --timeout MS            give up after this time (exit code 124); a job runs no longer\n"
    "                          than the daemon's time_limit_ms in any case\n"
    "  --class CLASS           realtime, interactive or batch; not before the tenant's own\n"
    "  --priority N            -16 to 16, among the tenant's own jobs\n"
    "  --max-input SIZE        bytes (512M, 4G) of one input file; without it the memory\n"
    "                          of the largest device, 1G for pipes\n"
    "  --detach                do not wait for the job\n"
    "  --job FILE              run the job of a file of gpuctl job dump again, with the options\n"
    "                          --device, --timeout, --class, --priority and these; buffers start\n"
    "                          as zeros. Exit code 1: it failed, or its results are others than\n"
    "                          those that the file has\n"
    "  --module HASH=FILE      --job: the source of that module, where the file has none\n"
    "  --record FILE           --job: write the file again, with hashes of the results\n"
    "  --dry-run               check and show everything, run nothing\n"
    "Examples:\n"
    "  gpuctl run axpy --arg 2 --arg in:f32=1,2,3 --arg inout:f32=1,1,1 --save y=y.npy\n"
    "  gpuctl run saxpy --source examples/kernels/saxpy.cl --global 4 --arg f32:2.5 \\\n"
    "      --arg in:f32=1,2,3,4 --arg inout:f32=10,20,30,40 --arg u32:4 --save y=y.npy\n";

static const char demo_help[] =
    "  -f, --file FILE   file of the PNG (default gpud-demo.png)\n"
    "  --image FILE      another photograph (JPEG or PNG)\n"
    "  --device ID|auto  where to run\n"
    "Finds the edges of a photograph in one program of several kernels and compares\n"
    "the result with a reference of the CPU; exit code 1 if they differ.\n";

static const char bench_help[] =
    "  --device ID|auto  where to run (auto: the daemon chooses)\n"
    "  --quick           a tenth of the jobs and copies, none of 16 MiB\n"
    "Null jobs (programs without steps) one at a time, 8 and 64 at once; copies of 4 KiB\n"
    "to 16 MiB to the device and back, compared with what was sent. The figures are not\n"
    "the device's own speed. GPUD_LANE=nng or ring chooses the transport; see gpuctl(1).\n";

static const char jobs_help[] =
    "  --state STATE     queued, dispatched, running, done, failed, cancelled or lost\n"
    "  --session NUMBER  of this session (see gpuctl sessions)\n"
    "  --tenant NAME     of this tenant\n"
    "  --limit N         at most the N newest\n"
    "FILTER: only rows with a text that contains it.\n";

static const char job_dump_help[] =
    "  --with-data  with the contents of buffers that the job only reads, up to 32 MiB,\n"
    "               if it is a job of your tenant; its repetition starts with them\n"
    "Writes FILE (standard output without it): the job's steps, arguments, arrays that travel\n"
    "with it, modules with their sources, and the sizes of its buffers, as JSON; see gpuctl(1).\n"
    "The daemon has these until the job ends. For its tenant, administrators, and tenants with\n"
    "the role see or cancel, which get no arrays and sources.\n";

static const char record_start_help[] =
    "  --with-data        with the contents of arrays, not only their sizes and hashes\n"
    "  --file-size SIZE   the recording ends at this size (512M, 4G); usually the setting\n"
    "                     file_bytes\n"
    "NAME becomes NAME.jsonl in the daemon's folder; the command says where. For administrators:\n"
    "a recording has the kernels, and with data the arrays, of all tenants.\n";

static const char replay_help[] =
    "  --speed F      times between jobs are divided by F (1); 0: as fast as possible\n"
    "  --jobs N       only the first N jobs\n"
    "  --device ID    all on this device (usually: the recorded one, as far as it is there)\n"
    "  --seed N       of the data that the recording does not have (1)\n"
    "  --json         as -o json\n"
    "Loads the recording's kernels, makes its buffers, and submits its jobs in their order,\n"
    "from as many sessions, at their times. Exit code 0: all ended as recorded; 6: some did\n"
    "not, or have other results; 1: the file is bad, or something cannot be done here.\n"
    "Example:\n"
    "  gpuctl replay monday.jsonl --speed 2\n";

static const char wait_help[] =
    "  --timeout MS      give up after this time (exit code 124); the job goes on\n"
    "Shows the job as job show does. Exit code 0: done; 1: failed, cancelled or lost; 124: a time\n"
    "limit or deadline of the job passed; 130: Ctrl-C, the job goes on.\n";

static const char top_help[] =
    "Asks every 2 seconds, or every SECONDS of -w. Keys: 1 devices, 2 tenants, 3 sessions, 4 "
    "jobs,\n"
    "5 pool; up, down select; < > sort, r reverses; / filters; e explains and c cancels the\n"
    "selected job; p pauses; h shows help; q ends.\n";

static const char trace_help[] =
    "  -f, --file FILE   where to write it (-: standard output)\n"
    "  --seconds N       record for so long (5), at most 3600\n"
    "  --jobs N          until so many jobs have ended\n"
    "Ctrl-C ends the recording early. A slice is a job or a step; tracks are the streams of\n"
    "devices, and tenants; arrows lead from jobs to those that waited for them. Steps of jobs\n"
    "that the device ran as one have the times of the job.\n"
    "Example:\n"
    "  gpuctl trace -f t.json --seconds 2, then open t.json in https://ui.perfetto.dev\n";

static const char doctor_help[] =
    "Looks at the driver, device files, users, settings, socket, versions, limits, disks, "
    "compilers\n"
    "and libraries of this host, also while no daemon runs. CHECK: only these, by their names.\n"
    "Each check is ok, skipped, a warning or a failure; exit code 1 if there is a failure.\n"
    "Run it as the user that cannot connect, and as root: both see different things.\n";

static const char pool_help[] =
    "  --device ID     this device alone\n"
    "  --meters        tiers, classes and tenants alone (for -o csv)\n"
    "  --timeout MS    how long the devices' workers may take to answer (2000)\n"
    "A device that does not answer in time has a note; exit code 1 if none answers.\n"
    "-o wide and json show every size class and every counter.\n";

static const char pool_snapshot_help[] =
    "  -f, --file FILE  as JSON (-o json: to standard output)\n"
    "  --html FILE      as one page: addresses over time, the largest buffers; open it in a "
    "browser\n"
    "  --csv FILE       the log in RMM's format: Thread,Time,Action,Pointer,Size,Stream\n"
    "  --pytorch FILE   a pickle for PyTorch's viewer: drop it on https://pytorch.org/memory_viz\n"
    "  --device ID      this device alone\n"
    "  --timeout MS     how long the devices' workers may take to answer (2000)\n"
    "One FILE may be -, standard output.\n"
    "Without a file the largest pieces are listed; -o wide and csv list all.\n"
    "You see your own pieces; those of other users have no name.\n"
    "Example:\n"
    "  gpuctl pool snapshot --html pool.html && xdg-open pool.html\n";

static const char logs_help[] =
    "  -f, --follow      go on with new lines, until Ctrl-C\n"
    "  --tenant NAME     lines about this tenant\n"
    "  --device ID       about this device\n"
    "  --job JOB         about this job\n"
    "  --since TIME      as journalctl takes it: today, -1h, \"2026-11-28 14:00\"\n"
    "  -n, --lines N     only the N newest\n"
    "  --level LEVEL     error, warn, info or debug, and what is more urgent\n"
    "  --explain         with what each line means, and what to do\n"
    "Asks journalctl, so it works while the daemon is down. -o wide and json show all fields.\n"
    "Workers' own output has no tenant, device or job: leave these options out to see it.\n"
    "Without a journal the log is the standard error of gpud and gpud-launcher.\n"
    "Example:\n"
    "  gpuctl logs -f --tenant vision --level warn\n";

static const char drain_help[] =
    "  --device ID     release this device alone, for a reset or another driver: its jobs end,\n"
    "                  its buffers go to the host, and no process of gpud has it open then\n"
    "  --finish        jobs that wait for it run first (else they wait until it is resumed)\n"
    "  --wait SECONDS  wait until it is released (exit code 124: not in time; it goes on)\n"
    "Without a device the daemon takes no new jobs, and finishes those that run.\n"
    "Example:\n"
    "  gpuctl drain --device 1 --wait 600 && nvidia-smi -i 1 -r && gpuctl resume --device 1\n";

static const char resume_help[] =
    "  --device ID  open this device again, after gpuctl drain --device ID\n"
    "Without a device the daemon takes jobs again; devices that are drained stay so.\n";

static const char token_help[] =
    "FILE gets the new token and must not exist; a client names it in GPUD_TOKEN_FILE.\n"
    "The line on standard output has only the token's hash: append it to the file that\n"
    "`tokens` names in the tenant's section, then: gpuctl reload\n"
    "Example:\n"
    "  gpuctl token vision.token >>/etc/gpud/vision.tokens && gpuctl reload\n";

const struct command commands[] = {
    {"ping", "", "Ask whether the daemon answers, and how fast", "", NULL, cmd_ping, COMMAND_LOOKS},
    {"status", "", "State of the daemon and its problems (exit code 5: degraded)", "", NULL,
     cmd_status, COMMAND_LOOKS},
    {"doctor", "[CHECK...]", "What keeps gpud from serving, and the command that mends it",
     doctor_help, NULL, cmd_doctor, COMMAND_LOOKS},
    {"devices", "", "Devices, their back ends and memory", "", NULL, cmd_devices, COMMAND_LOOKS},
    {"domains", "", "Workers of single tenants, which load kernels and are not trusted", "", NULL,
     cmd_domains, COMMAND_LOOKS},
    {"pool", "[OPTION...]", "Device memory (also: pool stats)", pool_help, pool_option_list,
     cmd_pool, COMMAND_LOOKS},
    {"pool stats", "[OPTION...]", "Uses of device memory", pool_help, pool_option_list, cmd_pool,
     COMMAND_LOOKS},
    {"pool snapshot", "[OPTION...]", "Every piece of device memory, and the pool's log",
     pool_snapshot_help, pool_snapshot_option_list, cmd_pool_snapshot, COMMAND_LONG},
    {"pool trim", "", "Give unused device memory back", "", NULL, cmd_pool_trim, COMMAND_BRIEF},
    {"kernels", "[FILTER]", "Built-in kernels and what they take", "", NULL, cmd_kernels,
     COMMAND_LOOKS},
    {"buffers", "[FILTER]", "Published buffers, their grants, and copies of such", "", NULL,
     cmd_buffers, COMMAND_LOOKS},
    {"jobs", "[FILTER] [OPTION...]", "Jobs: waiting, running and lately ended, newest first",
     jobs_help, jobs_option_list, cmd_jobs, COMMAND_LOOKS},
    {"job show", "JOB", "Everything about one job", "", NULL, cmd_job_show, COMMAND_LOOKS},
    {"job dump", "JOB [FILE] [--with-data]", "Write what an unfinished job does, to run it again",
     job_dump_help, job_dump_option_list, cmd_job_dump, COMMAND_BRIEF},
    {"job cancel", "JOB [--running]", "Cancel a job",
     "  --running  ends the worker of a job that runs, if no other tenant uses that worker\n",
     job_cancel_option_list, cmd_job_cancel, COMMAND_BRIEF},
    {"wait", "JOB [OPTION...]", "Wait for the end of a job; the exit code tells it", wait_help,
     wait_option_list, cmd_wait, COMMAND_BRIEF},
    {"explain", "JOB", "Why a job waits", "", NULL, cmd_explain, COMMAND_LOOKS},
    {"trace", "-f FILE [OPTION...]", "Record jobs for Perfetto", trace_help, trace_option_list,
     cmd_trace, COMMAND_LONG},
    {"top", "", "Devices, tenants, sessions, jobs and the pool on one screen", top_help, NULL,
     cmd_top, COMMAND_SCREEN},
    {"sessions", "", "Sessions: connected clients", "", NULL, cmd_sessions, COMMAND_LOOKS},
    {"session kill", "SESSION", "End a session and its jobs", "", NULL, cmd_session_kill,
     COMMAND_BRIEF},
    {"tenants", "", "Tenants: limits and use", "", NULL, cmd_tenants, COMMAND_LOOKS},
    {"accounts", "", "What tenants have used, kept over restarts", "", NULL, cmd_accounts,
     COMMAND_LOOKS},
    {"accounts reset", "", "Begin all accounts anew", "", NULL, cmd_accounts_reset, COMMAND_BRIEF},
    {"logs", "[OPTION...]", "The daemon's lines in the journal, for one tenant, device or job",
     logs_help, logs_option_list, cmd_logs, COMMAND_LONG},
    {"metrics", "[--openmetrics]", "The numbers that Prometheus scrapes",
     "  --openmetrics  as OpenMetrics, with trace ids as exemplars\n"
     "Needs [metrics] listen in gpud.conf, and rights to read there: a unix socket is for root,\n"
     "the daemon's user and admin_group.\n",
     metrics_option_list, cmd_metrics, COMMAND_LOOKS},
    {"run", "[KERNEL] [OPTION...]", "Run one kernel and save what it produced", run_help,
     run_option_list, cmd_run, COMMAND_LONG},
    {"demo", "[OPTION...]", "Find the edges of a photograph, verified", demo_help, demo_option_list,
     cmd_demo, COMMAND_LONG},
    {"bench", "[OPTION...]", "Measure round trips to the daemon, and copies", bench_help,
     bench_option_list, cmd_bench, COMMAND_LONG},
    {"kernel check", "FILE [OPTION...]", "Compile a source and show its kernels",
     "  --lang LANG, -D, --define N[=V], --build-option OPTION, -cl-..., --compiler NAME,\n"
     "  -I, --include DIR as for run\n",
     kernel_check_option_list, cmd_kernel_check, COMMAND_LONG},
    {"config show", "", "The configuration in force", "", NULL, cmd_config_show, COMMAND_LOOKS},
    {"config check", "[FILE]", "Check a configuration file", "", NULL, cmd_config_check,
     COMMAND_LONG},
    {"drain", "[OPTION...]", "Finish what runs, take no new jobs; or release one device",
     drain_help, drain_option_list, cmd_drain, COMMAND_BRIEF},
    {"resume", "[OPTION...]", "Take jobs again", resume_help, resume_option_list, cmd_resume,
     COMMAND_BRIEF},
    {"record start", "NAME [OPTION...]", "Record the stream of jobs, for replay", record_start_help,
     record_start_option_list, cmd_record_start, COMMAND_BRIEF},
    {"record stop", "", "End the recording", "", NULL, cmd_record_stop, COMMAND_BRIEF},
    {"record status", "", "The recording that runs, or the last one", "", NULL, cmd_record_status,
     COMMAND_LOOKS},
    {"replay", "FILE [OPTION...]", "Run a recording again, and compare", replay_help,
     replay_option_list, cmd_replay, COMMAND_LONG},
    {"reload", "", "Read the configuration again", "", NULL, cmd_reload, COMMAND_LONG},
    {"token", "FILE", "Make a token for clients of other hosts", token_help, NULL, cmd_token,
     COMMAND_LONG},
    {"log-level", "LEVEL", "error, warn, info or debug", "", NULL, cmd_log_level, COMMAND_BRIEF},
    {0},
};

static bool first_word_is(const char *name, const char *first)
{
    size_t length = strlen(first);
    return strncmp(name, first, length) == 0 && (name[length] == ' ' || name[length] == '\0');
}

const struct command *command_find(const char *first, const char *second)
{
    for (const struct command *c = commands; c->name != NULL; c++) {
        if (!first_word_is(c->name, first)) {
            continue;
        }
        const char *rest = c->name + strlen(first);
        if (second == NULL ? rest[0] == '\0' : rest[0] == ' ' && strcmp(rest + 1, second) == 0) {
            return c;
        }
    }
    return NULL;
}

bool command_is_group(const char *first)
{
    for (const struct command *c = commands; c->name != NULL; c++) {
        if (first_word_is(c->name, first) && c->name[strlen(first)] == ' ') {
            return true;
        }
    }
    return false;
}

const char *command_seconds(const char *first, char *out, size_t size)
{
    size_t used = 0;
    out[0] = '\0';
    for (const struct command *c = commands; c->name != NULL; c++) {
        if (first_word_is(c->name, first) && c->name[strlen(first)] == ' ' && used < size) {
            used += (size_t)snprintf(out + used, size - used, "%s%s", used > 0 ? ", " : "",
                                     c->name + strlen(first) + 1);
        }
    }
    return out;
}

const char *command_meant(const char *name, char *out, size_t size)
{
    struct near near;
    near_init(&near, name);
    for (const struct command *c = commands; c->name != NULL; c++) {
        near_try(&near, c->name);
    }
    return near_text(&near, "", out, size);
}

static const char common_help[] =
    "Everywhere:\n"
    "  -u, --url URL        where gpud listens ($GPUD_URL; ipc:///run/gpud/gpud.sock)\n"
    "  -o, --output FORMAT  table, wide, json or csv\n"
    "  -w, --watch SECONDS  repeat a command that shows something, until Ctrl-C\n"
    "  -h, --help           help, also for each command\n"
    "  -V, --version\n"
    "Exit codes: 0 ok, 1 failed, 2 usage, 3 gpud not reachable, 4 permission denied,\n"
    "5 degraded (status), 75 busy: try again, 124 time limit, 130 interrupted.\n";

void commands_print(FILE *out)
{
    fputs("Usage: gpuctl [-u URL] [-o FORMAT] COMMAND ...\n\n", out);
    for (const struct command *c = commands; c->name != NULL; c++) {
        char synopsis[64];
        snprintf(synopsis, sizeof synopsis, "%s %s", c->name, c->words);
        fprintf(out, "  %-26s %s\n", synopsis, c->summary);
    }
    fprintf(out, "\n%s", common_help);
}

void command_help(const struct command *command, FILE *out)
{
    fprintf(out, "Usage: gpuctl %s%s%s\n%s.\n%s", command->name,
            command->words[0] != '\0' ? " " : "", command->words, command->summary, command->help);
    fprintf(out, "\n%s", common_help);
}
