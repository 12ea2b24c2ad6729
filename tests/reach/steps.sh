#!/bin/sh
# A workflow of 15 steps, most of whose programs have threads, in the current directory.
#   PYTHON=python steps.sh SOURCES    the Python has NumPy; SOURCES is the folder tests/workloads
set -eu
"$PYTHON" - <<END # 1: NumPy
import numpy as np

rng = np.random.default_rng(1)
np.save("samples.npy", rng.random(200_000))
np.savetxt("samples.txt", np.sort(np.load("samples.npy"))[:30_000])
genome = np.frombuffer(b"ACGT", "S1")[rng.integers(0, 4, 200_000)].tobytes()
with open("genome.fa", "wb") as out:
    out.write(b">one\n" + b"\n".join(genome[i : i + 60] for i in range(0, len(genome), 60)) + b"\n")
with open("reads.fq", "wb") as out:
    for number, at in enumerate(rng.integers(0, len(genome) - 100, 20_000)):
        out.write(b"@r%d\n%s\n+\n%s\n" % (number, genome[at : at + 100], b"I" * 100))
END
"$PYTHON" - <<END # 2: a pool of threads
from concurrent.futures import ThreadPoolExecutor

def part(number):
    with open("reads.fq", "rb") as data, open(f"part{number}", "wb") as out:
        data.seek(number * 100_000)
        out.write(data.read(100_000))

with ThreadPoolExecutor(4) as pool:
    list(pool.map(part, range(8)))
END
pigz -k -p 2 samples.txt                                                # 3
xz -k -T2 --block-size=200KiB samples.txt                               # 4
zstd -q -T2 samples.txt                                                 # 5
bwa index genome.fa 2>/dev/null                                         # 6
bwa mem -t 2 genome.fa reads.fq >aligned.sam 2>/dev/null                # 7
samtools view -@2 -b -o aligned.bam aligned.sam                         # 8
samtools sort -@2 -m 2M -o sorted.bam aligned.bam 2>/dev/null           # 9
samtools index -@2 sorted.bam                                           # 10
makeblastdb -in genome.fa -dbtype nucl -out db >/dev/null               # 11
head -n 40 genome.fa >query.fa
blastn -num_threads 2 -query query.fa -db db -out hits.txt              # 12
LC_ALL=C sort --parallel=2 -S 1M -T . samples.txt -o ordered.txt        # 13
java "$1/Threads.java"                                                  # 14
tar -cf all.tar ordered.txt hits.txt sorted.bam sorted.bam.bai part*    # 15
