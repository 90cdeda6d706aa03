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
