#!/bin/sh
# Sets the hints of one task's files before the task runs, those of its outputs when it has ended,
# and removes what was made for it and that it did not touch. This text is the same in every folder; names and values stand in
# the file `table` beside it, `helper` is the same as a program (tracehint-tag), where there is one.
#
# Two ways: sourced by the task's own shell, with TRACEHINT_DIR and TRACEHINT_RULE set; or
#     tag TASK COMMAND...
# A hint is advice: whatever fails here never stops the task.

_tracehint() { # set or clean; status 3: there is something to do afterwards
    if [ -x "$TRACEHINT_DIR/helper" ]; then
        "$TRACEHINT_DIR/helper" "$1" "$TRACEHINT_DIR/table" "$TRACEHINT_RULE"
        _tracehint_status=$?
        [ "$_tracehint_status" -lt 126 ] && return "$_tracehint_status"
    fi
    [ -f "$TRACEHINT_DIR/table" ] || return 0
    command -v xargs >/dev/null && command -v setfattr >/dev/null || return 0
    _tracehint_entry=$(tail -c +$((TRACEHINT_RULE * 24 + 29)) -- "$TRACEHINT_DIR/table" |
        head -c 23)
    _tracehint_at=${_tracehint_entry% *} _tracehint_length=${_tracehint_entry#* }
    _tracehint_at=${_tracehint_at#"${_tracehint_at%%[!0]*}"}
    _tracehint_length=${_tracehint_length#"${_tracehint_length%%[!0]*}"}
    [ -n "$_tracehint_length" ] || return 0
    tail -c +$((_tracehint_at + 1)) -- "$TRACEHINT_DIR/table" | head -c "$_tracehint_length" |
        xargs -0 -x -n 80 sh -c "$_tracehint_worker" tracehint-tag "$1"
    case $? in 0) return 0 ;; *) return 3 ;; esac
}

# shellcheck disable=SC2016 # the worker expands its own variables
_tracehint_worker='
mode=$1 made=0 host=$(uname -n)
host=${host%%.*}
shift
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
while [ $# -ge 4 ]; do
    kind=$1 path=$2 name=$3 value=$4
    shift 4
    safe "$path" || continue
    path=./$path
    if [ "$mode" = clean ] && [ "$kind" != A ]; then
        # made here, and of the time stamp that it was made with: some stores keep whole seconds
        if [ "$kind" = C ] && [ -f "$path" ] && [ ! -s "$path" ] &&
            [ -n "$(find "$path" -prune -mtime +7000)" ]; then
            rm -f -- "$path"
        fi
        continue
    fi
    [ "$mode" = set ] && [ "$kind" = A ] && made=1 && continue
    if [ ! -e "$path" ]; then
        case $kind in C | K)
            (set -C && : >"$path") 2>/dev/null && TZ=UTC0 touch -t 197001010000.01 -- "$path" ;;
        esac
    fi
    [ -e "$path" ] || continue
    [ "$kind" = C ] && [ ! -s "$path" ] && made=1
    case $value in *@host*) value=${value%%@host*}$host${value#*@host} ;; esac
    case $name in
    mfs:sclass) mfssetsclass "$value" "$path" >/dev/null ;;
    *) setfattr -h -n "$name" -v "$value" -- "$path" ;;
    esac
done
exit $made
'

if [ -n "${TRACEHINT_RULE-}" ]; then
    _tracehint_home=$PWD # the task may go elsewhere
    _tracehint set ||
        trap '(CDPATH= && cd -- "$_tracehint_home" 2>/dev/null && _tracehint clean) || :' EXIT
else
    TRACEHINT_DIR=${0%/*} TRACEHINT_RULE=$1
    shift
    if _tracehint set; then exec "$@"; fi
    "$@"
    status=$?
    _tracehint clean
    exit $status
fi
