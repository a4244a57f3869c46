"""Reads the public headers: what they declare, what their comments say, and the examples in those comments.

An example in a comment has one of these forms:

    // What it is: fc(x). More about it.     after a colon, or as a sentence of its own
    //   nn::Linear fc(4, 2);                indented by three spaces: whole lines
"""

import functools
import os
import re
from dataclasses import dataclass, field

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PUBLIC = os.path.join(ROOT, "include", "volta")
# Foundations of the scalar formulas and of reflection; users never name them.
INNER = ("scalar", "scalar.h", "elementwise_rows.h", "given.h", "intrusive_ptr.h", "op_traits.h", "tensor_expr.h", "update_rule.h", "aggregate_fields.h", "reflect.h", "names.h")


@dataclass
class Entry:
    kind: str  # class, enum, using, function, value
    name: str
    space: str  # its namespace
    text: str  # the declaration, without bodies of functions
    comment: str
    line: int  # of the comment, or of the declaration where there is none
    members: list = field(default_factory=list)
    above: bool = True  # the comment stands above, not behind


@dataclass
class Example:
    code: str
    line: int
    space: str
    owner: str  # the class it belongs to
    of: str  # the name of what it is an example of


def headers():
    """Paths of the public headers, relative to include/volta."""
    found = []
    for folder, _, names in sorted(os.walk(PUBLIC)):
        for name in sorted(names):
            path = os.path.relpath(os.path.join(folder, name), PUBLIC)
            if name.endswith(".h") and name not in INNER and path.split(os.sep)[0] not in INNER:
                found.append(path)
    return found


def split_comment(line):
    """The code of a line and the comment behind it."""
    quoted = False
    for i, c in enumerate(line):
        if c == '"' and (i == 0 or line[i - 1] != "\\") and line[i - 1 : i + 2] != "'\"'":
            quoted = not quoted
        if not quoted and line.startswith("//", i):
            return line[:i].rstrip(), line[i + 2 :]
    return line.rstrip(), None


def bare(code):
    return re.sub(r"\"(\\.|[^\"\\])*\"|'(\\.|[^'\\])'", '""', code)


def without_body(text):
    """A declaration cut where the body or the list of initialisers of a function begins."""
    text, depth, called = re.sub(r"\s+", " ", text).strip(), 0, False
    for i, c in enumerate(text):
        if c in "([":
            depth += 1
        elif c in ")]":
            depth -= 1
            called = called or c == ")"
        elif depth == 0 and called and (c == "{" or (c == ":" and text[i - 1] == " " and text[i + 1] == " ")):
            return text[:i].rstrip() + ";"
    return text


def name_of(text):
    found = re.search(r"\b(?:class|struct|enum class|enum|concept|namespace|using)\s+(?:\[\[\w+\]\]\s*)?(\w+)", re.sub(r"template <[^>]*>+", "", text))
    if found and not re.match(r"(\[\[\w+\]\] )?(inline |constexpr |static )*[\w:<>&* ]+\(", text):
        return found.group(1)
    called = re.search(r"(operator\s*(?:\(\)|\[\]|[^\s(\w]+|[\w:]+)|~?\w+)\s*\(", bare(text))
    if called:
        return called.group(1)
    found = re.findall(r"\b(\w+)\s*(?:=|;|\{)", text)
    return found[0] if found else text


def kind_of(text):
    plain = re.sub(r"^template <.*?> (?=class|struct|using|concept)", "", text)
    plain = re.sub(r"^\[\[\w+\]\] ", "", plain)
    for kind in ("class", "struct"):
        if plain.startswith(kind + " "):
            return "class"
    if plain.startswith("enum"):
        return "enum"
    if plain.startswith(("using", "concept")):
        return "using"
    return "function" if "(" in plain else "value"


def one_line_class(text, space):
    """Head and members of a class that is written on one line."""
    body, pieces, depth, begin = text[text.index("{") + 1 : text.rindex("}")], [], 0, 0
    for i, c in enumerate(bare(body) if len(bare(body)) == len(body) else body):
        depth += (c in "({") - (c in ")}")
        if depth == 0 and (c == ";" or (c == "}" and not body[i + 1 :].lstrip().startswith(("{", ",", ";")))):
            pieces.append(body[begin : i + 1].strip())
            begin = i + 1
    members = [Entry(kind_of(p), name_of(p), space, without_body(p), "", 0) for p in pieces]
    return text[: text.index("{")].strip(), members


class Reader:
    def __init__(self, lines):
        self.lines, self.at = lines, 0

    def region(self, space, until, in_class=False):
        """Entries up to the line `until`."""
        entries, comment, began, public = [], [], None, not in_class
        while self.at < until:
            line = self.lines[self.at].strip()
            if line.startswith("// clang-format"):
                self.at += 1
                continue
            if line == "// For the framework itself.":
                public = False
            if line.startswith("//"):
                began = self.at + 1 if not comment else began
                comment.append(line[2:])
                self.at += 1
                continue
            if not line or line.startswith("#"):
                comment = []
                self.at += 1
                continue
            if in_class and re.match(r"(public|private|protected):", line):
                public = not line.startswith("private")
                comment = []
                self.at += 1
                continue
            if not in_class and (m := re.match(r"(?:inline )?namespace (\S+) \{", line)):
                begin = self.at
                end = self.matching(begin)
                self.at = begin + 1
                if "detail" not in m.group(1):
                    entries += self.region(f"{space}::{m.group(1)}".strip(":"), end)
                self.at = end + 1
                comment = []
                continue
            entry = self.declaration(space, comment, began)
            comment = []
            if public and entry:
                entries.append(entry)
        return entries

    def matching(self, begin):
        depth = 0
        for i in range(begin, len(self.lines)):
            code = bare(split_comment(self.lines[i])[0])
            depth += code.count("{") - code.count("}")
            if depth == 0:
                return i
        raise ValueError(f"no closing brace for line {begin + 1}")

    def declaration(self, space, comment, began):
        start, depth, parts, behind, opened = self.at, 0, [], [], None
        while self.at < len(self.lines):
            code, said = split_comment(self.lines[self.at])
            if said is not None and (self.at == start or depth == 0):
                behind.append((self.at, said))
            if code.strip():
                parts.append(code.strip())
            clean = bare(code)
            if opened is None and "{" in clean:
                opened = self.at
            depth += clean.count("{") - clean.count("}") + clean.count("(") - clean.count(")")
            self.at += 1
            if depth == 0 and re.search(r"[;}]$", clean):
                break
        text = " ".join(parts)
        kind = kind_of(text)
        if text.startswith(("friend", "static_assert", "template <>", "extern template")) or kind == "value" and "operator" in text:
            return None
        members = []
        if kind == "class" and "{" in text:
            end = self.at
            self.at = opened + 1
            if opened == end - 1:
                head, members = one_line_class(text, space)
                words = comment or [said for _, said in behind]
                return Entry(kind, name_of(text), space, head, "\n".join(words), began if comment else start + 1, members, bool(comment))
            members = self.region(space, end - 1, in_class=re.match(r"(template <.*?> )?class ", text) is not None)
            self.at = end
            text = text[: text.index("{")].strip()
        elif kind != "enum":
            text = without_body(text)
        above = bool(comment)
        line = began if above else (behind[0][0] + 1 if behind else start + 1)
        words = comment if above else [said for _, said in behind]
        if above and behind:
            words = comment + [said for _, said in behind[:1] if members or kind != "class"]
        return Entry(kind, name_of(text), space, text, "\n".join(words), line, members, above)


@functools.lru_cache(None)
def read(path):
    """The sentence a header begins with, and its entries."""
    with open(os.path.join(PUBLIC, path), encoding="utf-8") as f:
        lines = f.read().split("\n")
    first = []
    for line in lines:
        if not line.startswith("//"):
            break
        first.append(line[2:])
    reader = Reader(lines)
    reader.at = len(first)
    return Entry("header", path, "volta", "", "\n".join(first), 1), reader.region("", len(lines))


# Examples.

OPERATOR = re.compile(r" (=|\+=|-=|\*=|/=|\+|-|\*|/|%|<<|<|>|==|&&|\|\||\?|:) ")
CLOSING = {"(": ")", "[": "]", "{": "}", "<": ">"}
WORD = re.compile(r"(?:::)?[A-Za-z_]\w*(?:::~?\w+)*")


def bracket(s, i):
    """Just behind the bracket that closes the one at i, or -1."""
    depth, quoted = [], False
    while i < len(s):
        c = s[i]
        if c == '"' and s[i - 1] != "\\":
            quoted = not quoted
        elif not quoted and c in "([{":
            depth.append(CLOSING[c])
        elif not quoted and c in ")]}":
            if not depth or depth.pop() != c:
                return -1
            if not depth:
                return i + 1
        i += 1
    return -1


def primary(s, i):
    """Behind an operand at i with all that follows it (calls, members, subscripts), and whether anything is called."""
    called = False
    if i < len(s) and s[i] in "-*!&":
        i += 1
    if i >= len(s):
        return -1, False
    if s[i] == ".":  # .rename("a", "b"): of the class that the comment stands in
        i += 1
    if s[i] in "([{":
        called = s[i] == "[" and s[bracket(s, i) : bracket(s, i) + 1] == "("
        i = bracket(s, i)
    elif s[i] == '"':
        end = s.find('"', i + 1)
        i = end + 1 if end > 0 else -1
    elif m := re.compile(r"[\d][\w.']*(?:e-?\d+)?").match(s, i):
        i = m.end()
        while s[i - 1] == ".":  # the end of a sentence
            i -= 1
    elif m := WORD.match(s, i):
        i = m.end()
    else:
        return -1, False
    while 0 < i < len(s):
        if s[i] in "([{" and (s[i] != "{" or s[i - 1] != " "):
            called, i = True, bracket(s, i)
        elif m := re.compile(r"<[\w:, <>*]*>(?=[({:])").match(s, i):
            i = m.end()
        elif m := re.compile(r"(\.|->)(template )?~?[A-Za-z_]\w*|::\w+").match(s, i):
            i = m.end()
        else:
            break
    return i, called


def expression(s, i):
    i, called = primary(s, i)
    while 0 < i and (m := OPERATOR.match(s, i)):
        after, more = primary(s, m.end())
        if after < 0:
            break
        i, called = after, called or more
    return i, called


TYPE = re.compile(r"(?:const )?(auto|[A-Za-z_][\w:]*(?:<[\w:, <>*]*>)?)(?:&{1,2}|\*)? (?=[A-Za-z_\[]\w*[\w, ]*(?:\]| = |\(|\{|;))")


def is_type(word, known):
    return word == "auto" or "::" in word or "<" in word or word in known


def statement(s, i, known):
    """Behind a statement at i, or -1 where there is none."""
    if m := re.compile(r"(for|if|while) \(").match(s, i):
        end = bracket(s, m.end() - 1)
        return statement(s, end + 1, known) if 0 <= end < len(s) - 1 else -1
    if s.startswith("{ ", i):
        return bracket(s, i)
    if s.startswith("struct ", i):
        end = s.find("{", i)
        return bracket(s, end) if end > 0 else -1
    m = TYPE.match(s, i)
    if m and is_type(m.group(1), known):
        at = m.end()
        if s[at] == "[":  # auto [a, b] = …
            at = s.find("]", at) + 1
            return expression(s, at + 3)[0] if s.startswith(" = ", at) else -1
        return expression(s, at)[0]
    if not re.compile(r"[A-Za-z_.*]").match(s, i) or re.compile(r"\w+\(\)(?![.\[(])").match(s, i):
        return -1  # a number, or a function that is merely named: size()
    end, called = expression(s, i)
    return end if called and not re.match(r"\.\w+ =", s[i:]) else -1


def one_line(text, known):
    """The examples inside a text of one or more sentences."""
    at, found = 0, []
    for begin, colon in [(0, False)] + [(m.end(), m.group() == ": ") for m in re.finditer(r": |\. |; ", text)]:
        if begin < at:
            continue
        i, code = begin, []
        while i < len(text):
            end = statement(text, i, known)
            if code and end < 0 and (m := re.compile(r"\w+ [-+*/]?= \w+").match(text, i)):
                end = m.end()
            if end < 0 or not re.match(r"[;.:,)]?(\s|$)", text[end:]):
                break
            if not colon and not code and re.match(r" \w", text[end:]):
                break  # a sentence that begins with the name of a function
            code.append(text[i:end])
            at = end
            if not text.startswith(("; ", ", "), end):
                break
            i = end + 2
        if code:
            found.append("; ".join(code) + ";")
    return found


def examples_of(entry, owner, known):
    """The examples in the comment of an entry."""
    lines, found, text, block, first = entry.comment.split("\n"), [], [], [], 0

    def flush_text():
        if text:
            found.extend((code, first) for code in one_line(" ".join(text), known))
            text.clear()

    def flush_block():
        if block:
            found.append(("\n".join(block) + ("" if block[-1].rstrip().endswith((";", "}")) or "//" in block[-1] else ";"), first))
            block.clear()

    for n, line in enumerate(lines):
        if line.startswith("   ") and line.strip():
            flush_text()
            if not block:
                first = n
            if not re.match(r"\w+ --", line[3:]):  # a command of the shell
                block.append(line[3:])
        elif line.strip():
            flush_block()
            if not text:
                first = n
            text.append(line.strip())
        else:
            flush_text()
            flush_block()
    flush_text()
    flush_block()
    return [Example(code, entry.line + n, entry.space, owner, entry.name) for code, n in found]


def all_entries(entries, owner=""):
    """Each entry with the class that it belongs to, members after their class."""
    for entry in entries:
        yield entry, owner
        yield from all_entries(entry.members, entry.name)


def known_types():
    """Names of the classes that the headers declare."""
    return {e.name for path in headers() for e, _ in all_entries(read(path)[1]) if e.kind in ("class", "using", "enum")}


def examples(path, known):
    """Every example in the comments of a header."""
    first, entries = read(path)
    return [x for entry, owner in [(first, ""), *all_entries(entries)] for x in examples_of(entry, owner, known)]
