#!/bin/sh
#@EVIDENCE@
# usage: sh THIS-SCRIPT [--dry-run | --undo] [--quiet] [DIRECTORY]
#
# Runs the store's tools on the files and directories of the table. --undo runs the commands that
# reverse this, for tools that have one.
# This text is the same in every script. Names and values are in the table only: records of 16
# fields, each terminated by a NUL byte: purpose (set or undo), kind (D directory, F file, C file
# that the tool creates, N name in a store without mount), path, a remark, and 12 arguments, without
# empty ones; @path in an argument is replaced by the path, @host by the name of this node.
# Arguments are passed unchanged: none of them is ever shell text.
# DIRECTORY (default: the current one) is not used for a store without mount.

#@OPTIONS@

cd -P -- "$dir"
exec 7<.

# shellcheck disable=SC2016 # the worker expands its own variables
worker='
#@WORKER@'
status=0
table | xargs -0 -x -n 320 sh -c "$worker" tracehint "$mode" "$dry" "$quiet" "$PWD" || status=1
exit $status
