#!/usr/bin/env bash
# Every named point of every role, once at least: a rank that is killed or
# stopped there costs time and nothing else. The table is tests/fault/points.
#
# usage: test_points.sh AKIN CHECK SCRATCH [JOB...]
#   JOB  only the points that the table has for these jobs
# shellcheck source=tests/fault/lib.sh
. "$(dirname "$0")/lib.sh"

many_prompts 16
input=$scratch/all.in
run base
expect "base: exit code" 0 "$code"

jobs=" ${*:4} "
# is_wanted JOB
is_wanted() {
    [[ $jobs != *[!\ ]* || $jobs == *" $1 "* ]]
}

# of ROLE JOB: the points of a role that the table has for such a job.
of() {
    awk -v role="$1" -v job="$2" '$1 == role && $3 == job { print $2 }' \
        "$points"
}

# visit POINT: the visit at which to die there, where the first is early.
visit() {
    case $1 in
    *-step | *.TOKENS | *.PREFILL | *.DECODE | *.EP_STEP) echo 3 ;;
    *) echo 1 ;;
    esac
}

# cover JOB FIRST QUEUE... -- [AKIN-RUN-ARGUMENT...]: kills at all points of the
# table that are for this job, in as many jobs as that takes. FIRST are faults
# of every one. A QUEUE is "ROLE JOB WHO...": the ranks, with their lives, that
# meet the points of that role, one each; no two of them in the same life of a
# worker. Another worker of the role is left alone, or the next life of one that
# died might get another role. The router is slowed instead, at all of its
# points in the first job.
cover() {
    local job_name=$1 first=$2 queues=() point who i n=0
    local -a words left items
    is_wanted "$job_name" || return 0
    shift 2
    while [ "$1" != -- ]; do
        queues+=("$1")
        shift
    done
    shift
    items=()
    for point in $(of router "$job_name"); do
        items+=("0:$point#1=sleep-20")
    done
    for i in "${!queues[@]}"; do
        read -ra words <<<"${queues[i]}"
        left[i]=$(of "${words[0]}" "${words[1]}" | paste -sd' ')
    done
    while [[ ${left[*]} == *[!\ ]* ]] || [ ${#items[@]} -gt 0 ]; do
        for i in "${!queues[@]}"; do
            read -ra words <<<"${queues[i]}"
            for who in "${words[@]:2}"; do
                read -r point "left[i]" <<<"${left[i]}"
                [ -z "$point" ] ||
                    items+=("$who:$point#$(visit "$point")=kill")
            done
        done
        n=$((n + 1))
        disturb "$job_name-$n" "$first ${items[*]}" "$@"
        items=()
    done
}

two=(--set roles.prefill=2 --set roles.decode=2 --set routing.decode=rr
    --set router.retries=100)
cover plain "" "prefill plain 1 1.1 1.2 1.3" "decode plain 3 3.1 3.2 3.3" \
    -- "${two[@]}"
# What a job does in its end.
cover end "" "prefill end 1 2" "decode end 3 4" -- "${two[@]}"

# Workers of two ranks, leader and other; they die together. The other one has
# work first where the leader is slow.
slow=
for life in 0 1 2 3; do
    slow+=" 5.$life:before-read#1=sleep-1000"
done
also=$slow cover ep "" "prefill ep-leader 1 1.2" "prefill ep-member 2.1 2.3" \
    "decode ep-leader 5 5.2" "decode ep-member 6.1 6.3" \
    -- "${two[@]}" --set roles.ep=2
cover ep-end "" "prefill ep-end-leader 1" "prefill ep-end-member 4" \
    "decode ep-end-leader 5" "decode ep-end-member 8" \
    -- "${two[@]}" --set roles.ep=2

# What ranks hear of others that are lost and come anew.
cover peer 4:mid-step#2=kill "prefill peer 1 2" "decode peer 5 6" \
    -- "${two[@]}" --set roles.prefill=3 --set roles.decode=4
# Later lives, on their way to a role.
starters="1:mid-step#2=kill 2:mid-step#2=kill 3:mid-step#2=kill"
starters+=" 4:mid-step#2=kill"
cover join "$starters" "start join 1.1 2.1 3.1 4.1 1.2 2.2 3.2 4.2" \
    -- "${two[@]}"
spare=(--set recovery.mode=spare --set roles.spare=2)
cover spare 3:mid-step#2=kill "start spare 5 6" -- "${two[@]}" "${spare[@]}"
cover spare-end "" "start spare-end 5 6" -- "${two[@]}" "${spare[@]}"

# Requests that wait for a decode worker.
in_flight=24 cover keep 3:before-step#9=sleep-1500 "prefill keep 1 2" \
    -- "${two[@]}" --set roles.decode=1 --set decode.max_batch=1 \
    --set net.transfer_timeout=400ms --set kv.lease=600ms
# Experts that change their place.
cover place "" "decode place-leader 3 5" "decode place-member 4.1 6.1" \
    -- "${two[@]}" --set roles.ep=2 --set roles.prefill_ep=1 \
    --set ep.replace=on --set ep.replace_force=true --set ep.replace_every=4

# Stopped, a rank is as good as dead; it is killed and started anew.
if is_wanted stop; then
    disturb stop "1:before-send.PREFILLED#2=stop 2:after-receive.PREFILL#2=stop
        3:mid-read#2=stop 4:mid-step#4=stop" "${two[@]}" \
        --set net.heartbeat_timeout=1s
    disturb stop-ep "2:mid-step#3=stop 3:before-send.EP_STEP#3=stop
        5:after-receive.EP_DONE#3=stop 8:mid-step#4=stop" \
        "${two[@]}" --set roles.ep=2 --set net.heartbeat_timeout=1s
fi

# calibrate NAME FAULTS: a trace, which has to be the undisturbed one.
calibrate() {
    local name=$1 item items
    read -ra items <<<"$2"
    AKIN_FAULT=$(join_items "${items[@]}") \
        AKIN_FAULT_LOG=$scratch/$name.log \
        "$akin" calibrate -c "$job" -i "$prompts" -o "$scratch/$name.json" \
        --tokens 24 "${two[@]}" >"$scratch/$name.out" 2>"$scratch/$name.err"
    expect "$name: exit code" 0 $?
    expect_quiet "$name" "$scratch/$name.err"
    expect_none_left "$name"
    "$(dirname "$check")/e2e_trace_alone" "$model" "$scratch/$name.json" \
        "$prompts" 24 || fail "$name: not what the engine alone gives"
    for item in "${items[@]}"; do
        grep -qE "$(log_pattern "$item")" "$scratch/$name.log" ||
            fail "$name: $item has not happened"
    done
}
if is_wanted routes; then
    faults=
    ranks=(1 2 3 4)
    for point in $(of prefill routes) $(of decode routes); do
        faults+=" ${ranks[0]}:$point#2=kill"
        ranks=("${ranks[@]:1}")
    done
    for point in $(of router routes); do
        faults+=" 0:$point#1=sleep-20"
    done
    calibrate routes "$faults"
fi

# The router itself is gone with its job, and the rest is for another one.
for point in before-send.PREFILL before-receive.TOKENS after-send.DECODE; do
    is_wanted router || break
    name=router-$point
    AKIN_FAULT="0:$point#9=kill" AKIN_FAULT_LOG=$scratch/$name.log \
        run "$name" "${two[@]}"
    expect "$name: exit code" 1 "$code"
    expect_text "$name" "$scratch/$name.log" "0.0 router $point kill"
    resume "$name" --resume "${two[@]}"
    expect "$name: exit code of the resume" 0 "$code"
    expect_same_lines "$name" "$scratch/base.jsonl" "$scratch/$name.jsonl"
done

[[ $jobs != *[!\ ]* ]] || finish
# Of all jobs together: whatever the table has was done, but what comes by chance
# only, and it has whatever a rank came to.
n_points=0
while read -r role point _; do
    n_points=$((n_points + 1))
    grep -qhE "^[0-9.]+ $role $point (kill|stop|sleep-)" "$scratch"/*.log ||
        fail "no $role rank was disturbed at $point"
done < <(grep -v '^#' "$points" | grep . | grep -v ' chance$')
echo "$n_points points"
while read -r role point; do
    grep -qE "^$role +$point " "$points" ||
        fail "$role ranks come to $point, which is not in the table"
done < <(cut -d' ' -f2,3 "$scratch"/*.log | sort -u)
finish
