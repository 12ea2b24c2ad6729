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
# Needs: sh, xargs -0, setfattr and getfattr (Debian: apt-get install attr). An attribute mfs:sclass
# is a storage class of MooseFS, @host in its value the name of the node that this runs on.

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

for tool in setfattr getfattr xargs; do
    if ! command -v "$tool" >/dev/null; then
        echo "$tool is not installed (Debian: apt-get install attr findutils)" >&2
        exit 2
    fi
done

# shellcheck disable=SC2016 # the worker expands its own variables
worker='
LC_ALL=C
export LC_ALL
mode=$1 quiet=$2 failed=0
shift 2
notes=.tracehint
host=$(uname -n)
host=${host%%.*}

say() { # verb, path, remark: unprintable bytes become a question mark
    [ -n "$quiet" ] && return
    case $2 in
    *[!\ -~]*) printf "%s %s  %s\n" "$1" "$(printf %s "$2" | tr -c "\40-\176" "?")" "$3" ;;
    *) printf "%s %s  %s\n" "$1" "$2" "$3" ;;
    esac
}
fail() {
    failed=1
    quiet="" say "FAILED:" "$1" "$2" >&2
}
safe() { # relative, without .. and without a symbolic link on the way
    case $1 in "" | /* | .. | ../* | */.. | */../*) return 1 ;; esac
    rest=$1/ way=.
    while [ -n "$rest" ]; do
        way=$way/${rest%%/*}
        rest=${rest#*/}
        [ -L "$way" ] && return 1
    done
    return 0
}
hex() { # text
    printf 0x
    printf %s "$1" | od -An -v -tx1 | tr -d " \n"
}
put() { # attribute, value, path
    case $1 in
    mfs:sclass) mfssetsclass "$2" "$3" >/dev/null ;;
    *) setfattr -h -n "$1" -v "$2" -- "$3" ;;
    esac
}
current() { # attribute, path: its value in hexadecimal, or nothing
    if [ "$1" = mfs:sclass ]; then
        value=$(mfsgetsclass "$2" 2>/dev/null) || value=
        value=${value##*: } && value=${value#[!0-9A-Za-z_]} && value=${value%[!0-9A-Za-z_]}
        return
    fi
    case $1 in
    ceph.*.layout) # Ceph adds the pool, which is an attribute of its own here
        value=$(getfattr -h --only-values -n "$1" -- "$2" 2>/dev/null) || value=
        value=${value%% pool=*}
        value=${value:+$(hex "$value")}
        return
        ;;
    esac
    value=$(getfattr -h -e hex -n "$1" -- "$2" 2>/dev/null) || value=
    case $value in
    *"
$1="*) value=${value##*=} ;;
    *"
$1") value=0x ;;
    *) value= ;;
    esac
}
note() { # file, fields ...
    into=$notes/$1
    shift
    printf "%s\0" "$@" >>"$into"
}
folders() { # make a directory and what is missing above it
    rest=${1#./}/ way=.
    while [ -n "$rest" ]; do
        way=$way/${rest%%/*}
        rest=${rest#*/}
        [ -d "$way" ] || { note made "$way" && mkdir -- "$way"; } || return 1
    done
}
make() { # kind, path
    case $1 in
    M)
        folders "$2" ;;
    C)
        folders "${2%/*}" && note made "$2" && (set -C && : >"$2") 2>/dev/null ;;
    *) return 1 ;;
    esac
}
set_one() { # kind, path, attribute, value, remark
    if [ ! -e "$2" ]; then
        case $1 in D | F) say "not there:" "$2" "$5" && return ;; esac
        if [ "$mode" = dry ]; then
            say make "$2" ""
        else
            make "$1" "$2" || { fail "$2" "cannot be made" && return; }
        fi
    fi
    current "$3" "$2"
    if [ "$value" = "$4" ]; then
        say "unchanged:" "$2" "$5"
    elif [ "$mode" = dry ]; then
        say set "$2" "$5"
    else
        [ -z "$value" ] || note old "$2" "$3" "$value"
        if put "$3" "$4" "$2"; then say set "$2" "$5"; else fail "$2" "$5"; fi
    fi
}
undo_one() {
    [ -e "$2" ] || return 0
    current "$3" "$2"
    [ "$value" = "$4" ] || return 0
    name=$3
    case $name in
    mfs:sclass | ceph.file.layout* | ceph.dir.pin*) return 0 ;; # changed back, see old_one
    ceph.dir.layout.pool) name=ceph.dir.layout ;;
    esac
    if setfattr -h -x "$name" -- "$2"; then say unset "$2" "$5"; else fail "$2" "$5"; fi
}
old_one() { # path, attribute, value
    [ -e "$1" ] || return 0
    current "$2" "$1"
    case $2 in
    mfs:sclass | ceph.dir.pin*) ;;
    ceph.file.layout*)
        [ ! -s "$1" ] || { say "left:" "$1" "it holds data: $2" && return; } ;;
    *) [ -z "$value" ] || return 0 ;;
    esac
    put "$2" "$3" "$1" || fail "$1" "$2"
}
made_one() { # prints one letter for each thing that it removed
    if [ -d "$1" ]; then
        rmdir -- "$1" 2>/dev/null && printf x
    elif [ -f "$1" ] && [ ! -s "$1" ]; then
        rm -f -- "$1" && printf x
    fi
}
while [ $# -gt 0 ]; do
    case $mode in
    set | dry | undo)
        kind=$1 path=$2 name=$3 hex=$4 remark=$5
        case $hex in
        *@host*)
            hex=${hex%%@host*}$host${hex#*@host}
            case $name in mfs:*) ;; *) hex=$(hex "$hex") ;; esac
            ;;
        esac
        shift 5 ;;
    old)
        path=$1 name=$2 hex=$3
        shift 3 ;;
    made)
        path=$1
        shift ;;
    esac
    if ! safe "$path"; then
        fail "$path" "refused: it leads out of the directory or through a symbolic link"
        continue
    fi
    path=./$path
    case $mode in
    set | dry) set_one "$kind" "$path" "$name" "$hex" "$remark" ;;
    undo) undo_one "$kind" "$path" "$name" "$hex" "$remark" ;;
    old) old_one "$path" "$name" "$hex" ;;
    made) made_one "$path" ;;
    esac
done
exit $failed
'
run() { # mode, fields per record: the table on standard input
    xargs -0 -x -n $((20 * $2)) sh -c "$worker" tracehint "$1" "$quiet"
}

status=0
cd -- "$dir"
if [ "$mode" = set ]; then
    if [ -L .tracehint ] || ! mkdir -p .tracehint; then
        echo "cannot make the directory .tracehint here" >&2
        exit 2
    fi
fi
if ! table | run "$mode" 5; then status=1; fi
if [ "$mode" = undo ] && [ -d .tracehint ] && [ ! -L .tracehint ]; then
    if [ -f .tracehint/old ] && [ ! -L .tracehint/old ]; then
        if run old 3 <.tracehint/old; then rm -f .tracehint/old; else status=1; fi
    fi
    if [ -f .tracehint/made ] && [ ! -L .tracehint/made ]; then
        # Directories become empty one level at a time.
        while [ -n "$(run made 1 <.tracehint/made)" ]; do :; done
        rm -f .tracehint/made
    fi
    rmdir .tracehint 2>/dev/null || :
fi
exit $status
