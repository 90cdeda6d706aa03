/* What a compiled program tells of its kernels, and its log in the user's terms. */
#ifndef BACKEND_OPENCL_REPORT_H
#define BACKEND_OPENCL_REPORT_H

#include "daemon/backend/opencl/opencl.h"

#define OPENCL_LOG_MAX 65536u /* bytes */

/* Fills kernels and kernel_count; one whose arguments gpud cannot pass says so in `unfit`, and in
 * the log. */
int opencl_report_kernels(const struct opencl_api *cl, cl_program program, cl_device_id device,
                          struct backend_compiled *out, struct capbuf *log, struct err *e);
/* What the driver tells of an argument. */
enum opencl_arg_kind opencl_arg_kind(const struct opencl_api *cl, cl_kernel kernel, cl_uint index);
/* What the driver tells of a kernel in one number; 0 where it does not. */
uint64_t opencl_group_number(const struct opencl_api *cl, cl_kernel kernel, cl_device_id device,
                             cl_kernel_work_group_info what);
/* Appends the driver's log as "file:line:column: error: text". */
int opencl_report_log(const struct opencl_api *cl, cl_program program, cl_device_id device,
                      struct capbuf *log, struct err *e);

#endif
