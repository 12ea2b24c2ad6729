#!/bin/sh
#@EVIDENCE@
# usage: sh THIS-SCRIPT [--dry-run | --undo] [--quiet] [DIRECTORY]
#
# Sets the attributes of the table on the files and directories below DIRECTORY (default: the
# current one). Running it again changes nothing. --undo takes back what it set, where nobody
# changed it since, and removes files that it made and nobody wrote to.
# This text is the same in every script. Names and values stand in the table only: records of
# five fields, each ended by a NUL byte: kind (D directory, M directory to be made, F file,
# C file to be made), path, attribute, value in hexadecimal, and a remark for people.
# An attribute mfs:sclass is a storage class of MooseFS, @host in its value the name of the node
# that this runs on.
# Needs: tracehint-tag on the PATH or named by TRACEHINT_TAG (empty: do not use it); or else sh,
# xargs -0, setfattr and getfattr (Debian: apt-get install attr). Without it, root is refused where
# others may write: names there can be exchanged at any moment.

set -eu
mode=set quiet='' dir=.
for argument; do
    case $argument in
    --dry-run) mode=dry ;;
    --undo) mode=undo ;;
    --quiet) quiet=1 ;;
    -h | --help)
        echo 'usage: sh THIS-SCRIPT [--dry-run | --undo] [--quiet] [DIRECTORY]'
        exit 0
        ;;
    -?*)
        echo "unknown option; try --help" >&2
        exit 2
        ;;
    *) dir=$argument ;;
    esac
done

#@TABLE@

uid=$(id -u)
unset CDPATH
case $dir in /*) ;; *) dir=./$dir ;; esac

own() { # path: of the caller, and nobody else may write there
    [ -n "$(find "$1" -prune -user "$uid" ! -perm -020 ! -perm -002 2>/dev/null)" ]
}
trusted() { # program: neither it nor a directory above it can be exchanged by others
    real=$(readlink -f -- "$1") && [ -f "$real" ] && [ -x "$real" ] || return 1
    while own "$real" || [ -n "$(find "$real" -prune -type d -user 0 -perm -1000 2>/dev/null)" ]; do
        [ "$real" != / ] || return 0
        real=${real%/*}
        real=${real:-/}
    done
    return 1
}
helper=${TRACEHINT_TAG-$(command -v tracehint-tag || :)}
if [ -n "$helper" ] && [ ! -x "$helper" ]; then
    echo "$helper: no such program; it is named by TRACEHINT_TAG" >&2
    exit 2
fi
if [ "$uid" = 0 ] && [ -n "$helper" ] && ! trusted "$helper"; then
    echo "$helper is not used: others than root may write to it or to a directory above it" >&2
    helper=
fi
if [ -n "$helper" ]; then
    case $helper in /*) ;; *) helper=$(pwd)/$helper ;; esac
    table | (cd -- "$dir" && exec "$helper" script "$mode" ${quiet:+quiet})
    exit
fi

for tool in setfattr getfattr xargs; do
    if ! command -v "$tool" >/dev/null; then
        echo "$tool is not installed (Debian: apt-get install attr findutils)" >&2
        exit 2
    fi
done

# shellcheck disable=SC2016 # the worker expands its own variables
worker='
#@WORKER@'
run() { # mode, fields per record: the table on standard input
    xargs -0 -x -n $((20 * $2)) sh -c "$worker" tracehint "$1" "$quiet" "$root" "$uid" "$keys"
}
refuse() {
    echo "cannot use .tracehint/${1#./}: it must be $2 of your own to which nobody else may write" \
        "(move .tracehint away)" >&2
    exit 2
}
enter_notes() { # go into .tracehint and look at what lies there; nobody else can change it
    if [ -L .tracehint ] || ! cd -P ./.tracehint || [ "$PWD" != "${root%/}/.tracehint" ] || ! own .; then
        refuse "" "a directory"
    fi
    for file in ./old ./made; do
        [ -e "$file" ] || [ -L "$file" ] || continue
        [ -n "$(find "$file" -prune -type f -links 1 2>/dev/null)" ] || refuse "$file" "a plain file"
        own "$file" || refuse "$file" "a file"
    done
}

status=0 keys=''
cd -P -- "$dir"
root=$PWD
exec 7<.
if [ "$uid" = 0 ] && [ "$mode" != dry ] && ! own .; then
    echo "refused as root: others may write to this directory. Do it as its owner, or with" \
        "tracehint-tag (on the PATH, or named by TRACEHINT_TAG)" >&2
    exit 2
fi
if [ "$mode" = set ]; then
    [ -d .tracehint ] || mkdir -m 700 .tracehint || exit 2
    enter_notes
    (umask 077 && : >>./old && : >>./made)
    exec 8>>./old 9>>./made
    cd -P /proc/self/fd/7
fi
if [ "$mode" = undo ]; then
    keys=$(table | tr '\t\n\0' '??\n' | paste - - - - - | cut -f 3 | sort -u)
fi
if ! table | run "$mode" 5; then status=1; fi
if [ "$mode" = undo ] && { [ -e .tracehint ] || [ -L .tracehint ]; }; then
    enter_notes
    if [ -f ./old ] && ! run old 3 <./old; then status=1; fi
    if [ -f ./made ]; then
        # Directories become empty one level at a time.
        while [ -n "$(run made 1 <./made)" ]; do :; done
    fi
    [ $status != 0 ] || rm -f ./old ./made
    cd -P /proc/self/fd/7
    rmdir .tracehint 2>/dev/null || :
fi
exit $status
