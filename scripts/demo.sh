#!/bin/sh
# Profile the bundled workflow in a fresh directory and print the result.
set -eu
tracehint=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
root=$(cd "$(dirname "$0")/.." && pwd)
work=$root/build/demo
rm -rf "$work"
mkdir -p "$work"
cp "$root"/datasets/demo/*.py "$root"/datasets/demo/run.sh "$root"/datasets/demo/demo.makeflow "$work"
cd "$work"
echo "+ cd build/demo && tracehint profile -- sh run.sh" >&2
"$tracehint" profile -- sh run.sh
cat >&2 <<END

To try these commands, and tracehint on your own workflow:
  cd build/demo && . ../../.venv/bin/activate
  (the first run, step by step: docs/tutorial/first-run.md)
END
