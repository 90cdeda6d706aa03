#!/usr/bin/env python3
"""Writes what a program that was compiled with a header relies on, as C: record_abi.py HEADER > abi.c

The C file compiles with a later header if that keeps the values of constants, places and sizes of
members, sizes of structs, and types of functions. Limits and structs that begin with their own size
may grow; anything may be added. It is for machines with pointers of 64 bits.
"""
import os
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts"))
import csource  # noqa: E402

STRUCT = re.compile(r"typedef struct (\w+) \{(.*?)\n\} \w+;", re.S)
ENUM = re.compile(r"enum (\w+) \{(.*?)\}", re.S)
MACRO = re.compile(r"^#define (GPUD_\w+)[ \t]+[^(\s][^\n]*$", re.M)
FUNCTION = re.compile(r"^GPUD_API [^;]*?;", re.M)
MAY_GROW = re.compile(r"GPUD_(MAX|VERSION)_")
NO_VALUE = ("GPUD_API",)


def members(body):
    """Names of the members that can be named from outside; of a union within: its own."""
    names = []
    for statement in body.replace("{", ";").replace("}", ";").split(";"):
        for part in statement.split(","):
            found = re.search(r"(\w+)\s*(?:\[[^\]]*\]\s*)*$", part.strip())
            pointer = re.search(r"\(\*\s*(\w+)\)", statement)
            name = pointer.group(1) if pointer else found.group(1) if found else None
            if name and name not in ("union", "struct") and name not in names:
                names.append(name)
            if pointer:
                break
    return names


def questions(text):
    """(what a program relies on, how an assertion compares it) of the header."""
    for macro in MACRO.findall(text):
        if macro not in NO_VALUE:
            yield macro, ">=" if MAY_GROW.match(macro) else "=="
    for _, body in ENUM.findall(text):
        for entry in body.split(","):
            if entry.strip():
                yield entry.split("=")[0].strip(), "=="
    for name, body in STRUCT.findall(text):
        known = members(body)
        yield f"sizeof({name})", ">=" if known[0] == "size" else "=="
        for member in known:
            yield f"offsetof({name}, {member})", "=="
            yield f"sizeof((({name} *)0)->{member})", "=="


def values(header, asked):
    """What the header says, by a program that is compiled with it."""
    with tempfile.TemporaryDirectory() as folder:
        lines = "".join(f'    printf("%lld\\n", (long long)({q}));\n' for q in asked)
        with open(folder + "/ask.c", "w", encoding="utf-8") as file:
            file.write(f'#include <stddef.h>\n#include <stdio.h>\n#include "{header}"\n'
                       f"int main(void)\n{{\n{lines}    return 0;\n}}\n")
        subprocess.run(["cc", "-o", folder + "/ask", folder + "/ask.c"], check=True)
        return subprocess.run([folder + "/ask"], check=True, capture_output=True,
                              text=True).stdout.split()


def main():
    header = os.path.abspath(sys.argv[1])
    with open(header, encoding="utf-8") as file:
        text = csource.blank(file.read())
    asked = list(questions(text))
    functions = [re.sub(r"\s+", " ", f) for f in FUNCTION.findall(csource.without_directives(text))]
    print("/* Made by record_abi.py from the header of a release: what programs that were compiled\n"
          " * with it rely on. It runs if the library has all of its functions. */\n"
          "/* clang-format off */\n#include <gpud/gpud.h>\n#include <stddef.h>\n")
    for (question, comparison), value in zip(asked, values(header, [q for q, _ in asked])):
        print(f'_Static_assert((long long)({question}) {comparison} {value}, "it was {value}");')
    print("\n" + "\n".join(functions) + "\n\nstatic void (*const all[])(void) = {")
    for function in functions:
        print(f"    (void (*)(void)){re.search(r'(gpud_[a-z0-9_]+)[(]', function).group(1)},")
    print("};\n\nint main(void)\n{\n    unsigned missing = 0;\n"
          "    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {\n"
          "        missing += all[i] == NULL;\n    }\n    return missing != 0;\n}")


if __name__ == "__main__":
    sys.exit(main())
