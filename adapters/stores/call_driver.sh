#!/bin/sh
#@EVIDENCE@
# usage: sh THIS-SCRIPT [--dry-run | --undo] [--quiet] [DIRECTORY]
#
# Runs the store's tools on the files and directories of the table. --undo runs what takes it back,
# where the tool has something for that.
# This text is the same in every script. Names and values stand in the table only: records of 16
# fields, each ended by a NUL byte: what it is for (set or undo), kind (D directory, F file, C file
# that the tool makes, N name in a store without mount), path, a remark for people, and 12 arguments,
# empty ones left out; @path in an argument stands for the path, @host for the name of this node.
# Arguments are passed on as they are: none of them is ever shell text.
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
