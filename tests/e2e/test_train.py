"""Training as a user does it: results, equal bits, faults, and nothing left behind."""
import json
import os
import signal

import pytest
import torch
from conftest import SMALL, TIERS, eventually, is_gone, program

LONG = ["--set", "train.steps=1000000"]


def weights(run):
    state = torch.load(run / "model.pt", weights_only=True)
    assert isinstance(state, dict) and state
    return state


def metrics(run):
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def test_one_rank(write, tmp_path):
    config = write("one.toml", SMALL)
    done = program("train", config, "--set", "train.steps=3", "--name", "x", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "runs/x"
    state = weights(tmp_path / "runs/x")
    assert sum(t.numel() for name, t in state.items() if "running" not in name
               and "num_batches" not in name) == 206_970
    assert [line["step"] for line in metrics(tmp_path / "runs/x")] == [1, 2, 3]


@pytest.mark.parametrize("name", ["16", "true", 'a "b"\\c'])
def test_a_name_is_taken_literally(write, tmp_path, name):
    done = program("train", write("one.toml", SMALL), "--set", "train.steps=1", "--name", name,
                   cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [p.name for p in (tmp_path / "runs").iterdir()] == [name]


def test_two_nodes_give_the_same_bits_twice(write, tmp_path):
    config = write("a.toml", SMALL + TIERS)
    states = []
    for name in ("first", "second"):
        done = program("train", config, "--name", name, "--json", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        summary = json.loads(done.stdout)
        assert summary["samples"] == 6 * 2 * 8 * 4 and summary["bytes_sent_slow"] > 0
        states.append(weights(tmp_path / "runs" / name))
    assert states[0].keys() == states[1].keys()
    for key, value in states[0].items():
        assert value.equal(states[1][key]), key
    done = program("train", config, "--name", "other", "--set", "train.seed=2", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    other = weights(tmp_path / "runs/other")
    assert any(not value.equal(other[key]) for key, value in states[0].items())


def test_coded_gradients_take_few_bytes_and_keep_nodes_equal(write, tmp_path):
    """Every round compares the hashes of the nodes' parameters, and ends the run if they differ."""
    tiers = TIERS.replace('"periodic"\nevery = 2', '"{}"')
    sent = {}
    for strategy in ("every_step", "top_k"):
        config = write(f"{strategy}.toml", SMALL + tiers.format(strategy))
        done = program("train", config, "--name", strategy, "--json", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        summary = json.loads(done.stdout)
        sent[strategy] = summary["bytes_sent_slow"]
        lines = metrics(tmp_path / "runs" / strategy)
        assert {line["node"] for line in lines} == {0, 1}
        assert all(line["sync/mode"] == "every_step" for line in lines)
        assert all(isinstance(line["loss"], float) for line in lines if line["lr"] is not None)
    assert sent["top_k"] < sent["every_step"] / 10
    by_node = [[line for line in lines if line["node"] == node] for node in (0, 1)]
    for first, second in list(zip(*by_node))[:6]:  # then come the rounds that end training
        assert first["grad_norm"] == second["grad_norm"] > 0, "the same arrived at both"
        for line in (first, second):
            assert 0 < line["codec/bytes_after"] < line["codec/bytes_before"] / 20
    for node in by_node:
        assert node[-1]["ledger/mismatches"] == node[-1]["ledger/lost"] == 0
        assert node[-1]["ledger/decayed_norm"] > 0, "what is never sent is counted"


def test_refuses_a_folder_that_is_taken(write, tmp_path):
    (tmp_path / "runs/x").mkdir(parents=True)
    (tmp_path / "runs/x/notes.txt").write_text("mine")
    done = program("train", write("a.toml", SMALL), "--name", "x", cwd=tmp_path)
    assert done.returncode == 2 and "runs/x" in done.stderr
    assert [p.name for p in (tmp_path / "runs/x").iterdir()] == ["notes.txt"]


def training(start, write, tmp_path):
    """A run of four ranks that would last for ever, once it has recorded steps."""
    running = start("train", write("long.toml", SMALL + TIERS), "--name", "x", *LONG)
    file = tmp_path / "runs/x/metrics.jsonl"
    eventually(lambda: file.exists() and file.read_text().count("\n") > 4)
    ranks = running.ranks()
    assert sorted(ranks) == [0, 1, 2, 3]
    return running, ranks


def test_an_interrupt_ends_everything(start, write, tmp_path):
    running, ranks = training(start, write, tmp_path)
    running.process.send_signal(signal.SIGINT)
    code, _, err = running.end()
    assert code == 3, err
    assert all(is_gone(pid) for pid in ranks.values())


def test_a_killed_rank_is_named(start, write, tmp_path):
    running, ranks = training(start, write, tmp_path)
    os.kill(ranks[2], signal.SIGKILL)
    code, _, err = running.end()
    assert code == 128 + signal.SIGKILL, err
    assert "rank 2 (node 1) was killed by signal 9" in err
    assert all(is_gone(pid) for pid in ranks.values())


def test_nothing_outlives_a_killed_launcher(start, write, tmp_path):
    running, ranks = training(start, write, tmp_path)
    os.kill(running.process.pid, signal.SIGKILL)
    running.end()
    eventually(lambda: all(is_gone(pid) for pid in ranks.values()))


def test_a_program_of_ones_own_as_the_ranks(write, tmp_path):
    config = write("a.toml", SMALL + TIERS)
    done = program("train", config, "--", "sh", "-c", 'echo "$0 $RANK of $WORLD_SIZE"', "rank",
                   cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = sorted(done.stdout.splitlines())
    assert lines == ["[rank 1] rank 1 of 4", "[rank 2] rank 2 of 4", "[rank 3] rank 3 of 4",
                     "rank 0 of 4"]
