#!/usr/bin/env bash
# The layer check itself: it passes right includes and names planted wrong ones.
set -euo pipefail

check=$(cd "$(dirname "$0")" && pwd)/layers.sh
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0

# plant FILE INCLUDE: a tree of one file that has one include line.
plant() {
    rm -rf "${scratch:?}/tree"
    mkdir -p "$scratch/tree/$(dirname "$1")"
    printf '/* Planted. */\n#include %s\n' "$2" >"$scratch/tree/$1"
}

passes() {
    plant "$1" "$2"
    if ! "$check" "$scratch/tree" >"$scratch/out"; then
        echo "refused, though right: $1 includes $2"
        cat "$scratch/out"
        failed=1
    fi
}

refuses() {
    plant "$1" "$2"
    if "$check" "$scratch/tree" >"$scratch/out"; then
        echo "passed, though wrong: $1 includes $2"
        failed=1
    elif ! grep -q "^$1:2: " "$scratch/out"; then
        echo "refused without file and line: $1 includes $2"
        cat "$scratch/out"
        failed=1
    fi
}

passes runtime/math/norm.c '"base/status.h"'
passes runtime/kv/slab.c '"net/worker.h"'
passes runtime/engine/model.h '"ep/expert.h"'
passes runtime/roles/router.c '"routing/policy.h"'
passes routing/policy.c '"ep/placement.h"'
passes ep/dispatch.c '"ep/placement.h"'
passes ep/exchange.c '<mpi.h>'
passes launch/main.c '"roles/router.h"'
passes runtime/net/worker.c '<ucp/api/ucp.h>'
passes runtime/base/log.c '<stdio.h>'

refuses runtime/base/log.c '"kv/block.h"'
refuses runtime/math/norm.c '"net/worker.h"'
refuses runtime/net/worker.c '"kv/block.h"'
refuses runtime/net/worker.c '"math/matrix.h"'
refuses runtime/kv/slab.c '"engine/engine.h"'
refuses runtime/kv/slab.c '"math/matrix.h"'
refuses ep/dispatch.c '"kv/block.h"'
refuses ep/placement.c '"ep/dispatch.h"'
refuses ep/placement_greedy.c '"net/worker.h"'
refuses ep/placement.h '<mpi.h>'
refuses runtime/engine/model.c '"routing/policy.h"'
refuses runtime/engine/model.c '"roles/router.h"'
refuses routing/policy.c '"ep/dispatch.h"'
refuses routing/policy.c '"kv/block.h"'
refuses routing/policy.c '<mpi.h>'
refuses routing/policy.h '<ucp/api/ucp.h>'
refuses runtime/roles/router.c '"launch/main.h"'
refuses runtime/kv/slab.c '"../net/worker.h"'
refuses runtime/kv/slab.c '"slab.h"'
refuses runtime/kv/slab.c '<net/worker.h>'

[ $failed -eq 0 ] && echo "layers: planted includes are told apart"
exit $failed
