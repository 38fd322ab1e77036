"""All-reduce over shared memory against Gloo, interleaved: one table.

python microbench/all_reduce.py --binary build/release/microbench/all_reduce

Needs a Python with torch for Gloo's columns. Every repeat runs one batch of each; ratios are taken
within a repeat. Shown: medians, and for the ratio its quartiles.
"""

import argparse
import importlib.util
import os
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SIZES = [4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20]


class Server:
    """A process that answers sizes with seconds."""

    def __init__(self, command):
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, size):
        self.process.stdin.write(f"{size}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit(f"{self.process.args[0]} ended")
        return [float(word) for word in answer.split()]

    def close(self):
        self.process.stdin.close()
        self.process.wait(30)


def quartiles(values):
    if len(values) < 2:
        return values[0], values[0]
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, high


def measure(shm, gloo, size, repeats):
    rows = []
    for _ in range(repeats):
        seconds, limit = shm.ask(size)
        rows.append((seconds, limit, gloo.ask(size)[0] if gloo else None))
    return rows


def print_row(ranks, size, rows):
    middle = statistics.median
    line = f"{ranks:5} {size:10} {middle(r[0] for r in rows) * 1e6:10.1f}"
    line += f" {middle(size / r[0] / 1e9 for r in rows):9.2f}"
    if rows[0][2] is None:
        line += f" {'-':>9} {'-':>7} {'-':>15}"
    else:
        ratios = [r[2] / r[0] for r in rows]
        low, high = quartiles(ratios)
        line += f" {middle(size / r[2] / 1e9 for r in rows):9.2f} {middle(ratios):7.1f}"
        line += f" {f'{low:.1f} .. {high:.1f}':>15}"
    print(line + f" {100 * middle(r[1] / r[0] for r in rows):9.0f} %", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", default="build/release/microbench/all_reduce")
    parser.add_argument("--ranks", default="2,4")
    parser.add_argument("--bytes", default=",".join(map(str, SIZES)))
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    with_gloo = importlib.util.find_spec("torch") is not None
    if not with_gloo:
        print("this Python has no torch: without Gloo")
    print(
        f"{'ranks':>5} {'bytes':>10} {'shm us':>10} {'shm GB/s':>9} {'gloo GB/s':>9} {'ratio':>7}"
        f" {'quartiles':>15} {'of limit':>11}"
    )
    for ranks in map(int, options.ranks.split(",")):
        shm = Server([options.binary, "--ranks", str(ranks), "--serve"])
        twin = os.path.join(HERE, "gloo_all_reduce.py")
        gloo = Server([sys.executable, twin, str(ranks)]) if with_gloo else None
        for size in map(int, options.bytes.split(",")):
            print_row(ranks, size, measure(shm, gloo, size, options.repeats))
        shm.close()
        if gloo:
            gloo.close()


if __name__ == "__main__":
    main()
