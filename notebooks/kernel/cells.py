"""Splits a cell into pieces (definitions, variables, statements), with the names that each one defines and uses.

tree-sitter parses the cell. What it cannot parse is passed on as a statement, so that the compiler reports the error.
"""

import re
from dataclasses import dataclass, field

import tree_sitter_cpp
from tree_sitter import Language, Parser

PARSER = Parser(Language(tree_sitter_cpp.language()))
HEAD = b'void cell() {'  # inside a function, declarations and statements may stand in any order
CLASSES = {'struct_specifier', 'class_specifier', 'union_specifier', 'enum_specifier'}
LOOPS = {'for_statement', 'for_range_loop', 'while_statement', 'do_statement'}
SCOPES = CLASSES | LOOPS | {'compound_statement', 'function_definition', 'lambda_expression', 'if_statement', 'switch_statement',
                            'catch_clause', 'template_declaration', 'requires_expression'}
NAMES = {'identifier', 'type_identifier', 'namespace_identifier'}
NAMED = NAMES | {'field_identifier', 'qualified_identifier', 'operator_name', 'operator_cast', 'template_function', 'template_type',
                 'destructor_name'}
LITERALS = {'number_literal', 'char_literal', 'true', 'false'}


class CellError(Exception):
    """A cell that cannot be read; `line` counts from 1."""

    def __init__(self, message, line):
        super().__init__(message)
        self.line = line


@dataclass
class Piece:
    kind: str            # include, macro, using, definition, global, check, variable, statement or expression
    text: str = ''
    line: int = 1
    names: list = field(default_factory=list)  # what it defines
    words: set = field(default_factory=set)    # what it uses
    home: str = ''       # the class or template that this piece completes, as a member defined outside of its class does
    tokens: str = ''     # the text without comments and line breaks
    initialiser: str = ''                      # of `auto name = initialiser`
    function: bool = False
    # filled in by the session:
    label: str = ''      # the cell, as in In[3]
    serial: int = 0      # the run of a cell that it belongs to
    key: str = ''
    made: str = ''       # the type of a variable that was made, as the compiler names it
    type: str = ''       # and as a later cell can write it
    uses: set = field(default_factory=set)     # the words of its initialiser


def text_of(node):
    return node.text.decode(errors='replace')


def leaves(node):
    if not node.children or node.type.endswith(('string_literal', 'char_literal')):
        return [] if node.type == 'comment' else [node]
    return [leaf for child in node.children for leaf in leaves(child)]


def declarators(node):
    return node.children_by_field_name('declarator')


def names_in(node):
    """The nodes of the names that a declaration declares; a structured binding has several."""
    found, todo = [], declarators(node)[::-1]
    while todo:
        node = todo.pop()
        if node.type in NAMED:
            found.append(node)
        elif node.type == 'structured_binding_declarator':
            found += node.named_children
        else:
            todo += (declarators(node) or node.named_children[-1:])[::-1]
    return found


def free_words(node, bound=frozenset()):
    """The names that a piece uses and does not declare itself."""
    if node.type in SCOPES:
        bound = bound | {text_of(name) for name in local_names(node)}
    if node.type in NAMES:
        return {text_of(node)} - bound
    if node.type.startswith('preproc_'):
        return set(re.findall(r'[^\W\d]\w*', text_of(node)))
    name = node.child_by_field_name('name') if node.child_by_field_name('scope') else None
    return set().union(*(free_words(child, bound) for child in node.children if child != name or child.type not in NAMES))


def local_names(scope):
    """What is declared in a scope itself, not in the scopes inside it."""
    found, todo = names_in(scope) if scope.type == 'for_range_loop' else [], list(scope.children)
    while todo:
        node = todo.pop()
        if 'declarat' in node.type or node.type == 'function_definition':
            found += names_in(node)
        if node.type in CLASSES | {'alias_declaration'}:
            found += node.children_by_field_name('name')
        if 'type_parameter' in node.type:
            found += node.named_children[:1]
        todo += [] if node.type in SCOPES else node.children
    return found


class Cell:
    """Reads one cell. `variables` are the names of the session's variables."""

    def __init__(self, source, variables):
        self.source, self.variables, self.pieces = HEAD + source.encode() + b'\n', set(variables), []
        root = PARSER.parse(self.source + b';}').root_node
        stack = []
        for node in [n for n in leaves(root.children[0] if len(root.children) == 1 else root) if n.start_byte >= len(HEAD)]:
            if node.end_byte > len(self.source) or node.is_missing:
                break
            if node.type in ('(', '[', '{'):
                stack.append(node)
            elif node.type in (')', ']', '}'):
                if not stack or stack.pop().type + node.type not in ('()', '[]', '{}'):
                    raise CellError(f"'{node.type}' closes nothing", self.line(node))
        if stack:
            raise CellError(f"'{stack[-1].type}' is not closed", self.line(stack[-1]))
        if len(root.children) != 1 or root.children[0].type != 'function_definition':
            raise CellError('a string, a comment or a bracket has no end in this cell', 1)
        self.read_all(root.children[0].child_by_field_name('body').named_children)

    @staticmethod
    def line(node):
        return node.start_point[0] + 1

    def read_all(self, nodes):
        for node in nodes:
            if node.type != 'comment' and text_of(node).strip() != ';':
                self.read(node)

    def add(self, kind, node, names=(), end=None, **more):
        """Adds a piece: the text of the node with the ';' after it, edited."""
        start, limit, edits, text = node.start_byte, len(self.source), [], b''
        if end is None:
            end = min(node.end_byte, limit)
            end += len(re.match(rb'(\s*;)?', self.source[end:])[0])
            if kind in ('variable', 'definition', 'statement') and not self.source[:end].endswith((b';', b'}')):
                raise CellError("a ';' is missing at the end of this line", self.line(node) + node.text.rstrip(b';').rstrip().count(b'\n'))
        self.edit(node, kind in ('statement', 'expression'), False, edits)
        for first, last, new in sorted(e for e in edits if e[1] <= end):
            text, start = text + self.source[start:first] + new.encode(), last
        names = [n if isinstance(n, str) else text_of(n) for n in names]
        more.setdefault('words', free_words(node) - set(names))
        self.variables |= set(names) if kind == 'variable' else set()
        self.pieces.append(Piece(kind, (text + self.source[start:end]).decode(errors='replace'), self.line(node), names,
                                 tokens=' '.join(map(text_of, leaves(node))), **more))
        return self.pieces[-1]

    def read(self, node):
        kind, text, name = node.type, text_of(node), node.child_by_field_name('name')
        if kind in ('preproc_include', 'preproc_call', 'preproc_def', 'preproc_function_def'):
            macro = re.match(r'#\s*(?:define|undef)\s+(\w+)', text)
            self.add('macro' if macro else 'include', node, [macro[1]] if macro else [])
        elif kind.startswith('preproc_'):
            raise CellError(f'{text.split()[0]} at the top of a cell is not supported; put it into a function or a header', self.line(node))
        elif kind == 'linkage_specification':  # a definition does not need it: no other language links to a cell
            body, before = node.child_by_field_name('body'), len(self.pieces)
            self.read_all(body.named_children if body.type == 'declaration_list' else [body])
            for piece in self.pieces[before:]:
                piece.text = piece.text if piece.text.endswith('}') else 'extern "C" ' + piece.text
        elif kind == 'namespace_definition' and name is None:
            self.read_all(node.child_by_field_name('body').named_children)
        elif kind in ('using_declaration', 'static_assert_declaration'):
            self.add('using' if kind == 'using_declaration' else 'check', node)
        elif kind in CLASSES and name:
            self.class_(node, name)
        elif kind == 'type_definition':
            self.add('definition', node, names_in(node))
        elif kind in ('namespace_definition', 'namespace_alias_definition', 'alias_declaration', 'concept_definition'):
            self.add('definition', node, [name])
        elif kind in ('template_declaration', 'template_instantiation'):
            self.template(node)
        elif kind == 'function_definition':
            self.function(node)
        elif kind == 'declaration':
            self.declaration(node)
        elif kind == 'expression_statement' and node.end_byte > len(self.source):  # it ends with our ';'
            self.add('expression', node.named_children[0])
        else:
            self.add('statement', node)

    def class_(self, node, name, end=None):
        body = node.child_by_field_name('body')
        names = [name]
        if node.type == 'enum_specifier' and body and node.children[1].type not in ('class', 'struct'):
            names += [n.child_by_field_name('name') for n in body.named_children if n.type == 'enumerator']
        home = text_of(name.child_by_field_name('name')) if name.type == 'template_type' else ''
        return self.add('definition', node, names, end, home=home)

    def template(self, node):
        inner = node.named_children[-1]
        while inner.type == 'template_declaration':
            inner = inner.named_children[-1]
        name = inner.child_by_field_name('name') or (names_in(inner) or [None])[0]
        if name is None or name.type in NAMES | {'operator_name'}:  # None: a deduction guide
            return self.add('definition', node, [self.overload(name, inner)] if name else [], function=inner.type == 'function_definition')
        if name.type == 'qualified_identifier' and inner.type in CLASSES:  # as std::hash<Point>
            return self.add('global', node, [name])
        base = name.child_by_field_name('scope') or name
        return self.add('definition', node, [name], home=text_of(base.child_by_field_name('name') or base))

    def overload(self, name, node):
        """The name of a function; that of an operator or member has its parameters too, so that others of the name can stay."""
        after = [text_of(n) for n in leaves(node) if n.start_byte >= name.end_byte]
        return text_of(name) + ('' if name.type in NAMES else ' '.join(after[:after.index(')') + 1]))

    def function(self, node):
        name = names_in(node)[0]
        scope = name.child_by_field_name('scope')
        home = text_of(scope.child_by_field_name('name') or scope) if scope else ''
        self.add('definition', node, [self.overload(name, node)], home=home, function=True)
        if text_of(name) == 'main':
            call = 'main(0, nullptr);' if node.text.split(b')')[0].split(b'(')[1].strip() else 'main();'
            self.pieces.append(Piece('statement', call, self.line(node), words={'main'}))

    def declaration(self, node):
        type_, found, names = node.child_by_field_name('type'), declarators(node), names_in(node)
        name, body = type_.child_by_field_name('name'), type_.child_by_field_name('body')
        qualifiers = {text_of(n) for n in node.children if n.type == 'type_qualifier'}
        if text_of(type_) in self.variables and len(node.named_children) == 2:  # `a * b` declares nothing if a is a variable
            self.add('expression' if node.end_byte > len(self.source) else 'statement', node, words=free_words(node) | {text_of(found[0])})
        elif type_.type in CLASSES and name and body:  # struct P {…} p;
            self.class_(type_, name, type_.end_byte).text += ';'
            self.add('variable', node, names).text = text_of(name) + self.source[type_.end_byte:node.end_byte].decode()
        elif any(n.type == 'qualified_identifier' for n in names):  # int M::n = 3;
            piece = self.add('definition', node, names, home=text_of(names[0].child_by_field_name('scope')))
            piece.text = 'inline ' + piece.text
        elif found and (all(self.is_prototype(d) for d in found) or names[0].type == 'operator_name'):
            self.add('definition', node, [self.overload(n, node) for n in names], function=True)
        elif 'constexpr' in qualifiers or 'const' in qualifiers and all(
                d.type == 'init_declarator' and d.named_children[0].type == 'identifier' and
                all(n.type in LITERALS or not n.is_named for n in leaves(d.named_children[1])) for d in found):
            self.add('definition', node, names)  # the compiler may need the value of a constant in a later cell
        else:
            self.variable(node, names, found[0] if len(found) == 1 else node)

    def variable(self, node, names, declarator):
        value, name = declarator.child_by_field_name('value'), text_of(names[0]) if names else ''
        if value is None or value.prev_sibling.type != '=' or not declarator.text.startswith(name.encode()) or \
                text_of(node.child_by_field_name('type')) != 'auto':
            return self.add('variable', node, names)
        if b'[' not in value.text or not any(n.type == '[' and n.parent.type == 'lambda_capture_specifier' for n in leaves(value)):
            return self.add('variable', node, names, initialiser=text_of(value))
        # A lambda has the same type in every cell only if it stands in a function.
        maker = name + '_made'
        made = self.add('definition', value, [maker], value.end_byte, function=True)
        made.text = f'inline auto {maker}() {{ return {made.text}; }}'
        captures = text_of(value.named_children[0]) if value.type == 'lambda_expression' else ''
        if captures in ('[]', '[&]'):  # it has no state of its own, so it is a function by another name
            made.names.append(name)
            made.text += f' static auto {name} = {maker}();'
            return made
        piece = self.add('variable', node, names, words={maker}, initialiser=f'{maker}()')
        piece.text = self.source[node.start_byte:value.start_byte].decode() + f'{maker}();'
        return piece

    def is_prototype(self, declarator):
        while declarator.type in ('pointer_declarator', 'reference_declarator'):
            declarator = declarator.named_children[-1]
        if declarator.type != 'function_declarator' or declarators(declarator)[0].type == 'parenthesized_declarator':
            return False
        parameters = declarator.child_by_field_name('parameters').named_children
        return not parameters or not all(text_of(p) in self.variables for p in parameters)

    def edit(self, node, local, in_function, edits):
        """Collects (first, last, new text). `local`: in a statement of the cell; `in_function`: in one of its functions."""
        kind, body = node.type, node.child_by_field_name('body')
        if kind in LOOPS and body:
            edits.append((body.start_byte, body.start_byte, 'if (::xcpp20::poll(); false) {} else '))
        if kind in ('function_definition', 'lambda_expression') and body and body.type == 'compound_statement':
            edits.append((body.start_byte + 1, body.start_byte + 1, ' ::xcpp20::poll();'))
            if kind == 'function_definition' and any(n.text == b'main' for n in names_in(node)):
                edits.append((body.end_byte - 1, body.end_byte - 1, ' return 0; '))
        if kind == 'return_statement' and local and not in_function and not node.named_children:
            edits.append((node.start_byte, node.start_byte + len('return'), 'throw ::xcpp20::Leave()'))
        if kind == 'lambda_capture_specifier' and not in_function:
            edits.append((node.start_byte, node.end_byte, self.captures(node, local)))
        if kind == 'storage_class_specifier' and node.text in (b'static', b'thread_local') and not local and not in_function:
            edits.append((node.start_byte, node.end_byte, ''))
        if kind == 'declaration' and node.parent.type == 'declaration_list' and not in_function and \
                not any(self.is_prototype(d) for d in declarators(node)) and b'extern' not in node.text and b'inline' not in node.text:
            edits.append((node.start_byte, node.start_byte, 'inline '))  # a variable of a namespace is made once, not in every cell
        for child in node.children:
            self.edit(child, local, in_function or kind == 'function_definition' and child == body or kind in CLASSES or
                      kind == 'lambda_expression' and child == body, edits)

    def captures(self, node, local):
        """The cell's variables are captured as in a function, although they are global."""
        new = []
        for part in map(str.strip, re.split(r',(?![^(\[{]*[)\]}])', text_of(node)[1:-1])):
            if part in ('=', '&'):
                new += [part] * local
                new += [f'{name} = {name}' for name in sorted(free_words(node.parent) & self.variables)] if part == '=' else []
            elif part:
                new.append(f"{part} = {part.lstrip('& ')}" if part.lstrip('& ') in self.variables else part)
        return f"[{', '.join(new)}]"
