"""Doxygen's INPUT_FILTER for gpud.h: prints the header with its plain comments as comments of Doxygen.

The comment at the top becomes the main page, each line of dashes a topic, and a comment in front of several
declarations is that of each. Names of errors become links.

reference.py --check TAGS HEADER fails if a function of the header is missing in the tags that Doxygen wrote."""

import pathlib
import re
import sys

CODE = re.compile(r"\bGPUD_ERR_([A-Z_]+) = ")
TITLE = re.compile(r"^/\* -{4} (.*?) -+ \*/$")
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)


def escaped(text, names):
    """The text of a comment: no commands or tags of Doxygen, and links to errors and other names."""
    text = re.sub(r"([@#<>])", r"\\\1", text)
    words = re.compile(r"(?<![\w`$.\"])\w+(?!…|\.\w|[\w`(])")
    return words.sub(lambda m: names.get(m.group(), m.group()), text)


def links(source):
    """A link for each word that names something: an error without its prefix, a function, a constant."""
    errors = {name: f"[{name}](@ref GPUD_ERR_{name})" for name in CODE.findall(source)}
    others = re.findall(r"\b(gpud_\w+)\(|\b(GPUD_\w+) = |#define (GPUD_\w+) ", source)
    return {**errors, **{name: f"#{name}" for found in others for name in found if name}}


def main_page(text, names):
    """An example, indented, and rules: paragraphs that begin with a word and a full stop."""
    head, rules = text.split("Rules for all functions", 1)
    head = re.sub(r"\n\n((?:  .*\n)+)", r"\n\n@code{.c}\n\1@endcode\n", head)
    rules = re.sub(r"^([A-Z]\w+)\. ", r"- **\1.** ", escaped(rules, names), flags=re.MULTILINE)
    return f"/** @mainpage\n{head}\n## Rules\nFor all functions{rules}\n */\n/** @file */"


def lines_of(comment):
    """The text of a comment, without its frame."""
    return "\n".join(re.sub(r"^ \* ?", "", line) for line in comment[2:-2].strip("\n").splitlines()).strip()


class Filter:
    """What was seen of the header so far."""

    def __init__(self, source):
        self.names = links(source)
        self.topics = 0
        self.shared = None  # the comment that the next declaration has, too
        self.named = False  # inside of a group of macros

    def topic(self, title):
        name = title.split()[0].rstrip(",")
        text = "/** @} */\n" if self.topics else ""
        self.topics += 1
        return f"{text}/** @defgroup {name} {title[0].upper()}{title[1:]}\n * @{{ */"

    def comment(self, text, indent, before, after):
        """before: code of the same line in front of the comment; after: the line behind it."""
        body = escaped(text, self.names).replace("/*", "/**", 1)
        if before.strip():
            return body.replace("/**", "/**<", 1)
        if indent:
            return body
        if not after.strip():  # of the topic, not of a declaration
            return f"/** @}} */\n/** @addtogroup {self.last}\n{lines_of(body.replace('/**', '/*', 1))}\n * @{{ */"
        if after.startswith("#define"):
            # a title has no links
            title, _, rest = lines_of(text).partition(". ")
            self.named = True
            return f"/** @name {escaped(title, {})}\n{escaped(rest, self.names)} */\n/** @{{ */"
        self.shared = body
        return body

    def run(self, source):
        out, at = [], 0
        for found in COMMENT.finditer(source):
            out += self.code(source[at : found.start()])
            line = source[source.rfind("\n", 0, found.start()) + 1 : found.start()]
            after = source[found.end() + 1 : source.find("\n", found.end() + 1)]
            title = TITLE.match(found.group())
            if found.start() == 0:
                out.append(main_page(lines_of(found.group()), self.names))
            elif title:
                self.last = title.group(1).split()[0].rstrip(",")
                out.append(self.topic(title.group(1)))
            else:
                self.fresh = not line.strip()
                out.append(self.comment(found.group(), line, line, after))
            at = found.end()
        text = "".join([*out, *self.code(source[at:])])
        return text.replace("#ifdef __cplusplus\n}", "/** @} */\n#ifdef __cplusplus\n}")

    def code(self, text):
        """Code between comments. A declaration directly behind another one has the comment of that one."""
        for number, line in enumerate(text.splitlines(keepends=True)):
            if line == "\n" and number > 0:
                self.shared = None
                if self.named:
                    self.named = False
                    yield "/** @} */\n"
            starts = re.match(r"(GPUD_API|typedef) ", line)
            if starts and self.shared and not self.fresh:
                yield f"{self.shared}\n"
            if starts:
                self.fresh = False
            yield line


def missing(tags, source):
    functions = re.findall(r"^GPUD_API [^;(]*\b(gpud_\w+)\(", source, re.MULTILINE)
    return [name for name in functions if f"<name>{name}</name>" not in tags] if functions else ["all"]


def main():
    names = sys.argv[2:] if sys.argv[1] == "--check" else sys.argv[1:]
    texts = [pathlib.Path(name).read_text() for name in names]
    if len(texts) == 2:
        return " ".join(missing(*texts)) or 0
    sys.stdout.write(Filter(texts[0]).run(texts[0]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
