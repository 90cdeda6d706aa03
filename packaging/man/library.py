"""Writes the man pages of libgpud from its header: gpud.h says all there is to say.

usage: library.py HEADER VERSION FOLDER

The top of the header becomes libgpud(3), each line of dashes a page of its own, as gpud_buffers(3): comments are its
text, what they describe stands between them. A function's page leads to the page of its family."""

import pathlib
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "docs"))
import reference  # noqa: E402

TITLE = re.compile(reference.TITLE.pattern, re.MULTILINE)
FUNCTION = re.compile(r"^GPUD_API [^;{]*?\b(gpud_\w+)\(", re.MULTILINE)
COMMENT = re.compile(r"^/\*.*?\*/\n", re.DOTALL | re.MULTILINE)
FAMILIES = {"host memory shared with the daemon": "memory", "kernels and modules": "kernels",
            "queries and control": "queries", "client": "clients"}


def roff(text):
    """Text that means nothing to roff."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join("\\&" + line if line[:1] in (".", "'") else line for line in text.split("\n"))


def declared(found):
    """A declaration without GPUD_API, and its other lines as far to the left."""
    return found.group(1).replace("\n" + " " * len("GPUD_API "), "\n")


def code(text):
    text = re.sub(r"^GPUD_API (.*?;)", declared, text.strip("\n"), flags=re.DOTALL | re.MULTILINE)
    return f".PP\n.nf\n{roff(text)}\n.fi\n" if text.strip() else ""


def body(section):
    """Comments that begin a line, and the code between them."""
    out, at = [], 0
    for found in COMMENT.finditer(section):
        out.append(code(section[at:found.start()]))
        out.append(f".PP\n{roff(reference.lines_of(found.group().strip()))}\n")
        at = found.end()
    out.append(code(section[at:]))
    return "".join(out)


def page(name, names, brief, text, version, others):
    see = ",\n.BR ".join(f"{other} (3)" for other in others)
    return (f'.TH {name} 3 "" "gpud {version}" "libgpud"\n.nh\n.ad l\n.SH NAME\n{", ".join(names)} \\- {roff(brief)}\n'
            f".SH SYNOPSIS\n.nf\n#include <gpud/gpud.h>\n\ncc \\-lgpud\n.fi\n.SH DESCRIPTION\n{text}"
            f".SH SEE ALSO\n.BR {see},\n.BR gpud (8)\n")


def overview(head):
    """Examples are indented; rules begin with a word and a full stop."""
    out = []
    for paragraph in reference.lines_of(head.strip()).split("\n\n"):
        if paragraph.startswith("  "):
            out.append(code(paragraph))
            continue
        for rule in re.split(r"\n(?=[A-Z]\w+\. )", paragraph):
            found = re.match(r"([A-Z]\w+)\. (.*)", rule, re.DOTALL)
            text = re.sub(r"\n +", "\n", found.group(2) if found else rule)
            out.append(f".TP\n.B {found.group(1)}\n{roff(text)}\n" if found else f".PP\n{roff(text)}\n")
    return "".join(out)


def main():
    header, version, folder = pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])
    parts = TITLE.split(header.read_text(encoding="utf-8").split("#ifdef __cplusplus\n}", 1)[0])
    head = COMMENT.search(parts[0]).group()
    others = "".join(re.findall(r"^/\*[^*]*\*/\nGPUD_API [^;]*;\n", parts[0], re.MULTILINE))
    families = {"gpud_" + FAMILIES.get(title, title): (title, text) for title, text in zip(parts[1::2], parts[2::2])}
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.3"):
        old.unlink()

    def write(name, brief, source, text, see):
        functions = list(dict.fromkeys(FUNCTION.findall(source)))
        (folder / f"{name}.3").write_text(page(name, [name, *functions], brief, text, version, see), encoding="utf-8")
        for function in functions:
            (folder / f"{function}.3").write_text(f".so man3/{name}.3\n", encoding="utf-8")

    write("libgpud", "send compute jobs to gpud, the GPU job server", others, overview(head) + body(others),
          list(families))
    for name, (title, text) in families.items():
        write(name, f"libgpud: {title}", text, body(text), ["libgpud"])
    print(f"{len(families)} families")


if __name__ == "__main__":
    main()
