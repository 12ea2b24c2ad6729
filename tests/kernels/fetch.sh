#!/bin/sh
# Stock Debian kernels into FOLDER/NAME/ (boot/vmlinuz-*, lib/modules/*), through apt with
# package lists of its own: nothing is installed and the machine's sources stay as they are.
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
    suite=$(awk -v n="$name" '$1 == n { print $2 }' "$here/kernels.txt")
    [ -n "$suite" ] || { echo "fetch: $name is not in kernels.txt" >&2; exit 2; }
    echo "deb $mirror $suite main" >"$list"
    apt apt-get update
    # the meta package of the suite names the newest image of its series
    package=$(apt apt-cache depends -i "linux-image-amd64/$suite" |
        sed -n 's/.*Depends: \(linux-image-[0-9]\)/\1/p' | head -n 1)
    [ -n "$package" ] || { echo "fetch: $suite has no linux-image-amd64" >&2; exit 2; }
    (cd "$folder/deb" && apt apt-get download "$package/$suite")
    rm -rf "${folder:?}/$name"
    mkdir "$folder/$name"
    for deb in "$folder/deb/$package"_*.deb; do
        dpkg-deb -x "$deb" "$folder/$name"
    done
    rm -f "$folder/deb/$package"_*.deb
    ls "$folder/$name/lib/modules" 2>/dev/null >"$folder/$name/version" ||
        ls "$folder/$name/usr/lib/modules" >"$folder/$name/version"
done
