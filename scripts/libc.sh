#!/bin/sh
# The C library of another Debian release, for tests of the preload collector:
#   scripts/libc.sh FOLDER RELEASE             fetch it into FOLDER/RELEASE (apt, in a directory of its own)
#   scripts/libc.sh FOLDER RELEASE COMMAND...  run the command with it: this machine's programs, in a mount
#                                              namespace where its libraries overlay those of this machine
# Existing files are kept. Only releases newer than this machine's can run its programs.
set -eu
place=$1/$2 release=$2
shift 2
libraries=lib/x86_64-linux-gnu
if [ $# -gt 0 ]; then
    # as root, else in a user namespace, if that is allowed
    user=-r
    if [ "$(id -u)" = 0 ]; then user=; fi
    # one mount: between two mounts no program could start
    # shellcheck disable=SC2016 # the inner shell expands it
    exec unshare -m $user sh -euc '
        mount -t overlay -o "ro,lowerdir=$1:$2" overlay "$2"
        shift 2
        exec "$@"' libc "$place/usr/$libraries" "/usr/$libraries" "$@"
fi
if [ -e "$place/.ready" ]; then exit 0; fi
mkdir -p "$place/apt/lists/partial" "$place/apt/archives/partial"
place=$(cd "$place" && pwd -P)
keys=/usr/share/keyrings/debian-archive-keyring.gpg
echo "deb [signed-by=$keys arch=amd64] http://deb.debian.org/debian $release main" >"$place/apt/sources.list"
set -- -qq -o APT::Architecture=amd64 -o Dir::Etc::SourceList="$place/apt/sources.list" -o Dir::Etc::SourceParts=/dev/null \
    -o Dir::State::Lists="$place/apt/lists" -o Dir::Cache="$place/apt" -o APT::Sandbox::User=
apt-get "$@" update
cd "$place/apt"
# libc6-dev: to link static programs
apt-get "$@" download libc6 libc6-dev
for package in libc6_*.deb libc6-dev_*.deb; do dpkg-deb -x "$package" "$place"; done
# older releases have the library in /lib
if [ ! -d "$place/usr/$libraries" ]; then mkdir -p "$place/usr/lib" && mv "$place/$libraries" "$place/usr/lib/"; fi
rm -rf "$place/apt"
touch "$place/.ready"
