"""The source tree keeps its rules, and every rule finds what it is meant to find."""
import pathlib

import pytest
import source_tree as rules

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Functions that are longer than allowed, and files with longer lines. Both tables may only shrink.
LONG_FUNCTIONS = {}
LONG_LINES = {
    "hybridsync/config/reference.cpp": 6,  # lines of the document that it prints
}


@pytest.fixture(scope="module")
def tree():
    return rules.Tree(ROOT)


@pytest.mark.parametrize("rule", [
    rules.include_direction, rules.built_sources, rules.used_headers, rules.registered_tests,
    rules.opening_comments, rules.documents, rules.links, rules.personal_paths],
    ids=lambda rule: rule.__name__)
def test_rule(tree, rule):
    assert not (wrong := rule(tree)), "\n".join(wrong)


def test_function_lengths(tree):
    assert not (wrong := rules.function_lengths(tree, LONG_FUNCTIONS)), "\n".join(wrong)


def test_line_lengths(tree):
    assert not (wrong := rules.line_lengths(tree, LONG_LINES)), "\n".join(wrong)


def test_sees_the_tree(tree):
    assert len(list(tree.own(".cpp"))) > 50
    functions = {f"{path}::{name}" for path, name, _, _ in rules.all_functions(tree)}
    assert "hybridsync/launch/launcher.cpp::Launcher::on_failure" in functions
    assert "hybridsync/launch/launcher.cpp::launch" in functions


def planted_tree(folder, files):
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return rules.Tree(folder)


BODY = "  f();\n" * 80


@pytest.mark.parametrize("rule, path, text, finding", [
    (rules.include_direction, "hybridsync/decide/a.h", '#include "hybridsync/wire/b.h"\n',
     "decide may include only itself, config"),
    (rules.include_direction, "hybridsync/math/a.h", '#include "hybridsync/decide/b.h"\n',
     "math may"),
    (rules.include_direction, "hybridsync/wire/a.h", '#include "hybridsync/math/hash.h"\n',
     "wire may"),
    (rules.include_direction, "hybridsync/decide/a.h", "#include <zmq.h>\n", "decide is pure"),
    (rules.include_direction, "hybridsync/sync/a.h", "#include <torch/torch.h>\n", "knows torch"),
    (rules.include_direction, "tests/sync/a.h", "#include <ATen/ATen.h>\n", "knows torch"),
    (rules.include_direction, "hybridsync/sync/a.h", '#include "b.h"\n', "root of the tree"),
    (rules.built_sources, "hybridsync/math/lost.cpp", "", "in no CMakeLists"),
    (rules.used_headers, "hybridsync/math/lost.h", "", "nobody includes"),
    (rules.registered_tests, "tests/torch/lost.py", "", "run by nobody"),
    (rules.registered_tests, "tests/torch/test_lost.py", "", "run by nobody"),
    (rules.opening_comments, "hybridsync/math/a.h", "#pragma once\n", "does not say"),
    (rules.opening_comments, "tests/e2e/test_a.py", "import os\n", "does not say"),
    (rules.documents, "README.md", "line\n" * 251, "README.md has 251 lines"),
    (rules.documents, "a", "", "there is no CHANGELOG.md"),
    (rules.links, "README.md", "[a](docs/none.md)", "links to docs/none.md"),
    (rules.links, "README.md", "# A title\n[a](#a-title) [b](#b)", "links to #b"),
    (rules.personal_paths, "run", "cd /" + "home/me/project\n", "one machine"),
    (lambda t: rules.function_lengths(t, {}), "a.cpp", "int f(int a) {\n" + BODY + "}\n",
     "82 lines"),
    (lambda t: rules.function_lengths(t, {}), "a.cpp",
     "class A {\n  A() : b_{1} {\n" + BODY + "  }\n};\n", "82 lines"),
    (lambda t: rules.function_lengths(t, {}), "a.py", "def f():\n" + "    f()\n" * 80,
     "81 lines"),
    (lambda t: rules.function_lengths(t, {"a.cpp::f": 90}), "a.cpp",
     "int f(int a) {\n" + BODY + "}\n", "shrunk from 90 to 82"),
    (lambda t: rules.line_lengths(t, {}), "a.cpp", "x" * 101, "1 lines over 100"),
    (lambda t: rules.line_lengths(t, {"a.cpp": 2}), "a.cpp", "x" * 101, "not 2"),
])
def test_rule_finds(tmp_path, rule, path, text, finding):
    wrong = rule(planted_tree(tmp_path, {path: text}))
    assert any(finding in sentence for sentence in wrong), wrong


def test_braces_in_text_do_not_count():
    text = 'int f() {\n  g("{{{");  // {\n  h(\'{\');\n  return R"({)"[0];\n}\nint g() {\n}\n'
    assert [(name, lines) for name, _, lines in rules.cpp_functions(text)] == [("f", 5), ("g", 2)]
