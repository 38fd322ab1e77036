"""The documents are true: their commands run, and what they list is what the program has."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import warnings

import documents as docs
import pytest
import torch
from conftest import PROGRAM, ROOT, SMALL, TIERS, eventually, program

BUILD = PROGRAM.resolve().parents[1]
TROUBLESHOOTING = "docs/troubleshooting.md"
RECORDS = "docs/reference/records.md"
COMMAND_LINE = "docs/reference/command-line.md"
VERBS = ("train", "bench", "report", "simulate", "strategies")

# What stands for ./run where a document's commands are run: the program is built already.
RUN = f"""#!/bin/sh
case $1 in
  help) exec {ROOT}/run help ;;
  train | bench | report | simulate | strategies) exec hybridsync "$@" ;;
  hybridsync) shift; exec hybridsync "$@" ;;
esac
echo "./run $1 is too heavy here: mark the block as not run" >&2
exit 97
"""


@pytest.fixture
def checkout(tmp_path):
    """A folder that looks like a built checkout to a document's commands."""
    (tmp_path / "build/release/cli").mkdir(parents=True)
    (tmp_path / "build/release/cli/hybridsync").symlink_to(PROGRAM.resolve())
    (tmp_path / "build/release/examples").symlink_to(BUILD / "examples")
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    (tmp_path / "run").write_text(RUN)
    (tmp_path / "run").chmod(0o755)
    return tmp_path


def run_block(block, folder):
    """The finished process of a block of shell or Python."""
    known = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK")
    environment = {name: value for name, value in os.environ.items() if name not in known}
    paths = (folder / "build/release/cli", os.path.dirname(sys.executable))
    environment["PATH"] = os.pathsep.join(map(str, paths)) + os.pathsep + environment["PATH"]
    command = ["bash", "-e", "-o", "pipefail", "-c", block.text]
    if block.language == "python":
        command = [sys.executable, "-c", block.text]
    return subprocess.run(command, cwd=folder, env=environment, text=True, capture_output=True,
                          timeout=600, stdin=subprocess.DEVNULL)


def documents_with(*languages):
    return [name for name in docs.documents() if docs.blocks(name, *languages)]


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("document", documents_with("sh", "python"))
def test_commands(document, checkout):
    """All of a document's commands in order, in one folder."""
    for block in docs.blocks(document, "sh", "python"):
        if block.not_run:
            warnings.warn(f"{block} is not run: {block.not_run}")
            continue
        done = run_block(block, checkout)
        assert done.returncode == block.exit_code, (
            f"{block}\n{block.text}\n{done.stdout}\n{done.stderr}")
        if os.environ.get("SHOW_DOCUMENTS"):
            print(f"--- {block}\n{block.text}>>>\n{done.stdout}{done.stderr}")


def test_reads_blocks_and_their_comments():
    text = ("<!-- not run by the documents' test: it takes hours -->\n```sh\na\n```\ntext\n"
            "```sh\nb\n```\n<!-- exits with code 2 -->\n```python\nc\n```\n")
    assert [(b.line, b.language, b.text, b.not_run, b.exit_code)
            for b in docs.blocks_in(text)] == [
        (2, "sh", "a\n", "it takes hours", 0), (6, "sh", "b\n", "", 0),
        (10, "python", "c\n", "", 2)]


def test_most_commands_are_run():
    every = [block for name in docs.documents() for block in docs.blocks(name, "sh", "python")]
    left_out = [block for block in every if block.not_run]
    assert len(every) >= 25 and len(left_out) <= len(every) / 2
    for block in left_out:
        assert len(block.not_run.split()) >= 3, f"{block} gives no reason"


COMMAND = re.compile(
    rf"^\s*(\$|hybridsync ({'|'.join(VERBS)})|\./|build/|cmake|ninja|git|apt|pip)", re.M)


@pytest.mark.parametrize("document", docs.documents())
def test_no_command_hides_in_another_block(document):
    for block in docs.blocks(document):
        assert block.language in ("", "sh", "python", "text", "cpp", "toml", "json", "cmake"), block
        if block.language == "":
            assert not COMMAND.search(block.text), f"{block} holds commands but is not ```sh"


@pytest.mark.parametrize("document", documents_with("toml"))
def test_configurations(document, tmp_path):
    for block in docs.blocks(document, "toml"):
        if block.not_run:
            continue
        (tmp_path / "block.toml").write_text(block.text)
        done = program("train", "block.toml", "--dry-run", cwd=tmp_path)
        assert done.returncode == block.exit_code, f"{block}: {done.stderr}"


def code_lines(text):
    """Lines of C++ without what a comment or a wrapped line adds."""
    return {re.sub(r"\s*//.*", "", line).strip() for line in text.splitlines()} | {
        re.sub(r"\s*//.*", "", line.lstrip("/ ")).strip() for line in text.splitlines()}


@pytest.mark.parametrize("document", documents_with("cpp"))
def test_cpp(document):
    """Every line stands in a program of examples/ or in a header, and so is compiled."""
    known = set()
    for path in [*(ROOT / "examples").glob("*.cpp"), *(ROOT / "hybridsync").rglob("*.h")]:
        known |= code_lines(path.read_text(encoding="utf-8"))
    for block in docs.blocks(document, "cpp"):
        lines = [re.sub(r"\s*//.*", "", line).strip() for line in block.text.splitlines()]
        missing = [line for line in lines if line not in known and line not in ("", "...")]
        assert not missing, f"{block}: not in examples/ or a header: {missing}"


def test_project_of_ones_own(tmp_path):
    """It configures; that it builds as well was seen by hand, since that takes minutes."""
    (block,) = docs.blocks("docs/how-to.md", "cmake")
    (tmp_path / "CMakeLists.txt").write_text(block.text)
    (tmp_path / "hybridsync").symlink_to(ROOT)
    shutil.copy(ROOT / "examples/own_loop.cpp", tmp_path / "my_program.cpp")
    where = f"-DCMAKE_PREFIX_PATH={torch.utils.cmake_prefix_path}"
    if torch.version.cuda:  # its own CMake files want the CUDA toolkit
        where = f"-DHYBRIDSYNC_TORCH_FOLDER={os.path.dirname(torch.__file__)}"
    done = subprocess.run(["cmake", "-S", ".", "-B", "build", "-G", "Ninja", where], cwd=tmp_path,
                          text=True, capture_output=True, timeout=200)
    assert done.returncode == 0, done.stderr


def missing_messages(messages, literals):
    """Those of which a fixed part cannot be found."""
    missing = []
    for message in messages:
        parts = docs.fixed_parts(message)
        if not parts or not all(literals.hold(part) for part in parts):
            missing.append((message, [part for part in parts if not literals.hold(part)]))
    return missing


def literals_of_the_sources():
    paths = [path for folder in ("hybridsync", "cli") for path in (ROOT / folder).rglob("*")
             if path.suffix in (".cpp", ".h")]
    return docs.Literals(path.read_text(encoding="utf-8") for path in paths)


def test_messages():
    messages = docs.quoted_messages(docs.text_of(TROUBLESHOOTING))
    assert len(messages) >= 30
    wrong = missing_messages(messages, literals_of_the_sources())
    assert not wrong, "\n".join(f"{message}: nobody says {parts}" for message, parts in wrong)


def test_finds_invented_messages():
    literals = literals_of_the_sources()
    for message in ("rank <n> has gone fishing", "WORLD_SIZE is <n>, yet the moon is full", "<n>"):
        assert missing_messages([message], literals)


def listed_keys(file):
    return set(docs.code_cells(docs.section(docs.text_of(RECORDS), file)))


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A whole run of two nodes, and one whose gradients are not finite from the second step on."""
    folder = tmp_path_factory.mktemp("runs")
    (folder / "a.toml").write_text(SMALL + TIERS + "codec = \"int8\"\n")
    (folder / "b.toml").write_text(SMALL)
    for arguments in (["a.toml", "--name", "whole", "--set", "train.evaluate_every=2"],
                      ["b.toml", "--name", "skips", "--set", "train.lr=1e30"]):
        done = program("train", *arguments, cwd=folder)
        assert done.returncode == 0, done.stderr
    return folder / "runs"


def keys_of(path):
    text = path.read_text()
    lines = text.splitlines() if path.suffix == ".jsonl" else [text]
    return {key for line in lines for key in json.loads(line)}


def test_files_of_a_run(runs):
    listed = set(docs.code_cells(docs.section(docs.text_of(RECORDS), "Files")))
    assert listed == {path.name for path in (runs / "whole").iterdir()}


@pytest.mark.parametrize("file, run", [
    ("metrics.jsonl", "whole"), ("evaluations.jsonl", "whole"), ("summary.json", "whole"),
    ("environment.json", "whole"), ("events.jsonl", "skips")])
def test_keys_of_a_run(runs, file, run):
    assert listed_keys(file) == keys_of(runs / run / file)


def test_kinds_of_events(runs):
    text = docs.section(docs.text_of(RECORDS), "Kinds of events")
    sources = "".join(path.read_text() for path in (ROOT / "hybridsync").rglob("*.cpp"))
    told = r'(?:log_\.event\(|Report::Kind::\w+:\s*return)\s*"(\w+)"'
    assert set(docs.code_cells(text)) == set(re.findall(told, sources))
    skips = [json.loads(line) for line in (runs / "skips/events.jsonl").read_text().splitlines()]
    assert skips and all(event["kind"] == "skip" for event in skips)


def test_an_interrupted_run_says_so(start, write, tmp_path):
    running = start("train", write("long.toml", SMALL), "--name", "x", "--set",
                    "train.steps=1000000")
    metrics = tmp_path / "runs/x/metrics.jsonl"
    eventually(lambda: metrics.exists() and metrics.read_text().count("\n") > 2)
    running.process.send_signal(signal.SIGINT)
    assert running.end()[0] == 3
    kinds = [json.loads(line)["kind"]
             for line in (tmp_path / "runs/x/events.jsonl").read_text().splitlines()]
    assert kinds == ["interrupted"] and not (tmp_path / "runs/x/summary.json").exists()


@pytest.mark.parametrize("verb", VERBS)
def test_options(verb, tmp_path):
    text = docs.section(docs.text_of(COMMAND_LINE), f"hybridsync {verb}")
    listed = {option for code in docs.code_cells(text)
              for option in re.findall(r"(?<![\w-])--?[a-z][\w-]*", code)}
    helped = program(verb, "--help", cwd=tmp_path).stdout
    options = re.findall(r"^ +(-\S+)", helped[helped.index("Options:"):], re.M)
    assert listed == {name for option in options for name in option.split("=")[0].split(",")}


def test_verbs(tmp_path):
    helped = program("--help", cwd=tmp_path).stdout
    assert re.findall(r"^  (\w+) ", helped[helped.index("Subcommands:"):], re.M) == list(VERBS)
    for verb in re.findall(r"^## hybridsync (\w+)$", docs.text_of(COMMAND_LINE), re.M):
        assert verb in VERBS


def test_dry_run_figures(write, tmp_path):
    link = 'emulate = { rate = "100 Mbit/s", rtt = "50 ms" }\n'
    delayed = TIERS.replace("periodic", "delayed") + 'staleness = 2\ndeadline = "2 s"\n'
    text = docs.section(docs.text_of(COMMAND_LINE), "What --dry-run prints")
    shown = set()
    for tiers in (TIERS + 'codec = "int4"\n', delayed):
        config = write("a.toml", SMALL + tiers + link)
        figures = json.loads(program("train", config, "--dry-run", "--json", cwd=tmp_path).stdout)
        shown |= {name for group in figures.values() for name in group}
    assert set(docs.code_cells(text)) == shown
