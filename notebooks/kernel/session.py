"""One notebook's C++ session: its definitions, the compiler, and the process that runs what was compiled."""

import json
import os
import re
import select
import shlex
import shutil
import signal
import subprocess
import tempfile
import time

from cells import Cell, Item
from process import Process
from reader import CellError
from unit import Unit, words_of

SIGNALS = {
    signal.SIGSEGV: 'segmentation fault: memory that is not there was read or written',
    signal.SIGBUS: 'bus error', signal.SIGFPE: 'division of an integer by zero',
    signal.SIGILL: 'illegal instruction', signal.SIGABRT: 'abort: the program ended itself',
    signal.SIGKILL: 'killed from outside, perhaps for want of memory',
}
AFRESH = 'C++ started afresh: the variables and definitions of all cells are gone; run the cells again from the first.'


class Failure(Exception):
    """How a cell failed, as the notebook shows it."""

    def __init__(self, name, value, *details):
        super().__init__(value)
        self.name, self.value, self.details = name, value, list(details)


class Session(Unit):
    """`show(kind, data)` is called with what a cell prints and shows: kind stdout, stderr, display or result."""

    def __init__(self, show):
        with open(os.environ['XCPP20_CONFIG']) as file:
            self.config = json.load(file)
        self.show = show
        self.folder = tempfile.mkdtemp(prefix='xcpp20.')
        self.serial = 0
        self.compiler = None
        self.interrupted = 0  # when the reader asked to stop
        self.process = None
        self.start()

    def start(self):
        if self.process:
            self.process.close()
        self.items, self.gone = [], {}
        self.epochs = {}  # how often a name was found stale: a library bound to nothing under it may still be loaded
        self.process = Process(self.config['host'], self.folder)

    def close(self):
        if self.process:
            self.process.close()
            self.process = None
        shutil.rmtree(self.folder, ignore_errors=True)

    def interrupt(self):
        """May be called at any time, from a signal's handler too."""
        self.interrupted = time.monotonic()
        if self.compiler:
            self.stop_compiler()
        elif self.process:
            self.process.child.send_signal(signal.SIGINT)

    def stop_compiler(self):
        try:
            os.killpg(self.compiler.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    # ---- a cell

    def run(self, source, label):
        self.interrupted = 0
        self.serial += 1
        try:
            cell = Cell(source, self.variables()).read()
        except CellError as e:
            raise Failure('CompileError', e.message, *self.quote(source, label, e.line, e.message)) from None
        self.check(cell, source, label)
        for item in cell:
            item.cell, item.label, item.source = self.serial, label, source
            item.made, item.slot = '', '_'.join(item.names)
        cell = [item for item in cell if item.kind not in ('include', 'using') or
                words_of(item.text) not in {words_of(old.text) for old in self.items if old.kind == item.kind}]
        if not cell:
            return
        self.group(cell)
        self.remove_left = 20
        self.attempt(cell, self.replaced(cell), label)

    def variables(self):
        return {name for item in self.items if item.kind in ('variable', 'constant') for name in item.names}

    def check(self, cell, source, label):
        seen = set()
        for item in cell:
            if item.kind in ('variable', 'constant') and seen & set(item.names):
                name = min(seen & set(item.names))
                raise Failure('CompileError', f"'{name}' is declared twice in this cell",
                              *self.quote(source, label, item.line, f"'{name}' is declared twice in this cell"))
            if item.kind in ('variable', 'constant'):
                seen |= set(item.names)
            if item.kind == 'global' and any(old.kind == 'global' and old.signature == item.signature and
                                             words_of(old.text) != words_of(item.text) for old in self.items):
                raise Failure('CompileError', 'a specialisation can be changed only in a new session: restart the kernel')

    def group(self, cell):
        """Definitions of one cell that belong together share a namespace."""
        together = any(i.kind == 'declaration' and (i.group or i.signature in ('member', 'forward')) for i in cell)
        for item in cell:
            item.group = self.serial if together and item.kind == 'declaration' else 0
            item.run = self.serial if {'static', 'thread_local'} & item.words or self.late(item) else 0

    def replaced(self, cell):
        """The session's items with the cell's among them: where an older one is defined again, in its place."""
        items, notes = list(self.items), []
        for item in cell:
            if item.kind in ('statement', 'expression'):
                continue
            for old in [old for old in items if old.cell != self.serial and set(old.names) & set(item.names)]:
                if any(n.startswith('operator') for n in item.names) and old.signature != item.signature:
                    continue
                others = [n for n in old.names if n not in item.names]
                if self.late(old) and len(old.names) > 1 and others:
                    copy = Item(**{k: v for k, v in vars(old).items() if k in Item.__dataclass_fields__})
                    copy.__dict__.update(vars(old))
                    copy.names = [n if n in others else f'replaced_{self.serial}_{n}' for n in old.names]
                    items[items.index(old)] = copy
                    continue
                at = items.index(old)
                items.remove(old)
                if others and old.kind != 'declaration':
                    notes.append(f"{', '.join(others)}: declared together with {item.names[0]}, and gone with it")
                    self.gone.update({n: old.label for n in others})
                if old.signature.startswith('(') and item.signature.startswith('(') and old.signature != item.signature:
                    notes.append(f'{item.names[0]}{old.signature} of {old.label} is replaced; '
                                 'functions of one name belong into one cell')
                later = {n for i in items[at:] for n in i.names}
                if item not in items and not later & (item.words - set(item.names)) and \
                        not any(set(i.names) & item.words for i in cell if i is not item and i not in items):
                    items.insert(at, item)
            if item.kind == 'macro' and item.text.lstrip('# ').startswith('undef'):
                continue
            if item not in items:
                items.append(item)
                names, k = set(item.names), 0  # what used the older one comes after this
                moved = []
                if any(set(old.names) & names for old in self.items):
                    while k < len(items):
                        i = items[k]
                        if i is not item and i.cell != self.serial and i.words & names and i.kind != 'include':
                            names |= set(i.names)
                            moved.append(items.pop(k))
                        else:
                            k += 1
                    items += moved
        self.notes = notes
        return items

    def attempt(self, cell, items, label):
        """Compiles and runs; leaves out, and says so, what no longer fits since something else changed."""
        while True:
            self.candidates = items
            text = self.unit(cell, items)
            errors = self.compile(text, label)
            if errors is not None:
                dropped = self.broken(errors, items, label)
                if not dropped:
                    raise self.compile_failure(errors, label, cell)
            else:
                fields = self.execute()
                if fields[0] != 'stale':
                    break
                dropped = [i for i in items if i.cell != self.serial and set(i.names) & set(fields[4:])]
            self.remove_left -= 1
            if self.remove_left < 0 or not dropped:
                raise Failure('CompileError', 'the cells no longer fit together; restart the kernel and run them in order')
            for item in dropped:
                items.remove(item)
                self.epochs.update({n: self.epochs.get(n, 0) + 1 for n in item.names})
                self.gone.update({n: item.label for n in item.names})
                self.notes.append(f"{', '.join(item.names)} ({item.label}): made with what has changed since, and gone; "
                                  'run that cell again')
            used = {n for i in cell for n in i.words} & {n for i in dropped for n in i.names}
            if used and not used <= {n for i in cell for n in i.names}:
                name = min(used)
                self.items = [i for i in self.items if i not in dropped]
                raise Failure('CompileError', f"'{name}' was made with what has changed since; run {self.gone[name]} again")
        self.finish(cell, items, fields, label)

    def finish(self, cell, items, fields, label):
        status, kind, what, line, made = fields[0], fields[1], fields[2], int(fields[3] or 0), fields[4:]
        if status == 'unlinked':
            raise Failure('LinkError', what or kind)
        if status in ('crashed', 'terminated', 'died', 'lost'):
            where = f'{label}, line {line}: ' if line else f'{label}: '
            self.start()
            if status == 'lost':
                raise Failure('Interrupted', where + 'what ran could not be stopped where it was, so it was ended. ' + AFRESH)
            raise Failure('Crash', where + what + '. ' + AFRESH)
        types = dict(zip(map(int, made[0::2]), made[1::2]))
        reached = []
        for k, item in enumerate(cell):
            if item.kind == 'variable':
                if k not in types:
                    continue
                item.made = types[k]
            reached.append(item)
        unreached = [i for i in cell if i not in reached]
        if unreached:  # what has not been declared anew stays as it was
            cell = reached
            items = self.replaced(reached)
        changed = {n for i in cell if i.kind == 'declaration' for old in self.items for n in i.names
                   if n in old.names and words_of(old.text) != words_of(i.text)}
        for item in items:
            if item.kind == 'variable' and item.cell != self.serial and re.search('St8function|PF|PK?F', item.made):
                if self.depends(item, changed, items):
                    self.notes.append(f"{item.names[0]} ({item.label}) still calls what it was made with; "
                                      'run that cell again to have the new one')
        self.items = [i for i in items if i.kind not in ('statement', 'expression')]
        for item in cell:
            for name in item.names:
                self.gone.pop(name, None)
        for note in self.notes:
            self.show('stderr', f'note: {note}\n')
        if status == 'interrupted':
            raise Failure('Interrupted', f'stopped in line {line}; what was done until then stays')
        if status == 'threw':
            kind = kind.split('::')[-1] if kind.startswith('xcpp20::') else kind
            raise Failure(kind, what, f'{label}, line {line}: {kind} was thrown and not caught', what,
                          *self.lines(cell, line))

    @staticmethod
    def lines(cell, line):
        source = cell[0].source.split('\n') if cell else []
        return ['    ' + source[line - 1].strip()] if 0 < line <= len(source) else []

    def depends(self, item, names, items):
        seen, todo = set(), [item]
        while todo:
            i = todo.pop()
            if i.words & names:
                return True
            for other in items:
                if other is not i and id(other) not in seen and set(other.names) & i.words:
                    seen.add(id(other))
                    todo.append(other)
        return False

    # ---- compiling

    def compile(self, text, label):
        """None where it compiles; else the compiler's messages, each (label, line, kind, text)."""
        base = os.path.join(self.folder, f'cell{self.serial}')
        with open(base + '.cpp', 'w') as file:
            file.write(text)
        if os.environ.get('XCPP20_TRACE'):
            shutil.copy(base + '.cpp', os.environ['XCPP20_TRACE'])
        command = shlex.split(self.config['compile']) + [base + '.cpp', '-o', base + '.so']
        self.compiler = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                         stderr=subprocess.STDOUT, text=True, errors='replace', start_new_session=True,
                                         env={**os.environ, 'LC_ALL': 'C.UTF-8', 'TMPDIR': self.folder})
        log = self.compiler.communicate()[0]
        status, self.compiler = self.compiler.returncode, None
        os.unlink(base + '.cpp')
        for name in os.listdir(self.folder):  # what a compiler that was stopped leaves
            if not name.endswith('.so'):
                os.unlink(os.path.join(self.folder, name))
        if self.interrupted:
            raise Failure('Interrupted', 'stopped while it was compiled; nothing of it has run')
        messages = []
        for line in log.splitlines():
            match = re.match(r'(.*?):(\d+):(?:\d+:)? ((?:fatal )?error|warning|note): (.*)', line)
            if match:
                messages.append((match[1], int(match[2]), match[3].replace('fatal ', ''), self.clean(match[4])))
        if status == 0:
            for where, line, kind, text in messages:
                if kind == 'warning' and where == label and 'never defined' not in text:
                    self.show('stderr', f'{where}, line {line}: warning: {text}\n')
            return None
        return messages or [(label, 0, 'error', log.strip() or f'the compiler ended with {status}')]

    @staticmethod
    def clean(text):
        text = re.sub(r'v_[0-9a-f]{10}::', '', text)
        return re.sub(r"\b(make|type)_(\w+)\(\)", r'\2', text)

    def broken(self, messages, items, label):
        """Older items that do not compile any more."""
        labels = {where for where, _, kind, _ in messages if kind == 'error'}
        if label in labels:
            return []
        found = []
        for where, line, kind, _ in messages:
            if kind == 'error':
                fits = [i for i in items if i.label == where and i.cell != self.serial and i.line <= line and i.names]
                if fits and fits[-1] not in found:
                    found.append(max(fits, key=lambda i: i.line))
        return found

    def compile_failure(self, messages, label, cell):
        source = cell[0].source
        errors = [m for m in messages if m[2] == 'error']
        first = next((m for m in errors if m[0] == label), errors[0] if errors else messages[0])
        details = []
        for where, line, kind, text in [m for m in messages if m[2] in ('error', 'note')][:12]:
            if where == label and line:
                quoted = self.quote(source, label, line, text, kind)
                details += [] if quoted[0] in details else quoted
            elif kind == 'error' or where.startswith('In['):
                details.append(f'{where}, line {line}: {kind}: {text}')
        for name, made in self.gone.items():
            if re.search(rf"'{name}'|‘{name}’", first[3]):
                details.append(f'{name} of {made} is gone since something it was made with has changed: run {made} again')
        return Failure('CompileError', first[3], *details)

    @staticmethod
    def quote(source, label, line, message, kind='error'):
        lines = source.split('\n')
        shown = ['    ' + lines[line - 1]] if 0 < line <= len(lines) else []
        return [f'{label}, line {line}: {kind}: {message}'] + shown

    # ---- running

    def execute(self):
        base = os.path.join(self.folder, f'cell{self.serial}.so')
        os.write(self.process.commands, f'{base} xcpp20_cell_{self.serial}\n'.encode())
        if self.interrupted:
            self.process.child.send_signal(signal.SIGINT)
        p, buffer, answer, asked_again = self.process, b'', b'', 0
        streams = {p.out, p.err, p.answers}
        while True:
            ready = select.select(streams, [], [], 0.1)[0]
            if p.err in ready:
                data = self.read(p.err)
                if data:
                    self.show('stderr', data.decode(errors='replace'))
                else:
                    streams.discard(p.err)
            if p.out in ready:
                data = self.read(p.out)
                buffer = self.split(buffer + data, not data)
                if not data:
                    streams.discard(p.out)
            if p.answers in ready:
                data = self.read(p.answers)
                answer += data
                if not data:
                    streams.discard(p.answers)
            head, newline, body = answer.partition(b'\n')
            if newline and len(body) >= int(head):
                fields = body.decode(errors='replace').split('\0')[:-1]
                break
            if p.child.poll() is not None and p.answers not in streams:
                fields = ['died', '', '', '0']
                break
            if self.interrupted and time.monotonic() - self.interrupted > 2:
                p.child.kill()
                p.child.wait()
                fields = ['lost', '', '', '0']
                break
            if self.interrupted and time.monotonic() - asked_again > 0.3:
                asked_again = time.monotonic()
                p.child.send_signal(signal.SIGINT)
        for fd in streams & {p.out, p.err}:  # what is still in the pipes
            while select.select([fd], [], [], 0)[0]:
                data = self.read(fd)
                if not data:
                    break
                if fd == p.err:
                    self.show('stderr', data.decode(errors='replace'))
                else:
                    buffer = self.split(buffer + data, False)
        self.split(buffer, True)
        if os.path.exists(base):
            os.unlink(base)
        return self.explained(fields)

    def explained(self, fields):
        if fields[0] == 'crashed':
            return ['crashed', '', SIGNALS.get(int(fields[1]), f'signal {fields[1]}'), fields[3]]
        if fields[0] == 'terminated':
            fields[2] = f'{fields[1]} left a thread, a destructor or a noexcept function: {fields[2]}' if fields[1] \
                else 'std::terminate was called'
        if fields[0] == 'died':
            code = self.process.child.wait()
            fields[2] = SIGNALS.get(-code, f'signal {-code}') if code < 0 else f'the cell ended the program with exit code {code}'
        return fields

    @staticmethod
    def read(fd):
        try:
            return os.read(fd, 1 << 16)
        except BlockingIOError:
            return b''

    def split(self, data, at_end):
        """Hands plain output and bundles on in their order; returns what may be the beginning of a bundle."""
        mark = f'\x1e{self.process.mark} '.encode()
        while data:
            at = data.find(mark)
            if at < 0:
                keep = 0 if at_end else next((n for n in range(min(len(mark) - 1, len(data)), 0, -1)
                                              if mark.startswith(data[-n:])), 0)
                cut = len(data) - keep
                while not at_end and cut and cut > len(data) - 4 and data[cut - 1] >= 0x80 and not self.whole(data[:cut]):
                    cut -= 1
                self.show('stdout', data[:cut].decode(errors='replace'))
                return data[cut:]
            if at:
                self.show('stdout', data[:at].decode(errors='replace'))
                data = data[at:]
            head, newline, body = data[len(mark):].partition(b'\n')
            kind, _, size = head.decode().partition(' ')
            if not newline or len(body) < int(size):
                return data
            fields = body[:int(size)].decode(errors='replace').split('\0')
            self.show(kind, dict(zip(fields[0::2], fields[1::2])))
            data = body[int(size):]
        return b''

    @staticmethod
    def whole(data):
        try:
            data[-4:].decode()
            return True
        except UnicodeDecodeError as e:
            return e.start == 0 and e.reason != 'unexpected end of data'
