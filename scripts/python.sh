#!/bin/sh
# Print the first Python of at least version 3.11 that can make virtual environments.
for python in "${PYTHON:-python3}" python3.14 python3.13 python3.12 python3.11; do
    if "$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        command -v "$python"
        exit 0
    fi
done
echo "python.sh: no Python >= 3.11 with venv found" >&2
exit 1
