/* Reports the kernels of a compiled program, and its log in the user's terms. */
#ifndef BACKEND_OPENCL_REPORT_H
#define BACKEND_OPENCL_REPORT_H

#include "daemon/backend/opencl/opencl.h"

#define OPENCL_LOG_MAX 65536u /* bytes */

/* Fills in kernels and kernel_count. A kernel with arguments that gpud cannot pass is `unfit`,
 * and the log gets the reason, too. */
int opencl_report_kernels(const struct opencl_api *cl, cl_program program, cl_device_id device,
                          struct backend_compiled *out, struct capbuf *log, struct err *e);
/* The kind of an argument, as the driver reports it. */
enum opencl_arg_kind opencl_arg_kind(const struct opencl_api *cl, cl_kernel kernel, cl_uint index);
/* A number about a kernel, as the driver reports it; 0: unknown. */
uint64_t opencl_group_number(const struct opencl_api *cl, cl_kernel kernel, cl_device_id device,
                             cl_kernel_work_group_info what);
/* Appends the driver's log as "file:line:column: error: text". */
int opencl_report_log(const struct opencl_api *cl, cl_program program, cl_device_id device,
                      struct capbuf *log, struct err *e);

#endif
