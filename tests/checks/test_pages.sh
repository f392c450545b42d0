#!/usr/bin/env bash
# The manual pages say what the commands say: the same commands, options and
# keys, and no page has a mistake of form.
#
# usage: tests/checks/test_pages.sh AKIN CONF_PAGE SIM_PAGE SOURCE_DIR
set -uo pipefail

akin=$1
conf_page=$2
sim_page=$3
man=$4/launch/man
scratch=$(mktemp -d) || exit 2
trap 'rm -rf "$scratch"' EXIT
failed=0

# same NAME A B: two files must be equal; A is what the command says.
same() {
    if [ ! -s "$2" ]; then
        echo "$1: the command says nothing"
        failed=1
    elif ! diff -u "$2" "$3" >"$scratch/diff"; then
        echo "$1: the command (-) and its page (+) differ:"
        sed 1,3d "$scratch/diff" | grep '^[-+]'
        failed=1
    fi
}

# section PAGE NAME: the lines of a section.
section() {
    awk -v name="$2" '
        /^\.SH / { inside = ($0 == ".SH " name); next }
        inside' "$1"
}

# tags: the paragraphs of standard input by their first words, without roff.
# Those that are nested in another one are left out.
tags() {
    awk '
        /^\.RS/ { depth++ }
        /^\.RE/ { depth-- }
        tag && !depth { print }
        { tag = /^\.TP/ }' |
        sed -e 's/^\.B //; s/\\f.//g; s/\\-/-/g; s/"//g' | sort
}

# subsection NAME: the lines of a part of a section, from standard input.
subsection() {
    awk -v name="$1" '
        /^\.SS / { inside = ($0 == ".SS " name); next }
        inside'
}

# options COMMAND...: its options as --help shows them, "-c, --config=JOB".
options() {
    "$akin" "$@" --help | sed -nE \
        -e 's/^ {2}(-[^ ], --[^ ]*)( .*)?$/\1/p' \
        -e 's/^ {6}(--[^ ]*)( .*)?$/\1/p' | sort
}

"$akin" --help | sed -n 's/^  \([a-z]*\)  .*/\1/p' | sort >"$scratch/said"
if grep -qx plan "$scratch/said"; then
    section "$man/akin.1" COMMANDS | tags >"$scratch/shown"
else
    section "$man/akin.1" COMMANDS | tags | grep -vx plan >"$scratch/shown"
fi
same akin "$scratch/said" "$scratch/shown"

for command in run plan sim report; do
    if ! "$akin" "$command" --help >"$scratch/help" 2>/dev/null; then
        echo "akin has no command $command: akin-$command.1 is not compared"
        continue
    fi
    options "$command" >"$scratch/said"
    section "$man/akin-$command.1" OPTIONS | tags >"$scratch/shown"
    same "akin-$command" "$scratch/said" "$scratch/shown"
done

# The verbs of a command have a part of its page each.
"$akin" trace 2>&1 | sed -n 's/^  \([a-z]*\)  .*/\1/p' | sort >"$scratch/verbs"
section "$man/akin-trace.1" OPTIONS | sed -n 's/^\.SS //p' | sort \
    >"$scratch/shown"
same 'akin-trace, verbs' "$scratch/verbs" "$scratch/shown"
while read -r verb; do
    options trace "$verb" >"$scratch/said"
    section "$man/akin-trace.1" OPTIONS | subsection "$verb" | tags \
        >"$scratch/shown"
    same "akin-trace, $verb" "$scratch/said" "$scratch/shown"
done <"$scratch/verbs"

# Exit codes are those of the command's contract.
sed -n 's/^#define AKIN_EXIT_[A-Z]* \([0-9]\).*/\1/p' \
    "$4/launch/command.h" | sort >"$scratch/said"
for page in akin akin-run; do
    section "$man/$page.1" 'EXIT STATUS' | tags >"$scratch/shown"
    same "$page, exit status" "$scratch/said" "$scratch/shown"
done

# The keys of the table, each once.
"$akin" info --config | sed -n 's/^\([a-z_]*\.[a-z_.]*\)  .*/\1/p' |
    sort >"$scratch/said"
section "$conf_page" KEYS | tags >"$scratch/shown"
same akin.conf "$scratch/said" "$scratch/shown"

"$akin" sim --keys | sed -n 's/^\([a-z_]\{1,\}[a-z_.]*\)  .*/\1/p' |
    sort >"$scratch/said"
section "$sim_page" KEYS | tags >"$scratch/shown"
same akin.sim "$scratch/said" "$scratch/shown"

# paragraph KEY: what the page says of a key, as plain words.
paragraph() {
    section "$conf_page" KEYS | awk -v tag=".B $1" '
        /^\.TP/ || /^\.S[HS]/ { inside = 0 }
        inside && !/^\.br/ { print }
        $0 == tag { inside = 1 }' |
        sed 's/\\-/-/g; s/\\(aq/'"'"'/g; s/\\&//g; s/\\e/\\/g' |
        tr '\n' ' '
}

# says KEY TEXT: facts of one key of each type.
says() {
    local text
    text=$(paragraph "$1")
    [ "$text" = "$2 " ] && return
    echo "akin.conf: $1: \"$text\" instead of \"$2\""
    failed=1
}

says kv.block_tokens "Tokens per KV block: 8, 16, 32 or 64. \
integer, 8 to 64 tokens; default 16."
says kv.slab "Memory for KV blocks on every worker rank. \
size, 1MiB to 16TiB; default 256MiB."
says kv.lease "How long a prefill worker keeps blocks that nobody released. \
time, 1ms to 1h; default 30s."
says ep.exchange "How the ranks of a worker swap rows. mpi: by collectives of \
the MPI library, which stays up, so that a rank's death ends the job. \
one of ucx, mpi; default ucx."
says model.path "Model directory: config.json, tokenizer.json and the weights. \
text; required."
says kv.prefix_cache "Keep full blocks for later prompts that begin alike. \
boolean; default true."

pages=("$man"/*.1 "$conf_page" "$sim_page")
for page in "${pages[@]}"; do
    if grep -nE '^.{81,}' "$page" || grep -nE ' +$' "$page"; then
        echo "$page: long lines, or blanks at their ends"
        failed=1
    fi
    if command -v mandoc >/dev/null && ! mandoc -T lint "$page"; then
        failed=1
    fi
    # man-db's formatter complains on standard error.
    if command -v groff >/dev/null; then
        groff -man -Tutf8 -ww "$page" >"$scratch/text" 2>"$scratch/complaints"
        if [ -s "$scratch/complaints" ] || [ ! -s "$scratch/text" ]; then
            cat "$scratch/complaints"
            echo "$page: groff complains"
            failed=1
        fi
    fi
done

[ $failed -eq 0 ] && echo "pages: ${#pages[@]} agree with the commands"
exit $failed
