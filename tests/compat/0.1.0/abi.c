/* Made by record_abi.py from the header of a release: what programs that were compiled
 * with it rely on. It runs if the library has all of its functions. */
/* clang-format off */
#include <gpud/gpud.h>
#include <stddef.h>

_Static_assert((long long)(GPUD_VERSION_MAJOR) >= 0, "it was 0");
_Static_assert((long long)(GPUD_VERSION_MINOR) >= 1, "it was 1");
_Static_assert((long long)(GPUD_VERSION_PATCH) >= 0, "it was 0");
_Static_assert((long long)(GPUD_ERROR_TEXT) == 1024, "it was 1024");
_Static_assert((long long)(GPUD_MAX_DIMS) >= 4, "it was 4");
_Static_assert((long long)(GPUD_MAX_ARGS) >= 128, "it was 128");
_Static_assert((long long)(GPUD_MAX_STEPS) >= 256, "it was 256");
_Static_assert((long long)(GPUD_MAX_PARAMS) >= 64, "it was 64");
_Static_assert((long long)(GPUD_MAX_TEMPS) >= 64, "it was 64");
_Static_assert((long long)(GPUD_MAX_JOB_BUFFERS) >= 256, "it was 256");
_Static_assert((long long)(GPUD_MAX_OUTPUTS) >= 512, "it was 512");
_Static_assert((long long)(GPUD_MAX_KERNELS) >= 256, "it was 256");
_Static_assert((long long)(GPUD_MAX_SOURCE) >= 1048576, "it was 1048576");
_Static_assert((long long)(GPUD_MAX_HEADERS) >= 256, "it was 256");
_Static_assert((long long)(GPUD_MAX_BUILD_OPTIONS) >= 4096, "it was 4096");
_Static_assert((long long)(GPUD_MAX_SIGNATURE) >= 1024, "it was 1024");
_Static_assert((long long)(GPUD_MAX_LOG) >= 65536, "it was 65536");
_Static_assert((long long)(GPUD_MAX_STRUCT) >= 1024, "it was 1024");
_Static_assert((long long)(GPUD_MAX_TOKEN) >= 256, "it was 256");
_Static_assert((long long)(GPUD_MAX_INLINE) >= 16777216, "it was 16777216");
_Static_assert((long long)(GPUD_NAME) == 65, "it was 65");
_Static_assert((long long)(GPUD_FOREVER) == -1, "it was -1");
_Static_assert((long long)(GPUD_REST) == -1, "it was -1");
_Static_assert((long long)(GPUD_SIGNATURE) == 1025, "it was 1025");
_Static_assert((long long)(GPUD_NO_DEVICE) == -1, "it was -1");
_Static_assert((long long)(GPUD_OK) == 0, "it was 0");
_Static_assert((long long)(GPUD_ERR_INVALID) == -1, "it was -1");
_Static_assert((long long)(GPUD_ERR_NOMEM) == -2, "it was -2");
_Static_assert((long long)(GPUD_ERR_IO) == -3, "it was -3");
_Static_assert((long long)(GPUD_ERR_PROTOCOL) == -4, "it was -4");
_Static_assert((long long)(GPUD_ERR_VERSION) == -5, "it was -5");
_Static_assert((long long)(GPUD_ERR_CONNECT) == -6, "it was -6");
_Static_assert((long long)(GPUD_ERR_CLOSED) == -7, "it was -7");
_Static_assert((long long)(GPUD_ERR_TIMEOUT) == -8, "it was -8");
_Static_assert((long long)(GPUD_ERR_FORKED) == -9, "it was -9");
_Static_assert((long long)(GPUD_ERR_PERMISSION) == -10, "it was -10");
_Static_assert((long long)(GPUD_ERR_BUSY) == -11, "it was -11");
_Static_assert((long long)(GPUD_ERR_LIMIT) == -12, "it was -12");
_Static_assert((long long)(GPUD_ERR_DRAINING) == -13, "it was -13");
_Static_assert((long long)(GPUD_ERR_NO_DEVICE) == -14, "it was -14");
_Static_assert((long long)(GPUD_ERR_DEVICE_LOST) == -15, "it was -15");
_Static_assert((long long)(GPUD_ERR_WORKER_LOST) == -16, "it was -16");
_Static_assert((long long)(GPUD_ERR_DEVICE_MEMORY) == -17, "it was -17");
_Static_assert((long long)(GPUD_ERR_BAD_HANDLE) == -18, "it was -18");
_Static_assert((long long)(GPUD_ERR_STALE_HANDLE) == -19, "it was -19");
_Static_assert((long long)(GPUD_ERR_NOT_FOUND) == -20, "it was -20");
_Static_assert((long long)(GPUD_ERR_EXISTS) == -21, "it was -21");
_Static_assert((long long)(GPUD_ERR_ARG_COUNT) == -22, "it was -22");
_Static_assert((long long)(GPUD_ERR_ARG_TYPE) == -23, "it was -23");
_Static_assert((long long)(GPUD_ERR_ARG_SHAPE) == -24, "it was -24");
_Static_assert((long long)(GPUD_ERR_ARG_ACCESS) == -25, "it was -25");
_Static_assert((long long)(GPUD_ERR_RANGE) == -26, "it was -26");
_Static_assert((long long)(GPUD_ERR_UNDEFINED) == -27, "it was -27");
_Static_assert((long long)(GPUD_ERR_SEALED) == -28, "it was -28");
_Static_assert((long long)(GPUD_ERR_COMPILE) == -29, "it was -29");
_Static_assert((long long)(GPUD_ERR_COMPILE_LIMIT) == -30, "it was -30");
_Static_assert((long long)(GPUD_ERR_LAUNCH) == -31, "it was -31");
_Static_assert((long long)(GPUD_ERR_KERNEL_FAULT) == -32, "it was -32");
_Static_assert((long long)(GPUD_ERR_TIME_LIMIT) == -33, "it was -33");
_Static_assert((long long)(GPUD_ERR_DEADLINE) == -34, "it was -34");
_Static_assert((long long)(GPUD_ERR_CANCELLED) == -35, "it was -35");
_Static_assert((long long)(GPUD_ERR_QUARANTINED) == -36, "it was -36");
_Static_assert((long long)(GPUD_ERR_UNSUPPORTED) == -37, "it was -37");
_Static_assert((long long)(GPUD_ERR_INTERNAL) == -38, "it was -38");
_Static_assert((long long)(GPUD_ERR_BUFFER_LOST) == -39, "it was -39");
_Static_assert((long long)(GPUD_ERR_STATE) == -40, "it was -40");
_Static_assert((long long)(GPUD_EFFECTS_NONE) == 0, "it was 0");
_Static_assert((long long)(GPUD_EFFECTS_MAYBE) == 1, "it was 1");
_Static_assert((long long)(GPUD_EFFECTS_YES) == 2, "it was 2");
_Static_assert((long long)(GPUD_NONE) == 0, "it was 0");
_Static_assert((long long)(GPUD_I8) == 1, "it was 1");
_Static_assert((long long)(GPUD_U8) == 2, "it was 2");
_Static_assert((long long)(GPUD_I16) == 3, "it was 3");
_Static_assert((long long)(GPUD_U16) == 4, "it was 4");
_Static_assert((long long)(GPUD_I32) == 5, "it was 5");
_Static_assert((long long)(GPUD_U32) == 6, "it was 6");
_Static_assert((long long)(GPUD_I64) == 7, "it was 7");
_Static_assert((long long)(GPUD_U64) == 8, "it was 8");
_Static_assert((long long)(GPUD_F16) == 9, "it was 9");
_Static_assert((long long)(GPUD_F32) == 10, "it was 10");
_Static_assert((long long)(GPUD_F64) == 11, "it was 11");
_Static_assert((long long)(GPUD_AS_KERNEL) == 0, "it was 0");
_Static_assert((long long)(GPUD_IN) == 1, "it was 1");
_Static_assert((long long)(GPUD_OUT) == 2, "it was 2");
_Static_assert((long long)(GPUD_INOUT) == 3, "it was 3");
_Static_assert((long long)(GPUD_EVENT_DISCONNECTED) == 1, "it was 1");
_Static_assert((long long)(GPUD_EVENT_RECONNECTED) == 2, "it was 2");
_Static_assert((long long)(GPUD_EVENT_RESTARTED) == 3, "it was 3");
_Static_assert((long long)(GPUD_EVENT_BUFFER_LOST) == 4, "it was 4");
_Static_assert((long long)(GPUD_EVENT_DRAINING) == 5, "it was 5");
_Static_assert((long long)(GPUD_EVENT_RESUMED) == 6, "it was 6");
_Static_assert((long long)(GPUD_EVENT_RESTORE_FAILED) == 7, "it was 7");
_Static_assert((long long)(GPUD_BUFFER_ZERO) == 1, "it was 1");
_Static_assert((long long)(GPUD_BUFFER_EXPORT) == 2, "it was 2");
_Static_assert((long long)(GPUD_BUFFER_VARIABLE) == 4, "it was 4");
_Static_assert((long long)(GPUD_BUFFER_MANAGED) == 8, "it was 8");
_Static_assert((long long)(GPUD_BUFFER_DEFINED) == 1, "it was 1");
_Static_assert((long long)(GPUD_BUFFER_UNDEFINED) == 2, "it was 2");
_Static_assert((long long)(GPUD_BUFFER_SEALED) == 3, "it was 3");
_Static_assert((long long)(GPUD_BUFFER_LOST) == 4, "it was 4");
_Static_assert((long long)(GPUD_LANG_DIALECT) == 1, "it was 1");
_Static_assert((long long)(GPUD_LANG_OPENCL) == 2, "it was 2");
_Static_assert((long long)(GPUD_LANG_CUDA) == 3, "it was 3");
_Static_assert((long long)(GPUD_LANG_PTX) == 4, "it was 4");
_Static_assert((long long)(GPUD_LANG_CUBIN) == 5, "it was 5");
_Static_assert((long long)(GPUD_LANG_SPIRV) == 6, "it was 6");
_Static_assert((long long)(GPUD_ARG_SCALAR) == 1, "it was 1");
_Static_assert((long long)(GPUD_ARG_ARRAY) == 2, "it was 2");
_Static_assert((long long)(GPUD_ARG_STRUCT) == 3, "it was 3");
_Static_assert((long long)(GPUD_ARG_LOCAL) == 4, "it was 4");
_Static_assert((long long)(GPUD_PARAM_BUFFER) == 1, "it was 1");
_Static_assert((long long)(GPUD_PARAM_SCALAR) == 2, "it was 2");
_Static_assert((long long)(GPUD_PARAM_DATA) == 3, "it was 3");
_Static_assert((long long)(GPUD_SUBMIT_BLOCK) == 1, "it was 1");
_Static_assert((long long)(GPUD_SUBMIT_HELD) == 2, "it was 2");
_Static_assert((long long)(GPUD_SUBMIT_DETACHED) == 4, "it was 4");
_Static_assert((long long)(GPUD_POOL_DETAIL) == 1, "it was 1");
_Static_assert((long long)(GPUD_POOL_METERS) == 1, "it was 1");
_Static_assert((long long)(GPUD_POOL_PIECES) == 2, "it was 2");
_Static_assert((long long)(GPUD_POOL_EVENTS) == 3, "it was 3");
_Static_assert((long long)(GPUD_COLUMN_TEXT) == 1, "it was 1");
_Static_assert((long long)(GPUD_COLUMN_UINT) == 2, "it was 2");
_Static_assert((long long)(GPUD_COLUMN_INT) == 3, "it was 3");
_Static_assert((long long)(GPUD_COLUMN_BYTES) == 4, "it was 4");
_Static_assert((long long)(GPUD_COLUMN_NS) == 5, "it was 5");
_Static_assert((long long)(GPUD_COLUMN_PPM) == 6, "it was 6");
_Static_assert((long long)(GPUD_COLUMN_HANDLE) == 7, "it was 7");
_Static_assert((long long)(GPUD_COLUMN_BOOL) == 8, "it was 8");
_Static_assert((long long)(sizeof(gpud_error)) >= 1064, "it was 1064");
_Static_assert((long long)(offsetof(gpud_error, size)) == 0, "it was 0");
_Static_assert((long long)(sizeof(((gpud_error *)0)->size)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_error, code)) == 8, "it was 8");
_Static_assert((long long)(sizeof(((gpud_error *)0)->code)) == 4, "it was 4");
_Static_assert((long long)(offsetof(gpud_error, vendor)) == 12, "it was 12");
_Static_assert((long long)(sizeof(((gpud_error *)0)->vendor)) == 4, "it was 4");
_Static_assert((long long)(offsetof(gpud_error, step)) == 16, "it was 16");
_Static_assert((long long)(sizeof(((gpud_error *)0)->step)) == 4, "it was 4");
_Static_assert((long long)(offsetof(gpud_error, arg)) == 20, "it was 20");
_Static_assert((long long)(sizeof(((gpud_error *)0)->arg)) == 4, "it was 4");
_Static_assert((long long)(offsetof(gpud_error, effects)) == 24, "it was 24");
_Static_assert((long long)(sizeof(((gpud_error *)0)->effects)) == 4, "it was 4");
_Static_assert((long long)(offsetof(gpud_error, retriable)) == 28, "it was 28");
_Static_assert((long long)(sizeof(((gpud_error *)0)->retriable)) == 4, "it was 4");
_Static_assert((long long)(offsetof(gpud_error, retry_after_ns)) == 32, "it was 32");
_Static_assert((long long)(sizeof(((gpud_error *)0)->retry_after_ns)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_error, text)) == 40, "it was 40");
_Static_assert((long long)(sizeof(((gpud_error *)0)->text)) == 1024, "it was 1024");
_Static_assert((long long)(sizeof(gpud_shape)) == 40, "it was 40");
_Static_assert((long long)(offsetof(gpud_shape, dtype)) == 0, "it was 0");
_Static_assert((long long)(sizeof(((gpud_shape *)0)->dtype)) == 4, "it was 4");
_Static_assert((long long)(offsetof(gpud_shape, ndim)) == 4, "it was 4");
_Static_assert((long long)(sizeof(((gpud_shape *)0)->ndim)) == 4, "it was 4");
_Static_assert((long long)(offsetof(gpud_shape, dim)) == 8, "it was 8");
_Static_assert((long long)(sizeof(((gpud_shape *)0)->dim)) == 32, "it was 32");
_Static_assert((long long)(sizeof(gpud_buffer)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_buffer, id)) == 0, "it was 0");
_Static_assert((long long)(sizeof(((gpud_buffer *)0)->id)) == 8, "it was 8");
_Static_assert((long long)(sizeof(gpud_kernel)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_kernel, id)) == 0, "it was 0");
_Static_assert((long long)(sizeof(((gpud_kernel *)0)->id)) == 8, "it was 8");
_Static_assert((long long)(sizeof(gpud_module)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_module, id)) == 0, "it was 0");
_Static_assert((long long)(sizeof(((gpud_module *)0)->id)) == 8, "it was 8");
_Static_assert((long long)(sizeof(gpud_options)) >= 56, "it was 56");
_Static_assert((long long)(offsetof(gpud_options, size)) == 0, "it was 0");
_Static_assert((long long)(sizeof(((gpud_options *)0)->size)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_options, name)) == 8, "it was 8");
_Static_assert((long long)(sizeof(((gpud_options *)0)->name)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_options, token)) == 16, "it was 16");
_Static_assert((long long)(sizeof(((gpud_options *)0)->token)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_options, token_size)) == 24, "it was 24");
_Static_assert((long long)(sizeof(((gpud_options *)0)->token_size)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_options, connect_timeout_ns)) == 32, "it was 32");
_Static_assert((long long)(sizeof(((gpud_options *)0)->connect_timeout_ns)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_options, timeout_ns)) == 40, "it was 40");
_Static_assert((long long)(sizeof(((gpud_options *)0)->timeout_ns)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_options, reconnect_ns)) == 48, "it was 48");
_Static_assert((long long)(sizeof(((gpud_options *)0)->reconnect_ns)) == 8, "it was 8");
_Static_assert((long long)(sizeof(gpud_event)) >= 32, "it was 32");
_Static_assert((long long)(offsetof(gpud_event, size)) == 0, "it was 0");
_Static_assert((long long)(sizeof(((gpud_event *)0)->size)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_event, kind)) == 8, "it was 8");
_Static_assert((long long)(sizeof(((gpud_event *)0)->kind)) == 4, "it was 4");
_Static_assert((long long)(offsetof(gpud_event, buffer)) == 16, "it was 16");
_Static_assert((long long)(sizeof(((gpud_event *)0)->buffer)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_event, text)) == 24, "it was 24");
_Static_assert((long long)(sizeof(((gpud_event *)0)->text)) == 8, "it was 8");
_Static_assert((long long)(sizeof(gpud_limits_desc)) >= 272, "it was 272");
_Static_assert((long long)(offsetof(gpud_limits_desc, size)) == 0, "it was 0");
_Static_assert((long long)(sizeof(((gpud_limits_desc *)0)->size)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_limits_desc, major)) == 8, "it was 8");
_Static_assert((long long)(sizeof(((gpud_limits_desc *)0)->major)) == 4, "it was 4");
_Static_assert((long long)(offsetof(gpud_limits_desc, minor)) == 12, "it was 12");
_Static_assert((long long)(sizeof(((gpud_limits_desc *)0)->minor)) == 4, "it was 4");
_Static_assert((long long)(offsetof(gpud_limits_desc, max_message)) == 16, "it was 16");
_Static_assert((long long)(sizeof(((gpud_limits_desc *)0)->max_message)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_limits_desc, max_inline)) == 24, "it was 24");
_Static_assert((long long)(sizeof(((gpud_limits_desc *)0)->max_inline)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_limits_desc, max_in_flight)) == 32, "it was 32");
_Static_assert((long long)(sizeof(((gpud_limits_desc *)0)->max_in_flight)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_limits_desc, linger_ns)) == 40, "it was 40");
_Static_assert((long long)(sizeof(((gpud_limits_desc *)0)->linger_ns)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_limits_desc, session)) == 48, "it was 48");
_Static_assert((long long)(sizeof(((gpud_limits_desc *)0)->session)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_limits_desc, may_load)) == 56, "it was 56");
_Static_assert((long long)(sizeof(((gpud_limits_desc *)0)->may_load)) == 1, "it was 1");
_Static_assert((long long)(offsetof(gpud_limits_desc, connected)) == 57, "it was 57");
_Static_assert((long long)(sizeof(((gpud_limits_desc *)0)->connected)) == 1, "it was 1");
_Static_assert((long long)(offsetof(gpud_limits_desc, build)) == 58, "it was 58");
_Static_assert((long long)(sizeof(((gpud_limits_desc *)0)->build)) == 65, "it was 65");
_Static_assert((long long)(offsetof(gpud_limits_desc, tenant)) == 123, "it was 123");
_Static_assert((long long)(sizeof(((gpud_limits_desc *)0)->tenant)) == 65, "it was 65");
_Static_assert((long long)(offsetof(gpud_limits_desc, max_arena)) == 192, "it was 192");
_Static_assert((long long)(sizeof(((gpud_limits_desc *)0)->max_arena)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_limits_desc, max_requests)) == 200, "it was 200");
_Static_assert((long long)(sizeof(((gpud_limits_desc *)0)->max_requests)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_limits_desc, max_unacked)) == 208, "it was 208");
_Static_assert((long long)(sizeof(((gpud_limits_desc *)0)->max_unacked)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_limits_desc, max_kept)) == 216, "it was 216");
_Static_assert((long long)(sizeof(((gpud_limits_desc *)0)->max_kept)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_limits_desc, max_early)) == 224, "it was 224");
_Static_assert((long long)(sizeof(((gpud_limits_desc *)0)->max_early)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_limits_desc, max_reorder)) == 232, "it was 232");
_Static_assert((long long)(sizeof(((gpud_limits_desc *)0)->max_reorder)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_limits_desc, max_buffers)) == 240, "it was 240");
_Static_assert((long long)(sizeof(((gpud_limits_desc *)0)->max_buffers)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_limits_desc, max_arenas)) == 248, "it was 248");
_Static_assert((long long)(sizeof(((gpud_limits_desc *)0)->max_arenas)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_limits_desc, max_modules)) == 256, "it was 256");
_Static_assert((long long)(sizeof(((gpud_limits_desc *)0)->max_modules)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_limits_desc, max_programs)) == 264, "it was 264");
_Static_assert((long long)(sizeof(((gpud_limits_desc *)0)->max_programs)) == 8, "it was 8");
_Static_assert((long long)(sizeof(gpud_device_desc)) >= 296, "it was 296");
_Static_assert((long long)(offsetof(gpud_device_desc, size)) == 0, "it was 0");
_Static_assert((long long)(sizeof(((gpud_device_desc *)0)->size)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_device_desc, id)) == 8, "it was 8");
_Static_assert((long long)(sizeof(((gpud_device_desc *)0)->id)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_device_desc, memory_bytes)) == 16, "it was 16");
_Static_assert((long long)(sizeof(((gpud_device_desc *)0)->memory_bytes)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_device_desc, memory_used)) == 24, "it was 24");
_Static_assert((long long)(sizeof(((gpud_device_desc *)0)->memory_used)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_device_desc, cpu)) == 32, "it was 32");
_Static_assert((long long)(sizeof(((gpud_device_desc *)0)->cpu)) == 1, "it was 1");
_Static_assert((long long)(offsetof(gpud_device_desc, simulated)) == 33, "it was 33");
_Static_assert((long long)(sizeof(((gpud_device_desc *)0)->simulated)) == 1, "it was 1");
_Static_assert((long long)(offsetof(gpud_device_desc, name)) == 34, "it was 34");
_Static_assert((long long)(sizeof(((gpud_device_desc *)0)->name)) == 128, "it was 128");
_Static_assert((long long)(offsetof(gpud_device_desc, backend)) == 162, "it was 162");
_Static_assert((long long)(sizeof(((gpud_device_desc *)0)->backend)) == 65, "it was 65");
_Static_assert((long long)(offsetof(gpud_device_desc, state)) == 227, "it was 227");
_Static_assert((long long)(sizeof(((gpud_device_desc *)0)->state)) == 65, "it was 65");
_Static_assert((long long)(sizeof(gpud_buffer_desc)) >= 208, "it was 208");
_Static_assert((long long)(offsetof(gpud_buffer_desc, size)) == 0, "it was 0");
_Static_assert((long long)(sizeof(((gpud_buffer_desc *)0)->size)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_buffer_desc, shape)) == 8, "it was 8");
_Static_assert((long long)(sizeof(((gpud_buffer_desc *)0)->shape)) == 40, "it was 40");
_Static_assert((long long)(offsetof(gpud_buffer_desc, flags)) == 48, "it was 48");
_Static_assert((long long)(sizeof(((gpud_buffer_desc *)0)->flags)) == 4, "it was 4");
_Static_assert((long long)(offsetof(gpud_buffer_desc, state)) == 52, "it was 52");
_Static_assert((long long)(sizeof(((gpud_buffer_desc *)0)->state)) == 4, "it was 4");
_Static_assert((long long)(offsetof(gpud_buffer_desc, device)) == 56, "it was 56");
_Static_assert((long long)(sizeof(((gpud_buffer_desc *)0)->device)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_buffer_desc, generation)) == 64, "it was 64");
_Static_assert((long long)(sizeof(((gpud_buffer_desc *)0)->generation)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_buffer_desc, label)) == 72, "it was 72");
_Static_assert((long long)(sizeof(((gpud_buffer_desc *)0)->label)) == 65, "it was 65");
_Static_assert((long long)(offsetof(gpud_buffer_desc, name)) == 137, "it was 137");
_Static_assert((long long)(sizeof(((gpud_buffer_desc *)0)->name)) == 65, "it was 65");
_Static_assert((long long)(sizeof(gpud_export_desc)) >= 96, "it was 96");
_Static_assert((long long)(offsetof(gpud_export_desc, size)) == 0, "it was 0");
_Static_assert((long long)(sizeof(((gpud_export_desc *)0)->size)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_export_desc, fd)) == 8, "it was 8");
_Static_assert((long long)(sizeof(((gpud_export_desc *)0)->fd)) == 4, "it was 4");
_Static_assert((long long)(offsetof(gpud_export_desc, bytes)) == 16, "it was 16");
_Static_assert((long long)(sizeof(((gpud_export_desc *)0)->bytes)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_export_desc, device)) == 24, "it was 24");
_Static_assert((long long)(sizeof(((gpud_export_desc *)0)->device)) == 65, "it was 65");
_Static_assert((long long)(sizeof(gpud_transfer)) >= 32, "it was 32");
_Static_assert((long long)(offsetof(gpud_transfer, size)) == 0, "it was 0");
_Static_assert((long long)(sizeof(((gpud_transfer *)0)->size)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_transfer, progress)) == 8, "it was 8");
_Static_assert((long long)(sizeof(((gpud_transfer *)0)->progress)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_transfer, user)) == 16, "it was 16");
_Static_assert((long long)(sizeof(((gpud_transfer *)0)->user)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_transfer, part_bytes)) == 24, "it was 24");
_Static_assert((long long)(sizeof(((gpud_transfer *)0)->part_bytes)) == 8, "it was 8");
_Static_assert((long long)(sizeof(gpud_arg)) == 104, "it was 104");
_Static_assert((long long)(offsetof(gpud_arg, kind)) == 0, "it was 0");
_Static_assert((long long)(sizeof(((gpud_arg *)0)->kind)) == 4, "it was 4");
_Static_assert((long long)(offsetof(gpud_arg, access)) == 4, "it was 4");
_Static_assert((long long)(sizeof(((gpud_arg *)0)->access)) == 4, "it was 4");
_Static_assert((long long)(offsetof(gpud_arg, dtype)) == 8, "it was 8");
_Static_assert((long long)(sizeof(((gpud_arg *)0)->dtype)) == 4, "it was 4");
_Static_assert((long long)(offsetof(gpud_arg, ndim)) == 12, "it was 12");
_Static_assert((long long)(sizeof(((gpud_arg *)0)->ndim)) == 4, "it was 4");
_Static_assert((long long)(offsetof(gpud_arg, handle)) == 16, "it was 16");
_Static_assert((long long)(sizeof(((gpud_arg *)0)->handle)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_arg, first)) == 24, "it was 24");
_Static_assert((long long)(sizeof(((gpud_arg *)0)->first)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_arg, count)) == 32, "it was 32");
_Static_assert((long long)(sizeof(((gpud_arg *)0)->count)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_arg, bits)) == 40, "it was 40");
_Static_assert((long long)(sizeof(((gpud_arg *)0)->bits)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_arg, data)) == 48, "it was 48");
_Static_assert((long long)(sizeof(((gpud_arg *)0)->data)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_arg, bytes)) == 56, "it was 56");
_Static_assert((long long)(sizeof(((gpud_arg *)0)->bytes)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_arg, dim)) == 64, "it was 64");
_Static_assert((long long)(sizeof(((gpud_arg *)0)->dim)) == 32, "it was 32");
_Static_assert((long long)(offsetof(gpud_arg, view)) == 96, "it was 96");
_Static_assert((long long)(sizeof(((gpud_arg *)0)->view)) == 8, "it was 8");
_Static_assert((long long)(sizeof(gpud_kernel_desc)) >= 1160, "it was 1160");
_Static_assert((long long)(offsetof(gpud_kernel_desc, size)) == 0, "it was 0");
_Static_assert((long long)(sizeof(((gpud_kernel_desc *)0)->size)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_kernel_desc, version)) == 8, "it was 8");
_Static_assert((long long)(sizeof(((gpud_kernel_desc *)0)->version)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_kernel_desc, arg_count)) == 16, "it was 16");
_Static_assert((long long)(sizeof(((gpud_kernel_desc *)0)->arg_count)) == 4, "it was 4");
_Static_assert((long long)(offsetof(gpud_kernel_desc, auto_grid)) == 20, "it was 20");
_Static_assert((long long)(sizeof(((gpud_kernel_desc *)0)->auto_grid)) == 1, "it was 1");
_Static_assert((long long)(offsetof(gpud_kernel_desc, name)) == 21, "it was 21");
_Static_assert((long long)(sizeof(((gpud_kernel_desc *)0)->name)) == 65, "it was 65");
_Static_assert((long long)(offsetof(gpud_kernel_desc, signature)) == 86, "it was 86");
_Static_assert((long long)(sizeof(((gpud_kernel_desc *)0)->signature)) == 1025, "it was 1025");
_Static_assert((long long)(offsetof(gpud_kernel_desc, registers)) == 1112, "it was 1112");
_Static_assert((long long)(sizeof(((gpud_kernel_desc *)0)->registers)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_kernel_desc, item_bytes)) == 1120, "it was 1120");
_Static_assert((long long)(sizeof(((gpud_kernel_desc *)0)->item_bytes)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_kernel_desc, group_bytes)) == 1128, "it was 1128");
_Static_assert((long long)(sizeof(((gpud_kernel_desc *)0)->group_bytes)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_kernel_desc, max_group)) == 1136, "it was 1136");
_Static_assert((long long)(sizeof(((gpud_kernel_desc *)0)->max_group)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_kernel_desc, group_multiple)) == 1144, "it was 1144");
_Static_assert((long long)(sizeof(((gpud_kernel_desc *)0)->group_multiple)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_kernel_desc, occupancy_ppm)) == 1152, "it was 1152");
_Static_assert((long long)(sizeof(((gpud_kernel_desc *)0)->occupancy_ppm)) == 8, "it was 8");
_Static_assert((long long)(sizeof(gpud_kernel_arg_desc)) >= 168, "it was 168");
_Static_assert((long long)(offsetof(gpud_kernel_arg_desc, size)) == 0, "it was 0");
_Static_assert((long long)(sizeof(((gpud_kernel_arg_desc *)0)->size)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_kernel_arg_desc, kind)) == 8, "it was 8");
_Static_assert((long long)(sizeof(((gpud_kernel_arg_desc *)0)->kind)) == 4, "it was 4");
_Static_assert((long long)(offsetof(gpud_kernel_arg_desc, access)) == 12, "it was 12");
_Static_assert((long long)(sizeof(((gpud_kernel_arg_desc *)0)->access)) == 4, "it was 4");
_Static_assert((long long)(offsetof(gpud_kernel_arg_desc, dtype)) == 16, "it was 16");
_Static_assert((long long)(sizeof(((gpud_kernel_arg_desc *)0)->dtype)) == 4, "it was 4");
_Static_assert((long long)(offsetof(gpud_kernel_arg_desc, bytes)) == 24, "it was 24");
_Static_assert((long long)(sizeof(((gpud_kernel_arg_desc *)0)->bytes)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_kernel_arg_desc, name)) == 32, "it was 32");
_Static_assert((long long)(sizeof(((gpud_kernel_arg_desc *)0)->name)) == 65, "it was 65");
_Static_assert((long long)(offsetof(gpud_kernel_arg_desc, type)) == 97, "it was 97");
_Static_assert((long long)(sizeof(((gpud_kernel_arg_desc *)0)->type)) == 65, "it was 65");
_Static_assert((long long)(sizeof(gpud_header)) == 24, "it was 24");
_Static_assert((long long)(offsetof(gpud_header, name)) == 0, "it was 0");
_Static_assert((long long)(sizeof(((gpud_header *)0)->name)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_header, text)) == 8, "it was 8");
_Static_assert((long long)(sizeof(((gpud_header *)0)->text)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_header, bytes)) == 16, "it was 16");
_Static_assert((long long)(sizeof(((gpud_header *)0)->bytes)) == 8, "it was 8");
_Static_assert((long long)(sizeof(gpud_module_options)) >= 72, "it was 72");
_Static_assert((long long)(offsetof(gpud_module_options, size)) == 0, "it was 0");
_Static_assert((long long)(sizeof(((gpud_module_options *)0)->size)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_module_options, name)) == 8, "it was 8");
_Static_assert((long long)(sizeof(((gpud_module_options *)0)->name)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_module_options, options)) == 16, "it was 16");
_Static_assert((long long)(sizeof(((gpud_module_options *)0)->options)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_module_options, signature)) == 24, "it was 24");
_Static_assert((long long)(sizeof(((gpud_module_options *)0)->signature)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_module_options, file)) == 32, "it was 32");
_Static_assert((long long)(sizeof(((gpud_module_options *)0)->file)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_module_options, log)) == 40, "it was 40");
_Static_assert((long long)(sizeof(((gpud_module_options *)0)->log)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_module_options, log_bytes)) == 48, "it was 48");
_Static_assert((long long)(sizeof(((gpud_module_options *)0)->log_bytes)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_module_options, headers)) == 56, "it was 56");
_Static_assert((long long)(sizeof(((gpud_module_options *)0)->headers)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_module_options, header_count)) == 64, "it was 64");
_Static_assert((long long)(sizeof(((gpud_module_options *)0)->header_count)) == 4, "it was 4");
_Static_assert((long long)(sizeof(gpud_grid)) >= 64, "it was 64");
_Static_assert((long long)(offsetof(gpud_grid, size)) == 0, "it was 0");
_Static_assert((long long)(sizeof(((gpud_grid *)0)->size)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_grid, global)) == 8, "it was 8");
_Static_assert((long long)(sizeof(((gpud_grid *)0)->global)) == 24, "it was 24");
_Static_assert((long long)(offsetof(gpud_grid, local)) == 32, "it was 32");
_Static_assert((long long)(sizeof(((gpud_grid *)0)->local)) == 24, "it was 24");
_Static_assert((long long)(offsetof(gpud_grid, shared_bytes)) == 56, "it was 56");
_Static_assert((long long)(sizeof(((gpud_grid *)0)->shared_bytes)) == 8, "it was 8");
_Static_assert((long long)(sizeof(gpud_submit_options)) >= 72, "it was 72");
_Static_assert((long long)(offsetof(gpud_submit_options, size)) == 0, "it was 0");
_Static_assert((long long)(sizeof(((gpud_submit_options *)0)->size)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_submit_options, flags)) == 8, "it was 8");
_Static_assert((long long)(sizeof(((gpud_submit_options *)0)->flags)) == 4, "it was 4");
_Static_assert((long long)(offsetof(gpud_submit_options, priority)) == 12, "it was 12");
_Static_assert((long long)(sizeof(((gpud_submit_options *)0)->priority)) == 4, "it was 4");
_Static_assert((long long)(offsetof(gpud_submit_options, deadline_ns)) == 16, "it was 16");
_Static_assert((long long)(sizeof(((gpud_submit_options *)0)->deadline_ns)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_submit_options, time_limit_ns)) == 24, "it was 24");
_Static_assert((long long)(sizeof(((gpud_submit_options *)0)->time_limit_ns)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_submit_options, device)) == 32, "it was 32");
_Static_assert((long long)(sizeof(((gpud_submit_options *)0)->device)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_submit_options, trace_id)) == 40, "it was 40");
_Static_assert((long long)(sizeof(((gpud_submit_options *)0)->trace_id)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_submit_options, label)) == 48, "it was 48");
_Static_assert((long long)(sizeof(((gpud_submit_options *)0)->label)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_submit_options, done)) == 56, "it was 56");
_Static_assert((long long)(sizeof(((gpud_submit_options *)0)->done)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_submit_options, user)) == 64, "it was 64");
_Static_assert((long long)(sizeof(((gpud_submit_options *)0)->user)) == 8, "it was 8");
_Static_assert((long long)(sizeof(gpud_job_times)) >= 112, "it was 112");
_Static_assert((long long)(offsetof(gpud_job_times, size)) == 0, "it was 0");
_Static_assert((long long)(sizeof(((gpud_job_times *)0)->size)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_job_times, device)) == 8, "it was 8");
_Static_assert((long long)(sizeof(((gpud_job_times *)0)->device)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_job_times, queued_ns)) == 16, "it was 16");
_Static_assert((long long)(sizeof(((gpud_job_times *)0)->queued_ns)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_job_times, executed_ns)) == 24, "it was 24");
_Static_assert((long long)(sizeof(((gpud_job_times *)0)->executed_ns)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_job_times, replays)) == 32, "it was 32");
_Static_assert((long long)(sizeof(((gpud_job_times *)0)->replays)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_job_times, step_count)) == 40, "it was 40");
_Static_assert((long long)(sizeof(((gpud_job_times *)0)->step_count)) == 4, "it was 4");
_Static_assert((long long)(offsetof(gpud_job_times, implementation)) == 44, "it was 44");
_Static_assert((long long)(sizeof(((gpud_job_times *)0)->implementation)) == 65, "it was 65");
_Static_assert((long long)(sizeof(gpud_job_desc)) >= 1320, "it was 1320");
_Static_assert((long long)(offsetof(gpud_job_desc, size)) == 0, "it was 0");
_Static_assert((long long)(sizeof(((gpud_job_desc *)0)->size)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_job_desc, id)) == 8, "it was 8");
_Static_assert((long long)(sizeof(((gpud_job_desc *)0)->id)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_job_desc, code)) == 16, "it was 16");
_Static_assert((long long)(sizeof(((gpud_job_desc *)0)->code)) == 4, "it was 4");
_Static_assert((long long)(offsetof(gpud_job_desc, device)) == 24, "it was 24");
_Static_assert((long long)(sizeof(((gpud_job_desc *)0)->device)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_job_desc, stream)) == 32, "it was 32");
_Static_assert((long long)(sizeof(((gpud_job_desc *)0)->stream)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_job_desc, replays)) == 40, "it was 40");
_Static_assert((long long)(sizeof(((gpud_job_desc *)0)->replays)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_job_desc, submitted_ns)) == 48, "it was 48");
_Static_assert((long long)(sizeof(((gpud_job_desc *)0)->submitted_ns)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_job_desc, dispatched_ns)) == 56, "it was 56");
_Static_assert((long long)(sizeof(((gpud_job_desc *)0)->dispatched_ns)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_job_desc, started_ns)) == 64, "it was 64");
_Static_assert((long long)(sizeof(((gpud_job_desc *)0)->started_ns)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_job_desc, ended_ns)) == 72, "it was 72");
_Static_assert((long long)(sizeof(((gpud_job_desc *)0)->ended_ns)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_job_desc, trace_id)) == 80, "it was 80");
_Static_assert((long long)(sizeof(((gpud_job_desc *)0)->trace_id)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_job_desc, state)) == 88, "it was 88");
_Static_assert((long long)(sizeof(((gpud_job_desc *)0)->state)) == 65, "it was 65");
_Static_assert((long long)(offsetof(gpud_job_desc, label)) == 153, "it was 153");
_Static_assert((long long)(sizeof(((gpud_job_desc *)0)->label)) == 65, "it was 65");
_Static_assert((long long)(offsetof(gpud_job_desc, text)) == 218, "it was 218");
_Static_assert((long long)(sizeof(((gpud_job_desc *)0)->text)) == 1024, "it was 1024");
_Static_assert((long long)(offsetof(gpud_job_desc, implementation)) == 1242, "it was 1242");
_Static_assert((long long)(sizeof(((gpud_job_desc *)0)->implementation)) == 65, "it was 65");
_Static_assert((long long)(offsetof(gpud_job_desc, now_ns)) == 1312, "it was 1312");
_Static_assert((long long)(sizeof(((gpud_job_desc *)0)->now_ns)) == 8, "it was 8");
_Static_assert((long long)(sizeof(gpud_query_options)) >= 48, "it was 48");
_Static_assert((long long)(offsetof(gpud_query_options, size)) == 0, "it was 0");
_Static_assert((long long)(sizeof(((gpud_query_options *)0)->size)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_query_options, filter)) == 8, "it was 8");
_Static_assert((long long)(sizeof(((gpud_query_options *)0)->filter)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_query_options, state)) == 16, "it was 16");
_Static_assert((long long)(sizeof(((gpud_query_options *)0)->state)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_query_options, session)) == 24, "it was 24");
_Static_assert((long long)(sizeof(((gpud_query_options *)0)->session)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_query_options, tenant)) == 32, "it was 32");
_Static_assert((long long)(sizeof(((gpud_query_options *)0)->tenant)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_query_options, limit)) == 40, "it was 40");
_Static_assert((long long)(sizeof(((gpud_query_options *)0)->limit)) == 8, "it was 8");
_Static_assert((long long)(sizeof(gpud_pool_options)) >= 32, "it was 32");
_Static_assert((long long)(offsetof(gpud_pool_options, size)) == 0, "it was 0");
_Static_assert((long long)(sizeof(((gpud_pool_options *)0)->size)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_pool_options, device)) == 8, "it was 8");
_Static_assert((long long)(sizeof(((gpud_pool_options *)0)->device)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_pool_options, flags)) == 16, "it was 16");
_Static_assert((long long)(sizeof(((gpud_pool_options *)0)->flags)) == 8, "it was 8");
_Static_assert((long long)(offsetof(gpud_pool_options, timeout_ns)) == 24, "it was 24");
_Static_assert((long long)(sizeof(((gpud_pool_options *)0)->timeout_ns)) == 8, "it was 8");

GPUD_API const char *gpud_version(void);
GPUD_API const char *gpud_strerror(int code);
GPUD_API const char *gpud_err_name(int code);
GPUD_API const gpud_error *gpud_last_error(void);
GPUD_API size_t gpud_dtype_size(int dtype);
GPUD_API const char *gpud_dtype_name(int dtype);
GPUD_API int gpud_dtype_from_name(const char *name);
GPUD_API gpud_shape gpud_shape_1d(int dtype, uint64_t n);
GPUD_API gpud_shape gpud_shape_2d(int dtype, uint64_t rows, uint64_t columns);
GPUD_API gpud_shape gpud_shape_3d(int dtype, uint64_t d0, uint64_t d1, uint64_t d2);
GPUD_API gpud_shape gpud_shape_4d(int dtype, uint64_t d0, uint64_t d1, uint64_t d2, uint64_t d3);
GPUD_API uint64_t gpud_shape_count(gpud_shape shape);
GPUD_API uint64_t gpud_shape_bytes(gpud_shape shape);
GPUD_API int gpud_open(const char *url, const gpud_options *options, gpud_client **ret_client);
GPUD_API void gpud_close(gpud_client *client);
GPUD_API int gpud_flush(gpud_client *client, uint64_t timeout_ns);
GPUD_API int gpud_fd(const gpud_client *client);
GPUD_API int gpud_dispatch(gpud_client *client);
GPUD_API int gpud_set_event_cb(gpud_client *client, gpud_event_cb cb, void *user);
GPUD_API int gpud_ping(gpud_client *client, uint64_t *ret_ns);
GPUD_API int gpud_limits(gpud_client *client, gpud_limits_desc *ret_limits);
GPUD_API int gpud_device_info(gpud_client *client, uint32_t index, gpud_device_desc *ret_device);
GPUD_API int gpud_buffer_create(gpud_client *client, gpud_shape shape, uint32_t flags, const char *label, gpud_buffer *ret_buffer);
GPUD_API int gpud_buffer_create_on(gpud_client *client, uint64_t device, gpud_shape shape, uint32_t flags, const char *label, gpud_buffer *ret_buffer);
GPUD_API int gpud_buffer_free(gpud_client *client, gpud_buffer buffer);
GPUD_API int gpud_buffer_info(gpud_client *client, gpud_buffer buffer, gpud_buffer_desc *ret_desc);
GPUD_API int gpud_buffer_seal(gpud_client *client, gpud_buffer buffer);
GPUD_API int gpud_buffer_publish(gpud_client *client, gpud_buffer buffer, const char *name, int rights, uint64_t linger_ns);
GPUD_API int gpud_buffer_open(gpud_client *client, const char *name, gpud_buffer *ret_buffer);
GPUD_API int gpud_buffer_export(gpud_client *client, gpud_buffer buffer, gpud_export_desc *ret_export);
GPUD_API int gpud_write(gpud_client *client, gpud_buffer buffer, int dtype, uint64_t first, uint64_t count, const void *data, const gpud_transfer *options);
GPUD_API int gpud_read(gpud_client *client, gpud_buffer buffer, int dtype, uint64_t first, uint64_t count, void *data, const gpud_transfer *options);
GPUD_API int gpud_host_alloc(gpud_client *client, size_t bytes, void **ret_memory);
GPUD_API int gpud_host_import(gpud_client *client, int memfd, void **ret_memory, size_t *ret_bytes);
GPUD_API int gpud_host_free(gpud_client *client, void *memory);
GPUD_API gpud_arg gpud_in(gpud_buffer buffer);
GPUD_API gpud_arg gpud_out(gpud_buffer buffer);
GPUD_API gpud_arg gpud_inout(gpud_buffer buffer);
GPUD_API gpud_arg gpud_slice(gpud_buffer buffer, uint64_t first, uint64_t count);
GPUD_API gpud_arg gpud_arg_slice(gpud_arg arg, uint64_t first, uint64_t count);
GPUD_API gpud_arg gpud_arg_with(gpud_arg arg, int access);
GPUD_API gpud_arg gpud_arg_as(gpud_arg arg, int dtype);
GPUD_API gpud_arg gpud_host(void *data, uint64_t n, int dtype);
GPUD_API gpud_arg gpud_host_in(const void *data, uint64_t n, int dtype);
GPUD_API gpud_arg gpud_host_out(void *data, uint64_t n, int dtype);
GPUD_API gpud_arg gpud_host_inout(void *data, uint64_t n, int dtype);
GPUD_API gpud_arg gpud_arg_direct(gpud_arg arg);
GPUD_API gpud_arg gpud_host_shaped(void *data, gpud_shape shape, int access);
GPUD_API gpud_arg gpud_i8(int8_t value);
GPUD_API gpud_arg gpud_u8(uint8_t value);
GPUD_API gpud_arg gpud_i16(int16_t value);
GPUD_API gpud_arg gpud_u16(uint16_t value);
GPUD_API gpud_arg gpud_i32(int32_t value);
GPUD_API gpud_arg gpud_u32(uint32_t value);
GPUD_API gpud_arg gpud_i64(int64_t value);
GPUD_API gpud_arg gpud_u64(uint64_t value);
GPUD_API gpud_arg gpud_f16(uint16_t bits);
GPUD_API gpud_arg gpud_f32(float value);
GPUD_API gpud_arg gpud_f64(double value);
GPUD_API gpud_arg gpud_bytes(const void *data, size_t bytes);
GPUD_API gpud_arg gpud_local(uint64_t bytes);
GPUD_API int gpud_kernel_find(gpud_client *client, const char *name, gpud_kernel *ret_kernel);
GPUD_API int gpud_kernel_info(gpud_client *client, gpud_kernel kernel, gpud_kernel_desc *ret_desc);
GPUD_API int gpud_kernel_arg(gpud_client *client, gpud_kernel kernel, uint32_t index, gpud_kernel_arg_desc *ret_arg);
GPUD_API int gpud_module_load(gpud_client *client, int lang, const void *source, size_t bytes, const gpud_module_options *options, gpud_module *ret_module);
GPUD_API int gpud_module_kernel(gpud_client *client, gpud_module module, const char *name, gpud_kernel *ret_kernel);
GPUD_API int gpud_module_kernel_at(gpud_client *client, gpud_module module, uint32_t index, gpud_kernel *ret_kernel);
GPUD_API int gpud_module_variable(gpud_client *client, gpud_module module, const char *name, gpud_shape shape, int kernels, uint64_t device, gpud_buffer *ret_buffer);
GPUD_API int gpud_module_unload(gpud_client *client, gpud_module module);
GPUD_API int gpud_program_create(gpud_client *client, const char *name, gpud_program **ret_program);
GPUD_API gpud_arg gpud_program_param(gpud_program *program, const char *name, int kind, gpud_shape shape);
GPUD_API gpud_arg gpud_program_temp(gpud_program *program, gpud_shape shape);
GPUD_API int gpud_program_launch(gpud_program *program, gpud_kernel kernel, const gpud_arg *args, uint32_t count, const gpud_grid *grid);
GPUD_API int gpud_program_write(gpud_program *program, gpud_arg to, gpud_arg from);
GPUD_API int gpud_program_copy(gpud_program *program, gpud_arg to, gpud_arg from);
GPUD_API int gpud_program_fill(gpud_program *program, gpud_arg to, gpud_arg scalar);
GPUD_API int gpud_program_read(gpud_program *program, gpud_arg from);
GPUD_API int gpud_program_read_to(gpud_program *program, gpud_arg to, gpud_arg from);
GPUD_API int gpud_program_seal(gpud_program *program);
GPUD_API void gpud_program_free(gpud_program *program);
GPUD_API int gpud_submit(gpud_client *client, const gpud_program *program, const gpud_arg *args, uint32_t count, const gpud_submit_options *options, gpud_job **ret_job);
GPUD_API int gpud_run(gpud_client *client, const gpud_program *program, const gpud_arg *args, uint32_t count, const gpud_submit_options *options, gpud_job **ret_job);
GPUD_API int gpud_launch(gpud_client *client, gpud_kernel kernel, const gpud_arg *args, uint32_t count, const gpud_grid *grid, const gpud_submit_options *options, gpud_job **ret_job);
GPUD_API int gpud_call(gpud_client *client, gpud_kernel kernel, const gpud_arg *args, uint32_t count, const gpud_grid *grid);
GPUD_API int gpud_copy(gpud_client *client, gpud_arg to, gpud_arg from);
GPUD_API int gpud_fill(gpud_client *client, gpud_arg to, gpud_arg scalar);
GPUD_API int gpud_wait(gpud_job *job, uint64_t timeout_ns);
GPUD_API int gpud_wait_any(gpud_job *const *jobs, uint32_t count, uint64_t timeout_ns, uint32_t *ret_index);
GPUD_API bool gpud_job_done(const gpud_job *job);
GPUD_API int gpud_cancel(gpud_job *job);
GPUD_API int gpud_job_error(const gpud_job *job, gpud_error *ret_error);
GPUD_API uint64_t gpud_job_id(const gpud_job *job);
GPUD_API int gpud_job_output(const gpud_job *job, uint32_t step, uint32_t arg, const void **ret_data, size_t *ret_bytes);
GPUD_API int gpud_job_timing(const gpud_job *job, gpud_job_times *ret_times);
GPUD_API int gpud_job_step_time(const gpud_job *job, uint32_t index, uint32_t *ret_step, uint64_t *ret_begin_ns, uint64_t *ret_end_ns);
GPUD_API void gpud_job_free(gpud_job *job);
GPUD_API int gpud_job_info(gpud_client *client, uint64_t job, gpud_job_desc *ret_desc);
GPUD_API int gpud_job_cancel(gpud_client *client, uint64_t job);
GPUD_API int gpud_explain(gpud_client *client, uint64_t job, char *ret_text, size_t bytes);
GPUD_API int gpud_query(gpud_client *client, const char *what, const char *filter, gpud_table **ret_table);
GPUD_API int gpud_query_with(gpud_client *client, const char *what, const gpud_query_options *options, gpud_table **ret_table);
GPUD_API int gpud_control(gpud_client *client, const char *what, const char *value);
GPUD_API int gpud_pool_take(gpud_client *client, const gpud_pool_options *options, gpud_table **ret_table);
GPUD_API int gpud_pool_read(gpud_client *client, uint64_t picture, uint64_t device, int part, uint64_t first, uint64_t count, gpud_table **ret_table);
GPUD_API const char *gpud_table_name(const gpud_table *table);
GPUD_API uint32_t gpud_table_columns(const gpud_table *table);
GPUD_API uint32_t gpud_table_rows(const gpud_table *table);
GPUD_API const char *gpud_table_column_name(const gpud_table *table, uint32_t column);
GPUD_API int gpud_table_column_kind(const gpud_table *table, uint32_t column);
GPUD_API bool gpud_table_column_wide(const gpud_table *table, uint32_t column);
GPUD_API const char *gpud_table_text(const gpud_table *table, uint32_t row, uint32_t column);
GPUD_API uint64_t gpud_table_value(const gpud_table *table, uint32_t row, uint32_t column);
GPUD_API int gpud_table_find(const gpud_table *table, const char *column);
GPUD_API void gpud_table_free(gpud_table *table);

static void (*const all[])(void) = {
    (void (*)(void))gpud_version,
    (void (*)(void))gpud_strerror,
    (void (*)(void))gpud_err_name,
    (void (*)(void))gpud_last_error,
    (void (*)(void))gpud_dtype_size,
    (void (*)(void))gpud_dtype_name,
    (void (*)(void))gpud_dtype_from_name,
    (void (*)(void))gpud_shape_1d,
    (void (*)(void))gpud_shape_2d,
    (void (*)(void))gpud_shape_3d,
    (void (*)(void))gpud_shape_4d,
    (void (*)(void))gpud_shape_count,
    (void (*)(void))gpud_shape_bytes,
    (void (*)(void))gpud_open,
    (void (*)(void))gpud_close,
    (void (*)(void))gpud_flush,
    (void (*)(void))gpud_fd,
    (void (*)(void))gpud_dispatch,
    (void (*)(void))gpud_set_event_cb,
    (void (*)(void))gpud_ping,
    (void (*)(void))gpud_limits,
    (void (*)(void))gpud_device_info,
    (void (*)(void))gpud_buffer_create,
    (void (*)(void))gpud_buffer_create_on,
    (void (*)(void))gpud_buffer_free,
    (void (*)(void))gpud_buffer_info,
    (void (*)(void))gpud_buffer_seal,
    (void (*)(void))gpud_buffer_publish,
    (void (*)(void))gpud_buffer_open,
    (void (*)(void))gpud_buffer_export,
    (void (*)(void))gpud_write,
    (void (*)(void))gpud_read,
    (void (*)(void))gpud_host_alloc,
    (void (*)(void))gpud_host_import,
    (void (*)(void))gpud_host_free,
    (void (*)(void))gpud_in,
    (void (*)(void))gpud_out,
    (void (*)(void))gpud_inout,
    (void (*)(void))gpud_slice,
    (void (*)(void))gpud_arg_slice,
    (void (*)(void))gpud_arg_with,
    (void (*)(void))gpud_arg_as,
    (void (*)(void))gpud_host,
    (void (*)(void))gpud_host_in,
    (void (*)(void))gpud_host_out,
    (void (*)(void))gpud_host_inout,
    (void (*)(void))gpud_arg_direct,
    (void (*)(void))gpud_host_shaped,
    (void (*)(void))gpud_i8,
    (void (*)(void))gpud_u8,
    (void (*)(void))gpud_i16,
    (void (*)(void))gpud_u16,
    (void (*)(void))gpud_i32,
    (void (*)(void))gpud_u32,
    (void (*)(void))gpud_i64,
    (void (*)(void))gpud_u64,
    (void (*)(void))gpud_f16,
    (void (*)(void))gpud_f32,
    (void (*)(void))gpud_f64,
    (void (*)(void))gpud_bytes,
    (void (*)(void))gpud_local,
    (void (*)(void))gpud_kernel_find,
    (void (*)(void))gpud_kernel_info,
    (void (*)(void))gpud_kernel_arg,
    (void (*)(void))gpud_module_load,
    (void (*)(void))gpud_module_kernel,
    (void (*)(void))gpud_module_kernel_at,
    (void (*)(void))gpud_module_variable,
    (void (*)(void))gpud_module_unload,
    (void (*)(void))gpud_program_create,
    (void (*)(void))gpud_program_param,
    (void (*)(void))gpud_program_temp,
    (void (*)(void))gpud_program_launch,
    (void (*)(void))gpud_program_write,
    (void (*)(void))gpud_program_copy,
    (void (*)(void))gpud_program_fill,
    (void (*)(void))gpud_program_read,
    (void (*)(void))gpud_program_read_to,
    (void (*)(void))gpud_program_seal,
    (void (*)(void))gpud_program_free,
    (void (*)(void))gpud_submit,
    (void (*)(void))gpud_run,
    (void (*)(void))gpud_launch,
    (void (*)(void))gpud_call,
    (void (*)(void))gpud_copy,
    (void (*)(void))gpud_fill,
    (void (*)(void))gpud_wait,
    (void (*)(void))gpud_wait_any,
    (void (*)(void))gpud_job_done,
    (void (*)(void))gpud_cancel,
    (void (*)(void))gpud_job_error,
    (void (*)(void))gpud_job_id,
    (void (*)(void))gpud_job_output,
    (void (*)(void))gpud_job_timing,
    (void (*)(void))gpud_job_step_time,
    (void (*)(void))gpud_job_free,
    (void (*)(void))gpud_job_info,
    (void (*)(void))gpud_job_cancel,
    (void (*)(void))gpud_explain,
    (void (*)(void))gpud_query,
    (void (*)(void))gpud_query_with,
    (void (*)(void))gpud_control,
    (void (*)(void))gpud_pool_take,
    (void (*)(void))gpud_pool_read,
    (void (*)(void))gpud_table_name,
    (void (*)(void))gpud_table_columns,
    (void (*)(void))gpud_table_rows,
    (void (*)(void))gpud_table_column_name,
    (void (*)(void))gpud_table_column_kind,
    (void (*)(void))gpud_table_column_wide,
    (void (*)(void))gpud_table_text,
    (void (*)(void))gpud_table_value,
    (void (*)(void))gpud_table_find,
    (void (*)(void))gpud_table_free,
};

int main(void)
{
    unsigned missing = 0;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        missing += all[i] == NULL;
    }
    return missing != 0;
}
