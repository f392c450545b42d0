#!/usr/bin/env bash
# The environment that tests run in: MPI, UCX and the sanitizers.
#
# usage: tests/mpi/env.sh COMMAND [ARG...]   runs the command in it
#        . tests/mpi/env.sh                  sets it in this shell
#
# AKIN_SANITIZE names the build type under test (Asan, Tsan, Ubsan); with any
# other value the sanitizer part is left out.

# Tests have more ranks than cores, so ranks share cores and yield when idle.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_hwloc_base_binding_policy=none
export OMPI_MCA_mpi_yield_when_idle=1

# MPI itself runs over UCX: Debian's defaults exclude it, and the byte transfer
# layers that it would take instead crash now and then at start and end.
export OMPI_MCA_pml=ucx OMPI_MCA_pml_ucx_tls=any OMPI_MCA_pml_ucx_devices=any
export OMPI_MCA_osc=^ucx OMPI_MCA_btl=self
export UCX_WARN_UNUSED_ENV_VARS=n

# The checkout that this file lies in, for the suppression lists.
akin_env_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

case ${AKIN_SANITIZE:-} in
Asan | Tsan | Ubsan)
    # The sanitizer has to see a crash first, so nobody else may catch it.
    export UCX_HANDLE_ERRORS=none OMPI_MCA_opal_signal=
    export UBSAN_OPTIONS=print_stacktrace=1
    ;;
esac
case ${AKIN_SANITIZE:-} in
Asan)
    # Open MPI's own leaks are told apart by their full stacks.
    export ASAN_OPTIONS=detect_leaks=1:fast_unwind_on_malloc=0
    LSAN_OPTIONS=suppressions=$akin_env_dir/lsan.supp
    export LSAN_OPTIONS=$LSAN_OPTIONS:print_suppressions=0
    ;;
Tsan)
    # The memory hooks of Open MPI and UCX run where a thread is no longer
    # known to TSan, and crash it.
    export OMPI_MCA_memory=^patcher UCX_MEM_EVENTS=n
    TSAN_OPTIONS=suppressions=$akin_env_dir/tsan.supp
    export TSAN_OPTIONS=$TSAN_OPTIONS:halt_on_error=1:second_deadlock_stack=1
    ;;
esac
unset akin_env_dir

if [ "${BASH_SOURCE[0]}" = "$0" ]; then
    exec "$@"
fi
