#!/usr/bin/env bash
# Checks that every include follows the arrows between the layers.
#
# usage: tests/checks/layers.sh [ROOT]
#
# An include names its file from runtime/ ("kv/block.h") or, for ep/, routing/
# and launch/, from the root. A file may include its own layer and those that
# the table below lists for it.
set -euo pipefail

root=${1:-$(cd "$(dirname "$0")/../.." && pwd)}
cd "$root"

folders=()
for folder in runtime ep routing launch; do
    [ ! -d "$folder" ] || folders+=("$folder")
done

# shellcheck disable=SC2016 # the dollars are those of awk
find "${folders[@]}" -name '*.[ch]' -print | sort |
    xargs -r awk '
    BEGIN {
        allowed["base"] = "base"
        allowed["math"] = "math base"
        allowed["net"] = "net base"
        allowed["kv"] = "kv net base"
        # Placement is the part of ep that decides and does no work.
        allowed["placement"] = "placement base"
        allowed["ep"] = "ep placement math net base"
        allowed["engine"] = "engine ep placement kv net math base"
        allowed["routing"] = "routing placement base"
        allowed["roles"] = "roles engine routing ep placement kv net math base"
        allowed["launch"] = "launch " allowed["roles"]
        # Layers that a simulator or another server links alone.
        pure["base"] = pure["placement"] = pure["routing"] = pure["math"] = 1
    }

    # Layer of a path that starts at one of the include roots.
    function layer_of(path,    part) {
        if (path ~ /^ep\/placement/)
            return "placement"
        split(path, part, "/")
        return (path ~ /\//) && (part[1] in allowed) ? part[1] : ""
    }

    function report(text) {
        printf "%s:%d: %s\n", FILENAME, FNR, text
        bad = 1
    }

    FNR == 1 {
        own = FILENAME
        sub(/^runtime\//, "", own)
        layer = layer_of(own)
        if (layer == "")
            report("lies in no layer")
    }

    /^[ \t]*#[ \t]*include/ {
        if (!match($0, /["<][^">]+[">]/))
            next
        quoted = substr($0, RSTART, 1) == "\""
        name = substr($0, RSTART + 1, RLENGTH - 2)
        if ((layer in pure) && name ~ /^(mpi|ucp\/|ucs\/|uct\/|ucm\/)/)
            report(layer " includes " name ", it may know neither MPI nor UCX")
        if (name ~ /(^|\/)\.\.\//)
            report("include of " name ": name the file from its root")
        target = layer_of(name)
        if (target == "") {
            if (quoted)
                report("include of \"" name "\": name the file with its layer")
            next
        }
        if (!quoted)
            report("include of <" name ">: own headers go in quotes")
        if (index(" " allowed[layer] " ", " " target " ") == 0)
            report("layer " layer " includes " name " of layer " target \
                   ", it may include: " allowed[layer])
    }

    END { exit bad }
'
