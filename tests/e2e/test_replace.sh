#!/usr/bin/env bash
# Experts placed anew while workers serve: the answers stay, whatever is moved.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"

# same NAME [ARGUMENT...]: a run whose answers are those of the first one.
same() {
    local name=$1
    shift
    run "$name" "$@"
    expect "$name: exit code" 0 "$code"
    expect_same "$name" "$scratch/base.jsonl" "$scratch/$name.jsonl"
    expect "$name: failed" 0 "$(value "$name" failed)"
}

# at_least NAME PATH N
at_least() {
    awk -v got="$(value "$1" "$2")" -v n="$3" 'BEGIN { exit !(got >= n) }' ||
        fail "$1: $2 is $(value "$1" "$2"), not $3 or more"
}

# Enough tokens for rates that are worth something.
for i in 1 2 3; do
    sed "s/\"custom_id\": *\"/&$i-/" "$prompts"
done >"$scratch/input.jsonl"
input=$scratch/input.jsonl

# Few requests at a time make many steps.
few=(--set roles.decode=1 --set roles.prefill_ep=1
    --set router.max_in_flight=3)
forced=(--set ep.replace=on --set ep.replace_force=true
    --set ep.replace_every=50)
run base "${few[@]}"
expect "base: exit code" 0 "$code"
same two "${few[@]}" "${forced[@]}" --set roles.ep=2
same four "${few[@]}" "${forced[@]}" --set roles.ep=4 --set ep.replicas=4
same mpi "${few[@]}" "${forced[@]}" --set roles.ep=2 --set ep.exchange=mpi
for name in two four mpi; do
    at_least $name replacements.applied 4
    at_least $name replacements.experts_moved 1
    expect "$name: dropped" 0 "$(value $name replacements.dropped)"
done
expect_text "two: table" "$scratch/two.err" 'applied, dropped'

# Of one request at a time every rank's part is known, before a change and
# after it: the parts add up to what one rank computes.
alone=("${few[@]}" --set router.max_in_flight=1 --set kv.prefix_cache=false)
same alone "${alone[@]}"
same alone-four "${alone[@]}" "${forced[@]}" --set roles.ep=4 \
    --set ep.replicas=4
at_least alone-four replacements.applied 4
for path in steps distinct_experts_per_step; do
    expect "alone-four: $path" "$(value alone $path)" "$(value alone-four $path)"
done

# By what is gained: a way that costs nothing and a long horizon find a change,
# the shortest horizon finds none, and a dry run makes none.
paying=(--set ep.replace_every=100 --set ep.replace_horizon=1h
    --set ep.replace_bandwidth=1TiB)
same paying "${few[@]}" --set roles.ep=4 --set ep.replace=on "${paying[@]}"
at_least paying replacements.applied 1
at_least paying replacements.predicted_gain_s 0
same dry "${few[@]}" --set roles.ep=4 --set ep.replace=dry-run "${paying[@]}"
at_least dry replacements.proposed 1
expect "dry: applied" 0 "$(value dry replacements.applied)"
same short "${few[@]}" --set roles.ep=4 --set ep.replace=on "${paying[@]}" \
    --set ep.replace_horizon=1ms --set ep.replace_bandwidth=1MiB
at_least short replacements.considered 3
expect "short: proposed" 0 "$(value short replacements.proposed)"

# refuse NAME TEXT [ARGUMENT...]
refuse() {
    local name=$1 text=$2
    shift 2
    run "$name" "$@"
    expect "$name: exit code" 2 "$code"
    expect_text "$name" "$scratch/$name.err" "$text"
}
refuse one-rank 'ep.replace is "on", but decode workers of one rank' \
    --set ep.replace=on
refuse no-mode 'ep.replace' --set roles.ep=2 --set ep.replace=maybe
refuse every 'ep.replace_every' --set roles.ep=2 --set ep.replace_every=1
finish
