"""The text that is compiled for a cell: all definitions of the session, and the cell as a function.

Every definition is in an inline namespace whose name is a digest of its text and of all that it depends on. So what is
the same has the same name in every library that is loaded, and is one thing; what has changed, or depends on what
has, has another, and cannot be mistaken for it.
"""

import hashlib
import re

from reader import BUILTIN, Reader, with_polls


def digest(*parts):
    return hashlib.sha1('\0'.join(parts).encode()).hexdigest()[:10]


def words_of(text):
    return ' '.join(t.text for t in Reader(text).tokens)


class Unit:
    """The part of a session that writes units. It has `serial` (the cell's number), `epochs` and `candidates`, its items."""

    @staticmethod
    def late(item):
        """Whether a name means something only after the declaration ran: references and structured bindings."""
        return item.kind == 'variable' and (item.type.rstrip().endswith('&') or len(item.names) > 1 or
                                            '[' in item.text.replace(item.value, '') and not item.array)

    def unit(self, cell, items):
        out = []
        setup = next((i for i in items if i.kind == 'include' and 'setup.hpp' in i.text), None)
        out.append('#include "setup.hpp"' if setup else '#include "xcpp20.hpp"')
        self.keys, groups = {}, {}
        for item in items:
            needs = ''.join(self.keys[w] for w in sorted(item.words - set(item.names)) if w in self.keys)
            epoch = str([self.epochs.get(n, 0) for n in item.names])
            if item.group:
                if (item.cell, item.group) not in groups:
                    whole = [i for i in items if (i.cell, i.group) == (item.cell, item.group)]
                    words = set().union(*(i.words for i in whole))
                    needs = ''.join(self.keys[w] for w in sorted(words) if w in self.keys)
                    groups[item.cell, item.group] = digest(*(words_of(i.text) for i in whole), needs,
                                                           str(max(i.run for i in whole)))
                key = groups[item.cell, item.group]
            else:
                key = digest(item.kind, words_of(item.text), needs, str(item.run), epoch)
            seen_as = key
            if item.kind == 'variable' and not self.late(item) and self.type_is_written(item):
                seen_as = digest('variable', words_of(item.type + item.array), needs, epoch)
            for name in item.names:
                self.keys[name] = seen_as
            if item is not setup:
                out.append(self.emit(item, key))
            item.key = key
        out.append(self.function(cell))
        return '\n'.join(out) + '\n'

    @staticmethod
    def type_is_written(item):
        words = Reader(item.type).tokens
        last = [t.text for t in words if t.text not in ('*', '&', 'const')]
        return bool(last) and 'auto' not in last and (last[-1] == '>' or all(t in BUILTIN for t in last))

    @staticmethod
    def at(item, text, line=None, column=None):
        line, column = line or item.line, item.column if column is None else column
        return f'#line {line} "{item.label}"\n{" " * column}{text}\n#line {item.line} "{item.label}"\n'

    def emit(self, item, key):
        if item.kind in ('include', 'using', 'macro'):
            return self.at(item, item.text, column=0)
        text = with_polls(item.text)
        if item.kind == 'global':
            return self.at(item, text)
        if item.kind == 'variable':
            body = self.variable(item, key)
        else:
            text = re.sub(r'^static\b', '      ', text)
            function = item.kind == 'declaration' and (item.signature.startswith('(') or item.signature == 'member') \
                and not text.startswith('template')
            prefix = 'inline\n' if function or item.kind == 'constant' else ''
            body = prefix + self.at(item, text)
        return f'inline namespace v_{key} {{\n{body}\n#line 1 "xcpp20"\n}}'

    def variable(self, item, key):
        """Three things: how its value is made, of what type it is, and where it is kept."""
        words = [t.text for t in Reader(item.type).tokens]
        n = item.slot
        self_made = item.cell == self.serial and not item.made
        value = with_polls(item.value)
        at = lambda text: self.at(item, text, item.value_line, item.value_column) + '\n'
        alias = self.aliases(item)
        const = 'true' if 'const' in words else 'false'
        if 'auto' in words and words[-1] in ('&', '&&'):
            make = f'inline decltype(auto) make_{n}() {{ {alias} return (\n{at(value)}); }}\n'
            type_ = f'::xcpp20::Referred<decltype(make_{n}()), {const}>'
        elif 'auto' in words:
            form = ' '.join(w for w in words if w != 'constinit')
            make = f'inline {form} make_{n}() {{ {alias} return\n{at(value)}; }}\n'
            type_ = f'{"const " if words[0] == "const" or words[-1] == "const" or (const == "true" and "*" not in words) else ""}decltype(make_{n}())'
        elif words[-1] in ('&', '&&'):
            make = f'inline {item.type} make_{n}() {{ {alias} return\n{at(value)}; }}\n'
            type_ = f'decltype(make_{n}())'
        else:
            make, type_ = '', f'typename decltype(type_{n}())::type'
        where = f'::xcpp20::{"find" if self_made else "bind"}<type_of_{n}>("{n}"{"" if self_made else f""", "{item.made}" """})'
        if self.late(item):
            target = item.names[0] if len(item.names) == 1 and '[' not in item.text.replace(item.value, '') else \
                f"[{', '.join(item.names)}]"
            keep = '' if self_made else f'[[maybe_unused]] static auto& {target} = {where};\n'
            return make + f'using type_of_{n} = {type_};\n' + keep
        reference = f'inline auto& {n} = {where}{".value" if item.array else ""};\n'
        if make:
            return make + f'using type_of_{n} = {type_};\n' + reference
        declared = f'inline auto type_{n}() {{ {alias}\n' + self.at(item, with_polls(item.text)) + \
            f'; return ::xcpp20::Tag<decltype({n})>(); }}\n'
        bare = f'std::remove_cv_t<{type_}>'
        if item.array:
            type_ = bare = f'::xcpp20::Box<{type_}>'
            body = '{\n' + at(value if item.init == '=' else '{' + value + '}') + '}' if item.init else '{}'
            made = f'return T{body};'
        elif item.init == '=':
            made = f'return\n{at(value)};'
        elif item.init == '(':
            made = f'return T(\n{at(value)});'
        else:
            made = f'return T{{\n{at(value)}}};' if item.init else 'return T();'
        return declared + f'using type_of_{n} = {type_};\n{reference}' \
            f'inline {bare} make_{n}() {{ {alias} using T [[maybe_unused]] = {bare};\n{made} }}\n'

    def aliases(self, item, text=None):
        """Local names for the variables that a piece uses, so that a lambda captures them as in a function, and
        so that they hide functions of the same name in `using namespace`."""
        reader = Reader(item.text if text is None else text)
        plain, captured = False, set()
        for i, close in reader.match.items():
            if reader.text(i) != '[' or reader.kind(i - 1) in ('word', 'number', 'text') and \
                    reader.text(i - 1) not in ('return', 'co_return') or reader.text(i - 1) in (')', ']', '['):
                continue
            if reader.text(i + 1) == '[' or i == 0 and reader.text(close + 1) not in ('(', '{', '<'):
                continue
            inner = [t.text for t in reader.tokens[i + 1:close]]
            captured |= {w for k, w in enumerate(inner) if (k == 0 or inner[k - 1] in (',', '&'))}
            plain |= not inner or inner[0] not in ('&', '=') or (len(inner) > 1 and inner[0] == '&' and inner[1] != ',')
        live = {name: i for i in self.live_variables() for name in i.names}
        names = [n for n in sorted(reader.words(0, len(reader.tokens))) if n in live and n not in item.names]
        late = {}
        for name in names:
            i = live[name]
            if self.late(i) and i.cell == self.serial and not i.made:
                late[id(i)] = i
        out = []
        for i in late.values():
            target = f"[{', '.join(i.names)}]" if len(i.names) > 1 else i.names[0]
            n = i.slot
            out.append(f'[[maybe_unused]] auto& {target} = ::xcpp20::find<type_of_{n}>("{n}");')
        for name in names:
            if id(live[name]) not in late and (not plain or name in captured):
                out.append(f'[[maybe_unused]] auto& {name} = ::{name};')
        return ' '.join(out)

    def live_variables(self):
        current = {name: i for i in self.candidates if i.kind == 'variable' for name in i.names}
        return list({id(i): i for i in current.values()}.values())

    def function(self, cell):
        out = [f'extern "C" void xcpp20_cell_{self.serial}() {{']
        for k, item in enumerate(cell):
            if item.kind == 'variable':
                n = item.slot
                out.append(f'::xcpp20::at({item.line}); '
                           f'::xcpp20::define<type_of_{n}>({k}, "{n}", []() -> decltype(auto) {{ return make_{n}(); }});')
            if item.kind not in ('statement', 'expression'):
                continue
            text = self.at(item, with_polls(item.text))
            out.append(f'::xcpp20::at({item.line}); {{ {self.aliases(item)}')
            if item.kind == 'expression':
                out.append(f'(\n{text}), ::xcpp20::Shown(); }}')
            elif item.signature == 'expression':
                out.append(f'(void)(\n{text}\n); }}')
            else:
                out.append(f'{text}\n}}')
        return '\n'.join(out) + '\n}'
