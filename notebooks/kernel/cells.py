"""A cell's text, taken apart: which of its pieces are definitions, variables, statements, and what they name.

What this takes for an expression is compiled as one, so that a piece
taken for the wrong thing is a compile error and never a different program.
"""

import re
from dataclasses import dataclass, field

from reader import BUILTIN, CONTROL, KEYWORDS, SPECIFIERS, CellError, Reader


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


class Cell(Reader):
    """One cell. `read` gives its pieces."""

    def item(self, kind, begin, end, **more):
        return Item(kind, self.slice(begin, end), self.line(begin), self.column(begin),
                    words=self.words(begin, end), **more)

    def read(self):
        items, i = [], 0
        while i < len(self.tokens):
            if self.text(i) == ';':
                i += 1
                continue
            end, found = self.piece(i)
            items += found
            self.variables |= {name for item in found if item.kind in ('variable', 'constant') for name in item.names}
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
        written = [self.text(n) for n in range(i, k)]
        binding = self.text(k) == '[' and 'auto' in written
        if self.text(k) == '(' and self.text(k + 1) == '*' and self.text(k + 3) == ')':
            raise CellError('a pointer to a function is declared with auto here, or with a name from using', self.line(k))
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
        literal = 'const' in specifiers and not binding and '*' not in written and all(
            t.kind == 'number' or t.text in ('true', 'false', '=', '-', '+', '*', '/', ',', '(', ')', '{', '}')
            or t.kind == 'word' and self.text(n + 1) in ('=', '{', '(') for n, t in
            list(enumerate(self.tokens))[k:end - 1]) and self.text(k + 1) != ';' and all(
                t in BUILTIN | SPECIFIERS | {'std', '::'} or t.endswith('_t') for t in written)
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
