#!/bin/sh
# The guest's complete system: busybox, the loader, the workloads, the few programs that they run,
# and the modules of one kernel for the disks and overlayfs.
#   initramfs.sh KERNEL_FOLDER LOADER WORKLOAD OUTPUT.cpio.gz
# The programs are this machine's, or, for another processor, those in the kernel's folder.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
kernel=$1 loader=$2 workload=$3 output=$4
# disks and file systems, in the order of loading; their dependencies are found
wanted="virtio_pci virtio_blk crc32c_generic ext4 overlay"

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root/bin" "$root/dev" "$root/proc" "$root/sys" "$root/tmp" "$root/data" "$root/modules"
from=""
[ ! -e "$kernel/bin/busybox" ] || from=$kernel
cp "$from/bin/busybox" "$root/bin/busybox"
cp "$loader" "$root/bin/tracehint-rec"
cp "$workload" "$root/bin/workload"
cp "$here/init" "$root/init"
chmod 755 "$root/init"

# with_libraries PROGRAM: a dynamic program at its path, and the libraries that it loads
with_libraries() {
    mkdir -p "$root$(dirname "$1")"
    cp -L "$from$1" "$root$1"
    for needed in $(readelf -dlW "$from$1" | sed -n 's/.*\(NEEDED\|interpreter:\).*[[ ]\(.*\)\]/\2/p'); do
        case $needed in
            /*) ;;
            *) needed=$(cd "$from/" && find -L lib usr/lib -maxdepth 2 -name "$needed" | sed 's|^|/|;q') ;;
        esac
        [ -e "$root$needed" ] || (with_libraries "$needed")
    done
}
for program in /bin/dash /bin/cat /bin/cp /usr/bin/head; do
    with_libraries "$program"
done
ln -s dash "$root/bin/sh"

modules=$(find "$kernel" -type d -path '*/lib/modules/*/kernel' -prune)
# with_module NAME: the module after its dependencies; a built-in module has no file
with_module() {
    grep -qx "$1.ko" "$root/modules/order" && return
    found=$(find "$modules" -name "$1.ko" -o -name "$1.ko.xz" -o -name "$(echo "$1" | tr _ -).ko" \
        -o -name "$(echo "$1" | tr _ -).ko.xz" | head -n 1)
    [ -n "$found" ] || return 0
    case $found in
        *.xz) xz -dc "$found" >"$root/modules/$1.ko" ;;
        *) cp "$found" "$root/modules/$1.ko" ;;
    esac
    for needed in $(tr '\0' '\n' <"$root/modules/$1.ko" | sed -n 's/^depends=//p' | tr ',' ' '); do
        (with_module "$needed")
    done
    grep -qx "$1.ko" "$root/modules/order" || echo "$1.ko" >>"$root/modules/order"
}
: >"$root/modules/order"
for module in $wanted; do
    with_module "$module"
done

(cd "$root" && find . | busybox cpio -o -H newc 2>/dev/null) | gzip -1 >"$output"
