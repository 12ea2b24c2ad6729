#!/bin/sh
# Fetch stock Debian kernels into FOLDER/NAME/ (boot/vmlinuz-*, lib/modules/*), by apt with
# separate package lists: nothing is installed and the machine's sources are not changed.
#   fetch.sh FOLDER NAME...     names: the first column of kernels.txt
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=$1
shift
mkdir -p "$folder/apt/lists/partial" "$folder/apt/cache/archives/partial" "$folder/deb"
folder=$(cd "$folder" && pwd)
list=$folder/apt/sources.list

apt() {
    program=$1
    shift
    set -- -o "APT::Architecture=$processor" -o "APT::Architectures::=$processor" "$@"
    "$program" -qq -o "Dir::Etc::sourcelist=$list" -o Dir::Etc::sourceparts=/dev/null \
        -o "Dir::State::lists=$folder/apt/lists" -o "Dir::Cache=$folder/apt/cache" \
        -o APT::Sandbox::User=root -o Acquire::Languages=none "$@"
}

# the mirror that the machine itself uses (its first source with a part "main")
# shellcheck disable=SC2016  # apt expands them
mirror=$(apt-get indextargets --format '$(REPO_URI) $(COMPONENT)' 'Created-By: Packages' |
    awk '$2 == "main" && $1 !~ /security/ { print $1; exit }')
[ -n "$mirror" ] || { echo "fetch: apt has no source with main: see sources.list(5)" >&2; exit 2; }

for name in "$@"; do
    [ -e "$folder/$name/version" ] && continue
    read -r suite processor <<END
$(awk -v n="$name" '$1 == n { print $2, $3 }' "$here/kernels.txt")
END
    [ -n "$suite" ] || { echo "fetch: $name is not in kernels.txt" >&2; exit 2; }
    for one in "$suite" "${suite%-backports}"; do
        echo "deb [arch=$processor] $mirror $one main"
    done | uniq >"$list"
    apt apt-get update
    # the meta package of the suite names the newest image of its series
    package=$(apt apt-cache depends -i "linux-image-$processor/$suite" |
        sed -n 's/.*Depends: \(linux-image-[0-9]\)/\1/p' | head -n 1)
    [ -n "$package" ] || { echo "fetch: $suite has no linux-image-$processor" >&2; exit 2; }
    packages=$package/$suite
    # for another processor also the loader's libraries and the guest's programs
    [ "$processor" = "$(dpkg --print-architecture)" ] || packages="$packages busybox-static coreutils
        dash libacl1 libattr1 libbpf-dev libc6 libc6-dev libelf-dev libgmp10 libpcre2-8-0 libselinux1
        linux-libc-dev zlib1g-dev"
    # shellcheck disable=SC2086  # words
    (cd "$folder/deb" && apt apt-get download $packages)
    rm -rf "${folder:?}/$name"
    mkdir "$folder/$name"
    for deb in "$folder"/deb/*.deb; do
        dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$folder/$name" --keep-directory-symlink
        rm "$deb"
    done
    ls "$folder/$name/lib/modules" 2>/dev/null >"$folder/$name/version" ||
        ls "$folder/$name/usr/lib/modules" >"$folder/$name/version"
done
