#!/bin/sh
# Install what is missing for the given purposes (see packages.txt) and find a Python.
#   scripts/setup.sh build run [test]
# As root it installs with apt-get; as anybody else it prints the command to run and stops.
set -eu
here=$(cd "$(dirname "$0")" && pwd)

if ! command -v dpkg-query >/dev/null 2>&1; then
    echo "setup: no dpkg here; install the equivalents of scripts/packages.txt by hand" >&2
    exit 0
fi

# "a|b": either will do
installed() {
    for name in $(echo "$1" | tr '|' ' '); do
        state=$(dpkg-query -W -f='${Status}' "$name" 2>/dev/null || true)
        [ "$state" = "install ok installed" ] && return 0
    done
    return 1
}

# The first alternative that this release has, or simply the first where nothing is known yet.
available() {
    for name in $(echo "$1" | tr '|' ' '); do
        if apt-cache policy "$name" 2>/dev/null | grep -q 'Candidate: [^(]'; then
            echo "$name"
            return
        fi
    done
    echo "${1%%|*}"
}

missing=""
for purpose in "$@"; do
    for package in $(sed -n "s/^$purpose //p" "$here/packages.txt"); do
        installed "$package" || missing="$missing $(available "$package")"
    done
done
if ! "$here/python.sh" >/dev/null 2>&1; then
    missing="$missing python3.11 python3.11-venv"
fi
[ -n "$missing" ] || exit 0

if [ "$(id -u)" = 0 ]; then
    echo "setup: installing$missing" >&2
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    # shellcheck disable=SC2086  # the list is made of package names from packages.txt
    apt-get install -y -qq --no-install-recommends $missing >/dev/null
else
    echo "setup: these packages are missing. Run this once, then the same make command again:" >&2
    echo "  sudo apt-get install --no-install-recommends$missing" >&2
    exit 2
fi
