#!/usr/bin/env bash
# A long job under random faults: every few seconds a rank that is not the
# router is killed or stopped. Tells whether all requests were answered once and
# as without faults, whether memory, descriptors and threads stay as they are,
# and what is left behind.
#
# usage: tests/mpi/env.sh bash tests/bench/soak.sh AKIN CHECK SCRATCH
#            [-t MINUTES] [-n REQUESTS] [-e SECONDS] [-a TOKENS] [-s SEED]
#   AKIN     the akin command: build/launch/akin
#   CHECK    build/tests/e2e/e2e_check
#   SCRATCH  an empty folder of its own
#   -t       how long requests come, evenly, and faults with them (30)
#   -n       how many (50000), made from examples/prompts.jsonl
#   -e       from one fault to the next, on average (3)
#   -a       most tokens of an answer (8)
#   -s       seed of the faults (1)
#
# Prints figures and, last, what is wrong; the exit code is 0 if nothing is.
# SCRATCH/samples has one line per process and 10 s: second, name, process
# number, resident KiB, of these anonymous and shared, descriptors, threads.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../e2e/lib.sh"
all_prompts=$here/../../examples/prompts.jsonl

minutes=30 n_requests=50000 every_s=3 n_tokens=8 seed=1
OPTIND=4
while getopts t:n:e:a:s: option; do
    case $option in
    t) minutes=$OPTARG ;;
    n) n_requests=$OPTARG ;;
    e) every_s=$OPTARG ;;
    a) n_tokens=$OPTARG ;;
    s) seed=$OPTARG ;;
    *) exit 2 ;;
    esac
done

# Who ends a soak has to be seen in what it prints.
for signal in TERM INT HUP; do
    # shellcheck disable=SC2064
    trap "echo 'ended by SIG$signal'; end_job 143" $signal
done

sample_s=10
warm_s=60 # caches and buffers have their size by then
n_prefill=2 n_decode=2 n_spare=2
n_workers=$((n_prefill + n_decode + n_spare))
arguments=(--set "roles.prefill=$n_prefill" --set "roles.decode=$n_decode"
    --set "roles.spare=$n_spare" --set recovery.mode=spare
    --set recovery.max_respawns=1000000 --set recovery.window=5s)

# Answers must not depend on the name of the request.
sed -e "s/\"max_tokens\": [0-9]*/\"max_tokens\": $n_tokens/" \
    -e '/"seed": /!s/"max_tokens": /"seed": 7, &/' "$all_prompts" \
    >"$scratch/prompts.in"
awk -v n="$n_requests" '
    { lines[NR - 1] = $0 }
    END {
        for (i = 0; i < n; i++) {
            line = lines[i % NR]
            sub(/"custom_id": "/, "&" i "-", line)
            print line
        }
    }' "$scratch/prompts.in" >"$scratch/all.in"

# segments: the shared memory of the machine that nobody would remove, sorted.
# Whoever makes some has it for a moment, so that it has to be there for long.
segments_now() {
    {
        awk 'NR > 1 && $7 == 0 { print $2, $4, $5 }' /proc/sysvipc/shm
        find /dev/shm -type f
    } | LC_ALL=C sort
}
segments() {
    local first
    first=$(segments_now)
    sleep 5
    LC_ALL=C comm -12 <(echo "$first") <(segments_now)
}

# sample_process NAME PID
sample_process() {
    local threads rss anon shared
    read -r rss anon shared threads < <(awk '
        /^VmRSS:/ { rss = $2 }
        /^RssAnon:/ { anon = $2 }
        /^RssShmem:/ { shared = $2 }
        /^Threads:/ { threads = $2 }
        END { print rss, anon, shared, threads }' "/proc/$2/status" \
        2>/dev/null)
    [ -n "${threads:-}" ] || return 0
    echo "$SECONDS $1 $2 $rss $anon $shared" \
        "$(find "/proc/$2/fd" -mindepth 1 2>/dev/null | wc -l) $threads" \
        >>"$scratch/samples"
}

# life_of RANK: the process of the rank's latest life. The number of a supervisor
# that has ended may be that of a stranger, who must come to no harm.
life_of() {
    of_rank "${supervisors[$1]}" "$1" &&
        pgrep -P "${supervisors[$1]}" -f -- "-c $job "
}

sample() {
    local rank pid
    for ((rank = 0; rank <= n_workers; rank++)); do
        sample_process "supervisor-$rank" "${supervisors[rank]}"
        pid=$(life_of "$rank") && sample_process "rank-$rank" "$pid"
    done
}

# disturb: one fault.
disturb() {
    local rank=$((RANDOM % n_workers + 1)) pid
    pid=$(life_of "$rank") || return 0
    case $((RANDOM % 4)) in
    0)
        kill -STOP "$pid" 2>/dev/null && n_stopped=$((n_stopped + 1))
        ;;
    1) # Shorter than any deadline.
        kill -STOP "$pid" 2>/dev/null && n_paused=$((n_paused + 1))
        sleep 0.5
        kill -CONT "$pid" 2>/dev/null
        ;;
    *)
        kill -KILL "$pid" 2>/dev/null && n_killed=$((n_killed + 1))
        ;;
    esac
}

# answers FILE: one line per answer, sorted: prompt, request, and all that must
# not depend on it.
answers() {
    awk '{
        match($0, /"custom_id":"[^"]*"/)
        id = substr($0, RSTART + 13, RLENGTH - 14)
        gsub(/"(id|custom_id|request_id)":"[^"]*"/, "")
        n = index(id, "-")
        if (id ~ /^[0-9]+-/)
            print substr(id, n + 1) "\t" substr(id, 1, n - 1) "\t" $0
        else
            print id "\t-\t" $0
    }' "$1" | LC_ALL=C sort
}

input=$scratch/prompts.in
run base "${arguments[@]}"
expect "base: exit code" 0 "$code"
[ "$code" -eq 0 ] || finish
answers "$scratch/base.jsonl" >"$scratch/base.answers"

segments >"$scratch/segments.before"
rm -f "$scratch/pipe"
mkfifo "$scratch/pipe"
exec 9<>"$scratch/pipe"
input=$scratch/pipe start soak "${arguments[@]}" 9>&-
wait_until 60 rank_process "$n_workers" >/dev/null ||
    fail "soak: it does not begin"
mpirun=$(mpirun_process)
supervisors=()
for pid in $(pgrep -P "$mpirun"); do
    for ((rank = 0; rank <= n_workers; rank++)); do
        ! of_rank "$pid" "$rank" || supervisors[rank]=$pid
    done
done

# The requests come evenly; what the job does not take waits in the pipe.
feed_all() {
    local part=$((n_requests / (minutes * 60) + 1))
    exec 8<"$scratch/all.in"
    while head -n "$part" <&8 | grep .; do
        sleep 1
    done >&9
}
feed_all &
feeder=$!
exec 9>&-

: >"$scratch/samples"
RANDOM=$seed
SECONDS=0
n_killed=0 n_stopped=0 n_paused=0
next_sample=0
ended_at=
while :; do
    case $(ps -o stat= -p "$launcher") in '' | Z*) break ;; esac
    if [ "$SECONDS" -ge "$next_sample" ]; then
        sample
        next_sample=$((SECONDS + sample_s))
    fi
    if [ "$SECONDS" -lt $((minutes * 60)) ]; then
        disturb
    elif [ -z "$ended_at" ]; then
        ended_at=$SECONDS
    elif [ "$SECONDS" -gt $((ended_at + 600)) ]; then
        fail "soak: it has not ended 10 min after the last fault"
        break
    fi
    sleep "$(awk -v r="$RANDOM" -v e="$every_s" \
        'BEGIN { print 2 * e * r / 32768 }')"
done
wait "$feeder"
[ "$n_failed" -eq 0 ] || end_job
ended
spent_s=$SECONDS
expect_none_left soak
segments >"$scratch/segments.after"

expect "soak: exit code" 0 "$code"
echo "$spent_s s: $n_killed killed, $n_stopped stopped for good," \
    "$n_paused stopped for 0.5 s; $(value soak recovery.deaths) deaths," \
    "$(value soak recovery.recoveries) recoveries after a mean of" \
    "$(value soak recovery.recovery_s.mean) s"

# Every request is answered once, and as in the run without faults.
answers "$scratch/soak.jsonl" >"$scratch/soak.answers"
expect "soak: answered" "$n_requests" \
    "$(cut -f 2 "$scratch/soak.answers" | sort -u | wc -l)"
expect "soak: lines" "$n_requests" "$(wc -l <"$scratch/soak.jsonl")"
expect "soak: failed" 0 "$(value soak failed)"
n_wrong=$(awk -F '\t' '
    NR == FNR { wanted[$1] = $3; next }
    wanted[$1] != $3 { n++ }
    END { print n + 0 }' "$scratch/base.answers" "$scratch/soak.answers")
expect "soak: answers that differ" 0 "$n_wrong"
echo "$(wc -l <"$scratch/soak.jsonl") answers, $n_wrong of them differ from" \
    "those of a run without faults; $(value soak recovery.retries) retries," \
    "$(value soak recovery.messages_late) late messages"

# Nothing is left.
expect "soak: blocks pinned at the end" 0 "$(value soak recovery.pinned_blocks)"
echo "blocks pinned: $(value soak recovery.pinned_blocks) at the end," \
    "$(value soak recovery.max_pinned_blocks) at most;" \
    "$(value soak recovery.leases_expired) leases ended by time"
left=$(LC_ALL=C comm -13 "$scratch/segments.before" "$scratch/segments.after" |
    wc -l)
expect "soak: shared memory segments left behind" 0 "$left"
echo "shared memory segments left behind: $left"

# Memory, descriptors and threads of what lived from the warm-up to the end, and
# of the process of each rank that lived longest.
awk -v warm=$warm_s '
    { key = $2 " " $3 }
    !(key in first_s) || first_s[key] < warm && $1 >= warm {
        first_s[key] = $1; rss[key] = $4; fds[key] = $7; threads[key] = $8
    }
    {
        last_s[key] = $1; last_rss[key] = $4; last_fds[key] = $7
        last_threads[key] = $8; anon[key] = $5; shared[key] = $6
        if ($4 > max[key]) max[key] = $4
        name[key] = $2
    }
    END {
        for (key in last_s) {
            span = last_s[key] - first_s[key]
            n = name[key]
            if (!(n in best) || span > longest[n]) {
                best[n] = key; longest[n] = span
            }
        }
        printf "%-13s %7s %9s %9s %9s %9s %9s %11s %9s\n", "process",
            "watched", "first", "last", "most", "anonymous", "shared",
            "descriptors", "threads"
        for (n in best) {
            key = best[n]
            printf "%-13s %5d s %5d KiB %5d KiB %5d KiB %5d KiB %5d KiB " \
                "%4d ->%4d %3d ->%2d\n", n, longest[n], rss[key],
                last_rss[key], max[key], anon[key], shared[key], fds[key],
                last_fds[key], threads[key], last_threads[key] | "sort"
        }
    }' "$scratch/samples"
read -r first last < <(awk -v warm=$warm_s '
    $2 != "rank-0" { next }
    $1 <= warm || !first { first = $4 }
    { last = $4 }
    END { print first, last }' "$scratch/samples")
echo "router: $first KiB after $warm_s s, $last KiB at the end"
finish
