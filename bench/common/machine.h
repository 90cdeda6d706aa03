/*
 * The machine of the measurement: its processors, the placement of processes, and their times.
 * Thread: one. Nothing blocks.
 */
#ifndef BENCH_MACHINE_H
#define BENCH_MACHINE_H

#include <sched.h>
#include <stdint.h>
#include <sys/types.h>

/* Where the processes of a measurement run. */
enum placement {
    PLACE_ONE,   /* all on one CPU: the cost of the software alone */
    PLACE_APART, /* the client on one CPU, all else on the others */
    PLACE_ANY,   /* the kernel chooses */
    PLACEMENTS
};

const char *placement_name(enum placement p); /* "one cpu" */
unsigned machine_cpus(void);                  /* that this process may use */
/* Pins all threads of a process, and the threads that these start. A thread that ends meanwhile is
 * no error. */
void machine_pin_client(enum placement p, pid_t pid);
void machine_pin_server(enum placement p, pid_t pid);
void machine_unpin(pid_t pid);

uint64_t process_cpu_ns(pid_t pid);       /* of all its threads; 0: it has ended */
uint64_t process_switches(pid_t pid);     /* voluntary context switches of its living threads */
uint64_t process_memory_bytes(pid_t pid); /* resident, private to it; 0: it has ended */
pid_t process_parent(pid_t pid);

/* "Intel(R) …, 2 CPUs, Linux 6.1", for reports; static. */
const char *machine_name(void);
double machine_load(void); /* the load average of the last minute */

#endif
