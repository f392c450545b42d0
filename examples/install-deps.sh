#!/usr/bin/env bash
# Installs the distribution packages that Akin is built and run with.
#
# usage: examples/install-deps.sh [--dev]
#   --dev  also what the checks, the sanitizers and the fuzzers need
#
# Does nothing when all of them are there. As another user than root it goes
# through sudo, and without sudo it prints the command for the administrator.
set -euo pipefail

packages=(
    # Compiler and build system.
    gcc libc6-dev cmake ninja-build pkg-config ca-certificates
    # Job start and transport.
    libopenmpi-dev openmpi-bin openmpi-common libucx-dev ucx-utils
    libhwloc-dev hwloc-nox
    # Files, text, hashes, queues, HTTP, tables.
    libconfig-dev libjansson-dev libpcre2-dev libunistring-dev libxxhash-dev
    zlib1g-dev uthash-dev libck-dev libmicrohttpd-dev libsmartcols-dev
    # Tests.
    libcunit1-dev
)
dev_packages=(
    clang clang-format clang-tidy cppcheck shellcheck g++ jq
    libclang-rt-14-dev libomp-14-dev iproute2
    # The package and the manual pages.
    dpkg-dev file groff-base mandoc
)

for arg in "$@"; do
    case $arg in
    --dev) packages+=("${dev_packages[@]}") ;;
    -h | --help)
        sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"
        exit 0
        ;;
    *)
        echo "install-deps: unknown argument '$arg'; usage: $0 [--dev]" >&2
        exit 2
        ;;
    esac
done

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    echo "install-deps: this script knows Debian and its relatives only." \
        "Install what corresponds to: ${packages[*]}" >&2
    exit 1
fi

missing=()
for package in "${packages[@]}"; do
    state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) ||
        state=
    [ "$state" = installed ] || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then
    echo "install-deps: all ${#packages[@]} packages are installed"
    exit 0
fi

apt=(apt-get -o DPkg::Lock::Timeout=500 -o APT::Get::Assume-Yes=true)
as_root=()
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
        echo "install-deps: ${#missing[@]} packages are missing, and only" \
            "root can install them. Ask for:" >&2
        echo "  apt-get update && apt-get install -y" \
            "--no-install-recommends ${missing[*]}" >&2
        exit 1
    fi
    as_root=(sudo)
fi
as_root+=(env DEBIAN_FRONTEND=noninteractive)

echo "install-deps: installing ${missing[*]}"
"${as_root[@]}" "${apt[@]}" -qq update </dev/null
"${as_root[@]}" "${apt[@]}" install --no-install-recommends "${missing[@]}" \
    </dev/null
echo "install-deps: installed ${#missing[@]} packages"
