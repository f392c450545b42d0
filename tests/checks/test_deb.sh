#!/usr/bin/env bash
# Packs a build for Debian, installs the package below a root of its own, has
# the installed command serve a batch, and removes it again.
#
# usage: tests/checks/test_deb.sh BUILD_DIR
# As another user than root, who cannot install, the package is looked at only.
# Needs cpack, dpkg-deb and dpkg-shlibdeps; without them it is skipped.
set -euo pipefail

build=${1:?usage: $0 BUILD_DIR}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0

fail() {
    echo "FAILED: $*"
    failed=1
}

cache() {
    sed -n "s/^$1:[A-Z]*=//p" "$build/CMakeCache.txt"
}

skip() {
    echo "skipped: $*"
    exit 77
}

case $(cache CMAKE_BUILD_TYPE) in
Asan | Tsan | Ubsan) skip "a build with a sanitizer is not packed" ;;
esac
# dpkg-shlibdeps is of dpkg-dev; cpack asks file for what is a program.
for tool in cpack dpkg-deb dpkg-shlibdeps file; do
    command -v $tool >/dev/null ||
        skip "$tool is missing: run examples/install-deps.sh --dev"
done

cpack --config "$build/CPackConfig.cmake" -B "$scratch/pack" \
    >"$scratch/cpack.log" 2>&1 || {
    cat "$scratch/cpack.log"
    exit 1
}
version=$(cache CMAKE_PROJECT_VERSION)
deb=$(echo "$scratch"/pack/akin_"$version"_*.deb)
[ -f "$deb" ] || {
    fail "cpack made no akin_$version package:"
    ls "$scratch/pack"
    exit 1
}

# What the package says of itself.
field() {
    dpkg-deb --field "$deb" "$1"
}

# is FIELD TEXT
is() {
    [ "$(field "$1")" = "$2" ] || fail "$1 is \"$(field "$1")\", not \"$2\""
}

is Package akin
is Version "$version"
is Section science
is Architecture "$(dpkg --print-architecture)"
is Homepage ''
[[ $(field Maintainer) =~ ^.+\ \<.+@.+\>$ ]] || fail "no maintainer"
[[ $(field Description) == *Mixture-of-Experts* ]] || fail "no description"
# mpirun by name; the others because the command links them.
depends=", $(field Depends), "
for package in openmpi-bin libc6 libopenmpi libucx libhwloc libconfig \
    libjansson libpcre2-8; do
    [[ $depends == *", $package"* ]] || fail "no dependency on $package"
done

# What is in it: path, mode and owner of every file and folder.
dpkg-deb --contents "$deb" >"$scratch/contents"
# has MODE PATH
has() {
    grep -qE "^$1 root/root .* \./$2\$" "$scratch/contents" ||
        fail "no $1 $2 of root"
}

has -rwxr-xr-x usr/bin/akin
has -rw-r--r-- usr/share/doc/akin/copyright
for page in man1/akin.1 man1/akin-run.1 man1/akin-plan.1 man1/akin-sim.1 \
    man1/akin-report.1 man1/akin-trace.1 man5/akin.conf.5 man5/akin.sim.5; do
    has -rw-r--r-- "usr/share/man/$page.gz"
done
for file in jobs/quickstart.conf jobs/tiny-laptop.cfg prompts.jsonl \
    tiny-moe/config.json tiny-moe/model.safetensors tiny-moe/tokenizer.json; do
    has -rw-r--r-- "usr/share/akin/examples/$file"
done
has -rw-r--r-- 'usr/lib/(.*/)?libakin.a'
has -rw-r--r-- usr/include/akin/base/status.h
if grep -vE '^(drwxr-xr-x|-rwxr-xr-x|-rw-r--r--) root/root ' \
    "$scratch/contents"; then
    fail "files of another mode or owner"
fi
if grep -vE ' \./(usr/((bin|include|lib|share)/.*)?)?$' "$scratch/contents"; then
    fail "files elsewhere"
fi

[ "$(id -u)" -eq 0 ] || {
    [ $failed -eq 0 ] || exit 1
    skip "the package is right, but only root can install it"
}

# A root of its own, with a database of packages that has nothing in it: what
# the package depends on is that of the host.
root=$scratch/root
mkdir -p "$root"/var/lib/dpkg/{info,updates,triggers}
touch "$root"/var/lib/dpkg/{status,available}

# Some hosts leave documentation out of what they install.
package() {
    PATH=$PATH:/usr/sbin:/sbin dpkg --root="$root" --log="$scratch/dpkg.log" \
        --force-depends --path-include='/usr/share/*' "$@" \
        >"$scratch/dpkg.out" 2>&1 || {
        cat "$scratch/dpkg.out"
        fail "dpkg $*"
        exit 1
    }
}

package --install "$deb"
state=$(dpkg-query --admindir="$root/var/lib/dpkg" -W \
    -f '${db:Status-Status}' akin)
[ "$state" = installed ] || fail "the package is $state, not installed"
akin=$root/usr/bin/akin
[ "$("$akin" --version)" = "akin $version" ] || fail "akin --version"
cmp "$(dirname "$0")/../../LICENSE" "$root/usr/share/doc/akin/copyright" ||
    fail "the licence is another one"

# Pages as the user's man shows them.
if command -v man >/dev/null; then
    show=(man --warnings -l)
elif command -v mandoc >/dev/null; then
    show=(mandoc -T utf8)
else
    show=()
    echo "neither man nor mandoc is here: pages are not shown"
fi
for page in man1/akin.1 man1/akin-run.1 man1/akin-plan.1 man1/akin-sim.1 \
    man1/akin-report.1 man1/akin-trace.1 man5/akin.conf.5 man5/akin.sim.5; do
    [ ${#show[@]} -gt 0 ] || break
    LC_ALL=C "${show[@]}" "$root/usr/share/man/$page.gz" >"$scratch/page" \
        2>"$scratch/complaints" || fail "$page is not shown"
    grep -q akin "$scratch/page" || fail "$page is empty"
    [ ! -s "$scratch/complaints" ] ||
        fail "$page: $(head -n 3 "$scratch/complaints")"
done

# A batch, from the installed files alone: a router, a prefill and a decode
# rank.
n=12
code=0
head -n $n "$root/usr/share/akin/examples/prompts.jsonl" >"$scratch/in.jsonl"
(cd "$root/usr/share/akin" && timeout -k 5 120 "$akin" run \
    -c examples/jobs/tiny-laptop.cfg -i "$scratch/in.jsonl" \
    -o "$scratch/out.jsonl" --summary "$scratch/summary.json" \
    --set router.socket=) </dev/null >"$scratch/run.log" 2>&1 || code=$?
if [ $code -ne 0 ]; then
    fail "the installed akin run: exit code $code"
    tail -n 20 "$scratch/run.log"
fi
answers=$(grep -c '"status_code":200,.*"error":null}$' "$scratch/out.jsonl") ||
    true
[ "$answers" = $n ] || fail "$answers answers to $n requests"

# A plan for a cluster, from what lies beside the installed job file.
ranks=$("$akin" plan --json -c \
    "$root/usr/share/akin/examples/jobs/mi300x-8p16d-qwen3-30b.cfg" |
    grep -o '"rank":' | wc -l) || true
[ "$ranks" = 25 ] || fail "a plan for $ranks ranks instead of 25"

# Nothing of it stays.
package --purge akin
left=$(find "$root" -mindepth 1 -path "$root/var" -prune -o -print)
[ -z "$left" ] || fail "left behind: $left"
[ -z "$(dpkg-query --admindir="$root/var/lib/dpkg" -W 2>/dev/null)" ] ||
    fail "the package is still known"

[ $failed -eq 0 ] && echo "deb: packed, installed, $answers requests, removed"
exit $failed
