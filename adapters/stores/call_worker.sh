#!/bin/sh
# The worker of call_driver.sh; its arguments are records. It is embedded there in single quotes, so
# it must not contain any. It changes to each directory, checks that it is the right one, and names
# files in it without a /. Descriptor 7 is the directory given to the script.

LC_ALL=C
export LC_ALL
mode=$1 dry=$2 quiet=$3 root=${4%/} uid=$(id -u) failed=0
shift 4
host=$(uname -n)
host=${host%%.*}

show() { # words: unprintable bytes become a question mark
    printf "%s" "$*" | tr -c "\40-\176" "?"
    echo
}
fail() { # path, why
    failed=1
    show "FAILED: $1  $2" >&2
}
enter() { # path: change to its directory; $part: its last component
    case $1 in /* | .. | ../* | */.. | */../*) return 1 ;; esac
    cd -P /proc/self/fd/7 || return 1
    rest=$1/ way=
    while :; do
        part=${rest%%/*} rest=${rest#*/}
        [ -n "$rest" ] || return 0
        way=$way${way:+/}$part
        cd -P "./$part" 2>/dev/null && [ "$PWD" = "$root/$way" ] || return 1
    done
}
closed() { # as root: no other user can replace names here
    [ "$uid" != 0 ] || [ -n "$(find . -prune -user 0 ! -perm -020 ! -perm -002 2>/dev/null)" ]
}
reach() { # kind, path: sets $where, for the tool; 1: refused, 2: missing, or exists already
    case $1 in
    N)
        where=$2
        return 0
        ;;
    D)
        enter "${2:+$2/}." || return 2
        where=.
        return 0
        ;;
    esac
    enter "$2" || return 2
    where=./$part
    [ ! -L "$where" ] || return 1
    if [ "$1" = C ] && [ "$mode" = set ]; then [ ! -e "$where" ] || return 2; else
        [ -f "$where" ] || return 2
    fi
    [ -n "$dry" ] || closed
}
allowed() { # argument: only characters that a table uses
    case $1 in *[!A-Za-z0-9_.:,=@/+-]*) return 1 ;; esac
}
call() { # path, remark, arguments: run them without empty ones
    path=$1 remark=$2
    shift 2
    left=$#
    while [ "$left" -gt 0 ]; do
        argument=$1
        shift
        left=$((left - 1))
        [ -n "$argument" ] || continue
        allowed "$argument" || { fail "$path" "refused: not an argument of a table" && return; }
        case $argument in *@host*) argument=${argument%%@host*}$host${argument#*@host} ;; esac
        case $argument in *@path*) argument=${argument%%@path*}$where${argument#*@path} ;; esac
        set -- "$@" "$argument"
    done
    [ -n "$quiet" ] || show "$path  $remark:  $*"
    [ -z "$dry" ] || return 0
    "$@" </dev/null || fail "$path" "$remark"
}
while [ $# -ge 16 ]; do
    purpose=$1 kind=$2 path=$3 remark=$4
    if [ "$purpose" = "$mode" ]; then
        result=0
        reach "$kind" "$path" || result=$?
        case $result in
        0) call "$path" "$remark" "$5" "$6" "$7" "$8" "$9" "${10}" "${11}" "${12}" "${13}" "${14}" \
            "${15}" "${16}" ;;
        2)
            if [ "$kind" = C ] && [ "$mode" = set ]; then
                [ -n "$quiet" ] || show "$path  exists already, or no directory: $remark"
            else
                [ -n "$quiet" ] || show "$path  does not exist: $remark"
            fi
            ;;
        *) fail "$path" "refused: a symbolic link, or as root where other users may write" ;;
        esac
    fi
    shift 16
done
exit $failed
