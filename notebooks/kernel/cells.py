"""A cell's text, taken apart: which of its pieces are definitions, variables, statements, and what they name.

This reads C++ only as far as a notebook needs. What it takes for an expression is compiled as one, so that a piece
taken for the wrong thing is a compile error and never a different program.
"""

import re
from dataclasses import dataclass, field

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


@dataclass
class Item:
    """A piece of a cell. `names` is what it defines, `words` every identifier in it."""
    kind: str  # include, using, macro, global, declaration, constant, variable, statement, expression
    text: str
    line: int
    column: int = 0
    names: list = field(default_factory=list)
    words: set = field(default_factory=set)
    signature: str = ''    # of an operator or function: tells its overloads apart
    group: int = 0         # pieces of one cell that share a namespace
    # of a variable: text is the whole declaration of this one name
    type: str = ''         # as written, with & and *, without static
    init: str = ''         # '', '=', '(' or '{'
    value: str = ''        # the initialiser, without = and the outer brackets
    value_line: int = 0
    value_column: int = 0
    array: str = ''        # '[3]'


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

    def item(self, kind, begin, end, **more):
        return Item(kind, self.slice(begin, end), self.line(begin), self.column(begin),
                    words=self.words(begin, end), **more)

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

    # ---- the pieces

    def read(self):
        items, i = [], 0
        while i < len(self.tokens):
            if self.text(i) == ';':
                i += 1
                continue
            end, found = self.piece(i)
            items += found
            self.variables |= {name for item in found if item.kind == 'variable' for name in item.names}
            i = end
        return items

    def piece(self, i):
        first = self.text(i)
        if self.kind(i) == 'directive':
            return self.directive(i)
        if first == '[' and self.text(i + 1) == '[':
            raise CellError('attributes at the top of a cell are not read', self.line(i))
        if first in CONTROL:
            end = self.statement_end(i)
            return end, [self.item('statement', i, end)]
        if first in ('using', 'typedef', 'static_assert'):
            return self.alias(i)
        if first == 'namespace' or first in ('inline', 'extern') and self.text(i + 1) == 'namespace' or (
                first == 'extern' and self.kind(i + 1) == 'text'):
            return self.scope(i)
        if first == 'template':
            return self.template(i)
        if first in ('struct', 'class', 'union', 'enum'):
            found = self.class_(i)
            if found:
                return found
        if first == 'concept':
            raise CellError("a concept begins with 'template'", self.line(i))
        body = self.body(i)
        if body is not None:
            return self.function(i, body)
        return self.declaration(i) or self.expression(i)

    def directive(self, i):
        text = self.text(i)
        what = re.match(r'#\s*(\w*)', text).group(1)
        if what == 'include':
            return i + 1, [self.item('include', i, i + 1)]
        if what in ('define', 'undef'):
            name = re.match(r'#\s*\w+\s+(\w+)', text)
            if not name:
                raise CellError(f'#{what} of what?', self.line(i))
            return i + 1, [self.item('macro', i, i + 1, names=[name.group(1)])]
        if what == 'pragma' and re.match(r'#\s*pragma\s+omp\b', text):
            end = self.statement_end(i + 1)
            return end, [self.item('statement', i, end)]
        if what == 'pragma' and re.match(r'#\s*pragma\s+once', text):
            return i + 1, []
        raise CellError(f'#{what} at the top of a cell is not read; put it into a function or a header', self.line(i))

    def alias(self, i):
        end = self.to_semicolon(i)
        first, second = self.text(i), self.text(i + 1)
        if self.text(end - 1) != ';':
            raise CellError(f'this {first} has no ;', self.line(i))
        if first == 'using' and second == 'namespace' or first == 'static_assert':
            return end, [self.item('using' if first == 'using' else 'statement', i, end)]
        name = self.text(i + 1) if first == 'using' and self.text(i + 2) == '=' else self.text(end - 2)
        return end, [self.item('declaration', i, end, names=[name])]

    def scope(self, i):
        k = i
        while k < len(self.tokens) and self.text(k) not in ('{', ';'):
            k += 1
        if self.text(k) == ';' or k >= len(self.tokens):  # namespace a = b;
            return k + 1, [self.item('declaration', i, k + 1, names=[self.text(i + 1)])]
        name = self.text(k - 1)
        if name == 'namespace':
            raise CellError('a namespace without a name would be another one in every cell; give it a name', self.line(i))
        end = self.match[k] + 1
        if self.text(i) == 'extern':
            raise CellError('extern "C" is not read in a cell; put it into a header', self.line(i))
        return end, [self.item('declaration', i, end, names=[name])]

    def class_(self, i, begin=None):
        k = i + 1
        while k < len(self.tokens) and self.text(k) not in ('{', ';', '=', '('):
            k = (self.after_angles(k) or k + 1) if self.text(k) == '<' else k + 1
        if self.text(k) not in ('{', ';'):
            return None
        name, n = '', i + 1
        while n < k and self.text(n) not in (':', '{'):
            if self.kind(n) == 'word' and self.text(n) not in KEYWORDS | {'final'}:
                name = self.text(n)
                if self.text(n + 1) == '<':
                    break
            n += 1
        if self.text(k) == ';':
            if begin is None and k - i != 2:  # struct P p;
                return None
            return k + 1, [self.item('declaration', begin or i, k + 1, names=[name], signature='forward')]
        close = self.match[k]
        if self.text(close + 1) != ';':
            raise CellError(f"after '{self.text(i)} {name} {{…}}' a ; is missing; a variable of it is declared on its own",
                            self.line(close))
        names = [name] if name else []
        if self.text(i) == 'enum' and self.text(i + 1) not in ('class', 'struct'):
            names += [self.text(n) for n in range(k + 1, close)
                      if self.kind(n) == 'word' and self.text(n - 1) in ('{', ',')]
        if not names:
            raise CellError('this type has no name', self.line(i))
        return close + 2, [self.item('declaration', begin if begin is not None else i, close + 2, names=names)]

    def template(self, i):
        k = i
        while self.text(k) == 'template':
            k += 1
            if self.text(k) != '<' or self.after_angles(k) is None:
                raise CellError('explicit instantiation is not read' if self.text(k) != '<'
                                else "this template's < is not closed", self.line(i))
            specialised = self.text(k + 1) == '>'
            k = self.after_angles(k)
        if specialised:
            body = self.body(k)
            end = self.match[body] + 1 if body is not None else self.to_semicolon(k)
            return end, [self.item('global', i, end, signature=' '.join(t.text for t in self.tokens[i:k + 6]))]
        if self.text(k) == 'requires':  # up to the first token of the declaration: what follows a ) or > by itself
            k += 1
            while k < len(self.tokens):
                if self.text(k) in ('struct', 'class', 'auto', 'inline', 'constexpr', 'void', 'using'):
                    break
                k = (self.after_angles(k) or k + 1) if self.text(k) == '<' else self.match.get(k, k) + 1
                if self.text(k) not in ('&&', '||', '::', '<', '(') and self.text(k - 1) in ('>', ')', '}'):
                    break
        if self.text(k) == 'concept':
            end = self.to_semicolon(k)
            return end, [self.item('declaration', i, end, names=[self.text(k + 1)])]
        if self.text(k) in ('struct', 'class', 'union'):
            found = self.class_(k, i)
            if found:
                return found
        if self.text(k) == 'using':
            end = self.to_semicolon(k)
            return end, [self.item('declaration', i, end, names=[self.text(k + 1)])]
        body = self.body(k)
        if body is not None:
            return self.function(k, body, i)
        end = self.to_semicolon(k)  # a deduction guide, a variable template, a prototype
        after = self.after_type(k)
        name = self.text(after) if after is not None and self.text(after) not in ('(', ';') else self.text(k)
        return end, [self.item('declaration', i, end, names=[name], signature='template')]

    def function(self, i, body, begin=None):
        begin = i if begin is None else begin
        end = self.match[body] + 1
        k = i
        while self.text(k) != '(' and self.text(k) != 'operator':
            k = (self.after_angles(k) or k + 1) if self.text(k) == '<' else k + 1
        name, signature = self.text(k - 1), ''
        parameters = k
        if self.text(k) == 'operator':
            parameters = k + 2
            while self.text(parameters) != '(':
                parameters += 1
            name = 'operator' + self.slice(k + 1, parameters)
        signature = ' '.join(t.text for t in self.tokens[parameters:self.match[parameters] + 1])
        qualified = self.text(k - 2) == '::' or self.text(k) == 'operator' and self.text(k - 1) == '::'
        if self.kind(k - 1) != 'word' and self.text(k) != 'operator':
            raise CellError('this looks like a function, and its name is not found', self.line(i))
        return end, [self.item('declaration', begin, end, names=[] if qualified else [name],
                               signature='member' if qualified else signature)]

    def declaration(self, i):
        """The variables of a declaration, one piece each; None where it is none."""
        if self.kind(i) == 'word' and self.text(i) in self.variables and self.text(i + 1) != '::':
            return None
        k = self.after_type(i)
        if k is None:
            return None
        specifiers = {self.text(n) for n in range(i, k)} & SPECIFIERS
        end = self.to_semicolon(i)
        binding = self.text(k) == '['
        name = k
        if not binding and (self.kind(k) != 'word' or self.text(k) in KEYWORDS):
            return None
        if not binding and self.text(k + 1) == '::':
            raise CellError('a static member is defined in its class: write static inline there', self.line(k))
        if self.text(k + (0 if binding else 1)) not in ('=', ';', '{', '(', '[', ',') and k + 1 < end:
            return None
        if self.text(end - 1) != ';':
            raise CellError('this declaration has no ;', self.line(end - 1))
        if specifiers & {'thread_local', 'extern', 'register'}:
            raise CellError(f"{min(specifiers & {'thread_local', 'extern', 'register'})} variables are not for cells",
                            self.line(i))
        if not binding and self.prototype(k):
            signature = ' '.join(t.text for t in self.tokens[k + 1:self.match[k + 1] + 1])
            return end, [self.item('declaration', i, end, names=[self.text(name)], signature=signature, group=1)]
        literal = 'const' in specifiers and not binding and '*' not in [self.text(n) for n in range(i, k)] and all(
            t.kind == 'number' or t.text in ('true', 'false', '=', '-', '+', '*', '/', ',', '(', ')', '{', '}')
            or t.kind == 'word' and self.text(n + 1) in ('=', '{', '(') for n, t in
            list(enumerate(self.tokens))[k:end - 1]) and self.text(k + 1) != ';' and any(
                self.text(n) in BUILTIN or self.text(n).endswith('_t') for n in range(i, k))
        if 'constexpr' in specifiers or literal:
            names, n = [], k
            while n < end:
                if self.kind(n) == 'word' and self.text(n - 1) in (',', '*', '&') or n == k:
                    if self.text(n + 1) in ('=', '{', '(', '['):
                        names.append(self.text(n))
                n = self.match.get(n, n) + 1
            text = re.sub(r'\b(static|inline)\b', lambda m: ' ' * len(m.group()), self.slice(i, k)) + \
                self.source[self.tokens[k - 1].at + len(self.text(k - 1)):self.tokens[end - 1].at + 1]
            return end, [Item('constant', text, self.line(i), self.column(i), names, self.words(i, end))]
        return end, self.declarators(i, k, end)

    def prototype(self, k):
        """T name(…): a function where the brackets hold nothing or parameters, a variable where they hold values."""
        if self.text(k + 1) != '(':
            return False
        first, close = k + 2, self.match[k + 1]
        if first == close:
            return True
        after = self.after_type(first)
        if after is None or self.text(first) in self.variables or self.kind(first) != 'word':
            return False
        if after > close:
            return False
        if after == close or self.text(after) == ',':  # T name(A): A is a type where it cannot be a value
            return self.text(first) in BUILTIN | {'const', 'auto'} or self.text(close - 1) in ('&', '*', '>')
        return self.kind(after) == 'word'

    def declarators(self, i, k, end):
        base_end = k
        while self.text(base_end - 1) in ('*', '&', '&&'):
            base_end -= 1
        clean = lambda text: re.sub(r'\b(static|inline|constinit)\b\s*', '', text)
        base, items, n = clean(self.slice(i, base_end)), [], base_end
        while n < end - 1:
            pointers = ''
            while self.text(n) in ('*', '&', '&&', 'const'):
                pointers += self.text(n) + ' '
                n += 1
            begin = n
            if self.text(n) == '[':
                names = [self.text(m) for m in range(n + 1, self.match[n]) if self.kind(m) == 'word']
                n = self.match[n] + 1
            else:
                names, n = [self.text(n)], n + 1
            array = ''
            while self.text(n) == '[':
                array += self.slice(n, self.match[n] + 1)
                n = self.match[n] + 1
            init, value = '', (n, n)
            if self.text(n) in ('(', '{'):
                init, value = self.text(n), (n + 1, self.match[n])
                n = self.match[n] + 1
            elif self.text(n) == '=':
                init, stop = '=', n + 1
                while stop < end - 1 and not self.next_declarator(stop):
                    angles = self.after_angles(stop) if self.text(stop) == '<' else None
                    if angles and self.text(angles) in ('(', '{', '::'):
                        stop = angles
                    else:
                        stop = self.match.get(stop, stop) + 1
                value, n = (n + 1, stop), stop
            if self.text(n) not in (',', ';'):
                raise CellError(f"'{self.text(n)}' is not expected in this declaration", self.line(n))
            text = base + ' ' + pointers + self.slice(begin, n)
            items.append(Item(
                'variable', text, self.line(begin), self.column(begin), names,
                self.words(i, base_end) | self.words(begin, n), type=(base + ' ' + pointers).strip(), init=init,
                value=self.slice(*value), value_line=self.line(value[0]), value_column=self.column(value[0]),
                array=array))
            n += 1
        return items

    def next_declarator(self, n):
        if self.text(n) != ',':
            return False
        n += 1
        while self.text(n) in ('*', '&'):
            n += 1
        return self.kind(n) == 'word' and self.text(n) not in KEYWORDS and self.text(n + 1) in ('=', ',', ';', '{', '(', '[')

    def expression(self, i):
        end = self.to_semicolon(i)
        if self.text(end - 1) == ';':
            item = self.item('statement', i, end - 1)
            item.signature = 'expression'  # compiled as one
            return end, [item]
        return end, [self.item('expression', i, end)]


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
