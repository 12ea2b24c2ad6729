#!/bin/sh
# Install missing packages for the given purposes (see packages.txt), including a Python.
#   scripts/setup.sh build run [test]
# As root it installs with apt-get or dnf; as another user it prints the command to run and stops.
# With another package manager it lists the needed packages once and stops; later it assumes that
# they are installed.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
packages=$here/packages.txt

# The interface to a package manager: is it installed, does the release have it, install it.
if command -v apt-get >/dev/null 2>&1; then
    manager=apt
    installed() { [ "$(dpkg-query -W -f='${Status}' "$1" 2>/dev/null)" = "install ok installed" ]; }
    available() { apt-cache policy "$1" 2>/dev/null | grep -q 'Candidate: [^(]'; }
    update() { apt-get update -qq; }
    install="apt-get install -y --no-install-recommends"
    pythons="python3.14-venv python3.13-venv python3.12-venv python3.11-venv"
elif command -v dnf >/dev/null 2>&1; then
    manager=dnf
    installed() { rpm -q "$1" >/dev/null 2>&1; }
    available() { dnf -q list "$1" >/dev/null 2>&1; }
    # Red Hat and its clones have the headers of libbpf in a separate repository
    update() { dnf -q config-manager --set-enabled crb 2>/dev/null || true; }
    install="dnf install -y"
    pythons="python3.14 python3.13 python3.12 python3.11"
else
    noted=$here/../build/packages-noted
    [ ! -e "$noted" ] || exit 0
    echo "setup: neither apt-get nor dnf is here. Install these, then run make again:" >&2
    for purpose in "$@"; do
        sed -n "s/^$purpose.need /  /p" "$packages" >&2
    done
    mkdir -p "$(dirname "$noted")" && : >"$noted"
    exit 2
fi

# Print the package that "a|b?" selects here; nothing if it is installed or optional and missing.
missing_of() {
    names=$(echo "${1%\?}" | tr '|' ' ')
    for name in $names; do
        ! installed "$name" || return 0
    done
    for name in $names; do
        if available "$name"; then
            echo "$name"
            return 0
        fi
    done
    if [ "$1" = "${1%\?}" ]; then
        echo "${names%% *}"
    else
        echo "setup: this release has no ${1%\?}: what needs it is left out" >&2
    fi
}

all_missing() {
    for purpose in "$@"; do
        # shellcheck disable=SC2013  # words are wanted
        for package in $(sed -n "s/^$purpose.$manager //p" "$packages"); do
            missing_of "$package"
        done
    done
    "$here/python.sh" >/dev/null 2>&1 || python_package
}

# If the release's python3 is too old or has no venv: the newest other Python.
python_package() {
    if [ $manager = apt ]; then
        default=$(apt-cache policy python3 | sed -n 's/ *Candidate: \([0-9.]*\).*/\1/p')
        ! dpkg --compare-versions "${default:-0}" ge 3.11 || return 0 # python3-venv will do
    fi
    for name in $pythons; do
        if available "$name"; then
            echo "$name"
            return 0
        fi
    done
    echo "${pythons##* }"
}

# shellcheck disable=SC2086  # the lists are made of package names from packages.txt
if [ "$(id -u)" != 0 ]; then
    missing=$(all_missing "$@")
    [ -n "$missing" ] || exit 0
    echo "setup: these packages are missing. Run this once, then the same make command again:" >&2
    echo "  sudo $install" $missing >&2
    exit 2
fi
available coreutils || update # a new machine has no package lists yet
missing=$(all_missing "$@")
[ -n "$missing" ] || exit 0
echo "setup: installing" "$(echo "$missing" | tr '\n' ' ')" >&2
update
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086
$install $missing >/dev/null
