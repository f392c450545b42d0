#!/usr/bin/env bash
# examples/paper/run.sh: a cell of a quick run and its tables, resumption, and
# what it refuses.
#
# usage: test_paper.sh AKIN JSON_VALUE SOURCE_DIR
# shellcheck source=tests/cli/expect.sh
. "$(dirname "$0")/expect.sh"

command -v jq >/dev/null || {
    echo "jq is missing: the tables need it"
    exit 77
}

# paper CODE ARG...: the script must end with this code.
paper() {
    local want=$1
    shift
    code=0
    echo "run.sh $*" >>"$work/ran"
    timeout -k 5 100 "$top/examples/paper/run.sh" --quick --akin "$akin" \
        --out "$work/paper" "$@" </dev/null >"$work/out" 2>"$work/err" ||
        code=$?
    [ "$code" -eq "$want" ] || complain "run.sh $*: exit code $code, not $want"
}

# ---- a cell and its tables ----

cell=tau-gemma-4-26b-a4b-0
paper 0 --only "$cell"
grep -qx "\[1/1\] $cell" "$work/err" || complain "$cell was not run"
holds '## Width of the locality band'
holds '| Gemma-4-26B-A4B | ELDR, published | 21.47 | 21.15 | 21.25 | 21.43 |'
[ "$(grep -c '^## ' "$work/out")" -eq 1 ] || complain 'tables without a cell'
cmp -s "$work/out" "$work/paper/tables.md" || complain 'tables.md is another'

# tpot_of POLICY SEED: milliseconds of that policy, by its place in the cell.
tpot_of() {
    "$json_value" "$work/paper/$cell.json" printed policies "$1" p50_tpot_ms \
        values "$2"
}
# The table's mean and interval of two seeds: Student's t of one degree of
# freedom, 12.706, times half of what they are apart.
row=$(awk -v a="$(tpot_of 1 0)" -v b="$(tpot_of 1 1)" 'BEGIN {
    apart = a > b ? a - b : b - a
    printf "| Gemma-4-26B-A4B | `eldr` | %.2f ± %.1f |", (a + b) / 2,
        12.706 * apart / 2 }')
holds "$row"

# ---- a second call ----

paper 0 --only "$cell"
[ ! -s "$work/err" ] || complain 'a finished cell ran again'
jq '.call += " --set seed=7"' "$work/paper/$cell.json" >"$work/other"
mv "$work/other" "$work/paper/$cell.json"
paper 0 --only "$cell"
grep -qx "\[1/1\] $cell" "$work/err" || complain 'the cell of another call stays'

# ---- what is refused ----

paper 2 --only nothing
paper 2 --out
paper 2 --frobnicate
paper 1 --akin "$work/none" --only "$cell"
grep -qF 'say --akin FILE' "$work/err" || complain 'no way out'
finish
