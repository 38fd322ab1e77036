"""A suite of trainings: tables, going on after an interrupt, and what is not run twice."""
import json
import signal

from conftest import eventually, program

SUITE = ["bench", "--suite", "compression", "--steps", "4", "--output", "out"]
ROWS = "cnn-steep-[sn][yo]*"  # synchronous and no exchange, at two rates each
RUNS = 5                      # and their start


def lines(text):
    return [line for line in text.splitlines() if line.startswith("[")]


def test_goes_on_where_it_was_interrupted(start, tmp_path):
    running = start(*SUITE, "--seeds", "1", "--only", ROWS, "--jobs", "1")
    folder = tmp_path / "out/runs"
    eventually(lambda: len(list(folder.glob("*/summary.json"))) >= 2)
    eventually(lambda: len(list(folder.glob("*/metrics.jsonl"))) >= 3)
    running.process.send_signal(signal.SIGINT)
    code, out, err = running.end()
    assert code == 3, err
    before = {path: path.stat().st_mtime_ns for path in folder.glob("*/summary.json")}
    assert 2 <= len(before) < RUNS and out.endswith("out/results.md\n")

    listed = program(*SUITE, "--seeds", "1", "--only", ROWS, "--dry-run", cwd=tmp_path)
    assert listed.stdout.endswith(f"{len(before)} of {RUNS} runs are done\n")
    assert listed.stdout.count("to come  cnn-steep-") == RUNS - len(before)

    # As if the interrupt had come between the end of a run and its tidying.
    (next(iter(before)).parent.parent / f"{next(iter(before)).parent.name}.txt").write_text("x")
    rest = program(*SUITE, "--seeds", "1", "--only", ROWS, "--jobs", "2", cwd=tmp_path)
    assert rest.returncode == 0, rest.stderr
    assert len(lines(rest.stdout)) == RUNS - len(before)
    assert lines(rest.stdout)[-1].startswith(f"[{RUNS}/{RUNS}] cnn steep ")
    assert all(path.stat().st_mtime_ns == time for path, time in before.items())
    assert len(list(folder.glob("*/summary.json"))) == RUNS == len(list(folder.iterdir()))

    again = program(*SUITE, "--seeds", "1", "--only", ROWS, cwd=tmp_path)
    assert again.returncode == 0 and lines(again.stdout) == []
    assert again.stdout == rest.stdout[rest.stdout.index("\ncnn, steep\n"):]


def test_results_and_commands(tmp_path):
    done = program(*SUITE, "--seeds", "2", "--only", "cnn-steep-[si]*K8", "--commit", "abc",
                   cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    results = json.loads((tmp_path / "out/results.json").read_text())
    assert results["suite"] == "compression" and results["commit"] == "abc"
    assert "--only 'cnn-steep-[si]*K8'" in results["command"]
    (part,) = results["parts"]
    assert (part["task"], part["part"], part["bits_of_all_reduce"]) == ("cnn", "steep", 48)
    names = [row["row"] for row in part["rows"]]
    assert names == ["int4 K=8", "sign K=8", "sign dropping K=8"]
    text = (tmp_path / "out/results.md").read_text()
    assert "commit abc" in text and "| sign K=8 |" in text

    # A run by itself gives the same number.
    run = next(r for r in results["runs"] if "sign-K8" in r["name"] and r["seed"] == 1)
    assert run["state"] == "done"
    words = run["command"].replace("'", "").split()
    once_more = program(*words[1:], "--json", cwd=tmp_path)
    assert once_more.returncode == 0, once_more.stderr
    assert json.loads(once_more.stdout)["final_loss"] == run["loss"]
    kept = {path.parent.name for path in (tmp_path / "out/runs").glob("*/optimizer.pt")}
    assert kept and all("-start-" in name for name in kept)


def test_a_run_that_fails_is_a_word_in_the_table(monkeypatch, tmp_path):
    monkeypatch.setenv("HYBRIDSYNC_DATA", str(tmp_path / "nothing"))
    done = program(*SUITE, "--seeds", "1", "--only", "cnn-steep-fp32-K8", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "[1/2] cnn steep start, seed 1 … failed (exit code 2): out/runs/" in done.stdout
    assert "[2/2] cnn steep fp32 K=8, seed 1 … failed: its start run did" in done.stdout
    assert "fp32 K=8 (1 failed)" in done.stdout
    (log,) = (tmp_path / "out/runs").glob("*.txt")
    assert "nothing" in log.read_text()


def test_mistakes(write, tmp_path):
    config = write("a.toml", "")
    for arguments, said in [(["--suite", "speed"], "there are: compression"),
                            (["--suite", "compression", config], "--suite"),
                            (["--only", "x", config], "--suite"),
                            ([], "--suite"),
                            (["--suite", "compression", "--only", "x"], "--only x")]:
        done = program("bench", *arguments, cwd=tmp_path)
        assert done.returncode == 2 and said in done.stderr, arguments
    assert not (tmp_path / "runs").exists()
