"""C++ as tokens, and where its pieces end. It reads as much of the language as a notebook needs."""

import re
from dataclasses import dataclass

TOKEN = re.compile(r'''
    (?P<space>(?:\s|\\\n)+ | //[^\n]* | /\*.*?\*/)
  | (?P<text>(?:u8|[uUL])?R"(?P<fence>[^()\\\s]{0,16})\(.*?\)(?P=fence)"
           | (?:u8|[uUL])?"(?:\\.|[^"\\\n])*" | (?:u8|[uUL])?'(?:\\.|[^'\\\n])*')
  | (?P<number>\.?\d(?:[eEpP][+-]|'?\w|\.)*)
  | (?P<word>[^\W\d]\w*)
  | (?P<sign>::|->\*?|<=>|<<=|\+\+|--|&&|\|\||[-+*/%^&|!=<>]=|<<|\.\.\.|.)
''', re.X | re.S)
DIRECTIVE = re.compile(r'#(?:\\\n|[^\n])*')
PAIRS = {'(': ')', '[': ']', '{': '}'}

BUILTIN = set('void bool char char8_t char16_t char32_t wchar_t short int long signed unsigned float double'.split())
SPECIFIERS = set('static inline const volatile constexpr constinit thread_local extern register'.split())
CONTROL = set('if for while do switch try { return break continue goto'.split())
KEYWORDS = CONTROL | BUILTIN | SPECIFIERS | set(
    'auto class struct union enum namespace template typename using typedef static_assert operator new delete '
    'throw sizeof this true false nullptr else case default catch concept requires decltype co_await co_yield '
    'co_return noexcept alignof alignas static_cast const_cast dynamic_cast reinterpret_cast typeid and or not '
    'friend public private protected virtual explicit mutable asm'.split())


class CellError(Exception):
    """A cell that is not taken; `line` is counted from 1."""

    def __init__(self, message, line):
        super().__init__(message)
        self.message, self.line = message, line


@dataclass
class Token:
    kind: str
    text: str
    at: int


def tokenize(source):
    tokens, at = [], 0
    while at < len(source):
        if source[at] == '#' and not source[:at].rpartition('\n')[2].strip():
            match = DIRECTIVE.match(source, at)
            tokens.append(Token('directive', match.group(), at))
        else:
            match = TOKEN.match(source, at)
            kind, text = match.lastgroup if match.lastgroup != 'fence' else 'text', match.group()
            if kind == 'sign' and text in '"\'' or source.startswith('/*', at) and kind != 'space':
                raise CellError('this string or comment has no end', source.count('\n', 0, at) + 1)
            if kind != 'space':
                tokens.append(Token(kind, text, at))
        at = match.end()
    return tokens


class Reader:
    """Splits one cell. `variables` are the names that are variables already."""

    def __init__(self, source, variables=()):
        self.source, self.tokens = source, tokenize(source)
        self.variables = set(variables)
        self.match = {}
        stack = []
        for i, t in enumerate(self.tokens):
            if t.kind != 'sign':
                continue
            if t.text in PAIRS:
                stack.append(i)
            elif t.text in PAIRS.values():
                if not stack or PAIRS[self.text(stack[-1])] != t.text:
                    raise CellError(f"'{t.text}' closes nothing", self.line(i))
                self.match[stack.pop()] = i
        if stack:
            raise CellError(f"'{self.text(stack[-1])}' is not closed", self.line(stack[-1]))
        self.opener = {close: open_ for open_, close in self.match.items()}

    def text(self, i):
        return self.tokens[i].text if 0 <= i < len(self.tokens) else ''

    def kind(self, i):
        return self.tokens[i].kind if 0 <= i < len(self.tokens) else ''

    def line(self, i):
        i = min(i, len(self.tokens) - 1)
        return self.source.count('\n', 0, self.tokens[i].at) + 1

    def column(self, i):
        return self.tokens[i].at - (self.source.rfind('\n', 0, self.tokens[i].at) + 1)

    def slice(self, begin, end):
        """The source of tokens begin … end - 1."""
        if begin >= end:
            return ''
        last = self.tokens[end - 1]
        return self.source[self.tokens[begin].at:last.at + len(last.text)]

    def words(self, begin, end):
        found = set()
        for t in self.tokens[begin:end]:
            if t.kind == 'word':
                found.add(t.text)
            elif t.kind == 'directive':
                found.update(re.findall(r'[^\W\d]\w*', t.text))
        return found

    # ---- where a piece ends

    def to_semicolon(self, i):
        while i < len(self.tokens):
            if self.text(i) == ';' and self.kind(i) == 'sign':
                return i + 1
            i = self.match.get(i, i) + 1
        return i

    def after_parentheses(self, i, what):
        if self.text(i) != '(':
            raise CellError(f"'{what}' needs parentheses", self.line(i))
        return self.match[i] + 1

    def statement_end(self, i):
        first = self.text(i)
        if i >= len(self.tokens):
            raise CellError('the cell ends in the middle of a statement', self.line(i))
        if self.kind(i) == 'directive':
            return self.statement_end(i + 1)
        if first == '{':
            return self.match[i] + 1
        if first in ('for', 'while', 'switch'):
            return self.statement_end(self.after_parentheses(i + 1, first))
        if first == 'if':
            i += 2 if self.text(i + 1) == 'constexpr' else 1
            end = self.statement_end(self.after_parentheses(i, first))
            return self.statement_end(end + 1) if self.text(end) == 'else' else end
        if first == 'do':
            end = self.statement_end(i + 1)
            return self.to_semicolon(end)
        if first == 'try':
            end = self.statement_end(i + 1)
            while self.text(end) == 'catch':
                end = self.statement_end(self.after_parentheses(end + 1, 'catch'))
            return end
        end = self.to_semicolon(i)
        if self.text(end - 1) != ';':
            raise CellError('this statement has no ;', self.line(i))
        return end

    def after_angles(self, i):
        """From a '<' past its '>', or None where it is a comparison."""
        depth = 0
        while i < len(self.tokens):
            t = self.text(i)
            if self.kind(i) == 'sign':
                if t == '<':
                    depth += 1
                elif t == '>':
                    depth -= 1
                    if depth == 0:
                        return i + 1
                elif t in (';', '&&', '||', '=', '}', ')', ']'):
                    return None
            i = self.match.get(i, i) + 1
        return None

    def after_type(self, i):
        """From the first token of a declaration past its type, * and & included; None where there is none."""
        placed = False
        while i < len(self.tokens):
            t, kind = self.text(i), self.kind(i)
            if t in SPECIFIERS or t == 'typename':
                i += 1
            elif t in BUILTIN or t == 'auto':
                i, placed = i + 1, True
            elif t == 'decltype' and not placed:
                i, placed = self.after_parentheses(i + 1, t), True
            elif t in ('struct', 'class', 'union', 'enum') and not placed:
                i += 1
            elif not placed and (t == '::' or kind == 'word' and t not in KEYWORDS):
                i = self.after_name(i)
                if i is None:
                    return None
                placed = True
            elif placed and t in ('*', '&', '&&'):
                i += 1
            else:
                break
        return i if placed else None

    def after_name(self, i):
        """Past a qualified name with template arguments."""
        if self.text(i) == '::':
            i += 1
        while True:
            i += self.text(i) == 'template'
            if self.kind(i) != 'word' or self.text(i) in KEYWORDS:
                return None
            i += 1
            if self.text(i) == '<':
                end = self.after_angles(i)
                if end is None:
                    return None
                i = end
            if self.text(i) != '::':
                return i
            i += 1

    def body(self, i):
        """Where the '{' of a function's body is in the piece that begins at i; None where it is no function."""
        begin, parameters = i, None
        if self.text(i) == '[':
            return None
        while i < len(self.tokens):
            t = self.text(i)
            if self.kind(i) == 'sign':
                before = self.text(i - 1)
                if t == ';' or t == '=' and before != 'operator':
                    return None
                if t == '(' and parameters is None and i > begin:
                    parameters = i
                if t == ':' and parameters is not None and before in (')', 'noexcept'):  # a constructor's list
                    while i < len(self.tokens) and not (self.text(i) == '{' and self.text(i - 1) in (')', '}')):
                        i = self.match.get(i, i) + 1
                    return i if i < len(self.tokens) else None
                if t == '{':
                    arrow = any(self.text(k) == '->' for k in range(self.match.get(parameters or i, i), i))
                    after = before in (')', 'const', 'noexcept', 'override', 'final', '&', '&&', 'try')
                    if parameters is not None and (after or arrow):
                        return i
            i = self.match.get(i, i) + 1
        return None


# ---- what makes a cell stop when it is told to

def with_polls(source):
    """Calls of poll() in every loop and function of it, on the same lines."""
    reader = Reader(source)
    insert = {}
    for i, t in enumerate(reader.tokens):
        if t.kind == 'directive' and 'omp' in t.text:
            return source  # loops that a pragma has its own ideas about
        if t.kind == 'word' and t.text in ('for', 'while') and reader.text(i + 1) == '(':
            after = reader.match[i + 1] + 1
            if t.text == 'for' or reader.text(after) != ';' or not follows_do(reader, i):
                insert[reader.tokens[after].at if after < len(reader.tokens) else len(source)] = LOOP
        elif t.kind == 'word' and t.text == 'do' and i + 1 < len(reader.tokens):
            insert[reader.tokens[i + 1].at] = LOOP
        elif t.text == '{' and reader.text(i - 1) == ')':
            before = reader.text(reader.opener[i - 1] - 1)
            if before not in ('switch', 'requires', 'decltype', 'for', 'while', 'if', 'catch', 'constexpr', 'alignas'):
                insert[t.at + 1] = ' ::xcpp20::poll();'
    for at in sorted(insert, reverse=True):
        source = source[:at] + insert[at] + source[at:]
    return source


LOOP = 'if (::xcpp20::poll(); false) {} else '


def follows_do(reader, i):
    """Whether the while at i ends a do statement."""
    for k, t in enumerate(reader.tokens[:i]):
        if t.kind == 'word' and t.text == 'do' and reader.statement_end(k + 1) == i:
            return True
    return False
