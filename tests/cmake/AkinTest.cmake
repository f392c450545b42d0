# Functions that declare tests. Every test runs through tests/mpi/env.sh, the
# one place that sets the environment of MPI, UCX and the sanitizers.
set(AKIN_TEST_ENV "${PROJECT_SOURCE_DIR}/tests/mpi/env.sh")

# akin_add_test(<name> LABELS <label>... [TIMEOUT <seconds>]
#               [PROCESSORS <n>] COMMAND <command> [<arg>...])
# declares one ctest test. Exit code 77 means that a resource is missing here.
function(akin_add_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT;PROCESSORS" "LABELS;COMMAND" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  if(NOT ARG_PROCESSORS)
    set(ARG_PROCESSORS 1)
  endif()
  add_test(NAME ${name} COMMAND "${AKIN_TEST_ENV}" ${ARG_COMMAND})
  set_tests_properties(${name} PROPERTIES
    LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT} SKIP_RETURN_CODE 77
    PROCESSORS ${ARG_PROCESSORS}
    ENVIRONMENT "AKIN_SANITIZE=${CMAKE_BUILD_TYPE}")
endfunction()

# akin_test_binary(<target> SOURCES <file>... [LINK <target>...]) builds a test
# program that links all layers and knows where the fixtures lie.
function(akin_test_binary target)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_executable(${target} ${ARG_SOURCES})
  target_link_libraries(${target} PRIVATE akin_all ${ARG_LINK})
  target_include_directories(${target} PRIVATE
    ${CMAKE_CURRENT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/tests/unit)
  target_compile_definitions(${target} PRIVATE
    AKIN_FIXTURES="${PROJECT_SOURCE_DIR}/tests/fixtures"
    AKIN_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
endfunction()

# akin_mpi_test(<name> <ranks> [SOURCES <file>...] [ARGS <arg>...]
#               [TIMEOUT <seconds>]) runs test_<name> on that many ranks as
# ctest mpi.<name>.<ranks>. The program is built from SOURCES, by default
# test_<name>.c; a further call with other ranks runs the same program.
function(akin_mpi_test name ranks)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;ARGS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 60)
  endif()
  if(NOT ARG_SOURCES)
    set(ARG_SOURCES test_${name}.c)
  endif()
  set(target mpi_test_${name})
  if(NOT TARGET ${target})
    akin_test_binary(${target} SOURCES ${ARG_SOURCES} LINK MPI::MPI_C)
  endif()
  # mpirun gets a signal that it can act on before ctest kills it, so that no
  # rank outlives its test.
  math(EXPR outer "${ARG_TIMEOUT} + 15")
  akin_add_test(mpi.${name}.${ranks} LABELS mpi TIMEOUT ${outer}
    PROCESSORS ${ranks}
    COMMAND timeout -v -k 5 ${ARG_TIMEOUT}
      ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} ${ranks}
      ${MPIEXEC_PREFLAGS} $<TARGET_FILE:${target}> ${MPIEXEC_POSTFLAGS}
      ${ARG_ARGS})
endfunction()

# akin_fuzz_target(<name>) builds fuzz_<name> from fuzz_<name>.c. With
# AKIN_FUZZ it is a libFuzzer binary. Otherwise it is linked with a small main
# that replays the corpus and its mutilations, as ctest fuzz.<name>.
function(akin_fuzz_target name)
  set(corpus "${CMAKE_CURRENT_SOURCE_DIR}/corpus/${name}")
  if(AKIN_FUZZ)
    akin_test_binary(fuzz_${name} SOURCES fuzz_${name}.c)
    target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
  else()
    akin_test_binary(fuzz_${name} SOURCES fuzz_${name}.c replay.c)
    if(DEFINED AKIN_SANITIZE_${CMAKE_BUILD_TYPE})
      target_compile_definitions(fuzz_${name} PRIVATE REPLAY_SANITIZED=1)
    endif()
    akin_add_test(fuzz.${name} LABELS fuzz
      COMMAND $<TARGET_FILE:fuzz_${name}> ${corpus})
  endif()
endfunction()
