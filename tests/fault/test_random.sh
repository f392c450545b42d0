#!/usr/bin/env bash
# Random jobs with one to three random faults: the output is always that of the
# undisturbed run, and comes in time.
#
# usage: test_random.sh AKIN CHECK SCRATCH [-n RUNS] [SEED...]
#   RUNS  seeds to take, from SEED (1) on
# A seed names a job and its faults; what it prints is always the same.
# shellcheck source=tests/fault/lib.sh
. "$(dirname "$0")/lib.sh"

seeds=("${@:4}")
if [ "${seeds[0]:-}" = -n ]; then
    first=${seeds[2]:-1}
    mapfile -t seeds < <(seq "$first" $((first + seeds[1] - 1)))
fi
[ ${#seeds[@]} -gt 0 ] || seeds=(8 10 14 17 21 34)

deadline_s=2 # net.heartbeat_timeout
margin_s=10  # of each fault

many_prompts 4
input=$scratch/all.in
run base
expect "base: exit code" 0 "$code"
mkdir "$scratch/undisturbed"

# draw N: a number under N, in $drawn.
draw() {
    drawn=$((RANDOM % $1))
}

# pick WORD...: one of them, in $picked.
pick() {
    draw $#
    shift "$drawn"
    picked=$1
}

# draw_job: in $shape and $arguments; the ranks in $n_prefill, $n_decode, $ep
# and $n_spare; $recovery.
draw_job() {
    local cache
    pick 1 2
    n_prefill=$picked
    pick 1 2 3 4
    n_decode=$picked
    pick 1 1 2
    ep=$picked
    pick respawn respawn spare shrink
    recovery=$picked
    n_spare=0
    if [ "$recovery" = spare ]; then
        pick 1 2
        n_spare=$picked
    elif [ "$recovery" = shrink ]; then
        pick 2 3 4
        n_decode=$picked
    fi
    pick true true false
    cache=$picked
    pick all all tcp,self
    tls=$picked
    shape="${n_prefill}P${n_decode}D ep=$ep $recovery spare=$n_spare"
    shape+=" cache=$cache tls=$tls"
    arguments=(--set "roles.prefill=$n_prefill" --set "roles.decode=$n_decode"
        --set "roles.ep=$ep" --set "roles.spare=$n_spare"
        --set "recovery.mode=$recovery" --set "kv.prefix_cache=$cache")
}

# role_of WORKER: its role when the job starts; prefill workers come first.
role_of() {
    if [ "$1" -lt "$n_prefill" ]; then
        role=prefill
    elif [ "$1" -lt $((n_prefill + n_decode)) ]; then
        role=decode
    else
        role=spare
    fi
}

# may_lose WORKER: whether that leaves one of its role to a job that shrinks.
may_lose() {
    local other n=0
    [ "$recovery" = shrink ] || return 0
    [ -z "${lives[$1]:-}" ] || return 1
    role_of "$1"
    local wanted=$role
    for ((other = 0; other < n_prefill + n_decode; other++)); do
        role_of "$other"
        if [ "$role" = "$wanted" ] && [ -z "${lives[other]:-}" ]; then
            n=$((n + 1))
        fi
    done
    role=$wanted
    [ $n -gt 1 ]
}

# draw_fault: one more item in $items, or none where the job has nobody to
# lose. lives[worker] counts the lives that earlier items have ended.
draw_fault() {
    local worker place life jobs point number action tries n
    # A spare one comes to nothing before there is a loss.
    n=$((n_prefill + n_decode + (${#items[@]} > 0 ? n_spare : 0)))
    for ((tries = 0; tries < 20; tries++)); do
        draw $n
        worker=$drawn
        may_lose "$worker" && break
    done
    [ $tries -lt 20 ] || return 0
    role_of "$worker"
    draw "$ep"
    place=$drawn
    life=${lives[worker]:-0}
    jobs=" plain"
    draw 4
    [ "$drawn" -gt 0 ] || jobs+=" end"
    # What ranks hear of an earlier one.
    [ ${#items[@]} -eq 0 ] || jobs+=" peer"
    if [ "$ep" -gt 1 ]; then
        jobs+=$([ "$place" -eq 0 ] && echo " ep-leader" || echo " ep-member")
    fi
    # A spare one has a role later, if at all, and so has a later life.
    if [ "$role" = spare ]; then
        pick start prefill decode
        role=$picked
        jobs+=" spare chance"
    elif [ "$life" -gt 0 ]; then
        pick start "$role"
        role=$picked
    fi
    [ "$role" != start ] || jobs+=" join"
    # shellcheck disable=SC2046
    pick $(awk -v role="$role" -v jobs="$jobs " \
        '$1 == role && index(jobs, " " $3 " ") { print $2 }' "$points")
    point=$picked
    case $point in
    *-step | *.TOKENS | *.EP_STEP | *.EP_DONE)
        # Prompts take few steps.
        draw "$([ "$role" = prefill ] && echo 6 || echo 30)"
        ;;
    *.PREFILL* | *.DECODE | *.TRANSFERRED | *.RELEASE | *-read) draw 4 ;;
    *) draw 1 ;;
    esac
    number=$((drawn + 1))
    pick kill kill stop sleep
    action=$picked
    lives[worker]=$((life + 1))
    if [ "$action" = sleep ]; then
        draw 1401
        action=sleep-$((drawn + 100))
        # A job that shrinks may take it for lost.
        [ "$recovery" = shrink ] || lives[worker]=$life
    fi
    items+=("$((1 + worker * ep + place)).$life:$point#$number=$action")
}

# now_ms
now_ms() {
    echo $((${EPOCHREALTIME/[.,]/} / 1000))
}

# timed NAME: starts the drawn job and waits; sets spent_ms.
timed() {
    local begin
    begin=$(now_ms)
    UCX_TLS=$tls start "$1" --ordered "${arguments[@]}"
    ended_in "$1" "$2"
    spent_ms=$(($(now_ms) - begin))
}

# undisturbed: what the drawn job takes without faults, in $usual_ms.
undisturbed() {
    local file=$scratch/undisturbed/${shape//[ =,]/-}
    if [ ! -f "$file" ]; then
        timed usual 120
        expect "usual $shape: exit code" 0 "$code"
        expect_same "usual $shape" "$scratch/base.jsonl" \
            "$scratch/usual.jsonl"
        echo "$spent_ms" >"$file"
    fi
    usual_ms=$(cat "$file")
}

# try SEED
try() {
    local seed=$1 name=seed-$1 n_items before=$n_failed limit_s faults
    RANDOM=$seed
    draw_job
    lives=() items=()
    draw 3
    for ((n_items = drawn + 1; n_items > 0; n_items--)); do
        draw_fault
    done
    undisturbed
    limit_s=$((usual_ms / 1000 + 1 + deadline_s + margin_s * ${#items[@]}))
    faults=$(join_items "${items[@]}")
    : >"$scratch/$name.log"
    AKIN_FAULT=$faults AKIN_FAULT_LOG=$scratch/$name.log timed "$name" "$limit_s"
    expect "$name: exit code" 0 "$code"
    expect_same "$name" "$scratch/base.jsonl" "$scratch/$name.jsonl"
    expect "$name: failed" 0 "$(value "$name" failed)"
    expect_quiet "$name" "$scratch/$name.err"
    expect_none_left "$name"
    echo "seed $seed: $shape: ${items[*]}:" \
        "$(awk 'NF == 4' "$scratch/$name.log" | wc -l) happened," \
        "$spent_ms ms" \
        "(undisturbed $usual_ms ms)"
    if [ "$n_failed" -gt "$before" ]; then
        bad_seeds+=("$seed")
        mkdir -p "$scratch/failed"
        cp "$scratch/all.in" "$scratch/base.jsonl" "$job" \
            "$scratch/$name".* "$scratch/failed"
        echo "seed $seed failed; its files are in $scratch/failed; again:"
        echo "  tests/mpi/env.sh bash $0 $akin $check $scratch/again $seed"
        tail -n 40 "$scratch/$name.err"
    fi
    rm -f "$scratch/$name".*
}

bad_seeds=()
total=0
for seed in "${seeds[@]}"; do
    try "$seed"
    total=$((total + ${#items[@]}))
done
echo "${#seeds[@]} seeds, $total faults, ${#bad_seeds[@]} failed:" \
    "${bad_seeds[*]}"
finish
