#!/bin/sh
# The start of driver.sh and call_driver.sh: options, directory and table.

set -eu
mode=set dry='' quiet='' dir=.
for argument; do
    case $argument in
    --dry-run) dry=1 ;;
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

unset CDPATH
case $dir in /*) ;; *) dir=./$dir ;; esac
