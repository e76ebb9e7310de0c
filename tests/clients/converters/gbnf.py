"""Whether a text is one that a grammar of llama.cpp lets a model write."""

import functools
import re

TOKEN = re.compile(
    r'\s*(?:(?P<text>"(?:\\.|[^"\\])*")|(?P<any>\[(?:\\.|[^\]\\])*\])|(?P<name>[a-zA-Z0-9-]+)'
    r"|(?P<times>\{\d+(?:,\d*)?\})|(?P<mark>[()|*+?]))")

# The parser of llama.cpp refuses a grammar that repeats something more often.
TIMES_MAX = 2000


class Grammar:
    """Rules, each on a line: NAME ::= ALTERNATIVES."""

    def __init__(self, text):
        self.rules = {}
        for line in filter(None, text.splitlines()):
            name, _, body = line.partition(" ::= ")
            self.tokens = self.split(body)
            self.rules[name] = self.alternatives()
            if self.tokens:
                raise ValueError(f"{name} goes on with {self.tokens}")

    def split(self, body):
        tokens, at, body = [], 0, body.rstrip()
        while at < len(body):
            found = TOKEN.match(body, at)
            if not found:
                raise ValueError(f"not a token: {body[at:]}")
            tokens.insert(0, (found.lastgroup, found[found.lastgroup]))
            at = found.end()
        return tokens

    def next_is(self, *marks):
        return bool(self.tokens) and self.tokens[-1] in [("mark", mark) for mark in marks]

    def alternatives(self):
        found = [self.sequence()]
        while self.next_is("|"):
            self.tokens.pop()
            found.append(self.sequence())
        return ("or", *found)

    def sequence(self):
        parts = []
        while self.tokens and not self.next_is("|", ")"):
            kind, word = self.tokens.pop()
            if (kind, word) == ("mark", "("):
                part = self.alternatives()
                if not self.next_is(")"):
                    raise ValueError("a group does not end")
                self.tokens.pop()
            elif kind == "text":
                part = ("text", word[1:-1].encode().decode("unicode_escape"))
            elif kind in ("any", "name"):
                part = (kind, word)
            else:
                raise ValueError(f"{word} repeats nothing")
            parts.append(self.repeated(part))
        return ("all", *parts)

    def repeated(self, part):
        if self.next_is("*", "+", "?"):
            least, most = {"*": (0, None), "+": (1, None), "?": (0, 1)}[self.tokens.pop()[1]]
            return ("times", part, least, most)
        if not self.tokens or self.tokens[-1][0] != "times":
            return part
        first, comma, last = self.tokens.pop()[1][1:-1].partition(",")
        most = int(last) if last else None if comma else int(first)
        if max(int(first), most or 0) > TIMES_MAX:
            raise ValueError(f"{part} is repeated more often than llama.cpp allows")
        return ("times", part, int(first), most)

    def takes(self, text):
        """Whether `root` stands for the whole text."""

        @functools.cache
        def ends(part, at):
            kind, *rest = part
            if kind == "text":
                return {at + len(rest[0])} if text.startswith(rest[0], at) else set()
            if kind == "any":
                return {at + 1} if re.match(rest[0], text[at:at + 1]) else set()
            if kind == "name":
                return ends(self.rules[rest[0]], at)
            if kind == "or":
                return set().union(*(ends(one, at) for one in rest))
            if kind == "all":
                found = {at}
                for one in rest:
                    found = set().union(*(ends(one, here) for here in found))
                return found
            return self.repetitions(ends, at, *rest)

        return len(text) in ends(self.rules["root"], 0)

    @staticmethod
    def repetitions(ends, at, part, least, most):
        seen, found, count = {at} if least == 0 else set(), {at}, 0
        while found and (most is None or count < most):
            found, count = set().union(*(ends(part, here) for here in found)), count + 1
            if count >= least:
                found -= seen
                seen |= found
        return seen
