"""One notebook's C++ session: what is defined, the text that is compiled for a cell, and the process that runs it.

A cell becomes a shared object: first every definition of the session again, then the cell itself. Each definition
stands in an inline namespace named by a digest of its text and of all that it uses. The loader therefore takes equal
definitions of two cells for one, and a function whose text, or anything it calls, has changed is compiled anew.
A variable is made once; later cells refer to it by its address and its type.
"""

import codecs
import hashlib
import os
import re
import select
import shlex
import signal
import struct
import subprocess
import tempfile
import time
from collections import defaultdict
from urllib.parse import unquote

from cells import Cell, CellError, Piece

MEMORY = 4 << 30  # bytes, as for the exercises
MOST_LINES, MOST_CHARACTERS, PICTURE = 2000, 1 << 20, 20  # of output that a cell may show; a picture counts as 20 lines
SIGNALS = {signal.SIGSEGV: 'segmentation fault: it read or wrote memory that it does not own',
           signal.SIGABRT: 'abort: a failed check, an exception that nothing could catch, or a call of abort()',
           signal.SIGFPE: 'division of an integer by zero', signal.SIGKILL: 'killed from outside, perhaps for want of memory'}
AFRESH = 'C++ was restarted, so all variables and definitions are gone: run the cells again from the first.'
UNKNOWN = re.compile('not declared|undeclared|unknown type|does not name|not a template|not been declared|no template named')
# A cell's variables and statements are initialised in order, but only when the host asks for it, because an exception
# must not leave dlopen. Therefore the section that lists them is renamed from .init_array.
RENAME = ['objcopy', '--rename-section', '.init_array=xcpp20_cell,alloc,load,data,contents', 'cell.o']
ENTRY = """extern "C" {
extern __attribute__((visibility("hidden"))) void (*__start_xcpp20_cell[])();
extern __attribute__((visibility("hidden"))) void (*__stop_xcpp20_cell[])();
void xcpp20_run() { for (auto part = __start_xcpp20_cell; part != __stop_xcpp20_cell; ++part) (*part)(); }
static const int xcpp20_begin = ::xcpp20::at(0);
}"""


class Failure(Exception):
    """How a cell failed, as the notebook shows it."""

    def __init__(self, name, value, *details):
        super().__init__(value)
        self.name, self.value, self.details = name, value, list(details)


class Output:
    """One stream of a cell: sent in batches, and cut where it becomes too long for a notebook."""

    def __init__(self, name, show):
        self.name, self.show = name, show
        self.decoder = codecs.getincrementaldecoder('utf-8')('replace')
        self.waiting, self.lines, self.size, self.dropped, self.cut = [], 0, 0, 0, False

    def add(self, data, last=False):
        for line in re.findall(r'[^\n]*\n|[^\n]+', self.decoder.decode(data, last)):
            if self.lines < MOST_LINES and self.size < MOST_CHARACTERS:
                self.waiting.append(line)
                self.lines, self.size = self.lines + line.count('\n'), self.size + len(line)
            else:
                self.cut, self.dropped = True, self.dropped + line.count('\n')

    def flush(self, last=False):
        if last and self.cut:
            self.waiting.append(f'[{self.dropped:,} more lines are not shown]\n')
        if self.waiting:
            self.show(self.name, ''.join(self.waiting))
        self.waiting = []


class Session:
    """`show(kind, data)` is called with what a cell prints and shows: kind stdout, stderr, display or result."""

    def __init__(self, show):
        self.show, self.serial, self.child, self.compiler, self.interrupted = show, 0, None, None, 0
        self.build = os.environ['XCPP20_FOLDER']
        with open(os.path.join(self.build, 'command')) as file:
            self.command = shlex.split(file.read())
        self.temporary = tempfile.TemporaryDirectory(prefix='session-', dir=self.build)
        self.start()

    def path(self, name):
        return os.path.join(self.temporary.name, name)

    def start(self):
        self.stop()
        self.items, self.gone, self.mark = [], {}, os.urandom(12).hex()
        with open(self.path('state'), 'wb') as file:
            file.write(bytes(8))
        limit = 0 if any('-fsanitize' in word for word in self.command) else MEMORY
        self.child = subprocess.Popen([os.path.join(self.build, 'host'), self.mark, self.path('state'), str(limit)],
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                      start_new_session=True, env={**os.environ, 'MALLOC_ARENA_MAX': '4'})

    def stop(self):
        if self.child:
            self.child.kill()
            self.child.communicate()

    def close(self):
        self.stop()
        self.temporary.cleanup()

    def interrupt(self):
        """May be called at any time, also from a signal handler."""
        self.interrupted = time.monotonic()
        if self.compiler:
            os.killpg(self.compiler.pid, signal.SIGKILL)
        else:
            self.child.send_signal(signal.SIGINT)

    def run(self, source, label):
        self.serial, self.interrupted, self.notes, self.source, self.label = self.serial + 1, 0, [], source, label
        try:
            cell = Cell(source, {n for i in self.items if i.kind == 'variable' for n in i.names}).pieces
        except CellError as e:
            raise self.compile_failure([(label, e.line, 'error', str(e))]) from None
        kept = {i.tokens for i in self.items if i.kind in ('include', 'using')}
        cell = [p for p in cell if p.kind not in ('include', 'using') or p.tokens not in kept]
        for piece in cell:
            piece.label, piece.serial = label, self.serial
            if piece.kind == 'global' and any(i.names == piece.names and i.tokens != piece.tokens for i in self.items):
                raise Failure('CompileError', f'a changed {piece.names[0]} takes effect only after a restart of the kernel')
        if cell:
            items = self.compiled(cell)
            self.execute(cell, items)

    # ---- what stays defined

    def compiled(self, cell):
        """Compiles; older items that no longer compile, or whose type has changed, are left out and named in a note."""
        old = self.not_replaced(cell)
        while True:
            items = self.woven(old, cell)
            self.set_keys(items)
            keys, errors = {i.key for i in items}, []
            misfits = [i for i in old if set(re.findall(r'\bv_([0-9a-f]{10})\b', i.made)) - keys]
            if not misfits:
                errors = self.compile(self.unit(items))
                if errors is None:
                    return items
                errors = [e for e in errors if e[2] == 'error'] or errors
                misfits = [i for i in old if any(i.label == where and i.line <= line <= i.line + i.text.count('\n')
                                                 for where, line, _, _ in errors)]
            if not misfits or any(where == self.label for where, _, _, _ in errors):
                raise self.compile_failure(errors)
            for item in misfits:
                old.remove(item)
                self.drop(item, item.names)

    def drop(self, item, names):
        self.notes.append(f"{', '.join(names)} ({item.label}): what it was made with has changed, so it is gone; run {item.label} again")
        self.gone.update({name: item.label for name in names})

    def not_replaced(self, cell):
        """The older items but those whose names the cell defines anew."""
        new, kept = {n: p for p in cell for n in p.names}, []
        for item in self.items:
            again = [new[n] for n in item.names if n in new]
            if not again:
                kept.append(item)
            elif len(again) < len(item.names) and not item.names[0].endswith('_made'):
                self.drop(item, [n for n in item.names if n not in new])
            elif item.function and again[0].function and len({i.tokens.partition(item.names[0])[2].partition(')')[0] for i in (item, again[0])}) > 1:
                self.notes.append(f'{item.names[0]} of {item.label} is replaced; overloads of a function belong into one cell')
        return kept

    @staticmethod
    def woven(old, cell):
        """Older items and the cell's pieces in order: what uses a name that the cell defines comes after its definition."""
        order = []
        for k in range(len(cell) + 1):
            to_come, waiting = {n for p in cell[k:] for n in p.names}, []
            operators = any(name.startswith('operator') for name in to_come)  # functions use them without their names
            for item in old:
                if (item.words | {item.home}) & to_come or item.function and operators:
                    waiting.append(item)
                    to_come |= set(item.names)
                else:
                    order.append(item)
            order, old = order + cell[k:k + 1], waiting
        return order

    @staticmethod
    def set_keys(items):
        named = defaultdict(list)
        for item in items:
            for name in filter(None, (*item.names, item.home)):
                named[name].append(item)
        operators = [i for i in items if i.names and i.names[0].startswith('operator')]
        for item in (i for i in items if i.kind == 'definition'):
            seen, todo = {}, [item]
            while todo:
                i = todo.pop()
                if id(i) in seen:
                    continue
                anew = i.kind == 'variable' or i.function and 'static' in i.tokens.split()  # a static variable begins anew
                seen[id(i)] = f'{i.names}{i.serial}' if anew else i.tokens
                if i.kind != 'variable':
                    todo += [j for w in (*i.words, *i.names, i.home) for j in named.get(w, [])] + operators * i.function
            item.key = hashlib.sha1('\0'.join(sorted(seen.values())).encode()).hexdigest()[:10]

    def finish(self, cell, items):
        """What the session has after a cell ran, up to its end or up to an exception."""
        before = {i.names[0]: i for i in self.items if i.kind == 'variable'}
        changed = {n for p in cell for i in self.items for n in set(p.names) & set(i.names) if p.kind == 'variable' or i.key != p.key}
        self.items = []
        for item in items:
            if item.kind == 'variable' and not item.made:
                self.items += [before[n] for n in item.names if n not in self.made and n in before and n not in self.ended]
                self.items += [v for n in item.names if n in self.made and (v := self.variable(item, n)).type]
            elif item.kind not in ('statement', 'expression', 'check') and not re.match(r'#\s*undef', item.text):
                self.items.append(item)
                if item.kind == 'variable' and item.uses & changed and re.search(r'function<|\(\*\)|[*&]$', item.made):
                    self.notes.append(f'{item.names[0]} ({item.label}) still refers to what it was made with; to renew it, run {item.label}')
        for name in {n for i in self.items for n in i.names if i.serial == self.serial}:
            self.gone.pop(name, None)

    def variable(self, piece, name):
        made = self.made[name]
        type_ = made
        if re.search(r'\{|\)::', made):  # a lambda's type, or a function's own, has no name
            type_ = f'decltype({piece.initialiser})' if piece.initialiser else ''
        if not type_:
            self.notes.append(f'{name}: its type has no name outside of this cell, so later cells cannot use it')
        return Piece('variable', line=piece.line, names=[name], words=set(re.findall(r'[^\W\d]\w*', type_)), label=piece.label,
                     serial=piece.serial, made=made + '&' * ('&' in piece.text.split('=')[0]), type=type_, uses=piece.words)

    # ---- the text that is compiled

    def has_setup(self, items):
        return any(i.kind == 'include' and 'setup.hpp' in i.text for i in items)

    def unit(self, items):
        includes = [self.located(i) for i in items if i.kind == 'include' and 'setup.hpp' not in i.text]
        return '\n'.join(['#include "setup.hpp"' if self.has_setup(items) else '#include "cell.hpp"', *includes, ENTRY,
                          'namespace notebook {', *(self.emit(n, i) for n, i in enumerate(items) if i.kind != 'include'), '}', ''])

    @staticmethod
    def located(item):
        return f'#line {item.line} "{item.label}"\n{item.text}\n#line 1 "cell"'

    def emit(self, n, item):
        text, name = self.located(item), item.names[0] if item.names else ''
        if item.kind == 'definition':
            return f'inline namespace v_{item.key} {{\n{text}\n}}'
        if item.kind == 'global':
            return f'}}\nusing namespace notebook;\n{text}\nnamespace notebook {{'
        if item.kind == 'variable' and item.made:
            return f'#line {item.line} "{item.label}"\nstatic auto& {name} = ::xcpp20::find<std::remove_reference_t<{item.type}>>("{name}");'
        if item.kind == 'variable':
            names = ', '.join(f'"{name}"' for name in item.names)
            made = [f'static const int made_{n}_{k} = ::xcpp20::made<decltype({name})>("{name}", {name});' for k, name in enumerate(item.names)]
            return '\n'.join([f'static const int at_{n} = ::xcpp20::at({item.line}, {{{names}}});',
                              f'inline namespace cell_{self.serial} {{\n{text}\n}}', *made])
        if item.kind in ('statement', 'expression'):
            text = f'(\n{text}\n), ::xcpp20::Shown();' if item.kind == 'expression' else text
            return f'static const int ran_{n} = (::xcpp20::at({item.line}), [] {{\n{text}\n}}(), 0);'
        return text

    # ---- compiling

    def compile(self, text):
        """None if it compiles; else the compiler's messages, each (label, line, kind, text)."""
        with open(self.path('cell.cpp'), 'w') as file:
            file.write(text)
        log, top = '', os.environ['XCPP20_TOP']
        for command, folder in (([*self.command, '-c', self.path('cell.cpp'), '-o', self.path('cell.o')], top), (RENAME, self.path('')),
                                ([*self.command, '-shared', self.path('cell.o'), '-o', self.path(f'cell{self.serial}.so')], top)):
            self.compiler = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                             text=True, errors='replace', start_new_session=True,
                                             env={**os.environ, 'LC_ALL': 'C.UTF-8', 'TMPDIR': self.path('')})
            log += self.compiler.communicate()[0]
            status, self.compiler = self.compiler.returncode, None
            if self.interrupted:
                raise Failure('Interrupted', 'stopped while it was compiled; nothing of it has run')
            if status:
                break
        found = re.findall(r'^(.*?):(\d+):(?:\d+:)? (?:fatal )?(error|warning|note): (.*)', log, re.M)
        messages = [(where, int(line), kind, self.readable(text)) for where, line, kind, text in found]
        if status:
            return messages or [(self.label, 0, 'error', log.strip() or f'the compiler ended with {status}')]
        for where, line, kind, text in messages:
            if kind == 'warning' and where == self.label:
                self.show('stderr', f'{where}, line {line}: warning: {text}\n')
        return None

    @staticmethod
    def readable(text):
        return re.sub(r'\bnotebook::|\b(v_[0-9a-f]{10}|cell_\d+)::', '', text)

    def compile_failure(self, messages):
        value = next((m for m in messages if m[0] == self.label), messages[0])[3]
        details = [text for where, line, kind, message in messages[:8] if where.startswith('In[') or kind == 'error'
                   for text in (f'{where}, line {line}: {kind}: {message}', *(self.quoted(line) if where == self.label else []))]
        hints = [f'{name} of {made} is gone since something it was made with has changed: run {made} again'
                 for name, made in self.gone.items() if re.search(rf"['‘]{name}['’]", value)]
        if not hints and UNKNOWN.search(value):
            setup = 'setup.hpp' in self.source or self.has_setup(self.items)
            hints = ['if a cell above declares it, run that cell first' if setup else 'run the first cell: it includes the library']
        return Failure('CompileError', '; '.join([value, *hints]), *details, *hints)

    def quoted(self, line):
        return ['    ' + text.strip() for text in self.source.split('\n')[max(line - 1, 0):line]]

    # ---- running

    def execute(self, cell, items):
        status, kind, what = self.outcome()
        with open(self.path('state'), 'rb') as file:
            line, stack_is_full = struct.unpack('ii', file.read(8))
        where = f'{self.label}, line {line}: ' if line else f'{self.label}: '
        if status == 'unlinked':
            raise Failure('LinkError', f'this is used and nowhere defined: {self.readable(what)}')
        if status in ('Crash', 'Interrupted'):
            self.start()
            what = 'the stack is full; most likely a function calls itself without end' if stack_is_full else what
            raise Failure(status, f'{where}{what}. {AFRESH}')
        self.finish(cell, items)
        for note in self.notes:
            self.show('stderr', f'note: {note}\n')
        if status == 'stopped':
            raise Failure('Interrupted', f'stopped in line {line}; what was done until then stays')
        if status == 'threw':
            kind = self.readable(kind)
            if kind == 'std::bad_alloc':
                what = f'the {MEMORY >> 30} GiB of memory that a notebook may use are full; restart the kernel to free what old values hold'
            raise Failure(kind, what, f'{where}{kind} was thrown and not caught', what, *self.quoted(line))

    def outcome(self):
        """Sends the cell to the host and passes on what it prints, until the host reports how the cell ended."""
        child, self.buffer, self.done, self.made, self.ended, asked = self.child, b'', None, {}, set(), 0
        self.outputs = {child.stdout: Output('stdout', self.show), child.stderr: Output('stderr', self.show)}
        self.open, self.flushed = set(self.outputs), time.monotonic()
        child.stdin.write(self.path(f'cell{self.serial}.so\n').encode())
        child.stdin.flush()
        while not self.done and self.open:
            self.receive(0.05)
            if self.interrupted and time.monotonic() - self.interrupted > 2:
                child.kill()
                self.done = 'Interrupted', '', 'what ran could not be stopped, so it was ended'
            elif self.interrupted and time.monotonic() - asked > 0.3:
                asked = time.monotonic()
                child.send_signal(signal.SIGINT)
        while self.receive(0):  # what is still in the pipes
            pass
        self.pass_on(last=True)
        self.flush(last=True)
        if not self.done:
            code = child.wait()
            self.done = 'Crash', '', SIGNALS.get(-code, f'signal {-code}') if code < 0 else f'the cell ended the program with exit code {code}'
        return self.done

    def receive(self, seconds):
        ready = select.select(self.open, [], [], seconds)[0]
        for file in ready:
            data = os.read(file.fileno(), 1 << 16)
            if not data:
                self.open.discard(file)
            elif file is self.child.stderr:
                self.outputs[file].add(data)
            else:
                self.buffer += data
                self.pass_on()
        if time.monotonic() - self.flushed > 0.1:
            self.flush()
        return ready

    def flush(self, last=False):
        self.flushed = time.monotonic()
        for output in self.outputs.values():
            output.flush(last)

    def pass_on(self, last=False):
        """Splits what came on standard output into text and the host's reports."""
        output = self.outputs[self.child.stdout]
        *parts, rest = re.split(b'\x1e' + self.mark.encode() + b'\t(.*)\n', self.buffer)
        at = rest.find(b'\x1e')  # here a report may begin, of which only a part has come
        rest, self.buffer = (rest, b'') if last or at < 0 else (rest[:at], rest[at:])
        for text, report in zip(parts[::2], parts[1::2]):
            output.add(text)
            kind, *fields = [unquote(field) for field in report.decode(errors='replace').split('\t')]
            if kind == 'display' and output.lines >= MOST_LINES:
                output.cut, output.dropped = True, output.dropped + PICTURE
            elif kind in ('result', 'display'):
                output.flush()
                output.lines += PICTURE
                self.show(kind, dict(zip(fields[::2], fields[1::2])))
            elif kind == 'made':
                self.made[fields[0]] = fields[1]
            elif kind == 'ended':
                self.ended.add(fields[0])
            else:
                self.done = fields
        output.add(rest, last)
