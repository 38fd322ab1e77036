"""One node of four 4 times slower: delayed and synchronous tiers side by side, in one run.

python microbench/stragglers.py --program build/release/cli/hybridsync [--seeds 3] [--step 0.2]

Four nodes of one rank on this machine; steps are padded by sleeping, so that the processors are
at most half busy and a node's speed is what is asked for. For each seed, in turns:

  delayed, 1 slow    strategy "delayed" with one node at a quarter of the speed
  periodic, 1 slow   the same with rounds that wait for everybody
  delayed, equal     strategy "delayed", four equally fast nodes

`of bound`: samples per second of training, from its first step to the end of its last round,
against the sum of the nodes' own speeds (samples per step / padded step, added up): what could be
reached if nobody ever waited. `loss`: on the held-out part, at the end, at equal samples.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

NODES = 4
SLOW = "1 1 1 0.25"
ROWS = {
    "delayed, 1 slow": ("delayed", SLOW),
    "periodic, 1 slow": ("periodic", SLOW),
    "delayed, equal": ("delayed", "1 1 1 1"),
}


def configuration(arguments, strategy, speeds):
    lag = f"staleness = {arguments.staleness}" if strategy == "delayed" else ""
    return f"""
[train]
model = "{arguments.model}"
data = "{arguments.data}"
optimizer = "{arguments.optimizer}"
lr = {arguments.lr}
micro_batch = {arguments.micro_batch}
steps = {arguments.steps}

[learning_rate]
schedule = "{arguments.schedule}"
warmup = 10

[[tier]]
size = 1

[[tier]]
name = "site"
size = {NODES}
strategy = "{strategy}"
every = {arguments.every}
{lag}
emulate = {{ step = "{1000 * arguments.step:g} ms", speeds = "{speeds}" }}
"""


def train(arguments, strategy, speeds, seed):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "stragglers.toml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(configuration(arguments, strategy, speeds))
        began = time.monotonic()
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        result = subprocess.run(
            [arguments.program, "train", path, "--json", "--set", f"train.seed={seed}",
             "--set", f'record.folder="{folder}/runs"'],
            stdout=subprocess.PIPE, text=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    summary = json.loads(result.stdout)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    summary["busy"] = used / (time.monotonic() - began) / os.cpu_count()
    return summary


def bound(arguments, speeds):
    """Samples per second of all nodes if nobody ever waited."""
    return sum(float(s) * arguments.micro_batch / arguments.step for s in speeds.split())


def spread(values, form):
    return f"{statistics.mean(values):{form}} ({min(values):{form}}..{max(values):{form}})"


def show(arguments, runs):
    print(f"\n{'':17} {'of bound':26} {'held-out loss':26} {'samples':>8} {'busy':>5}  ages")
    for row, (_, speeds) in ROWS.items():
        done = runs[row]
        reached = [r["samples"] / r["seconds"] / bound(arguments, speeds) for r in done]
        ages = [sum(counts) for counts in zip(*[pad(r.get("ages", [])) for r in done])]
        while ages and ages[-1] == 0:
            ages.pop()
        losses = [r["final_loss"] for r in done]
        print(f"{row:17} {spread(reached, '.3f'):26} {spread(losses, '.4f'):26} "
              f"{statistics.mean(r['samples'] for r in done):8.0f} "
              f"{max(r['busy'] for r in done):5.0%}  {ages}")
    pairs = [100 * (a["final_loss"] / b["final_loss"] - 1)
             for a, b in zip(runs["delayed, 1 slow"], runs["delayed, equal"])]
    print(f"loss with one slow node against equal speeds: {spread(pairs, '+.2f')} %")


def pad(ages):
    return ages + [0] * (65 - len(ages))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True, help="the program hybridsync")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--step", type=float, default=0.2, help="seconds of a fast node's step")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--every", type=int, default=4)
    parser.add_argument("--staleness", type=int, default=2)
    parser.add_argument("--model", default="char-gpt")
    parser.add_argument("--data", default="bible")
    parser.add_argument("--optimizer", default="adamw")
    parser.add_argument("--lr", type=float, default=0.002)
    parser.add_argument("--schedule", default="cosine")
    parser.add_argument("--micro-batch", type=int, default=16)
    arguments = parser.parse_args()
    runs = {row: [] for row in ROWS}
    for seed in range(1, arguments.seeds + 1):
        for row, (strategy, speeds) in ROWS.items():
            runs[row].append(train(arguments, strategy, speeds, seed))
            print(f"seed {seed}, {row}: {runs[row][-1]['seconds']:.1f} s", file=sys.stderr,
                  flush=True)
    show(arguments, runs)


if __name__ == "__main__":
    main()
