#!/bin/sh
# Run a command in a clone of this repository in a new root file system of a Debian release, like a
# new user's machine. Needs root and debootstrap (scripts/setup.sh roots).
#   scripts/fresh_root.sh trixie make demo
# The release's base system is fetched once, into build/roots/RELEASE; the command runs in a copy,
# build/roots/RELEASE.run, which is kept for inspection until the next command.
set -eu
release=$1
shift
top=$(cd "$(dirname "$0")/.." && pwd)
base=$top/build/roots/$release root=$top/build/roots/$release.run

if [ ! -d "$base" ]; then
    rm -rf "$base.new"
    mkdir -p "$base.new"
    debootstrap --variant=minbase "$release" "$base.new" http://deb.debian.org/debian >"$base.log" ||
        { tail -n 5 "$base.log" >&2; exit 1; }
    mv "$base.new" "$base"
fi
rm -rf "$root"
cp -a "$base" "$root"

# This machine's settings for the access to package archives.
mkdir -p "$root/etc/ssl/certs" "$root/usr/local/share"
for file in /etc/resolv.conf /etc/hosts /etc/pip.conf /etc/apt/apt.conf.d /etc/ssl/certs/ca-certificates.crt \
    /usr/local/share/ca-certificates; do
    [ ! -e "$file" ] || cp -rL "$file" "$root$(dirname "$file")/"
done
git clone -q "$top" "$root/src"
[ ! -d "$top/dist" ] || cp -r "$top/dist" "$root/src" # built wheels
kept=$(env | sed -n 's/^\(PIP_[A-Z_]*\|[A-Z_]*CERT_FILE\|[a-zA-Z]*_proxy\|[A-Z]*_PROXY\|CI\)=.*/\1/p' | sort -u)
settings=""
for name in $kept; do
    settings="$settings $name=$(printenv "$name")"
done

# shellcheck disable=SC2086,SC2016  # the settings are words; the inner shell expands its own
exec unshare --mount --pid --fork --kill-child sh -eu -c '
    root=$1
    shift
    mount --bind "$root" "$root" # the root is a mount point, as on any machine
    mount -t proc proc "$root/proc"
    mount --rbind /sys "$root/sys"
    mount --rbind /dev "$root/dev"
    mount -t tmpfs tmpfs "$root/tmp"
    exec chroot "$root" /usr/bin/env -i HOME=/root TERM=dumb DEBIAN_FRONTEND=noninteractive \
        PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"
' - "$root" $settings sh -eu -c '
    apt-get update -qq
    apt-get install -y -qq --no-install-recommends git make ca-certificates >/dev/null
    cd /src
    exec "$@"
' - "$@"
