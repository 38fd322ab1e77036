"""The list of strategies."""
import json

from conftest import program


def test_lists_every_name_that_a_configuration_may_use(write, tmp_path):
    entries = json.loads(program("strategies", "--json", cwd=tmp_path).stdout)
    names = [entry["name"] for entry in entries]
    config = write("a.toml", '[[tier]]\n[[tier]]\nsize = 2\nstrategy = "none"\n')
    refused = program("train", config, "--dry-run", cwd=tmp_path)
    assert refused.returncode == 2
    assert all(name in refused.stderr for name in names), refused.stderr
    for name in names:
        known = program("train", config, "--dry-run", "--set", f"tier.1.strategy={name}",
                        cwd=tmp_path)
        assert known.returncode == 0, known.stderr
    text = program("strategies", "--parameters", "1e6", "--nodes", "4", cwd=tmp_path).stdout
    assert all(f"\n{name}" in text for name in names)
    periodic = next(entry for entry in entries if entry["name"] == "periodic")
    assert periodic["bytes_per_round"] == 6_000_000 and periodic["times_less"] == 4


def test_mistakes(tmp_path):
    for arguments in (["--nodes", "0"], ["--parameters", "x"], ["more"]):
        assert program("strategies", *arguments, cwd=tmp_path).returncode == 2, arguments
