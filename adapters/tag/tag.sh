#!/bin/sh
# Sets the hints of one task's files before the task runs, those of its outputs after it has ended,
# and removes files created for it that it did not touch. This text is the same in every folder;
# names and values are in the file `table` beside it, which `helper` (tracehint-tag) reads.
#
# Two uses: sourced by the task's own shell, with TRACEHINT_DIR and TRACEHINT_RULE set; or
#     tag TASK COMMAND...
# A hint is advice: a failure here never stops the task.

_tracehint() { # set or clean; status 3: clean must run afterwards
    [ ! -x "$TRACEHINT_DIR/helper" ] ||
        "$TRACEHINT_DIR/helper" "$1" "$TRACEHINT_DIR/table" "$TRACEHINT_RULE"
}

if [ -n "${TRACEHINT_RULE-}" ]; then
    _tracehint_home=$PWD # the task may change directory
    _tracehint set || [ $? != 3 ] ||
        trap '(CDPATH= && cd -- "$_tracehint_home" 2>/dev/null && _tracehint clean) || :' EXIT
else
    TRACEHINT_DIR=${0%/*} TRACEHINT_RULE=$1
    shift
    _tracehint set || [ $? != 3 ] || {
        "$@"
        status=$?
        _tracehint clean
        exit $status
    }
    exec "$@"
fi
