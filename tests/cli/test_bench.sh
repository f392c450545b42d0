#!/usr/bin/env bash
# The measurements of routing on tiny sizes: fields and refusals.
#
# usage: test_bench.sh AKIN JSON_VALUE SOURCE_DIR
# shellcheck source=tests/cli/expect.sh
. "$(dirname "$0")/expect.sh"

# rows: puts the array that the last command printed into an object.
rows() {
    { printf '{"rows":'; cat "$work/out"; printf '}\n'; } >"$work/rows"
    mv "$work/rows" "$work/out"
}

# positive KEY...: a value of the last command's JSON that is above zero.
positive() {
    local number
    number=$(value "$@")
    awk -v x="$number" 'BEGIN { exit !(x > 0) }' ||
        complain "$*: $number is not above zero"
}

small=(--layers 3 --experts 12 --top-k 2)
accept bench --help
holds 'route'
holds 'fit'
accept bench route "${small[@]}" --workers 2,5 --seconds 1 --json \
    --policy eldr-static,union,union-band
rows
for row in 0 1 2 3 4 5; do
    same 'bench' "$(value rows $row bench)" route
    same 'layers' "$(value rows $row layers)" 3
    same 'experts' "$(value rows $row experts)" 12
    for key in seconds p99_seconds reference_seconds reference_p99_seconds \
        ratio decide_seconds; do
        positive rows $row $key
    done
done
same 'policy' "$(value rows 1 policy)" union
same 'workers' "$(value rows 5 workers)" 5
# Centroids of 36 floats; chances in whole vectors of 16 floats.
same 'bytes' "$(value rows 3 bytes)" 720
same 'bytes' "$(value rows 4 bytes)" 960
accept bench route "${small[@]}" --workers 5 --seconds 1 --json \
    --policy union-pull
rows
# It reads both.
same 'bytes' "$(value rows 0 bytes)" 1680
accept bench route "${small[@]}" --workers 3 --seconds 1 --policy union
holds 'union'
refuse 2 '--workers 0' bench route --workers 0
refuse 2 '--top-k 13' bench route "${small[@]}" --top-k 13
refuse 2 'choose up to' bench route --policy eldr,rr
refuse 2 '--policy' bench route --policy ,

refuse 2 '--ranks 3' bench ep --ranks 3
refuse 2 '--rows 4,0' bench ep --rows 4,0
refuse 2 '--rounds x' bench ep --rounds x

call bench fit "${small[@]}" --requests 30 --workers 4 --pairs 200 --json
if grep -q libopenblas0 "$work/err"; then
    [ "$code" -ne 0 ] || complain 'no OpenBLAS, and no failure'
else
    [ "$code" -eq 0 ] || complain "bench fit: exit code $code"
    rows
    same 'requests' "$(value rows 0 requests)" 30
    same 'workers' "$(value rows 0 workers)" 4
    same 'pairs' "$(value rows 1 pairs)" 200
    for key in seconds reference_seconds ratio products_share \
        assignment_share move_share fit_seconds; do
        positive rows 0 $key
    done
    for key in seconds products_share ranking_share; do
        positive rows 1 $key
    done
fi
refuse 2 '--workers 31' bench fit --requests 30 --workers 31

full bench route "${small[@]}" --workers 2 --seconds 1 --policy union
finish
