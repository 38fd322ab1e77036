"""Nodes of different speed, with the program's own padding of steps."""
import json

from conftest import SMALL, program

SITE = """
[[tier]]
size = 1

[[tier]]
name = "site"
size = 3
every = 2
"""


def train(write, folder, more, *arguments):
    done = program("train", write("speeds.toml", SMALL + SITE + more), "--name", "x", "--json",
                   *arguments, cwd=folder)
    assert done.returncode == 0, done.stderr
    text = (folder / "runs/x/metrics.jsonl").read_text()
    return json.loads(done.stdout), [json.loads(line) for line in text.splitlines()]


def seconds(lines, node, part):
    return sum(line[f"time_metrics/{part}(s)"] for line in lines if line["node"] == node)


def test_the_record_names_the_node_that_everybody_waits_for(write, tmp_path):
    _, lines = train(write, tmp_path, 'strategy = "periodic"\n'
                     'emulate = { step = "100 ms", speeds = "1 0.25 1" }\n')
    assert seconds(lines, 1, "compute") > 2 * seconds(lines, 0, "compute")
    assert seconds(lines, 0, "exchange") > 4 * seconds(lines, 1, "exchange")
    assert seconds(lines, 2, "exchange") > 4 * seconds(lines, 1, "exchange")


def test_a_delayed_tier_ends_by_the_samples_of_all_nodes(write, tmp_path):
    summary, lines = train(write, tmp_path, 'strategy = "delayed"\nstaleness = 2\n'
                           'emulate = { step = "60 ms", speeds = "1 1 0.25" }\n',
                           "--set", "train.steps=30")
    window = 2 * 8
    last = {line["node"]: line for line in lines}
    steps = [last[node]["step"] for node in range(3)]
    assert steps[0] > 2 * steps[2]
    assert summary["samples"] == window * sum(steps), "every sample is counted once"
    # To within what the nodes do between two results.
    assert abs(summary["samples"] - 30 * 3 * window) <= 3 * 6 * window
    for node in range(3):
        ledger = {key.removeprefix("ledger/"): value for key, value in last[node].items()
                  if key.startswith("ledger/")}
        assert ledger["contributed"] == ledger["applied"] + ledger["returned"]
        assert ledger["dropped"] == ledger["lost"] == ledger["mismatches"] == 0
        assert len(ledger["ages"]) <= 3 and sum(ledger["ages"]) == ledger["applied"]
