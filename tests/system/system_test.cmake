include_guard(GLOBAL)

# system_test(name SOURCES... [TIMEOUT s] [LOCK resources...]): a program that starts real daemons. Programs with rows of
# docs/faults.md have the label "fault", too.
function(system_test name)
    gpud_test(${name} ${ARGN} LINK system_harness gpud_client m
              NEEDS gpud gpud-launcher gpud-worker gpud-compile gpud-monitor gpuctl gpud-demo)
    cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;LOCK" ${ARGN})
    foreach(source IN LISTS ARG_SOURCES)
        file(STRINGS ${source} rows REGEX "^/\\* FAULT ")
        if(rows)
            set_property(TEST ${name} APPEND PROPERTY LABELS fault)
        endif()
    endforeach()
    # use_tls=0: LSan itself crashes on the thread-local storage of kernels that the CPU driver loads.
    set(environment "")
    if(GPUD_SANITIZE MATCHES "address")
        list(APPEND environment "UBSAN_OPTIONS=print_stacktrace=1"
             "LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/lsan.supp:print_suppressions=0:use_tls=0")
    elseif(GPUD_SANITIZE MATCHES "thread")
        list(APPEND environment ${GPUD_TEST_ENVIRONMENT})
    endif()
    set_tests_properties(${name} PROPERTIES ENVIRONMENT "${environment}")
endfunction()
