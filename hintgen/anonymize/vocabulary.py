"""Words that stay: they are public, and the analysis recognises engines and software by them.

A word is a run of letters and digits, compared in lower case.
"""

from __future__ import annotations

_SHELLS = "sh bash dash ash zsh ksh mksh yash rbash csh tcsh fish busybox"
_SHELL_WORDS = """
set euo eu ue pipefail exec eval do done if then else elif fi for in while until case esac cd
export function select time true false echo printf test command builtin source wait trap exit
"""
_WRAPPERS = """
env nice nohup timeout setsid stdbuf unbuffer ionice chrt taskset numactl prlimit sudo flock gtime
catchsegv catch segv chronic script strace ltrace gdb perf valgrind singularity apptainer docker
podman udocker conda mamba micromamba run proot unshare
"""
_ENGINES = """
make gmake ninja makeflow work queue worker vine factory snakemake nextflow parallel xargs parsl
process pool interchange dask scheduler cwltool cwl toil runner pegasus kickstart swift turbine
pilot condor dagman slurm srun sbatch salloc slurmstepd mpirun mpiexec orted prted hydra pmi proxy
orterun qsub bsub jsrun aprun flux luigi airflow cromwell tracehint resource monitor remake share
snakejob jobscript exitcode begin log out err trace stub nextflowlog makeflowlog batchlog joblog
runinfo lineage metadata locks incomplete auxiliary scripts archive iocache cache unit tests shadow
storage failed target jobs jobid cores rule
"""
_INTERPRETERS = """
python python2 python3 pypy perl ruby node nodejs java julia rscript r lua php tclsh octave awk gawk
mawk sed jar class path classpath
"""
_TOOLS = """
cat cp mv rm mkdir rmdir ln ls touch sort uniq head tail cut paste tr tee wc dd split join grep
egrep fgrep find diff cmp tar gzip gunzip bzip2 xz zstd zip unzip install rsync chmod chown chgrp
date sleep seq md5sum sha256sum basename dirname readlink realpath mktemp stat truncate sync uname
hostname id whoami which tput setfattr getfattr gcc cc g cpp c ld as ar cmake ldconfig lscpu ps
cc1 cc1plus collect2
"""
_PLACES = """
usr lib lib32 lib64 libx32 libexec bin sbin etc proc sys dev boot opt snap nix gnu cvmfs run var
selinux shm user tmp scratch home root local share include system library applications users data
work site dist packages pycache node modules pkgs git svn hg bzr tox nox venv virtualenv
mypy pytest ruff npm cargo rustup config ipython jupyter renv pyvenv cfg meta shims pyenv versions
x86 64 linux gnu so ld null redacted zero urandom random pts tty self fd maps status
"""
WORDS: frozenset[str] = frozenset(
    " ".join((_SHELLS, _SHELL_WORDS, _WRAPPERS, _ENGINES, _INTERPRETERS, _TOOLS, _PLACES)).split()
)
MAX_EXTENSION = 8  # letters of `.fits`, kept at the end of a name
