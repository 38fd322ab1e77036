"""Configurations side by side: table, JSON and report."""
import json

from conftest import SMALL, TIERS, program

KEYS = ["name", "seed", "steps", "samples", "final_loss", "final_accuracy", "seconds",
        "bytes_sent_slow", "bytes_sent_fast", "utilisation", "k_final", "rounds",
        "contributed", "applied", "returned", "dropped", "lost", "skipped", "mismatches", "ages"]


def configs(write):
    sync = TIERS.replace('"periodic"\nevery = 2', '"every_step"')
    assert sync != TIERS
    return write("sync.toml", SMALL + sync), write("hybrid.toml", SMALL + TIERS)


def test_json_and_report(write, tmp_path):
    done = program("bench", *configs(write), "--seeds", "2", "--json", "--output", "out",
                   cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert [(row["name"], row["seed"]) for row in rows] == [
        ("sync", 1), ("sync", 2), ("hybrid", 1), ("hybrid", 2)]
    for row in rows:
        assert list(row) == KEYS
        assert row["steps"] == 6 and row["samples"] == 6 * 2 * 8 * 4
        assert 0 < row["final_loss"] < 10 and 0 <= row["final_accuracy"] <= 1
        assert 0 < row["utilisation"] <= 1
    sync, hybrid = rows[0], rows[2]
    assert sync["rounds"] == 6 and hybrid["rounds"] == 3 and hybrid["k_final"] == 2
    assert 1.5 < sync["bytes_sent_slow"] / hybrid["bytes_sent_slow"] < 2.5
    assert "sync, seed 2" in done.stderr
    report = (tmp_path / "out/report.html").read_text()
    assert report.startswith("<!doctype html>") or report.startswith("<!DOCTYPE html>")

    again = program("report", "out/sync-seed1", "out/hybrid-seed1", "-o", "two.html", cwd=tmp_path)
    assert again.returncode == 0 and again.stdout == "two.html\n"
    assert (tmp_path / "two.html").stat().st_size > 50_000

    taken = program("bench", *configs(write), "--output", "out", cwd=tmp_path)
    assert taken.returncode == 2 and "out" in taken.stderr


def test_table_ends_with_the_report(write, tmp_path):
    done = program("bench", *configs(write), "--set", "train.steps=2", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[-1].endswith("/report.html") and (tmp_path / lines[-1]).exists()
    assert any("hybrid" in line and "x" in line for line in lines[-6:])


def test_a_failed_run_ends_the_bench(write, tmp_path):
    done = program("bench", *configs(write), "--set", "train.data=no_such_data", cwd=tmp_path)
    assert done.returncode == 2
    assert "no_such_data" in done.stderr and "report.html" not in done.stdout
    assert list((tmp_path / "runs").iterdir()) == []
