"""The checks of the source bite: a violation planted in a copy of the tree is found and named."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))


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


class Layering(Planted):
    COPIED = ("common", "proto", "client", "gpuctl", "daemon", "kernels", "examples")

    def test_front_includes_back_end(self):
        said = self.layering("daemon/front/planted.c", '#include "daemon/backend/backend.h"\n')
        self.assertIn("planted.c:1: daemon/front must not use daemon/backend", said)

    def test_indented_include_is_seen(self):
        said = self.layering("kernels/planted.c", '/* */\n  #  include "proto/codec.h"\n')
        self.assertIn("planted.c:2: kernels must not use proto", said)

    def test_include_in_a_comment_is_none(self):
        self.assertEqual(
            self.layering("kernels/planted.c", '/*\n#include "proto/codec.h"\n*/\n'), "")

    def test_vendor_header_outside_back_end(self):
        said = self.layering("daemon/front/planted.c", "#include <CL/cl.h>\n")
        self.assertIn("daemon/front must not use <CL/cl.h>", said)

    def test_unknown_header(self):
        said = self.layering("common/planted.c", "#include <curl/curl.h>\n")
        self.assertIn("<curl/curl.h> is in no table", said)

    def test_stage_includes_stage(self):
        self.plant("daemon/front/reply_planted.h", "")
        said = self.layering("daemon/front/admission_planted.c",
                             '#include "daemon/front/reply_planted.h"\n')
        self.assertIn("stage admission includes", said)

    def test_circle(self):
        said = self.layering("common/planted.c", '#include "proto/codec.h"\n')
        self.assertIn("in a circle: common -> proto -> common", said)

    def test_unknown_folder(self):
        said = self.layering("daemon/planted/planted.c", "#include <stdio.h>\n")
        self.assertIn("folder daemon/planted is in no table", said)

    def test_path_not_from_root(self):
        said = self.layering("common/planted.c", '#include "err.h"\n')
        self.assertIn("is not a path from the root", said)

    def test_allowed_is_quiet(self):
        self.assertEqual(self.layering("daemon/worker/planted.c",
                                       '#include "daemon/backend/backend.h"\n#include <uv.h>\n'), "")

    def test_empty_tree_fails(self):
        code, _ = self.run_check("check-layering", "--root=" + os.path.join(self.tree, "none"))
        self.assertNotEqual(code, 0)


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


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=1))
