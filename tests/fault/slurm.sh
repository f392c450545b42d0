#!/usr/bin/env bash
# Slurm on the hosts of hosts.sh, one node each, without systemd. A test that
# sources this file calls slurm_needed before, and slurm_up after hosts_up.

# slurm_needed: ends the test where Slurm is not installed.
slurm_needed() {
    local tool
    for tool in slurmctld slurmd srun sbatch munged; do
        PATH=$PATH:/usr/sbin command -v $tool >/dev/null || {
            echo "skipped: $tool is missing (slurmctld slurmd slurm-client munge)"
            exit 77
        }
    done
}

# slurm_up N: with N hosts as nodes; srun and sbatch find it. What it writes is
# in /run/slurm, where nothing outlives the test.
slurm_up() {
    local n=$1 i dir=/run/slurm
    PATH=$PATH:/usr/sbin
    mkdir -p $dir/state $dir/munge $dir/cgroup
    mount --rbind /sys/fs/cgroup $dir/cgroup
    # munged wants a way to its socket for everybody, and nobody at its key.
    chmod 755 $dir $dir/munge
    head -c 1024 /dev/urandom >$dir/munge/key
    chmod 400 $dir/munge/key
    echo "IgnoreSystemd=yes" >$dir/cgroup.conf
    cat >$dir/slurm.conf <<CONF
ClusterName=test
SlurmctldHost=h0($(address_of h0))
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$dir/munge/socket,cred_expire=5
CredType=cred/munge
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool.%n
TmpFS=$dir/tmp.%n
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd.%n.pid
SlurmctldLogFile=$dir/slurmctld.log
SlurmdLogFile=$dir/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=pmix
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=0,bf_interval=1
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=2
MessageTimeout=30
$(for ((i = 0; i < n; i++)); do
        echo "NodeName=h$i NodeAddr=$(address_of "h$i") CPUs=8 RealMemory=2000"
    done)
PartitionName=test Nodes=ALL Default=YES OverSubscribe=FORCE:4 State=UP
CONF
    export SLURM_CONF=$dir/slurm.conf
    (on_host h0 munged --socket=$dir/munge/socket --key-file=$dir/munge/key \
        --pid-file=$dir/munge/pid --log-file=$dir/munge/log \
        --seed-file=$dir/munge/seed) || return 1
    (on_host h0 slurmctld) || return 1
    for ((i = 0; i < n; i++)); do
        mkdir -p "$dir/spool.h$i" "$dir/tmp.h$i"
        # A host has a /sys of its own, without the control groups that slurmd
        # looks for; it makes none.
        (on_host "h$i" bash -c "mount --rbind $dir/cgroup /sys/fs/cgroup &&
            exec slurmd -N h$i") || return 1
    done
    wait_until 30 slurm_is_up "$n" || {
        (on_host h0 sinfo -N -l)
        tail -n 20 $dir/*.log
        return 1
    }
}

slurm_is_up() {
    [ "$(on_host h0 sinfo -h -t idle -o %D 2>/dev/null)" = "$1" ]
}
