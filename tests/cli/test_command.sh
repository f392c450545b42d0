#!/usr/bin/env bash
# akin itself, `akin info` and `akin bench`: codes, messages, output.
#
# usage: test_command.sh AKIN JSON_VALUE SOURCE_DIR
# shellcheck source=tests/cli/expect.sh
. "$(dirname "$0")/expect.sh"

refuse 2 'Usage: akin COMMAND'
accept --help
holds 'generate'
holds 'AKIN_LOG'
accept --version
grep -qE '^akin [0-9]+\.[0-9]+\.[0-9]+$' "$work/out" || complain 'no version'

refuse 2 'unknown command "generat", did you mean "generate"?' generat
refuse 2 'unknown command "xyzzy"; ' xyzzy
refuse 2 'unknown command ""' ''
refuse 2 'unknown command "--frobnicate"' --frobnicate
AKIN_LOG=nonsense refuse 2 'AKIN_LOG' info

accept info
holds 'libconfig'
holds 'portable'
accept info --json
same 'version' "akin $(value akin version)" "$("$akin" --version)"
[ "$(value machine cores)" -ge 1 ] || complain 'no cores'
value libraries ucx >/dev/null
accept info --config
holds 'model.path'
holds 'kv.block_tokens'
accept info -m "$model"
holds 'Qwen3MoeForCausalLM'
accept info -m "$model" --json
same 'experts' "$(value model experts)" 32
same 'layers' "$(value model layers)" 6
# 5,564,416 weights of two bytes, three matrices of 64 x 128, and bf16 keys and
# values of 6 layers x 2 heads x 32.
same 'weight_bytes' "$(value model weight_bytes)" 11128832
same 'expert_bytes' "$(value model expert_bytes)" 49152
same 'kv_bytes_per_token' "$(value model kv_bytes_per_token)" 1536
accept info --kernel portable --json
same 'kernel' "$(value machine kernel)" portable
accept info --transports
grep -qE '^sysv +memory +shared memory +- +yes$' "$work/out" ||
    complain 'no shared memory'
UCX_TLS=tcp,self accept info --transports
grep -qE '^sysv +memory +shared memory +- +no$' "$work/out" ||
    complain 'UCX_TLS has no effect'
grep -qE '^tcp +lo +network +up +yes$' "$work/out" || complain 'no tcp'
holds 'UCX_TLS=tcp,self limits them'
UCX_TLS=nonsense accept info --transports --json
same 'usable' "$(value usable)" false
same 'UCX_TLS' "$(value environment UCX_TLS)" nonsense
refuse 2 'unknown kernel path "sse9"' info --kernel sse9
refuse 1 "$work/none/config.json" info -m "$work/none"
refuse 2 'frob' info --frob
refuse 2 'Try' info argument

accept bench --help
holds 'experts'
holds 'step'
refuse 2 'Usage: akin bench' bench
refuse 2 'unknown measurement "foo"' bench foo
accept bench experts --help
holds '--json'
accept bench step --help
holds '--json'
refuse 2 'frob' bench experts --frob

full --help
full --version
full info
full info --json
full info --config
full bench --help
finish
