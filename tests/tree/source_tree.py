"""Rules for the source tree: functions from a Tree to a list of sentences, one per violation."""
import ast
import pathlib
import re
import subprocess

CPP = {".h", ".cpp"}
# Written by others and kept as they came.
FOREIGN = ("hybridsync/observe/uplot/",)

# A folder of hybridsync/ and what it may include of the others. A path means that header alone.
MAY_INCLUDE = {
    "config": set(),
    "decide": {"config"},
    "math": {"config"},
    "wire": {"config", "math/values.h"},
    "sync": {"config", "decide", "math", "wire", "observe/step_record.h"},
    "simulate": {"config", "decide", "math", "wire", "sync"},
    "data": {"config"},
    "observe": {"config"},
    "launch": {"config", "decide", "wire", "observe"},
    "torch": {"config", "decide", "math", "wire", "sync", "data", "observe", "launch"},
}
# Pure planes: the standard library, and headers that begin so.
PURE = {"decide": ("xxhash.h",), "math": ("xxhash.h", "hwy/")}
TORCH_HEADER = re.compile(r"(torch|ATen|c10)/")
MAY_INCLUDE_TORCH = ("hybridsync/torch/", "cli/", "examples/", "tests/torch/", "microbench/")

LONGEST_FUNCTION = 70
LONGEST_LINE = {".h": 100, ".cpp": 100, ".py": 100, ".cmake": 110, ".txt": 110, "": 110}
LONGEST_README = 250
DOCUMENTS = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE")
HOME = re.compile(r"(?<![\w.}])/(home|root|work|Users|tmp/w)/\w")


class Tree:
    """The text files of a source tree by path: those git knows or would take, else all."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.text = {}
        for path in sorted(self._paths()):
            try:
                self.text[path] = (self.root / path).read_text(encoding="utf-8")
            except (UnicodeDecodeError, FileNotFoundError):
                pass

    def _paths(self):
        if (self.root / ".git").exists():
            listing = subprocess.run(
                ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
                cwd=self.root, capture_output=True, text=True, check=True)
            return set(listing.stdout.splitlines())
        return {str(p.relative_to(self.root)) for p in self.root.rglob("*") if p.is_file()}

    def own(self, *suffixes):
        """(path, text) of the project's own files, with these endings if any are given."""
        for path, text in self.text.items():
            if not path.startswith(FOREIGN) and (not suffixes or path.endswith(suffixes)):
                yield path, text


def includes(text):
    """(line number, name, whether in quotes) of each #include."""
    for number, line in enumerate(text.splitlines(), 1):
        match = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
        if match:
            yield number, match[2], match[1] == '"'


def include_direction(tree):
    wrong = []
    for path, text in tree.own(".h", ".cpp"):
        for line, name, quoted in includes(text):
            reason = refused_include(path, name, quoted)
            if reason:
                wrong.append(f"{path}:{line} includes {name}: {reason}")
    return wrong


def refused_include(path, name, quoted):
    if not quoted and TORCH_HEADER.match(name) and not path.startswith(MAY_INCLUDE_TORCH):
        return "only the adapter and what stands on it knows torch"
    parts = path.split("/")
    if parts[0] != "hybridsync" or len(parts) < 3:
        return None
    folder = parts[1]
    if not quoted:
        third_party = "/" in name or "." in name
        if folder in PURE and third_party and not name.startswith(PURE[folder]):
            return f"{folder} is pure: the standard library only"
        return None
    if not name.startswith("hybridsync/"):
        return "paths start at the root of the tree"
    rest = name.removeprefix("hybridsync/")
    if rest.split("/")[0] == folder:
        return None
    if folder not in MAY_INCLUDE:
        return f"the folder {folder} has no place among the planes yet"
    allowed = MAY_INCLUDE[folder]
    if rest in allowed or rest.split("/")[0] in allowed:
        return None
    return f"{folder} may include only itself, {', '.join(sorted(allowed)) or 'nothing else'}"


def built_sources(tree):
    """Every .cpp and every script of the tests is named by a CMake file of its folder or above."""
    wrong = []
    for path, _ in tree.own(".cpp", ".mjs"):
        name = path.rsplit("/", 1)[-1]
        named = any(re.search(rf"(?<![\w.]){re.escape(name)}(?![\w.])", text)
                    for cmake, text in tree.own("CMakeLists.txt", ".cmake")
                    if near(cmake, path))
        if not named:
            wrong.append(f"{path} is in no CMakeLists.txt")
    return wrong


def near(cmake, path):
    """Whether both belong to one library or one folder of tests; scripts may be used by any."""
    return not path.endswith(".cpp") or cmake.split("/")[:2] == path.split("/")[:2] or (
        cmake.rpartition("/")[0] == path.rpartition("/")[0])


def used_headers(tree):
    wanted = {name.rsplit("/", 1)[-1] for _, text in tree.own(".h", ".cpp")
              for _, name, _ in includes(text)}
    full = {name for _, text in tree.own(".h", ".cpp") for _, name, _ in includes(text)}
    wrong = []
    for path, _ in tree.own(".h"):
        name = path.rsplit("/", 1)[-1]
        if path != "hybridsync/hybridsync.h" and path not in full and (
                path.startswith("hybridsync/") or name not in wanted):
            wrong.append(f"nobody includes {path}")
    return wrong


def registered_tests(tree):
    """A pytest file has a name that pytest takes; other scripts of the tests are used somewhere."""
    wrong = []
    for path, _ in tree.own(".py"):
        folder, _, name = path.rpartition("/")
        if not path.startswith("tests/") or name == "conftest.py":
            continue
        if name.startswith("test_") and folder in ("tests/tree", "tests/e2e"):
            continue
        users = [other for other, text in tree.own() if other != path
                 and re.search(rf"\b{re.escape(name.removesuffix('.py'))}\b", text)]
        if name.startswith("test_") or not users:
            wrong.append(f"{path} is run by nobody")
    return wrong


def opening_comments(tree):
    """A file starts with what it is; a source leaves that to its header, a test to the first."""
    starts = {".h": "//", ".cpp": "//", ".mjs": "//", ".js": "//", ".css": "/*", ".cmake": "#",
              ".py": '"""', ".toml": "#"}
    wrong = []
    for path, text in tree.own(*starts):
        own_header = path.endswith(".cpp") and path.removesuffix(".cpp") + ".h" in tree.text
        subject = path.endswith("_test.cpp") and text.startswith('#include "hybridsync/')
        if own_header or subject or not text.strip():
            continue
        lines = [line for line in text.splitlines() if line and not line.startswith("#!")]
        if not lines[0].startswith(starts[pathlib.Path(path).suffix]):
            wrong.append(f"{path} does not say at its top what it is")
    return wrong


def without_comments_and_strings(text):
    """The same text, line by line, with what is in comments, strings and directives blanked."""
    pattern = re.compile(
        r'R"(\w*)\(.*?\)\1"|//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"'
        r"|(?<!\w)'(?:\\.|[^'\\\n])+'"
        r"|^[ \t]*#(?:[^\n\\]|\\.)*", re.S | re.M)
    return pattern.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)


def cpp_functions(text):
    """(name, first line, number of lines) of each function with a body, by counting braces."""
    code = without_comments_and_strings(text)
    functions, stack, begin = [], [], 0
    for at, char in enumerate(code):
        if char == "{":
            if not code[at - 1].isspace():  # an initializer: b_{1}
                stack.append(("initializer", "", at))
                continue
            head = code[begin:at].strip()
            inside = any(kind == "function" for kind, _, _ in stack)
            scope = re.match(r"(template\s*<.*>\s*)?(inline\s+)?"
                             r"(namespace|class|struct|enum|union|extern)\b", head, re.S)
            if not inside and "(" in head and not scope:
                name = re.search(r"([\w:~]+|operator\W+)\s*\(", head)
                first = begin + len(code[begin:at]) - len(code[begin:at].lstrip())
                stack.append(("function", name[1] if name else "?", first))
            else:
                stack.append(("other", "", at))
            begin = at + 1
        elif char == "}" and stack:
            kind, name, first = stack.pop()
            if kind == "function":
                lines = code.count("\n", first, at) + 1
                functions.append((name, code.count("\n", 0, first) + 1, lines))
            if kind != "initializer":
                begin = at + 1
        elif char == ";":
            begin = at + 1
    return functions


def python_functions(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name, node.lineno, node.end_lineno - node.lineno + 1


def all_functions(tree):
    """(path, name, first line, number of lines)"""
    for path, text in tree.own(".h", ".cpp", ".py"):
        found = python_functions(text) if path.endswith(".py") else cpp_functions(text)
        for name, line, lines in found:
            yield path, name, line, lines


def function_lengths(tree, exceptions):
    """No function grows past the limit; exceptions (path::name -> lines) only shrink."""
    wrong, long = [], {}
    for path, name, line, lines in all_functions(tree):
        key = f"{path}::{name}"
        long[key] = max(long.get(key, 0), lines)
        if lines > exceptions.get(key, LONGEST_FUNCTION):
            wrong.append(f"{path}:{line} {name} has {lines} lines, "
                         f"allowed are {exceptions.get(key, LONGEST_FUNCTION)}")
    for key, lines in exceptions.items():
        if long.get(key, 0) < lines:
            wrong.append(f"{key} has shrunk from {lines} to {long.get(key, 0)}: "
                         "lower its exception")
    return wrong


def line_lengths(tree, exceptions):
    """Columns; exceptions: path -> number of longer lines, which only shrinks."""
    wrong = []
    for path, text in tree.own():
        suffix = pathlib.Path(path).suffix
        if suffix not in LONGEST_LINE or path.endswith(("LICENSE", ".clang-format", ".gitignore")):
            continue
        limit = LONGEST_LINE[suffix]
        long = [n for n, line in enumerate(text.splitlines(), 1) if len(line) > limit]
        if len(long) != exceptions.get(path, 0):
            wrong.append(f"{path} has {len(long)} lines over {limit} columns "
                         f"({', '.join(map(str, long[:5]))}), not {exceptions.get(path, 0)}")
    return wrong


def documents(tree):
    wrong = [f"there is no {name}" for name in DOCUMENTS if name not in tree.text]
    lines = len(tree.text.get("README.md", "").splitlines())
    if lines > LONGEST_README:
        wrong.append(f"README.md has {lines} lines, at most {LONGEST_README} are allowed")
    return wrong


def anchors(text):
    """What `#...` can point to in a Markdown file."""
    headings = re.findall(r"^#+\s+(.*?)\s*$", re.sub(r"```.*?```", "", text, flags=re.S), re.M)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


def links(tree):
    """Relative links of documents lead to files and headings that exist."""
    wrong = []
    for path, text in tree.own(".md"):
        folder = pathlib.PurePosixPath(path).parent
        plain = re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.S)
        for target in re.findall(r"\]\(([^)\s]+)\)", plain):
            if re.match(r"[a-z]+:", target):
                continue
            file, _, anchor = target.partition("#")
            full = resolved(folder / file) if file else path
            known = full in tree.text or (tree.root / full).exists()
            if not known or (anchor and anchor not in anchors(tree.text.get(full, ""))):
                wrong.append(f"{path} links to {target}, which is not there")
    return wrong


def resolved(path):
    parts = []
    for part in path.parts:
        if part == "..":
            parts = parts[:-1]
        elif part != ".":
            parts.append(part)
    return "/".join(parts)


def personal_paths(tree):
    wrong = []
    for path, text in tree.own():
        for number, line in enumerate(text.splitlines(), 1):
            match = HOME.search(line)
            if match and "HOME = re.compile" not in line and "planted" not in line:
                wrong.append(f"{path}:{number} names a folder of one machine: {match[0]}...")
    return wrong
