#!/usr/bin/env bash
# Workers of several ranks give the answers of workers of one, whatever their
# size, placement, replicas, exchange and policy.
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

one=(--set roles.decode=1)
run base "${one[@]}"
expect "base: exit code" 0 "$code"
same two "${one[@]}" --set roles.ep=2
expect "two: ranks" "2 2" "$(value two ep) $(value two prefill_ep)"
expect_text "two: who runs" "$scratch/two.err" '1 x 2 prefill and 1 x 2 decode'
same four "${one[@]}" --set roles.ep=4 --set ep.replicas=4
same fewer "${one[@]}" --set roles.ep=4 --set roles.prefill_ep=2
same prefill-only "${one[@]}" --set roles.prefill_ep=2 \
    --set ep.placement=round-robin
same mpi "${one[@]}" --set roles.ep=2 --set ep.exchange=mpi
expect_text "mpi: warning" "$scratch/mpi.err" 'the death of a rank ends the job'

# A fit for two decode workers, and what only a fit can place by.
"$akin" calibrate -c "$job" -i "$prompts" -o "$scratch/calibration.trace" \
    --set roles.ep=2 >"$scratch/calibrate.out" 2>"$scratch/calibrate.err"
expect "calibrate: exit code" 0 $?
"$akin" fit "$scratch/calibration.trace" -o "$scratch/fit.json" -K 2 --ep 2 \
    >"$scratch/fit.out" 2>"$scratch/fit.err"
expect "fit: exit code" 0 $?
fit=(--set "routing.fit=$scratch/fit.json" --set roles.prefill_ep=1)
same eplb "${fit[@]}" --set roles.ep=2 --set ep.placement=eplb \
    --set ep.replicas=4 --set routing.decode=jsq
same activation "${fit[@]}" --set roles.ep=2 --set ep.placement=activation \
    --set ep.replicas=8 --set routing.decode=union
same auto "${fit[@]}" --set roles.ep=4
expect_text "auto" "$scratch/auto.err" 'experts placed by activation'
same of-fit "${fit[@]}" --set roles.ep=2 --set routing.decode=union-band
expect_text "of-fit" "$scratch/of-fit.err" 'experts placed by fit'

# Of one request at a time every rank's part is known: they add up to what one
# rank computes, and no rank has more than its share.
alone=("${one[@]}" --set router.max_in_flight=1 --set kv.prefix_cache=false)
same alone "${alone[@]}"
same alone-four "${alone[@]}" --set roles.ep=4
same alone-copies "${alone[@]}" --set roles.ep=2 --set ep.replicas=8
for path in steps distinct_experts_per_step workers.0.steps \
    workers.0.distinct_experts_per_step; do
    for name in alone-four alone-copies; do
        expect "$name: $path" "$(value alone $path)" "$(value $name $path)"
    done
done
most=$(value alone-four workers.0.max_rank_distinct_experts_per_step)
awk -v most="$most" 'BEGIN { exit !(most > 0 && most <= 8) }' ||
    fail "alone-four: a rank of 8 experts computed $most"

# refuse NAME TEXT [ARGUMENT...]
refuse() {
    local name=$1 text=$2
    shift 2
    run "$name" "$@"
    expect "$name: exit code" 2 "$code"
    expect_text "$name" "$scratch/$name.err" "$text"
}
refuse three 'roles.ep is 3, which does not divide the 32 experts' \
    --set roles.ep=3
refuse prefill-five 'roles.prefill_ep is 5, which does not divide' \
    --set roles.prefill_ep=5
refuse copies 'ep.replicas is 64' --set roles.ep=2 --set ep.replicas=64
refuse no-copies 'ep.replicas is 2' --set ep.replicas=2
refuse no-rates 'ep.placement is "eplb", which needs a fit' \
    --set roles.ep=2 --set ep.placement=eplb
finish
