"""Reading C sources for the checks: no comments, no strings, line numbers kept."""
import os
import re

FOLDERS = ("common", "proto", "client", "gpuctl", "daemon", "kernels", "examples", "tests", "bench")

_TOKEN = re.compile(
    r"""//(?:\\\n|[^\n])*          # line comment
      | /\*.*?\*/                  # block comment
      | "(?:\\.|[^"\\\n])*"        # string
      | '(?:\\.|[^'\\\n])*'        # character
    """,
    re.VERBOSE | re.DOTALL,
)


def files(root, folders=FOLDERS, suffixes=(".c", ".h")):
    """Paths below root, relative to it, sorted."""
    found = []
    for folder in folders:
        for here, dirs, names in os.walk(os.path.join(root, folder)):
            dirs.sort()
            found += [os.path.relpath(os.path.join(here, n), root)
                      for n in names if n.endswith(suffixes)]
    return sorted(found)


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as f:
        return f.read()


def blank(text, keep_strings=False):
    """Comments become white space and strings empty ones; every newline stays where it was."""
    def replace(match):
        token = match.group(0)
        if token[0] == "/":
            return re.sub(r"[^\n]", " ", token)
        if keep_strings:
            return token
        return token[0] * 2 + "\n" * token.count("\n")
    return _TOKEN.sub(replace, text)


def without_directives(text):
    """Preprocessor lines, with their continuations, become empty lines."""
    out, inside = [], False
    for line in text.split("\n"):
        directive = inside or line.lstrip().startswith("#")
        inside = directive and line.endswith("\\")
        out.append("" if directive else line)
    return "\n".join(out)


# ---- functions ---------------------------------------------------------------------------------

WORD = re.compile(r"[A-Za-z_]\w*|&&|\|\||[?:;{}()=]|\n|[^\s]")
BRANCHES = {"if", "for", "while", "&&", "||", "?"}
NOT_NAMES = {"if", "for", "while", "switch", "return", "sizeof", "__attribute__", "_Static_assert"}


class Function:
    def __init__(self, name, line):
        self.name, self.first = name, line
        self.last, self.complexity = line, 1


def function_name(head):
    """The name of the function whose head these tokens are; None if they are something else."""
    tokens = [t for t, _ in head]
    if "(" not in tokens or "=" in tokens:
        return None
    for i, token in enumerate(tokens[:-1]):
        if tokens[i + 1] == "(" and re.match(r"[A-Za-z_]", token) and token not in NOT_NAMES:
            if token in ("START_TEST", "END_TEST") and i + 2 < len(tokens):
                return tokens[i + 2]
            return token
    return None


def tokens_of(text):
    line = 1
    for match in WORD.finditer(without_directives(blank(text))):
        token = match.group(0)
        if token == "\n":
            line += 1
        else:
            yield token, line


def branches(tokens):
    """Counts decisions; case labels that follow each other directly are one."""
    count, label, after_label = 0, False, False
    for token in tokens:
        if token in ("case", "default"):
            count += 1 if token == "case" and not after_label else 0
            label, after_label = True, False
        elif label and token == ":":
            label, after_label = False, True
        elif not label:
            after_label = False
            count += 1 if token in BRANCHES else 0
    return count


def functions(text):
    found, head, body, depth, current, skip = [], [], [], 0, None, 0
    for token, line in tokens_of(text):
        if depth == 0 and token == "{":
            name = function_name(head)
            current = Function(name, head[0][1]) if name else None
            body, depth = [], 1
        elif depth > 0:
            depth += {"{": 1, "}": -1}.get(token, 0)
            body.append(token)
            if depth == 0:
                if current:
                    current.last = line
                    current.complexity = 1 + branches(body)
                    found.append(current)
                head = []
        elif token == ";":
            head = []
        elif token == "END_TEST":
            head = []
        else:
            head.append((token, line))
    return found


# ---- names at the outermost level --------------------------------------------------------------

ATTRIBUTE = re.compile(r"__attribute__\s*\(\(.*?\)\)", re.DOTALL)


def defined_name(head):
    """The name that a definition at the outermost level defines, or None."""
    if "=" in head:
        head = head[:head.index("=")]
    elif "{" in head and "(" in head:
        return function_name([(token, 0) for token in head])
    head = [token for token in head if token not in "{}"]
    while head and head[-1] == "]":
        head = head[:len(head) - 1 - head[::-1].index("[")]
    if "(" in head or len(head) < 2 or head[-2] in ("struct", "union", "enum"):
        return None
    return head[-1]


def definitions(text):
    """(names that the text defines for other files, names that it defines for itself)."""
    shared, own, head, depth = set(), set(), [], 0
    for token, _ in tokens_of(ATTRIBUTE.sub(" ", text)):
        if depth == 0 or (depth == 1 and token == "}"):
            head.append(token)
        depth += {"{": 1, "}": -1}.get(token, 0)
        if depth == 0 and (token == ";" or (token == "}" and "(" in head and "=" not in head)):
            if "typedef" not in head and "extern" not in head:
                (own if "static" in head else shared).add(defined_name(head[:-1]))
            head = []
    return shared - {None}, own - {None}
