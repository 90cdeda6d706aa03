"""The checks of the source bite: a violation planted in a copy of the tree is found and named."""
import contextlib
import importlib.machinery
import importlib.util
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(ROOT, "scripts"))
import layers  # noqa: E402


class Planted(unittest.TestCase):
    COPIED = ("common",)  # enough where a file is looked at by itself

    def setUp(self):
        self.tree = tempfile.mkdtemp(prefix="gpud-checks-")
        self.addCleanup(shutil.rmtree, self.tree)
        for folder in self.COPIED:
            source = os.path.join(ROOT, folder)
            if os.path.isdir(source):
                shutil.copytree(source, os.path.join(self.tree, folder))
        shutil.copy(os.path.join(ROOT, ".clang-format"), self.tree)

    def run_check(self, name, *args):
        result = subprocess.run([os.path.join(ROOT, "scripts", name), *args],
                                capture_output=True, text=True, check=False)
        return result.returncode, result.stderr.splitlines()

    def plant(self, path, text):
        full = os.path.join(self.tree, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        self.assertFalse(os.path.exists(full), path)
        with open(full, "w", encoding="utf-8") as f:
            f.write(text)

    def complaints(self, check, path, text):
        """What the check says of the tree with the file planted and not of the tree without it."""
        root = "--root=" + self.tree
        _, before = self.run_check(check, root)
        self.plant(path, text)
        code, after = self.run_check(check, root)
        new = [line for line in after if line not in before]
        if new:
            self.assertNotEqual(code, 0, "complains but succeeds")
        return "\n".join(new)

    def layering(self, path, text):
        return self.complaints("check-layering", path, text)

    def functions(self, path, text):
        return self.complaints("check-functions", path, text)


def rooms(folders=True):
    """(folder, name of a room in it) of every room that is a folder without rooms, or of every file."""
    for folder in layers.ROOMS:
        for name in layers.names_of(folder):
            if name.endswith("/") == folders and folder + "/" + name[:-1] not in layers.ROOMS:
                yield folder, name


def stubs():
    """path without suffix -> lines: a file for each folder, room and file of the tables. They use what is permitted."""
    places = set(layers.MAY_USE) | {place for row in layers.MAY_USE.values() for place in row}
    folders = {folder for folder in places if layers.folder_of(folder + "/x") == folder and folder not in layers.ROOMS}
    folders |= {folder + "/" + name[:-1] for folder, name in rooms()}
    files = {folder + "/" + name.replace("*", "") for folder, name in rooms(folders=False)}
    files |= {place for place in places if os.path.dirname(place) in folders}
    lines = {path: "" for path in sorted(files | {folder + "/stub" for folder in folders})}
    for row, used in layers.MAY_USE.items():
        user = next(path for path in lines if layers.row_of(path) == row)
        for place in used:
            lines[user] += f'#include "{next(path for path in lines if layers.lies_in(path, place))}.h"\n'
    for header, users in layers.LIBRARIES.items():
        for place in users or ():
            user = next(path for path in lines if layers.lies_in(path, place))
            lines[user] += f"#include <{header.replace('*', '')}>\n"
    return lines


class Layering(Planted):
    """Violations in a tree of stubs, with the true page about folders and rooms. The tests share the tree."""

    @classmethod
    def setUpClass(cls):
        cls.tree = tempfile.mkdtemp(prefix="gpud-checks-")
        cls.addClassCleanup(shutil.rmtree, cls.tree)
        shutil.copytree(os.path.join(ROOT, "docs"), os.path.join(cls.tree, "docs"))
        for path, lines in stubs().items():
            cls.put(path + ".c", lines)
            cls.put(path + ".h", "")
        for folder in layers.CIRCLES_STAY:
            cls.put(f"{folder}/stub_a.c", f'#include "{folder}/stub_b.h"\n')
            cls.put(f"{folder}/stub_b.h", f'#include "{folder}/stub_a.h"\n')
            cls.put(f"{folder}/stub_a.h", "")
        loader = importlib.machinery.SourceFileLoader("layering", os.path.join(ROOT, "scripts", "check-layering"))
        cls.check = importlib.util.module_from_spec(importlib.util.spec_from_loader("layering", loader))
        loader.exec_module(cls.check)

    def run_check(self, _, *args):
        said = io.StringIO()
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
            code = self.check.main(args)
        return code, said.getvalue().splitlines()

    def setUp(self):
        pass

    @classmethod
    def put(cls, path, text):
        """Writes a file of the tree; takes it out, with folders that it leaves empty, where there is no text."""
        full = os.path.join(cls.tree, path)
        if text is not None:
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "w", encoding="utf-8") as f:
                f.write(text)
        elif os.path.exists(full):
            os.remove(full)
            with contextlib.suppress(OSError):
                os.removedirs(os.path.dirname(full))

    def text(self, path):
        with open(os.path.join(self.tree, path), encoding="utf-8") as f:
            return f.read()

    def plant(self, path, text):
        super().plant(path, text)
        self.addCleanup(self.put, path, None)

    def take_out(self, path):
        self.addCleanup(self.put, path, self.text(path))
        self.put(path, None)

    def said(self, *args):
        code, lines = self.run_check("check-layering", "--root=" + self.tree, *args)
        self.assertEqual(code, 1 if lines else 0)
        return "\n".join(lines)

    def replace(self, path, old, new):
        text = self.text(path)
        self.assertIn(old, text)
        self.addCleanup(self.put, path, text)
        self.put(path, text.replace(old, new))

    def plant_circle(self, folder):
        self.plant(f"{folder}/planted_a.c", f'#include "{folder}/planted_b.h"\n')
        self.plant(f"{folder}/planted_b.c", f'#include "{folder}/planted_a.h"\n')
        self.plant(f"{folder}/planted_a.h", "")
        self.plant(f"{folder}/planted_b.h", "")

    def test_clean(self):
        self.assertEqual(self.said(), "")

    # ---- between folders

    def test_front_includes_back_end(self):
        said = self.layering("daemon/front/planted.c", '#include "daemon/backend/backend.h"\n')
        self.assertIn("planted.c:1: daemon/front must not use daemon/backend", said)

    def test_indented_include_is_seen(self):
        said = self.layering("kernels/planted.c", '/* */\n  #  include "proto/stub.h"\n')
        self.assertIn("planted.c:2: kernels must not use proto", said)

    def test_include_in_a_comment_is_none(self):
        self.assertEqual(
            self.layering("kernels/planted.c", '/*\n#include "proto/stub.h"\n*/\n'), "")

    def test_room_with_a_row_of_its_own(self):
        said = self.layering("daemon/front/clients/planted.c", '#include "kernels/stub.h"\n')
        self.assertIn("planted.c:1: daemon/front/clients must not use kernels", said)

    def test_circle(self):
        said = self.layering("common/planted.c", '#include "proto/stub.h"\n')
        self.assertIn("in a circle: common -> proto -> common", said)

    def test_path_not_from_root(self):
        said = self.layering("common/planted.c", '#include "stub.h"\n')
        self.assertIn("is not a path from the root", said)

    def test_allowed_is_quiet(self):
        self.assertEqual(self.layering("daemon/worker/serve/planted.c",
                                       '#include "daemon/backend/backend.h"\n#include <uv.h>\n'), "")

    def test_hook_and_direct_call(self):
        self.plant("daemon/front/pipeline_planted.c", "static void set(struct front *f)\n{\n"
                   "    f->hooks = (struct front_hooks){\n        .loaded = stub_loaded,\n    };\n}\n")
        self.plant("daemon/front/modules/planted.c", "void stub_loaded(int n)\n{\n    if (n > 0) {\n"
                   "        stub_loaded(n - 1);\n    }\n}\n")
        said = self.layering("daemon/front/memory/planted.c", "void f(void)\n{\n    f->hooks.loaded(1);\n"
                             "    stub_loaded(1);\n}\n")
        self.assertIn("memory/planted.c:4: stub_loaded is what the hook loaded calls", said)
        self.assertNotIn("planted.c:3", said)

    def test_empty_tree_fails(self):
        code, said = self.run_check("check-layering", "--root=" + os.path.join(self.tree, "none"))
        self.assertEqual(code, 1)
        self.assertIn("nothing to check", said[0])

    # ---- headers of libraries

    def test_vendor_header_outside_back_end(self):
        said = self.layering("daemon/front/planted.c", "#include <CL/cl.h>\n")
        self.assertIn("daemon/front must not use <CL/cl.h>", said)

    def test_unknown_header(self):
        said = self.layering("common/planted.c", "#include <curl/curl.h>\n")
        self.assertIn("<curl/curl.h> is in no table", said)

    def test_library_in_the_wrong_room(self):
        places = {"nng/nng.h": "daemon/front/model", "libeconf.h": "daemon/front/clients", "uv.h": "daemon/front/sched",
                  "jansson.h": "gpuctl/ctl", "lz4.h": "daemon/backend/cuda/run", "CL/cl.h": "daemon/backend/cuda/run",
                  "systemd/sd-daemon.h": "daemon/front/settings", "png.h": "gpuctl/sheet"}
        for header, place in places.items():
            self.plant(f"{place}/planted_{os.path.basename(header)}.c", f"#include <{header}>\n")
        said = self.said()
        for header, place in places.items():
            self.assertIn(f"{place} must not use <{header}>", said)

    # ---- places

    def test_unknown_folder(self):
        said = self.layering("daemon/planted/planted.c", "#include <stdio.h>\n")
        self.assertIn("folder daemon/planted is in no table", said)

    def test_unknown_top_folder(self):
        self.plant("planted/CMakeLists.txt", "")
        self.assertIn("planted: folder is in no table", self.layering("planted/planted.c", ""))

    def test_source_in_no_room(self):
        wanted = []
        for folder in layers.ROOMS:
            self.plant(f"{folder}/planted.c", "")
            self.plant(f"{folder}/planted/planted.c", "")
            wanted += [f"{folder}/planted.c: is in no room of {folder}/",
                       f"{folder}/planted/planted.c: is in no room of {folder}/"]
        wanted += [f"{folder}/{name}planted/planted.c: folder {folder}/{name}planted is in no table"
                   for folder, name in rooms()]
        for folder, name in rooms():
            self.plant(f"{folder}/{name}planted/planted.c", "")
        said = self.said()
        for line in wanted:
            self.assertIn(line, said)

    def test_permission_that_nothing_needs(self):
        self.replace("gpuctl/sheet/stub.c", "<jansson.h>", "<math.h>")
        self.replace("gpuctl/base/stub.c", "common/stub.h", "gpuctl/base/stub.h")
        said = self.said()
        self.assertIn("scripts/layers.py: jansson.h: gpuctl/sheet is not needed any more", said)
        self.assertIn("scripts/layers.py: gpuctl: common is not needed any more", said)

    def test_room_without_a_file(self):
        for suffix in (".c", ".h"):
            self.take_out("gpuctl/sheet/stub" + suffix)
        self.assertIn("gpuctl: sheet/ is not in the tree", self.said())

    def test_folder_over_the_limit(self):
        for i in range(layers.SOURCES_MAX):
            self.plant(f"daemon/loop/planted{i}.c", "")
        self.assertIn(f"daemon/loop: {layers.SOURCES_MAX + 1} .c files", self.said())

    def test_folder_at_the_limit(self):
        for i in range(layers.SOURCES_MAX - 1):
            self.plant(f"daemon/loop/planted{i}.c", "")
        self.assertEqual(self.said(), "")

    # ---- the page

    def test_page_without_rooms(self):
        self.replace("docs/architecture.md", "room of", "what was")
        said = self.said()
        for folder in layers.ROOMS:
            for name in layers.names_of(folder):
                self.assertIn(f"docs/architecture.md: room of `{folder}/`: `{name}` is missing", said)

    def test_page_without_a_folder(self):
        self.replace("docs/architecture.md", "| `kernels/` |", "| kernels |")
        self.assertIn("docs/architecture.md: folder: `kernels/` is missing", self.said())

    def test_page_with_other_uses(self):
        self.replace("docs/architecture.md", "| common, proto, pool, backend, confine, loop, libuv |",
                     "| common, kernels, pool, backend, confine, loop, libuv |")
        said = self.said()
        self.assertIn("what `daemon/worker/` may use: `proto` is missing", said)
        self.assertIn("what `daemon/worker/` may use: `kernels` is not in scripts/layers.py", said)

    def test_page_with_another_room(self):
        self.replace("docs/architecture.md", "| `clients/` |", "| `clients/`, `planted/` |")
        self.assertIn("room of `daemon/front/`: `planted/` is not in scripts/layers.py", self.said())

    def test_page_in_another_order(self):
        self.replace("docs/architecture.md", "| `clients/` |", "| `swapped/` |")
        self.replace("docs/architecture.md", "| `resolve/` |", "| `clients/` |")
        self.replace("docs/architecture.md", "| `swapped/` |", "| `resolve/` |")
        self.assertIn("room of `daemon/front/`: the order is not that of", self.said())

    # ---- the order of rooms, and circles

    def below_and_above(self):
        """Each room with the next one above it, as folders; both are folders."""
        for folder in layers.ROOMS:
            mine = [name for of, name in rooms() if of == folder]
            for above, below in zip(mine, mine[1:]):
                yield f"{folder}/{below}", f"{folder}/{above}"

    def test_include_up(self):
        for below, above in self.below_and_above():
            self.plant(below + "planted.c", f'#include "{above}stub.h"\n')
        said = self.said()
        for below, above in self.below_and_above():
            self.assertRegex(said, f"{below}planted -> {above}stub goes (up|aside), from .*: includes stub.h")

    def test_room_that_may_not_use_all_below(self):
        self.plant("daemon/front/sched/planted.c", '#include "daemon/front/clients/stub.h"\n')
        self.assertIn("sched/planted -> daemon/front/clients/stub goes out of daemon/front/sched", self.said())

    def test_call_up(self):
        for number, (below, above) in enumerate(self.below_and_above()):
            name = f"planted_{number}"
            self.plant(above + "defines.c", f"int {name}(int x)\n{{\n    return x;\n}}\n")
            self.plant(below + "calls.c", f"int {name}(int x);\nint u{number}(void)\n{{\n    return {name}(1);\n}}\n")
        said = self.said()
        for number, (below, above) in enumerate(self.below_and_above()):
            self.assertRegex(said, f"{below}calls -> {above}defines goes (up|aside), from .*: uses planted_{number}")

    def test_call_through_a_header(self):
        self.plant("daemon/front/sched/defines.c", "int planted(int x)\n{\n    return x;\n}\n")
        self.plant("common/planted.h", "#define PLANTED(x) \\\n    planted(x)\n"
                   "static inline int planted_inline(int x)\n{\n    return planted(x);\n}\n")
        self.plant("daemon/front/model/macro.c", "int f(void)\n{\n    return PLANTED(1);\n}\n")
        self.plant("daemon/front/model/inline.c", "int g(void)\n{\n    return planted_inline(1);\n}\n")
        said = self.said()
        for caller in ("macro", "inline"):
            self.assertIn(f"model/{caller} -> daemon/front/sched/defines goes up", said)

    def test_call_that_only_the_object_shows(self):
        self.plant("daemon/front/sched/defines.c", "int planted_f(void)\n{\n    return 1;\n}\n")
        self.plant("daemon/front/model/calls.c", "#define PLANTED(x) planted_##x\nint PLANTED(f)(void);\n"
                   "int g(void);\nint g(void)\n{\n    return PLANTED(f)();\n}\n")
        self.assertEqual(self.said(), "")
        source = os.path.join(self.tree, "daemon/front/model/calls.c")
        command = [os.environ.get("CC", "cc"), "-o", os.path.join(self.tree, "calls.o"), "-c", source]
        subprocess.run(command, check=True)
        command_line = {"directory": self.tree, "file": source, "command": " ".join(command)}
        self.plant("compile_commands.json", json.dumps([command_line]))
        self.assertIn("model/calls -> daemon/front/sched/defines goes up", self.said("--build=" + self.tree))
        os.utime(source, (2**32, 2**32))  # an object that is older than its source says nothing
        self.assertEqual(self.said("--build=" + self.tree), "")

    def test_names_that_are_no_calls(self):
        self.plant("daemon/front/sched/defines.c", "int planted(void)\n{\n    return 1;\n}\n")
        self.plant("daemon/front/model/other.c",
                   "struct planted {\n    int planted;\n};\n/* planted() */\n"
                   "int f(struct planted *p, int planted)\n{\n    return p->planted + planted;\n}\n")
        self.plant("daemon/front/model/tag.c", "int h(struct planted *p);\n")
        self.plant("daemon/front/model/member.c",
                   "int i(struct table *t)\n{\n    return t->planted(1) + t->ops.planted(2);\n}\n")
        self.plant("daemon/front/model/own.c",
                   "static int planted(void)\n{\n    return 1;\n}\nint g(void)\n{\n    return planted();\n}\n")
        self.assertEqual(self.said(), "")

    def test_circle_of_files(self):
        for folder, name in rooms():
            self.plant_circle(folder + "/" + name[:-1])
        self.plant_circle("common")
        said = self.said()
        for folder in [folder + "/" + name[:-1] for folder, name in rooms()] + ["common"]:
            self.assertRegex(said, f"circle of 2 files: .*{folder}/planted_a -> {folder}/planted_b "
                                   r"\(includes planted_b.h\)")

    def test_circle_that_may_stay(self):
        for folder in layers.CIRCLES_STAY:
            self.take_out(folder + "/stub_a.c")
            self.assertIn(f"{folder} has no circles any more", self.said())
            self.plant_circle(folder)
        self.assertEqual(self.said(), "")

    def test_header_between_the_files_of_a_module(self):
        self.plant("common/planted_int.h", '#include "common/planted.h"\n')
        self.plant("common/planted.h", "")
        self.plant("common/planted.c", '#include "common/planted_part.h"\n#include "common/planted_int.h"\n')
        self.plant("common/planted_part.h", "")
        self.plant("common/planted_part.c", '#include "common/planted_int.h"\n')
        self.assertEqual(self.said(), "")


class Symbols(Planted):
    def build(self, source, *flags):
        path = os.path.join(self.tree, "planted.c")
        program = os.path.join(self.tree, "planted")
        with open(path, "w", encoding="utf-8") as f:
            f.write(source)
        subprocess.run([os.environ.get("CC", "cc"), "-o", program, path, *flags], check=True)
        return self.run_check("check-layering", "--binary=" + program)

    def test_symbol(self):
        code, said = self.build("int clFinish(void);\nint clFinish(void) { return 0; }\n"
                                "int main(void) { return clFinish(); }\n")
        self.assertEqual(code, 1)
        self.assertIn("symbol clFinish", "\n".join(said))

    def test_library(self):
        fake = os.path.join(self.tree, "libcuda.so")
        empty = os.path.join(self.tree, "empty.c")
        with open(empty, "w", encoding="utf-8") as f:
            f.write("int planted;\n")
        subprocess.run(["cc", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", fake, empty],
                       check=True)
        code, said = self.build("int main(void) { return 0; }\n", "-Wl,--no-as-needed", fake)
        self.assertEqual(code, 1)
        self.assertIn("linked to libcuda.so.1", "\n".join(said))

    def test_clean(self):
        code, said = self.build("int main(void) { return 0; }\n")
        self.assertEqual((code, said), (0, []))


class Functions(Planted):
    @staticmethod
    def function(lines):
        return "int f(int x)\n{\n" + "    x++;\n" * (lines - 4) + "    return x;\n}\n"

    @staticmethod
    def branching(complexity):
        return ("int f(int x)\n{\n" + "    if (x) {\n        x++;\n    }\n" * (complexity - 1) +
                "    return x;\n}\n")

    def test_length(self):
        self.assertIn("f: 81 lines", self.functions("common/planted.c", self.function(81)))

    def test_length_at_the_ceiling(self):
        self.assertEqual(self.functions("common/planted.c", self.function(80)), "")

    def test_complexity(self):
        self.assertIn("f: complexity 16", self.functions("common/planted.c", self.branching(16)))

    def test_complexity_at_the_ceiling(self):
        self.assertEqual(self.functions("common/planted.c", self.branching(15)), "")

    def test_every_kind_of_branch(self):
        text = ("int f(int x)\n{\n    for (;;) {\n        while (x && x || x) {\n"
                "            x = x ? 1 : 2;\n        }\n    }\n    switch (x) {\n"
                "    case 1:\n    case 2:\n        x++;\n        break;\n    case 3:\n"
                "        break;\n    default:\n        break;\n    }\n" +
                "    if (x) {}\n" * 8 + "}\n")
        # 1, for, while, two of && ||, one ?:, two groups of cases, eight ifs
        self.assertIn("f: complexity 16", self.functions("common/planted.c", text))

    def test_words_in_comments_and_strings_do_not_count(self):
        text = ('const char *f(void)\n{\n    /* if if if if if if if if */\n' +
                '    const char *s = "if (a && b && c && d && e && f && g && h && i && j && k)";\n' +
                "    // while while while while while while while while while while\n" +
                "    return s;\n}\n")
        self.assertEqual(self.functions("common/planted.c", text), "")

    def test_file_length(self):
        self.assertIn("901 lines", self.functions("common/planted.c", "int x;\n" * 901))

    def test_in_a_test_macro(self):
        text = "START_TEST(long_one)\n{\n" + "    x++;\n" * 90 + "}\nEND_TEST\n"
        self.assertIn("long_one: 93 lines", self.functions("common/planted.c", text))


@unittest.skipUnless(shutil.which("clang-format"), "no clang-format")
class Format(Planted):
    def test_wrong_indent(self):
        said = self.complaints("check-format", "common/planted.c", "int f(void)\n{\n  return 0;\n}\n")
        self.assertIn("planted.c:2", said)

    def test_clean(self):
        said = self.complaints("check-format", "common/planted.c", "int f(void)\n{\n    return 0;\n}\n")
        self.assertEqual(said, "")


@unittest.skipUnless(shutil.which("clang-tidy"), "no clang-tidy")
class Static(Planted):
    def analyse(self, text):
        path = os.path.join(self.tree, "common", "planted.c")
        self.plant("common/planted.c", text)
        shutil.copy(os.path.join(ROOT, ".clang-tidy"), self.tree)
        with open(os.path.join(self.tree, "compile_commands.json"), "w", encoding="utf-8") as f:
            json.dump([{"directory": self.tree, "file": path, "command": "cc -c " + path}], f)
        result = subprocess.run([os.path.join(ROOT, "scripts", "check-static"), self.tree, self.tree],
                                capture_output=True, text=True, check=False)
        return result.returncode, result.stdout

    def test_a_semicolon_too_many(self):
        code, said = self.analyse("int f(int x);\nint f(int x)\n{\n    if (x > 1);\n    {\n"
                                  "        x++;\n    }\n    return x;\n}\n")
        self.assertNotEqual(code, 0)
        self.assertIn("bugprone-suspicious-semicolon", said)

    def test_an_allocation_of_the_wrong_size(self):
        code, said = self.analyse("#include <stdlib.h>\nlong *f(void);\nlong *f(void)\n{\n"
                                  "    return malloc(sizeof(short));\n}\n")
        self.assertNotEqual(code, 0)
        self.assertIn("MallocSizeof", said)

    def test_clean(self):
        code, _ = self.analyse("int f(int x);\nint f(int x)\n{\n    return x;\n}\n")
        self.assertEqual(code, 0)


class Mutants(Planted):
    """A mutant finds its place by what it says, once, in the function that it names."""
    SOURCE = "int one(int x)\n{\n    return x;\n}\n\nint two(int x)\n{\n    return x;\n}\n"

    def mutate(self, text, *args):
        self.plant("planted.mutant", "Why.\ntest: a b\n" + text)
        return self.run_check("mutate", os.path.join(self.tree, "planted.mutant"),
                              "--in", self.tree, *args)

    def source(self):
        with open(os.path.join(self.tree, "common", "planted.c"), encoding="utf-8") as f:
            return f.read()

    def test_place_by_function(self):
        self.plant("common/planted.c", self.SOURCE)
        kept = os.path.join(self.tree, "kept")
        code, said = self.mutate("in: two\n-  return x;\n+    return -x;\n", "--keep", kept)
        self.assertEqual((code, said), (0, []))
        self.assertEqual(self.source(), self.SOURCE[:-len("return x;\n}\n")] + "return -x;\n}\n")
        with open(os.path.join(kept, "common", "planted.c"), encoding="utf-8") as f:
            self.assertEqual(f.read(), self.SOURCE)

    def test_no_place_or_two(self):
        self.plant("common/planted.c", self.SOURCE + self.SOURCE.replace("one", "three"))
        code, said = self.mutate("in: two\n-return x;\n")
        self.assertEqual(code, 1)
        self.assertIn("found common/planted.c:8, common/planted.c:17;", said[0])
        os.remove(os.path.join(self.tree, "planted.mutant"))
        code, said = self.mutate("in: one\n-return y;\n", "--check")
        self.assertEqual(code, 1)
        self.assertIn("'return y;' in one(): found nowhere", said[0])
        self.assertEqual(self.source(), self.SOURCE + self.SOURCE.replace("one", "three"))


class Faults(Planted):
    """A header that says something false, a fault without a header, a page that is not what the headers say."""
    COPIED = ("common", "proto", "client", "daemon", "gpuctl", "kernels", "tests", "docs")
    HEADER = {"ids": "8", "title": "planted", "required": "nothing", "defence": "`common/err.c`: err_set",
              "also": "`test_client_edge`: never_admitted", "mutants": "planted"}

    def setUp(self):
        super().setUp()
        self.plant("tests/mutants/planted.mutant", "Planted.\ntest: planted_test planted_case\n-x\n+y\n")
        self.plant("tests/unit/planted/CMakeLists.txt", "gpud_test(planted_test SOURCES planted.c)\n")

    def check(self, *args):
        code, said = self.run_check("check-faults", "--root=" + self.tree, *args)
        self.assertEqual(code, 1 if len(said) > 1 else 0)
        return "\n".join(said[:-1])

    def plant_headers(self, *rows):
        """Each above a test of its own; their first lines."""
        text, lines = "int x;\n\n", []
        for fields in rows:
            said = self.HEADER | {"test": "/* a test */\nSTART_TEST(planted_case)\n"} | fields
            lines.append(text.count("\n") + 1)
            text += f"/* FAULT {said['ids']}: {said['title']}\n"
            text += "".join(f" * {key}: {said[key]}\n" for key in ("required", "defence", "also", "mutants") if said[key])
            text = text[:-1] + " */\n" + said["test"]
        with open(os.path.join(self.tree, "tests/unit/planted/planted.c"), "w", encoding="utf-8") as f:
            f.write(text)
        return lines

    def said(self, *rows):
        """Once the page has the rows."""
        self.plant_headers(*rows)
        return self.check("--fix")

    def replace(self, path, old, new):
        full = os.path.join(self.tree, path)
        with open(full, encoding="utf-8") as f:
            text = f.read()
        self.assertIn(old, text)
        with open(full, "w", encoding="utf-8") as f:
            f.write(text.replace(old, new))

    def test_true(self):
        several = {"ids": "6-8, 49", "required": "nothing,\n *   and nothing", "also": "", "mutants": ""}
        self.assertEqual(self.said({}, several, {"ids": "other"}), "")

    def test_false(self):
        false = [
            ({"defence": "`common/err.c`: err_planted"}, "no err_planted in common/err.c"),
            ({"defence": "`common/planted.c`: err_set"}, "no file common/planted.c"),
            ({"also": "`test_client_edge`: planted"}, "no test planted in test_client_edge"),
            ({"also": "`test_planted`"}, "no program test_planted"),
            ({"also": "never_admitted"}, "also: is a list"),
            ({"mutants": "planted, other"}, "no mutant other"),
            ({"mutants": "lane-left"}, "mutant lane-left is killed by front_lane_test"),
            ({"ids": "50"}, "50: numbers are 1 to 49"),
            ({"ids": "9-8"}, "9-8: numbers are 1 to 49"),
            ({"defence": ""}, "a header says what is required, and the defence"),
            ({"title": "planted\n * requires: x"}, "not a line of a header: * requires: x"),
            ({"title": "planted\n * mutants: x"}, "not a line of a header: * required: nothing"),
            ({"required": "a | b"}, "a header holds no |"),
            ({"test": "int planted_case(void);\nSTART_TEST(planted_case)\n"}, "no test follows the header")]
        lines = self.plant_headers(*(fields for fields, _ in false))
        said = self.check("--fix")
        for line, (_, problem) in zip(lines, false):
            self.assertRegex(said, re.escape(f"tests/unit/planted/planted.c:{line}: {problem}"))
        self.assertEqual(said.count("\n") + 1, len(false))

    def test_page(self):
        self.assertEqual(self.said({}), "")
        self.replace("tests/unit/planted/planted.c", "required: nothing", "required: something")
        self.assertIn("docs/faults.md: not what the headers of the tests say", self.check())
        self.assertEqual(self.check("--fix"), "")
        self.assertEqual(self.check(), "")

    def test_each_number(self):
        self.replace("tests/system/workers_test.c", "/* FAULT 9:", "/* FAULT 10:")
        self.assertIn("docs/faults.md: no test has fault 9", self.check("--fix"))
        self.assertIn("planted.c:3: no test of fault 9 drives the real processes", self.said({"ids": "9"}))
        real = {"ids": "9", "also": "`test_system_workers`: stopped"}
        self.assertIn("planted.c:3: fault 9 has no mutant", self.said(real | {"mutants": ""}))
        self.assertEqual(self.said(real), "")


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=1))
