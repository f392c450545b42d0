#!/usr/bin/env bash
# Hosts on one machine: network namespaces behind a switch, whose links can be
# cut. A test that sources this file calls hosts_enter first.
#
# The test runs in namespaces of its own, and everything in them ends with it.
# Hosts are named h0, h1, ...; each has its own IPC namespace, so that ranks of
# different hosts find no shared memory and talk over tcp, and its own name.
hosts_here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# hosts_enter SCRIPT [ARG...]: goes on only inside the namespaces; outside it
# runs the script anew in them. Ends the test where there can be none.
hosts_enter() {
    [ -z "${AKIN_TEST_HOSTS:-}" ] || return 0
    if [ "$(id -u)" != 0 ]; then
        echo "skipped: network namespaces need root"
        exit 77
    fi
    local tool
    for tool in ip unshare mount; do
        command -v $tool >/dev/null || {
            echo "skipped: $tool is missing"
            exit 77
        }
    done
    local apart=(unshare --mount --net --ipc --pid --fork --kill-child
        --mount-proc)
    # The kernel may lack links, and a container the right to make any.
    "${apart[@]}" bash -c 'mount -t tmpfs none /run && mkdir /run/netns &&
        ip netns add test && ip link add test0 type veth peer name test1 &&
        ip link add test2 type bridge && ip link set test1 master test2' \
        >/dev/null 2>&1 || {
        echo "skipped: namespaces with links cannot be made here"
        exit 77
    }
    AKIN_TEST_HOSTS=1 exec "${apart[@]}" bash "$@"
}

# address_of HOST
address_of() {
    echo "10.77.0.$((${1#h} + 1))"
}

# hosts_up N: makes the hosts, from h0 on, and has mpirun use them.
hosts_up() {
    local i
    mount -t tmpfs none /run
    {
        echo "127.0.0.1 localhost"
        for ((i = 0; i < $1; i++)); do
            echo "$(address_of "h$i") h$i"
        done
    } >/run/hosts
    mount --bind /run/hosts /etc/hosts
    ip link set lo up
    ip link add switch type bridge
    ip link set switch up
    for ((i = 0; i < $1; i++)); do
        ip netns add "h$i"
        ip -n "h$i" link set lo up
        ip link add "port$i" type veth peer name wire netns "h$i"
        ip link set "port$i" master switch up
        ip -n "h$i" addr add "$(address_of "h$i")/24" dev wire
        ip -n "h$i" link set wire up
    done
    export OMPI_MCA_plm_rsh_agent="bash $hosts_here/host_agent.sh"
    export OMPI_MCA_oob_tcp_if_include=wire
    # Process numbers are those of other tests: their files must not be.
    export OMPI_MCA_orte_tmpdir_base=/run/mpi
    export OMPI_MCA_orte_default_hostfile=/run/hostfile
    mkdir -p /run/mpi
}

# hosts_ranks N...: how many ranks h0, h1, ... get, in their order.
hosts_ranks() {
    local i=0 n
    for n in "$@"; do
        echo "h$i slots=$n"
        i=$((i + 1))
    done >/run/hostfile
}

# on_host HOST COMMAND...: runs the command there, in its place.
on_host() {
    local host=$1
    shift
    # shellcheck disable=SC2016
    exec ip netns exec "$host" unshare --uts --ipc bash -c \
        'hostname "$0" && exec "$@"' "$host" "$@"
}

# make_command FILE COMMAND...: FILE becomes a command that runs the other one on
# h0 with arguments of its own.
make_command() {
    local file=$1
    shift
    {
        echo "#!/usr/bin/env bash"
        printf '. %q\n' "$hosts_here/hosts.sh"
        printf 'on_host h0'
        printf ' %q' "$@"
        # shellcheck disable=SC2016
        printf ' "$@"\n'
    } >"$file"
    chmod +x "$file"
}

# cut_link HOST: nothing reaches the host, and nothing comes from it, until
# mend_link HOST.
cut_link() {
    ip link set "port${1#h}" down
}

mend_link() {
    ip link set "port${1#h}" up
}

# part_hosts HOST HOST: these two do not reach each other, but all others, until
# unite_hosts HOST HOST. Their packets to each other go to an address that
# nobody has.
part_hosts() {
    ip -n "$1" neigh replace "$(address_of "$2")" dev wire \
        lladdr 02:00:00:00:00:01 nud permanent
    ip -n "$2" neigh replace "$(address_of "$1")" dev wire \
        lladdr 02:00:00:00:00:01 nud permanent
}

unite_hosts() {
    ip -n "$1" neigh del "$(address_of "$2")" dev wire
    ip -n "$2" neigh del "$(address_of "$1")" dev wire
}
