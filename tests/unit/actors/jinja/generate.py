"""Makes up templates at random from a grammar of what chat templates do; the same seed gives the same templates."""

import random

ATOMS = [
    "n", "zero", "neg", "f", "s", "e", "u", "t", "no", "nil", "l", "w", "empty", "d", "users", "missing", "nested",
    "1", "0", "2", "-1", "1.5", "'a'", "'b c'", "''", "true", "none", "[1, 'x']", "{'k': 1}", "(1, 2)", "messages",
    "users[0]", "d.b", "d.zzz", "messages[0].role", "messages[1]['content']", "'Straße'", "range(3)", "[none, 2.0]",
]
BINARY = ["+", "-", "*", "/", "//", "%", "~", "==", "!=", "<", "<=", ">", ">=", "in", "not in", "and", "or"]
FILTERS = [
    "upper", "lower", "title", "capitalize", "trim", "length", "string", "list", "first", "last", "int", "float", "abs",
    "sort", "unique|list", "reverse|list", "min", "max", "sum", "tojson", "join(',')", "default('z')", "default('z', true)",
    "replace('a', 'b')", "round", "round(1)", "indent(2, true)", "map('string')|list", "select|list", "reject('none')|list",
    "selectattr('on')|list", "map(attribute='name')|list", "tojson(indent=1)", "e", "safe", "wordcount", "dictsort",
    "select('string')|list", "count", "items|list", "center(9)", "attr('x')",
]
TESTS = [
    "defined", "undefined", "none", "string", "number", "mapping", "sequence", "iterable", "boolean", "true", "false",
    "integer", "float", "odd", "even", "lower", "upper", "callable", "escaped", "eq 1", "ne 'a'", "gt 0", "in [1, 'a']",
    "divisibleby 2", "sameas none",
]
METHODS = [
    "strip()", "split()", "split(' ')", "upper()", "title()", "startswith('a')", "endswith('c')", "replace('l', 'L')",
    "items()|list", "keys()|list", "values()|list", "get('k')", "get('zz', 5)", "find('o')", "count('l')", "join(['x', 'y'])",
    "capitalize()", "lstrip('H')", "rsplit(' ', 1)", "isdigit()", "index(1)", "format(1)", "zfill(4)", "splitlines()",
]
SLICES = ["0", "-1", "1:", ":2", "::-1", "1:3", "'k'", "5", "::2", "-2:", "'name'", "n"]
SLICED = ["s", "u", "l", "w", "e", "users", "missing", "d", "n", "range(4)", "(s ~ u)"]


class Maker:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def pick(self, among):
        return self.random.choice(among)

    def expression(self, depth):
        if depth <= 0:
            return self.pick(ATOMS)
        kind = self.random.randrange(11)
        inner = self.expression(depth - 1)
        if kind == 0:
            return f"({inner} {self.pick(BINARY)} {self.expression(depth - 1)})"
        if kind == 1:
            return f"{inner}|{self.pick(FILTERS)}"
        if kind == 2:
            return f"({inner} is {self.pick(['', 'not '])}{self.pick(TESTS)})"
        if kind == 3:
            return f"({inner}).{self.pick(METHODS)}"
        if kind == 4:
            # Jinja2 treats a slice of a constant that has none in another way than one of a variable.
            part = self.pick(SLICES)
            return f"{self.pick(SLICED)}[{part}]" if ":" in part else f"({inner})[{part}]"
        if kind == 5:
            return f"({inner} if {self.expression(depth - 1)} else {self.expression(depth - 1)})"
        if kind == 6:
            return f"[{inner}, {self.expression(depth - 1)}]"
        if kind == 7:
            return "{'k': " + inner + ", 'on': " + self.expression(depth - 1) + "}"
        if kind == 8:
            return f"{self.pick(['not ', '-', '+'])}({inner})" if self.random.random() < 0.5 else f"{inner}|{self.pick(FILTERS)}"
        if kind == 9:
            return f"{inner} {self.pick(BINARY)} {self.expression(depth - 1)}"
        return f"({inner}).{self.pick(['k', 'name', 'b', 'on'])}"

    def space(self):
        return self.pick(["", "", " ", "\n", "\n  ", "  \n\n", "\t"])

    def tag(self, inside):
        return "{%" + self.pick(["", "", "-", "+"]) + f" {inside} " + self.pick(["", "", "-", "+"]) + "%}"

    def statement(self, depth):
        kind = self.random.randrange(8)
        if depth <= 0 or kind <= 2:
            mark = self.pick(["", "", "-"])
            return "{{" + mark + f" {self.expression(self.random.randrange(4))} " + self.pick(["", "", "-"]) + "}}"
        body = self.body(depth - 1)
        if kind == 3:
            return self.tag(f"if {self.expression(2)}") + body + self.tag("else") + self.body(depth - 1) + self.tag("endif")
        if kind == 4:
            condition = self.pick(["", "", f" if {self.expression(1)}"])
            return self.tag(f"for x in {self.expression(2)}{condition}") + body + "{{ loop.index }}{{ x }}" + self.tag("endfor")
        if kind == 5:
            return self.tag(f"set v = {self.expression(2)}") + body + "{{ v }}"
        if kind == 6:
            return self.tag("set z") + body + self.tag("endset") + "{{ z }}"
        return self.tag(f"macro m(a, b={self.expression(1)})") + body + "{{ a }}{{ b }}" + self.tag("endmacro") + "{{ m(1) }}"

    def body(self, depth):
        parts = []
        for _ in range(self.random.randrange(1, 4)):
            parts += [self.space(), self.pick(["x", "<|y|>", "", "é"]), self.statement(depth)]
        return "".join(parts) + self.space()


def templates(count, seed):
    """Half single expressions, which raise more often than not, and half small templates."""
    maker = Maker(seed)
    for i in range(count):
        yield "{{ " + maker.expression(1 + i % 4) + " }}" if i % 2 else maker.body(2)
