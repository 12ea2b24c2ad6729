#!/bin/sh
#@EVIDENCE@
# usage: sh THIS-SCRIPT [--dry-run | --undo] [--quiet] [DIRECTORY]
#
# Sets the attributes of the table on the files and directories below DIRECTORY (default: the
# current one). Running it again changes nothing. --undo restores values that were not changed
# since, and removes files that the script created and that are still empty; so does apply --undo.
# Names and values are in the table only: records of five fields, each terminated by a NUL byte:
# kind (D directory, M directory to create, F file, C file to create), path, attribute, value in
# hexadecimal, and a remark; the first one is S, store, prefix. The attribute mfs:sclass is a
# storage class of MooseFS; @host in its value is replaced by the name of this node.
# tracehint-tag reads the table and opens each file below DIRECTORY, so that no link and no replaced
# directory leads out. It is a static program without dependencies: the one that TRACEHINT_TAG
# names, the one of the tracehint that wrote this script, or the one on the PATH.

#@OPTIONS@

[ -z "$dry" ] || mode=dry
installed=#@PROGRAM@
program=${TRACEHINT_TAG:-}
if [ -z "$program" ]; then
    program=$installed
    [ -x "$program" ] || program=$(command -v tracehint-tag) || program=
fi
if [ ! -x "$program" ]; then
    echo "${program:-tracehint-tag}: no such program. Put tracehint-tag (adapters/tag/bin of" \
        "tracehint) on the PATH, or set TRACEHINT_TAG to its path" >&2
    exit 2
fi

uid=$(id -u)
own() { # path: owned by the caller and not writable by others
    [ -n "$(find "$1" -prune -user "$uid" ! -perm -020 ! -perm -002 2>/dev/null)" ]
}
trusted() { # program: others can replace neither it nor a directory above it
    real=$(readlink -f -- "$1") && [ -f "$real" ] || return 1
    while own "$real" || [ -n "$(find "$real" -prune -type d -user 0 -perm -1000 2>/dev/null)" ]; do
        [ "$real" != / ] || return 0
        real=${real%/*}
        real=${real:-/}
    done
    return 1
}
if [ "$uid" = 0 ] && ! trusted "$program"; then
    echo "$program is not run as root: other users may write to it or to a directory above it" \
        "(set TRACEHINT_TAG to another)" >&2
    exit 2
fi
case $program in /*) ;; *) program=$(pwd)/$program ;; esac
table | (cd -- "$dir" && exec "$program" script "$mode" ${quiet:+quiet})
