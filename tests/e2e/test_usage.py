"""Mistakes on the command line and in configurations: exit code 2 and a message that helps."""
import json
import re
import subprocess

import pytest
from conftest import PROGRAM, SMALL, TIERS, program


@pytest.mark.parametrize("text, message", [
    ("[train]\nlearning_rat = 1\n", r"bad\.toml:2: .*learning_rat"),
    ('[train]\nmicro_batch = "many"\n', r"bad\.toml:2: .*micro_batch.*\"many\""),
    ("[accumulate]\nsteps = 0\n", r"bad\.toml:2: .*accumulate\.steps"),
    ("[train]\nranks = 7\n[[tier]]\nsize = 2\n", r"7.*2|2.*7"),
    ("[train\n", r"bad\.toml:\d"),
])
def test_refuses_a_wrong_configuration(write, tmp_path, text, message):
    done = program("train", write("bad.toml", text), cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert re.search(message, done.stderr), done.stderr
    assert done.stderr.startswith("hybridsync: ")
    assert done.stdout == ""


def test_names_the_nearest_key(write, tmp_path):
    done = program("train", write("bad.toml", "[train]\nmicro_bach = 8\n"), cwd=tmp_path)
    assert "train.micro_batch" in done.stderr


def test_refuses_wrong_overrides(write, tmp_path):
    done = program("train", write("a.toml", SMALL), "--set", "train.stepz=3", cwd=tmp_path)
    assert done.returncode == 2 and "train.stepz" in done.stderr


def test_names_a_missing_file(tmp_path):
    done = program("train", "none.toml", cwd=tmp_path)
    assert done.returncode == 2 and "none.toml" in done.stderr


@pytest.mark.parametrize("arguments", [
    [], ["fly"], ["train"], ["train", "a.toml", "b.toml"], ["bench", "a.toml", "--seeds", "0"],
    ["report"]])
def test_refuses_wrong_usage(tmp_path, arguments):
    done = program(*arguments, cwd=tmp_path)
    assert done.returncode == 2 and done.stdout == "" and done.stderr


@pytest.mark.parametrize("verb", ["train", "bench", "report"])
def test_helps_with_an_example(tmp_path, verb):
    done = program(verb, "--help", cwd=tmp_path)
    assert done.returncode == 0 and f"Example: hybridsync {verb} " in done.stdout


def test_says_its_version(tmp_path):
    done = program("--version", cwd=tmp_path)
    assert done.returncode == 0 and re.fullmatch(r"hybridsync \d+\.\d+\.\d+\n", done.stdout)


@pytest.mark.parametrize("arguments", [["--version"], ["train", "a.toml", "--dry-run"]])
def test_lost_output_is_a_failure(write, tmp_path, arguments):
    write("a.toml", SMALL)
    with open("/dev/full", "w") as full:
        done = subprocess.run([PROGRAM, *arguments], cwd=tmp_path, stdout=full,
                              stderr=subprocess.PIPE, text=True, timeout=200)
    assert done.returncode == 1
    assert done.stderr == "hybridsync: standard output: cannot be written\n"


def test_dry_run_shows_and_starts_nothing(write, tmp_path):
    config = write("a.toml", SMALL + TIERS + 'emulate = { rate = "100 Mbit/s", rtt = "50 ms" }\n')
    done = program("train", config, "--dry-run", "--set", "tier.site.every=8", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for wanted in ["every = 8", "memory per rank", "optimizer state", "anchor", "limits of waits"]:
        assert wanted in done.stdout
    assert [p.name for p in tmp_path.iterdir()] == ["a.toml"]


def test_dry_run_figures(write, tmp_path):
    config = write("a.toml", SMALL + TIERS + 'emulate = { rate = "100 Mbit/s", rtt = "50 ms" }\n')
    done = program("train", config, "--dry-run", "--json", cwd=tmp_path)
    figures = json.loads(done.stdout)
    assert figures["ranks"]["ranks"] == 4 and figures["ranks"]["nodes"] == 2
    assert figures["ranks"]["samples in all"] == 6 * 2 * 8 * 4
    gradients = figures["memory per rank"]["gradients"]
    assert 206_970 * 4 <= gradients < 207_500 * 4  # padded to 64 bytes per parameter
    parts = figures["memory per rank"]
    assert sum(parts.values()) == 2 * parts["sum"]
    between = figures["between nodes"]
    assert between["sent by a node per round"] == pytest.approx(gradients, rel=0.1)
    assert between["a round on the emulated link"] == pytest.approx(
        between["sent by a node per round"] * 8 / 100e6 + 0.05)
    assert between["steps between rounds"] == 2


def test_dry_run_resolves_to_a_configuration(write, tmp_path):
    first = program("train", write("a.toml", SMALL + TIERS), "--dry-run", cwd=tmp_path).stdout
    resolved = write("b.toml", first[:first.index("\nranks\n")])
    second = program("train", resolved, "--dry-run", cwd=tmp_path).stdout
    assert second == first


def test_refuses_to_compare_unequal_samples(write, tmp_path):
    one = write("one.toml", SMALL)
    two = write("two.toml", SMALL + TIERS)
    done = program("bench", one, two, cwd=tmp_path)
    assert done.returncode == 2
    assert str(6 * 2 * 8) in done.stderr and str(6 * 2 * 8 * 4) in done.stderr
    assert "--allow-different-samples" in done.stderr


@pytest.mark.parametrize("arguments, word", [
    (["--seed", "-1"], "whole number"), (["--seed", "18446744073709551616"], "whole number"),
    (["--first", "-1"], "whole number"), (["--first", "2", "--seed", "3"], "excludes"),
    (["--seeds", "2", "--trace"], "--trace"), (["--json", "--trace"], "--trace"),
    (["--explore", "2", "--seed", "3"], "excludes"), (["--explore", "2", "--json"], "excludes"),
    (["--explore", "2", "a.toml"], "excludes"), (["--explore", "2", "--faults", "f"], "excludes"),
    (["a.toml"], "one node only"), (["a.toml", "--seeds", "9"], "one node only"),
    (["--set", "train.steps=1"], "need a configuration"),
])
def test_simulate_refuses_what_it_would_ignore(write, tmp_path, arguments, word):
    write("a.toml", SMALL)
    done = program("simulate", *arguments, cwd=tmp_path)
    assert done.returncode == 2 and done.stdout == "", done.stderr
    assert word in done.stderr


def test_simulate_says_what_became_of_the_faults(write, tmp_path):
    config = write("a.toml", SMALL + TIERS)
    fault = '[[fault]]\nat = "%s"\nkind = "freeze"\nnode = 1\n'
    for_good = write("f.toml", fault % "10 ms" + fault % "90000 s")
    done = program("simulate", config, "--faults", for_good, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 run stood still: 10 ms: freeze of node 1 for good" in done.stdout
    assert "25 h: freeze of node 1 for good (did not happen: the run was over)" in done.stdout
    done = program("simulate", config, "--faults", write("none.toml", ""), cwd=tmp_path)
    assert done.returncode == 0 and "none.toml holds no fault" in done.stdout


def test_refuses_a_report_of_nothing(tmp_path):
    done = program("report", "nothing_here", cwd=tmp_path)
    assert done.returncode == 2 and "nothing_here" in done.stderr
