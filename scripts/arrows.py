"""Which file uses which: includes and calls, and the circles they form.

A file is its .c and its .h together, named without suffix. An arrow is an include, a call, or the use of a
variable. Calls are arrows inside a link unit; between link units every call comes with an include.
"""
import collections
import graphlib
import json
import os
import re
import subprocess

import csource
import layers

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"]+)"|<([^>]+)>)', re.M)


def includes(text):
    """(line, path of the project or None, header of a library or None) of each include."""
    blank = csource.blank(text, keep_strings=True)
    for match in INCLUDE.finditer(blank):
        yield blank.count("\n", 0, match.start()) + 1, match.group(1), match.group(2)


# ---- what a source defines and uses: from its object file ----------------------------------------

def objects_of(root, build):
    """source -> its object file, where the build has one that is not older than the source."""
    try:
        with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as f:
            commands = json.load(f)
    except OSError:
        return {}
    found = {}
    for command in commands:
        output = re.search(r" -o (\S+)", command["command"])
        path = os.path.relpath(command["file"], os.path.realpath(root))
        made = os.path.join(command["directory"], output.group(1)) if output else None
        if made and os.path.exists(made) and os.path.getmtime(made) >= os.path.getmtime(command["file"]):
            found[path] = made
    return found


def symbols_of_objects(objects):
    """source -> (names that it defines, names that it uses)."""
    symbols = {path: (set(), set()) for path in objects}
    sources = {made: path for path, made in objects.items()}
    if objects:
        said = subprocess.run(["nm", "-A", "-g", *sources], check=True, capture_output=True, text=True).stdout
        for line in said.splitlines():
            made, rest = line.rsplit(":", 1)
            kind, name = rest.split()[-2:]
            symbols[sources[made]][kind in "Uw"].add(name)
    return symbols


# ---- what a source defines and uses: from its text -----------------------------------------------

# A name in an expression: no member, no tag, no macro's own name.
USE = re.compile(r"(?<![\w.])(?<!->)(?<!struct )(?<!union )(?<!enum )(?<!define )([A-Za-z_]\w*)(\s*\()?")
# A name after a type: a parameter, a local variable or a member hides the function of that name.
LOCAL = re.compile(r"\b(?!(?:return|else|case|goto)\b)\w+[ \t]+\**(\w+)[ \t]*(?=[;=,)\[:]|$)", re.M)
MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)((?:\\\n|[^\n])*)", re.M)


def called(text):
    return {name for name, call in USE.findall(text) if call}


def expansions(texts):
    """name of a macro or of a function in a header -> what it calls."""
    found = collections.defaultdict(set)
    for path, text in texts.items():
        blank = csource.blank(text)
        for name, body in MACRO.findall(blank):
            found[name] |= called(body)
        if path.endswith(".h"):
            lines = blank.split("\n")
            for function in csource.functions(text):
                found[function.name] |= called("\n".join(lines[function.first - 1:function.last]))
    return found


def symbols_of_text(text, stands_for):
    """(names that a source defines for others, names of others that it uses)."""
    blank = csource.blank(text)
    local = set(LOCAL.findall(blank))
    used = {name for name, call in USE.findall(blank) if call or name not in local}
    todo = used & stands_for.keys()
    while todo:
        new = stands_for[todo.pop()] - used
        used |= new
        todo |= new & stands_for.keys()
    shared, own = csource.definitions(text)
    return shared, used - own


# ---- the graph -----------------------------------------------------------------------------------

class Graph:
    """arrows: from -> to -> the reasons, as words."""

    def __init__(self):
        self.arrows = collections.defaultdict(lambda: collections.defaultdict(set))

    def add(self, path, target, reason):
        here, there = layers.file_of(path), layers.file_of(target)
        if here not in (there, there + "_int"):  # X_int.h is of the module X, and knows its X.h
            self.arrows[here][there].add(reason)

    def each(self):
        for here in sorted(self.arrows):
            for there in sorted(self.arrows[here]):
                yield here, there

    def reasons(self, here, there):
        return ", ".join(sorted(self.arrows[here][there]))


def read(root, paths, build=None):
    """The arrows among the sources of each link unit."""
    graph = Graph()
    texts = {path: csource.read(root, path) for path in paths}
    for path, text in texts.items():
        for _, target, _ in includes(text):
            if target in texts and layers.folder_of(target) == layers.folder_of(path):
                graph.add(path, target, "includes " + os.path.basename(target))
    objects = objects_of(root, build) if build else {}
    symbols = symbols_of_objects({p: o for p, o in objects.items() if p in texts})
    stands_for = expansions(texts)
    units = collections.defaultdict(dict)
    for path in texts:
        if path.endswith(".c"):
            units[layers.folder_of(path)][path] = symbols.get(path) or symbols_of_text(texts[path], stands_for)
    for sources in units.values():
        homes = {name: path for path, (defined, _) in sources.items() for name in defined}
        for path, (defined, used) in sources.items():
            for name in used & homes.keys() - defined:
                graph.add(path, homes[name], "uses " + name)
    return graph


# ---- circles -------------------------------------------------------------------------------------

def followers(arrows):
    follow = {}
    for here, there in sorted(arrows):
        follow.setdefault(here, []).append(there)
    return follow


def way(follow, start, end):
    """A shortest way along the arrows, as a list; None if there is none."""
    came, todo = {start: None}, collections.deque([start])
    while todo:
        here = todo.popleft()
        if here == end:
            trail = []
            while here is not None:
                trail.insert(0, here)
                here = came[here]
            return trail
        for there in follow.get(here, ()):
            if there not in came:
                came[there] = here
                todo.append(there)
    return None


def circle(arrows):
    """A short circle as a list whose first is its last and its smallest; None if there is none."""
    follow = followers(arrows)
    try:
        graphlib.TopologicalSorter(follow).prepare()
    except graphlib.CycleError as error:
        found = min((way(follow, there, here) for there, here in zip(error.args[1], error.args[1][1:])), key=len)
        first = found.index(min(found))
        return found[first:] + found[:first + 1]
    return None
