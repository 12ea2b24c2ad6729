#!/bin/sh
# The worker of driver.sh, for some records as arguments. It stands there in single quotes, so it has
# none. Nothing is done by a path of several parts: it goes into each directory and looks where it is.
# Descriptor 7 is the directory that was given, 8 and 9 are the notes for --undo.

LC_ALL=C
export LC_ALL
mode=$1 quiet=$2 root=${3%/} uid=$4 keys=$5 failed=0 checked=
shift 5
host=$(uname -n)
host=${host%%.*}
nl="
"

say() { # verb, path, remark: unprintable bytes become a question mark
    [ -n "$quiet" ] && return
    case $2 in
    *[!\ -~]*) printf "%s ./%s  %s\n" "$1" "$(printf %s "$2" | tr -c "\40-\176" "?")" "$3" ;;
    *) printf "%s ./%s  %s\n" "$1" "$2" "$3" ;;
    esac
}
fail() {
    failed=1
    quiet="" say "FAILED:" "$1" "$2" >&2
}
ours() { # as root: others can exchange nothing in the directory where we are
    [ "$uid" = 0 ] && [ "$mode" != dry ] || return 0
    case $checked in *"$nl$PWD$nl"*) return 0 ;; esac
    [ -n "$(find . -prune -user 0 ! -perm -020 ! -perm -002 2>/dev/null)" ] || return 1
    checked=$checked$nl$PWD$nl
}
enter() { # path, make: go to its directory; status 1: refused, 2: not there
    why="refused: it leads out of the directory or through a symbolic link"
    case $1 in "" | /* | .. | ../* | */.. | */../*) return 1 ;; esac
    rest=$1/ way=
    cd -P /proc/self/fd/7 || return 1
    while :; do
        if ! ours; then
            why="refused as root: others may write to its directory (tracehint-tag can do it)"
            return 1
        fi
        part=${rest%%/*} rest=${rest#*/}
        [ -n "$rest" ] || break
        way=$way${way:+/}$part
        if [ ! -d "./$part" ]; then
            if [ -e "./$part" ] || [ -L "./$part" ]; then return 1; fi
            [ -n "$2" ] || return 2
            note 9 "$way" && mkdir -- "./$part" || return 1
        fi
        cd -P "./$part" 2>/dev/null && [ "$PWD" = "$root/$way" ] || return 1
    done
    name=./$part
    [ ! -L "$name" ]
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
note() { # descriptor, fields ...
    into=$1
    shift
    printf "%s\0" "$@" >&"$into"
}
make() { # kind, path: the directory that holds it is there
    enter "$2" make || return 1
    case $1 in
    M) note 9 "$2" && mkdir -- "$name" ;;
    C) note 9 "$2" && (set -C && : >"$name") 2>/dev/null ;;
    *) return 1 ;;
    esac
}
set_one() { # kind, path, attribute, value, remark
    if [ "$where" = 2 ] || [ ! -e "$name" ]; then
        case $1 in D | F) say "not there:" "$2" "$5" && return ;; esac
        if [ "$mode" = dry ]; then
            say make "$2" ""
            say set "$2" "$5"
            return
        fi
        make "$1" "$2" || { fail "$2" "cannot be made" && return; }
    fi
    current "$3" "$name"
    if [ "$value" = "$4" ]; then
        say "unchanged:" "$2" "$5"
    elif [ "$mode" = dry ]; then
        say set "$2" "$5"
    elif [ ${#value} -gt 8194 ]; then
        fail "$2" "the value that it has is too long to be kept"
    else
        [ -z "$value" ] || note 8 "$2" "$3" "$value"
        if put "$3" "$4" "$name"; then say set "$2" "$5"; else fail "$2" "$5"; fi
    fi
}
undo_one() {
    [ -e "$name" ] || return 0
    current "$3" "$name"
    [ "$value" = "$4" ] || return 0
    key=$3
    case $key in
    mfs:sclass | ceph.file.layout* | ceph.dir.pin*) return 0 ;; # changed back, see old_one
    ceph.dir.layout.pool) key=ceph.dir.layout ;;
    esac
    if setfattr -h -x "$key" -- "$name"; then say unset "$2" "$5"; else fail "$2" "$5"; fi
}
old_one() { # path, attribute, value
    [ -e "$name" ] || return 0
    current "$2" "$name"
    case $2 in
    mfs:sclass | ceph.dir.pin*) ;;
    ceph.file.layout*)
        [ ! -s "$name" ] || { say "left:" "$1" "it holds data: $2" && return; } ;;
    *) [ -z "$value" ] || return 0 ;;
    esac
    put "$2" "$3" "$name" || fail "$1" "$2"
}
made_one() { # prints one letter for each thing that it removed
    if [ -d "$name" ]; then
        rmdir -- "$name" 2>/dev/null && printf x
    elif [ -f "$name" ] && [ ! -s "$name" ]; then
        rm -f -- "$name" && printf x
    fi
}
allowed() { # attribute, value: of a form that a table has
    case $1 in
    "" | -* | *[!A-Za-z0-9_.:-]* | [Ss][Ee][Cc][Uu][Rr][Ii][Tt][Yy].* | [Ss][Yy][Ss][Tt][Ee][Mm].*)
        return 1 ;;
    esac
    [ ${#2} -le 8194 ] || return 1
    case $1=$2 in
    mfs:sclass=-* | mfs:sclass=*[!A-Za-z0-9_.-]*) return 1 ;;
    mfs:sclass=*) ;;
    *=0x*[!0-9A-Fa-f]*) return 1 ;;
    *=0x*) ;;
    *) return 1 ;;
    esac
}
while [ $# -gt 0 ]; do
    case $mode in
    set | dry | undo)
        kind=$1 path=$2 key=$3 hex=$4 remark=$5
        case $hex in
        *@host*)
            hex=${hex%%@host*}$host${hex#*@host}
            case $key in mfs:*) ;; *) hex=$(hex "$hex") ;; esac
            ;;
        esac
        shift 5 ;;
    old)
        path=$1 key=$2 hex=$3
        shift 3
        case $nl$keys$nl in
        *"$nl$key$nl"*) ;;
        *)
            fail "$path" "refused: the journal sets an attribute that the table does not"
            continue
            ;;
        esac
        ;;
    made)
        path=$1 key=user.x hex=0x
        shift ;;
    esac
    path=${path#./}
    if ! allowed "$key" "$hex"; then
        fail "$path" "refused: not an attribute and value of a table"
        continue
    fi
    where=0
    enter "$path" "" || where=$?
    case $where in
    0) ;;
    2) case $mode in set | dry) ;; *) continue ;; esac ;;
    *)
        fail "$path" "$why"
        continue
        ;;
    esac
    case $mode in
    set | dry) set_one "$kind" "$path" "$key" "$hex" "$remark" ;;
    undo) undo_one "$kind" "$path" "$key" "$hex" "$remark" ;;
    old) old_one "$path" "$key" "$hex" ;;
    made) made_one ;;
    esac
done
exit $failed
