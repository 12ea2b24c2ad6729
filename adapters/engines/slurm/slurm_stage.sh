#!/bin/sh
# Node-local copies for the jobs of one submission (tracehint). This text is the same in every
# folder; names are arguments. Copies are optional: without one a job reads the original file.
#
#   stage copy LOCAL FILE...          in a job on all nodes: sbcast each file to every node
#   stage run LOCAL COMMAND FILE...   the command, with the node's copies of these files
#   stage clean LOCAL                 in a job on all nodes: remove them
#
# TRACEHINT_RUN names the submission. The command runs in a folder of links and copies; its outputs
# are copied back when it ends, and outputs among FILE also stay on the node.
set -eu
verb=$1 local=$2
shift 2
here=$PWD
keep=$local/tracehint-${TRACEHINT_RUN:-none}

mine() { # whether this user owns the copies: others may write to LOCAL
    [ -n "${TRACEHINT_RUN-}" ] && [ -d "$keep" ] && [ ! -L "$keep" ] && [ -O "$keep" ]
}

use() { # replace the link to $1 by the node's copy; its folders become real ones
    folder=. rest=$1
    while [ "$rest" != "${rest#*/}" ]; do
        folder=$folder/${rest%%/*} rest=${rest#*/}
        if [ -L "$folder" ]; then
            rm -- "$folder" && mkdir -- "$folder" &&
                find "$here/$folder/" -mindepth 1 -maxdepth 1 -exec ln -s -t "$folder" -- {} + ||
                return 1
        fi
        [ -d "$folder" ] || return 0
    done
    ln -sf -- "$keep/$1" "./$1"
}

prepare() { # create the folder of the command; arguments: files
    mkdir "$box/w" && cd "$box/w" || return 1
    find "$here/" -mindepth 1 -maxdepth 1 -exec ln -s -t . -- {} + || return 1
    for file; do
        [ ! -f "$keep/$file" ] || use "$file" || return 1
    done
    links >"$box/links"
}

links() {
    find . -type l -print0 | sort -z
}

case $verb in
copy)
    srun mkdir -p -- "$local"
    srun mkdir -m 700 -- "$keep"
    for file; do
        srun mkdir -p -- "$(dirname -- "$keep/$file")"
        # renamed when complete: a job uses any file of this name
        sbcast -f "./$file" "$keep/$file.tracehint-part"
        srun mv -f -- "$keep/$file.tracehint-part" "$keep/$file"
    done
    ;;
clean)
    [ -n "${TRACEHINT_RUN-}" ] || exit 0
    srun rm -rf -- "$keep"
    ;;
run)
    command=$1
    shift
    { mine && box=$(mktemp -d "$keep/.job.XXXXXX"); } || exec /bin/sh -c "$command"
    prepare "$@" || { # a full disk, for example
        cd "$here"
        rm -rf -- "$box"
        exec /bin/sh -c "$command"
    }
    status=0
    /bin/sh -c "$command" || status=$?
    cd "$box/w"
    for file; do
        [ -e "$keep/$file" ] || [ -L "$file" ] || [ ! -f "$file" ] || {
            mkdir -p -- "$(dirname -- "$keep/$file")" &&
                cp -p -- "./$file" "$keep/$file.part.$$" &&
                mv -f -- "$keep/$file.part.$$" "$keep/$file"
        } || :
    done
    { # one name per entry: a folder of links is never copied recursively
        find . -mindepth 1 ! -type l -print0
        links | comm -z -13 "$box/links" -
    } >"$box/made"
    { tar --no-recursion --null -T "$box/made" -cf - || : >"$box/lost"; } |
        tar -C "$here" --no-overwrite-dir -xf - || : >"$box/lost"
    cd "$here"
    [ ! -e "$box/lost" ] || { # the outputs are kept for inspection
        echo "results could not be copied back from $box" >&2
        exit 1
    }
    rm -rf -- "$box"
    exit "$status"
    ;;
esac
