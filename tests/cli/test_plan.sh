#!/usr/bin/env bash
# akin plan: what it prints for the job files of examples/jobs, and what it
# refuses before anything is started.
#
# usage: test_plan.sh AKIN JSON_VALUE SOURCE_DIR
# shellcheck source=tests/cli/expect.sh
. "$(dirname "$0")/expect.sh"
cd "$top" || exit 2
jobs=examples/jobs
tiny=$jobs/tiny-laptop.cfg
small=$jobs/mi300x-8p16d-qwen3-30b.cfg
large=$jobs/mi300x-2p8d-ep4-qwen3-235b.cfg

accept plan --help
holds '--topology=FILE'
accept plan -c $tiny
holds '3 ranks on 1 node: 1 router, 1 x 1 prefill, 1 x 1 decode'
accept plan -c $small
holds '25 ranks on 3 nodes: 1 router, 8 x 1 prefill, 16 x 1 decode'
holds 'node 2: 8 ranks, 8 of 8 GPUs'
accept plan -c $large --hosts n1,n2,n3,n4,n5
holds '41 ranks on 5 nodes: 1 router, 2 x 4 prefill, 8 x 4 decode'
holds 'n1: 9 ranks, 8 of 8 GPUs'

# For programs.
accept plan -c $large --json
same "rank 40" "$(value ranks 40 rank)" 40
same "its role" "$(value ranks 40 role)" decode
same "its worker" "$(value ranks 40 worker)" 7
same "the router's GPU" "$(value ranks 0 gpu)" null
same "a node without a name" "$(value nodes 4)" null
cp "$work/out" "$work/json"
accept plan -c $large --emit json
cmp "$work/out" "$work/json" || complain "--json is not --emit json"

# The batch scripts beside the job files are what is printed for them.
mkdir "$work/bin"
ln -s "$akin" "$work/bin/akin"
for job in $tiny $small $large; do
    PATH=$work/bin:$PATH akin plan -c "$job" --emit slurm >"$work/sbatch" ||
        complain "akin plan -c $job --emit slurm"
    cmp "${job%.cfg}.sbatch" "$work/sbatch" ||
        complain "${job%.cfg}.sbatch is not what akin plan prints"
    bash -n "$work/sbatch" || complain "$job: not a script"
done
accept plan -c $tiny --emit mpirun -i 'in put.jsonl' -o out.jsonl
holds "input='in put.jsonl'"
bash -n "$work/out" || complain "$tiny: not a script"
accept plan -c $large --hosts n1,n2,n3,n4,n5 --emit mpirun
holds '--map-by seq'
same "lines of hosts" "$(grep -c '^n[1-5]$' "$work/out")" 41

# Machines: this one, another one's XML, and this one's as another one reads it.
accept info --topology
holds 'this machine:'
accept info --topology=$jobs/mi300x-node.xml
holds '96 cores on 2 NUMA nodes, 8 GPUs'
accept info --topology=$jobs/mi300x-node.xml --json
accept info --xml
cp "$work/out" "$work/this.xml"
accept info --topology="$work/this.xml"
accept plan -c $tiny --topology "$work/this.xml"
accept info --transports
holds 'shared memory'
accept info --transports --json

# What does not fit.
refuse 2 'cluster.nodes' plan -c $large --nodes 4
refuse 2 '40 GPUs' plan -c $large --nodes 4
refuse 2 'cluster.gpus' plan -c $large --set cluster.gpus=9
refuse 2 'launch.oversubscribe' plan -c $tiny --set roles.decode=99 \
    --set launch.oversubscribe=false
refuse 2 'names of the 5 nodes' plan -c $large --emit mpirun
refuse 2 'cluster.hosts names 2 nodes' plan -c $large --hosts n1,n2
refuse 2 'cluster.hosts names 6 nodes' plan -c $large --hosts n1,n2,n3,n4,n5,n6
refuse 2 'node n1 is named twice' plan -c $large --hosts n1,n2,n3,n4,n1
refuse 2 'not the name of a host' plan -c $large --hosts "n1,n2,n3,n4,n'5"
refuse 2 'more topologies than nodes' plan -c $tiny \
    --topology $jobs/mi300x-node.xml --topology $jobs/mi300x-node.xml
refuse 1 'no-such.xml' plan -c $tiny --topology no-such.xml
refuse 1 'no-such.xml' plan -c $tiny --set cluster.topology=no-such.xml
sed 's/<topology version="2.0">/<topology version="3.0">/' \
    $jobs/mi300x-node.xml >"$work/three.xml"
refuse 1 '3.0' plan -c $tiny --topology "$work/three.xml"
: >"$work/empty.xml"
refuse 1 "$work/empty.xml" plan -c $tiny --topology "$work/empty.xml"
head -c 5000 $jobs/mi300x-node.xml >"$work/cut.xml"
refuse 1 "$work/cut.xml" plan -c $tiny --topology "$work/cut.xml"
refuse 2 'no job file' plan
refuse 2 'no-such.cfg' plan -c no-such.cfg
refuse 2 'table, json, mpirun or slurm' plan -c $tiny --emit frob
refuse 2 'both -i and -o' plan -c $tiny -i in.jsonl
for n in 0 -1 x 65537 ''; do
    refuse 2 "a number from 1 to 65536" plan -c $tiny --nodes "$n"
done
refuse 2 'leave out --topology' plan -c $tiny --collect --nodes 2
refuse 2 'mpirun -N 1' plan -c $tiny --collect
full plan -c $tiny
full plan -c $tiny --json
full plan -c $tiny --emit slurm
finish
