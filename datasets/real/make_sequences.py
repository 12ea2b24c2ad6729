"""make_sequences.py FOLDER [--bases N] [--reads N] [--queries N] [--parts N] [--seed N]

A random genome (reference.fa, four chromosomes), reads of it (reads.fq, 100 bases, 1 % errors) and
query sequences (query_K.fa, mutated pieces of 300 bases): inputs for aligners and searches.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path

CHROMOSOMES = 4
READ, QUERY = 100, 300  # bases


def mutated(piece: str, rate: float, dice: random.Random) -> str:
    """Return the piece, each base replaced by a random one with probability `rate`."""
    letters = list(piece)
    for k in range(len(letters)):
        if dice.random() < rate:
            letters[k] = dice.choice("ACGT")
    return "".join(letters)


def piece(genome: list[str], length: int, dice: random.Random) -> str:
    """Return `length` bases from a random position."""
    chromosome = dice.choice(genome)
    at = dice.randrange(len(chromosome) - length)
    return chromosome[at : at + length]


def write_fasta(path: Path, sequences: dict[str, str]) -> None:
    with path.open("w") as out:
        for name, bases in sequences.items():
            out.write(f">{name}\n")
            out.writelines(f"{bases[k : k + 70]}\n" for k in range(0, len(bases), 70))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--bases", type=int, default=400_000)
    parser.add_argument("--reads", type=int, default=0)
    parser.add_argument("--queries", type=int, default=0, help="per part")
    parser.add_argument("--parts", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    dice = random.Random(args.seed)
    length = args.bases // CHROMOSOMES
    genome = ["".join(dice.choices("ACGT", k=length)) for _ in range(CHROMOSOMES)]
    write_fasta(args.folder / "reference.fa", {f"chr{k + 1}": b for k, b in enumerate(genome)})
    if args.reads:
        with (args.folder / "reads.fq").open("w") as out:
            for k in range(args.reads):
                bases = mutated(piece(genome, READ, dice), 0.01, dice)
                out.write(f"@read{k}\n{bases}\n+\n{'I' * READ}\n")
    for part in range(args.parts if args.queries else 0):
        pieces = {
            f"q{part}_{k}": mutated(piece(genome, QUERY, dice), 0.05, dice)
            for k in range(args.queries)
        }
        write_fasta(args.folder / f"query_{part}.fa", pieces)


if __name__ == "__main__":
    main()
