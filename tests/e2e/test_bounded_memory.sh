#!/usr/bin/env bash
# The router's memory does not grow with the number of lines.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"
case ${AKIN_SANITIZE:-} in
Asan | Tsan)
    echo "skipped: a sanitizer keeps what was freed"
    exit 77
    ;;
esac

# batch N: requests of two tokens, for one or two more.
batch() {
    awk -v n="$1" 'BEGIN {
        for (i = 1; i <= n; i++)
            printf "{\"custom_id\":\"r%d\",\"method\":\"POST\"," \
                "\"url\":\"/v1/completions\",\"body\":{\"prompt\":[%d,%d]," \
                "\"max_tokens\":%d}}\n", i, i % 4000, i % 97, 1 + i % 2
    }'
}

# peak NAME N: runs N lines; prints the most memory of the router in KiB.
peak() {
    local name=$1 n=$2 kib=0 now pid
    batch "$n" >"$scratch/$name.in"
    input=$scratch/$name.in start "$name" --set roles.decode=1 --ordered
    while kill -0 "$launcher" 2>/dev/null; do
        [ -n "${pid:-}" ] || pid=$(rank_process 0 2>/dev/null)
        now=$(sed -n 's/^VmHWM:[^0-9]*\([0-9]*\) kB/\1/p' \
            "/proc/${pid:-none}/status" 2>/dev/null)
        [ "${now:-0}" -le "$kib" ] || kib=$now
        sleep 0.02
    done
    ended
    echo "$code $kib $("$check" lines "$scratch/$name.jsonl" 16)"
}

read -r code small ok errors _ < <(peak small 2000)
expect "small: exit code, answers, errors" "0 2000 0" "$code $ok $errors"
read -r code large ok errors _ < <(peak large 20000)
expect "large: exit code, answers, errors" "0 20000 0" "$code $ok $errors"
expect_same "order" <("$check" ids "$scratch/large.in") \
    <("$check" ids "$scratch/large.jsonl")
echo "router: $small KiB for 2000 lines, $large KiB for 20000"
[ "$small" -gt 0 ] || fail "the router was not seen"
[ "$large" -lt $((300 * 1024)) ] || fail "the router takes $large KiB"
# What is known of each line is the hash of its custom_id.
[ $((large - small)) -lt $((18000 / 10)) ] ||
    fail "$small KiB become $large KiB"
finish
