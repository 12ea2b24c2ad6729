#!/bin/sh
# In a new root file system (scripts/fresh_root.sh), as root: check what works for a newcomer.
# Writes `name value...` lines to reach.txt: the wheel of dist/ without a compiler, the 15 steps under
# each collector, `make demo`, and the coverage cases under the preload library, as an ordinary user.
set -eu
[ -e dist/ ] || { echo "inside.sh: no wheel in dist/" >&2; exit 2; }
home=/home/newcomer
useradd -m newcomer
as_user() { runuser -u newcomer -- env HOME=$home "$@"; }
note() { echo "$*" >>reach.txt; }
packages() { apt-get install -y -qq --no-install-recommends "$@" >/dev/null; }
# timed NAME COMMAND...: seconds of a command, or `failed` and its last line
timed() {
    name=$1 begin=$(date +%s)
    shift
    if "$@" >"$home/log" 2>&1; then
        note "$name $(($(date +%s) - begin)) s"
    else
        note "$name failed: $(tail -n 1 "$home/log")"
        cat "$home/log" >&2
    fi
}

# shellcheck source=/dev/null
note "system $(. /etc/os-release && echo "$PRETTY_NAME")"
note "glibc $(ldd --version | sed -n '1s/.* //p')"
packages python3-venv
if ! python=$(scripts/python.sh 2>/dev/null); then
    # as users of an old system do: install a newer Python next to its own
    packages gcc libc6-dev zlib1g-dev libffi-dev libssl-dev libbz2-dev liblzma-dev xz-utils \
        dpkg-dev
    (
        cd "$home"
        echo "deb-src http://deb.debian.org/debian bookworm main" >/etc/apt/sources.list.d/python.list
        apt-get update -qq
        apt-get source -qq --download-only python3.11 >/dev/null
        tar -xf python3.11_*.orig.tar.*
        cd Python-3.11.*
        { ./configure --prefix=/usr/local && make -j2 install; } >/dev/null 2>&1
        rm /etc/apt/sources.list.d/python.list
        apt-get update -qq
    )
    apt-get purge -y -qq --auto-remove gcc dpkg-dev >/dev/null
    python=$(scripts/python.sh)
fi
note "python $("$python" -V | sed 's/.* //')"
! command -v gcc && ! command -v cc && ! command -v clang
install_wheel() {
    as_user "$python" -m venv $home/venv
    as_user $home/venv/bin/pip install -q "$PWD"/dist/*.whl
}
timed wheel install_wheel
cat >$home/first.sh <<'END'
cd && seq 1 9999 >numbers && venv/bin/tracehint profile -o first.trace -- sort -r numbers -o ordered
END
timed profile as_user sh $home/first.sh
note "auto $(sed -n 's/.*recording with collector \([a-z-]*\).*/\1/p' $home/log)"

# programs of the steps, and the right to use eBPF for the loader
packages strace libcap2-bin pigz xz-utils zstd bwa samtools ncbi-blast+ default-jdk-headless
loader=$(find $home/venv -name tracehint-rec)
setcap cap_bpf,cap_perfmon=ep "$loader" || setcap cap_sys_admin=ep "$loader" # older setcap: no cap_bpf
cp -r tests/workloads tests/reach $home
for collector in all strace; do
    cat >$home/$collector.sh <<END
mkdir $home/work && cd $home/work && PYTHON=$home/venv/bin/python exec $home/venv/bin/tracehint record \
    --collector $collector -o ../$collector.trace -- sh $home/reach/steps.sh $home/workloads
END
    timed "steps-$collector" as_user sh $home/$collector.sh
    rm -r $home/work
done
for other in all.preload strace; do
    note "bytes-$other $(as_user $home/venv/bin/python $home/reach/compare.py $home/all.trace $home/$other.trace $home/work)"
done
timed demo make demo
note "demo-collector $(sed -n 's/.*recording with collector \([a-z-]*\).*/\1/p' $home/log)"
[ -x .venv/bin/pip ] || exit 0
.venv/bin/pip install -q pytest pytest-xdist hypothesis
chown -R newcomer build # where the tests cache compiled programs
cases="-m pytest -q -n0 -p no:cacheprovider --basetemp=$home/tests tests/test_preload_coverage.py"
# shellcheck disable=SC2086 # words
timed cases as_user .venv/bin/python $cases
note "cases-result $(tail -n 1 $home/log)"
