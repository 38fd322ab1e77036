"""The programs of examples/, alone and as the ranks of a run; and a configuration of it."""
import json
import re
import subprocess

import pytest
from conftest import PROGRAM, ROOT, program

EXAMPLES = PROGRAM.resolve().parents[1] / "examples"
OWN_LOOP = re.compile(r"(?:\[rank (\d)\] )?steps (\d+)  loss (\S+)  hash ([0-9a-f]+)")


def example(name, *arguments):
    done = subprocess.run([EXAMPLES / name, *arguments], text=True, capture_output=True,
                          timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_own_loop_alone():
    first, second = example("own_loop"), example("own_loop")
    _, steps, loss, _ = OWN_LOOP.fullmatch(first.strip()).groups()
    assert int(steps) == 16 * 42 and 0 < float(loss) < 0.3
    assert first == second


def own_loop_on_ranks(tmp_path, *sets):
    text = (ROOT / "examples/own_loop.toml").read_text()
    for old, new in sets:
        assert old in text
        text = text.replace(old, new)
    config = tmp_path / "own_loop.toml"
    config.write_text(text)
    done = program("train", config, "--", EXAMPLES / "own_loop", config, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = [OWN_LOOP.fullmatch(line) for line in done.stdout.splitlines()]
    assert all(lines) and sorted(match[1] or "0" for match in lines) == list("0123")
    assert list((tmp_path / "runs").iterdir()) == []  # the program records nothing itself
    return {match[4] for match in lines}, {float(match[3]) for match in lines}


def test_own_loop_on_two_nodes_of_two_ranks(tmp_path):
    hashes, losses = own_loop_on_ranks(tmp_path)
    assert len(hashes) == 1 and len(losses) == 1 and 0 < losses.pop() < 0.4
    again, _ = own_loop_on_ranks(tmp_path)
    assert again == hashes


def test_own_loop_purely_synchronously(tmp_path):
    hybrid, _ = own_loop_on_ranks(tmp_path)
    hashes, _ = own_loop_on_ranks(tmp_path, ('"periodic"', '"every_step"'))
    assert len(hashes) == 1 and hashes != hybrid


def test_own_loop_with_coded_gradients(tmp_path):
    hashes, losses = own_loop_on_ranks(tmp_path, ('"periodic"', '"top_k"'))
    assert len(hashes) == 1 and len(losses) == 1 and 0 < losses.pop() < 0.4


def test_own_loop_names_a_wrong_launch():
    done = subprocess.run([EXAMPLES / "own_loop", ROOT / "examples/own_loop.toml"], text=True,
                          capture_output=True, timeout=120)
    assert done.returncode == 1 and "WORLD_SIZE is 1, but" in done.stderr


def test_delayed_loses_nothing_of_a_slow_node(tmp_path):
    done = program("train", ROOT / "examples/delayed.toml", "--name", "x", "--json", "--set",
                   "train.steps=60", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    lines = [json.loads(line)
             for line in (tmp_path / "runs/x/metrics.jsonl").read_text().splitlines()]
    last = {line["node"]: line for line in lines}
    steps = [last[node]["step"] for node in range(4)]
    assert min(steps[:3]) > 2 * steps[3]
    assert {line["samples"] for line in last.values()} == {summary["samples"]}
    assert summary["samples"] == 16 * sum(steps)
    assert summary["contributed"] == summary["applied"] + summary["returned"]
    assert summary["dropped"] == summary["lost"] == summary["mismatches"] == 0
    assert len(summary["ages"]) <= 2 + 1 and sum(summary["ages"]) == summary["applied"]
    assert sum(summary["ages"][1:]) > 0, "the slow node's work came late"
    for line in last.values():
        assert line["sync/mode"] == "delayed"
        assert line["ledger/contributed"] == line["ledger/applied"] + line["ledger/returned"]


def test_recipes():
    assert re.fullmatch(r"interrupted at step \d+\nstep 1  K 1  alone  lr 0\.1\n"
                        r"0 rounds, 0 bytes between nodes\n", example("recipes"))


def test_outer_round():
    out = example("outer_round").splitlines()
    # Node 0 stands for 300 of 400 samples: 1 - (0.75 d0 + 0.25 d1).
    assert [float(x) for x in out[0].split()] == pytest.approx([0.5, 0.9, 1, 0.5])
    assert [re.search(r"owner node (\d)", line)[1] for line in out[1:]] == ["0", "1"]
