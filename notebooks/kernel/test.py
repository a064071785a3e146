"""The kernel's tests, through Jupyter's protocol: every step has a name, a cell, and all that must come of the cell.

    test.py [SESSION]      the last line is `N passed, M failed`
"""

import concurrent.futures
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

import nbformat
from jupyter_client.manager import KernelManager
from nbformat.sign import NotebookNotary
from nbformat.v4 import new_code_cell, new_notebook

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))
import run
from session import Session

SETUP = '#include "setup.hpp"'


class Kernel:
    def __init__(self, setup=SETUP):
        self.manager = KernelManager(kernel_name='xcpp20')
        self.manager.start_kernel()
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=60)
        self.passed, self.failed = 0, 0
        self.run(setup)

    def judge(self, name, good, seen=''):
        self.passed, self.failed = self.passed + bool(good), self.failed + (not good)
        print(f'ok: {name}' if good else f'FAILED: {name}\n    {seen}', flush=True)

    def run(self, code, interrupt=False):
        """All that came of a cell; `interrupt`: half a second after its first output it is stopped."""
        sent = self.client.execute(code, store_history=True)
        got = {'result': None, 'stdout': '', 'stderr': '', 'error': '', 'shown': [], 'messages': 0, 'seconds': time.monotonic()}
        while True:
            message = self.client.get_iopub_msg(timeout=120)
            kind, content = message['msg_type'], message['content']
            if message['parent_header'].get('msg_id') != sent:
                continue
            got['messages'] += 1
            if kind == 'stream':
                got[content['name']] += content['text']
                if interrupt:
                    time.sleep(0.5)
                    self.manager.interrupt_kernel()
                    interrupt, got['seconds'] = False, time.monotonic()
            elif kind == 'execute_result':
                got['result'] = content['data']['text/plain']
            elif kind == 'display_data':
                got['shown'].append(content['data'])
            elif kind == 'error':
                got['error'] = '\n'.join([f"{content['ename']}: {content['evalue']}", *content['traceback']])
            elif kind == 'status' and content['execution_state'] == 'idle':
                got['seconds'] = time.monotonic() - got['seconds']
                return got

    def step(self, name, code, result=None, stdout='', stderr='', error=''):
        """result and stdout are compared whole; stderr and error (with its report) are regular expressions, '' for nothing."""
        got = self.run(code)
        self.judge(name, got['result'] == result and got['stdout'] == stdout and all(
            bool(got[kind]) == bool(pattern) and re.search(pattern, got[kind], re.S)
            for kind, pattern in (('stderr', stderr), ('error', error))), got)

    def close(self):
        self.client.stop_channels()
        self.manager.shutdown_kernel()
        return self.passed, self.failed


def what_a_cell_may_hold(k):
    k.step('nothing but a comment', '// nothing\n/* and\nnothing */')
    k.step('an expression is shown', '1 + 1', '2')
    k.step('an expression with ; is not', '1 + 1;')
    k.step('declarations and statements in any order', '#include <map>\n#include <thread>\nint n = 3;\nfor (int i = 0; i < n; ++i) std::cout << i;\n'
           'int square(int a) { return a * a; }\nif (n == 3) { std::cout << "three"; } else std::cout << "other";\nsquare(n)', '9', '012three')
    k.step('a product of variables is no declaration', 'int a = 1, b{2}, *to_a = &a;\n*to_a = 5;\na * b', '10')
    k.step('structured bindings', 'std::pair<int, int> both{1, 2};\nauto& [left, right] = both;\nleft = 9;\nboth.first', '9')
    k.step('in a later cell', 'right = 7;\nboth.second + left', '16')
    k.step('a reference keeps a temporary', 'const auto& kept = std::string("kept");\nauto& again = both.second;')
    k.step('in a later cell', 'again = 8;\nkept + std::to_string(both.second)', '"kept8"')
    k.step('arrays, with and without a size', 'int numbers[3] = {1, 2, 3};\ndouble more[] = {1.5, 2.5};\nint zero;')
    k.step('in a later cell', 'numbers[2] + sizeof(more) / sizeof(double) + zero', '5')
    k.step('parentheses with variables make no function', 'std::string text(n, \'x\');\nstd::string same(text);\nsame', '"xxx"')
    k.step('raw strings', 'std::string odd = R"(;}{")" + std::string("}{;\'");\nodd', '";}{"}{;\'"')
    k.step('templates and concepts', 'template <class T>\nconcept Adds = requires(T t) { t + t; };\ntemplate <Adds T>\nT twice(T t) { return t + t; }\n'
           'template <class T>\nstruct Boxed {\n  T inside;\n};\ntemplate <>\nint twice<int>(int t) { return 3 * t; }\ntwice(std::string("ab"))', '"abab"')
    k.step('in a later cell', 'Boxed<int> boxed{twice(7)};\nboxed.inside', '21')
    k.step('types', 'enum Colour { red, green };\nusing Real = double;\ntypedef std::map<std::string, int> Count;\nnamespace inner {\nint deep() { return 5; }\n}\n'
           'struct Point {\n  double x, y;\n  double norm() const { return std::sqrt(x * x + y * y); }\n} p{3, 4};')
    k.step('in a later cell', 'Count count{{"a", inner::deep()}};\nReal(count["a"]) / 2 + int(green) + p.norm()', '8.5')
    k.step('variables of a namespace', 'namespace settings {\nstatic std::string name = "a";\nint count = 1;\nint twice(int);\n}\nsettings::name += "b";\nsettings::count = 2;')
    k.step('are made once', 'settings::name + std::to_string(settings::count)', '"ab2"')
    k.step('operators of a type', 'std::ostream& operator<<(std::ostream& out, const Point& q) { return out << "(" << q.x << ", " << q.y << ")"; }\n'
           'Point operator+(const Point& q, const Point& r) { return {q.x + r.x, q.y + r.y}; }\np + p', '(6, 8)')
    k.step('functions that call each other', 'bool odd_one(int i);\nbool even_one(int i) { return i == 0 || odd_one(i - 1); }\n'
           'bool odd_one(int i) { return i != 0 && even_one(i - 1); }\neven_one(10)', 'true')
    k.step('members outside of their class', 'struct Far {\n  static std::string name;\n  int get() const;\n};\nint Far::get() const { return 3; }\nstd::string Far::name = "far";')
    k.step('in a later cell', 'Far::name += "ther";\nFar().get() + odd_one(3)', '4')
    k.step('static members are made once', 'Far::name', '"farther"')
    k.step('virtual functions', 'struct Base {\n  explicit Base(int i) : i_{i} {}\n  virtual ~Base() = default;\n  virtual int get() const { return i_; }\n  int i_;\n};\n'
           'struct Derived : Base {\n  using Base::Base;\n  int get() const override { return -i_; }\n};\nstd::unique_ptr<Base> object = std::make_unique<Derived>(3);')
    k.step('in a later cell', 'object->get() + Base(2).get()', '-1')
    for specifiers in ('inline', 'static', 'static inline', 'constexpr', 'inline constexpr', 'consteval', '[[nodiscard]]', '[[nodiscard]] static inline',
                       'extern "C"', 'extern "C" inline', '__attribute__((noinline))', 'template <int N = 1> [[nodiscard]] constexpr', 'auto', 'unsigned long long'):
        head = specifiers + (' h()' if specifiers.split()[-1] in ('auto', 'long') else ' int h()') + ' noexcept { return 3; }'
        k.step(f'a function: {head}', head + '\nh()', '3')
    k.step('in a later cell', '[[nodiscard]] int from_here();\nextern "C" int abs(int);\nextern "C" { int atoi(const char*); }\nh() + abs(-2) + atoi("4")', '9')
    k.step('main is called', 'int main() {\n  std::cout << "in main";\n}', stdout='in main')
    k.step('with arguments too', 'int main(int argc, char** argv) { std::cout << argc << (argv == nullptr); }', stdout='01', stderr='main .* is replaced')
    k.step('return leaves the cell', 'n = 1;\nif (n == 1) return;\nn = 2;')
    k.step('it has', 'n', '1')
    k.step('pointers to functions', 'int (*pointer)(int) = nullptr;\npointer = &square;\npointer(3)', '9')
    k.step('a null string', 'const char* none = nullptr;\nnone', 'nullptr')
    k.step('printing it leaves the stream usable', 'std::cout << none;')
    k.step('it does', 'std::cout << "here";', stdout='here')
    k.step('a map', 'std::map<int, std::pair<bool, char>>{{1, {true, \'c\'}}}', '{{1, {true, c}}}')
    k.step('a value that cannot be printed', 'Boxed<int>{1}', '(a value of a type that cannot be printed)')
    k.step('a name that the library has too', 'double mean = 1.5;\nauto max = [](int i) { return i; };')
    k.step('in a later cell', 'mean + max(2)', '3.5')
    k.step('threads', 'int from_thread = 0;\nstd::thread thread([] { from_thread = 4; });\nthread.join();\nfrom_thread', '4')


def what_is_defined_again(k):
    k.step('a variable', 'int x = 1;\nint tenfold() { return x * 10; }\nstruct P {\n  int a = 1, x = 0;\n};\nP p;')
    k.step('another value: functions see it', 'int x = 3;\ntenfold() + p.a', '31')
    k.step('another type: functions are compiled anew', 'double x = 1.5;\ntenfold()', '15')
    k.step('a type that does not fit', 'std::string x = "s";', stderr=r'tenfold \(In\[2\]\): what it was made with has changed.*run In\[2\] again')
    k.step('an error says what to run', 'tenfold()', error='CompileError.*tenfold.*run In.2. again')
    k.step('a function calls another', 'int one() { return 1; }\nint two() { return one() + 1; }\nstd::function<int()> stored = [] { return one(); };\nint x = 4;\ntwo()', '2')
    k.step('the inner one again: the outer one follows, what is stored is named', 'int one() { return 100; }', stderr='stored .* still refers')
    k.step('it follows', 'two()', '101')
    k.step('other parameters replace it', 'int one(int i) { return i; }', stderr='one of .* is replaced.*two')
    k.step('it is not called by mistake', 'one()', error='CompileError')
    k.step('the same struct keeps its variables', 'struct P {\n  int a = 1, x = 0;  // as before\n};')
    k.step('another struct does not', 'struct P {\n  double more = 2;\n  int a = 7;\n};', stderr='p .*has changed')
    k.step('an operator again', 'P operator-(P q) { q.a = -q.a; return q; }\nint negative(P q) { return (-q).a; }\nnegative(P{})', '-7')
    k.step('functions use the new one', 'P operator-(P q) { q.a = 0; return q; }\nnegative(P{})', '0')
    k.step('macros and aliases', '#define FACTOR 2\nusing Number = int;\nNumber half(Number i) { return FACTOR * i / 4; }\nhalf(5)', '2')
    k.step('functions use the new ones', '#define FACTOR 1\nusing Number = double;\nhalf(5)', '1.25')
    k.step('a static in a function', 'int counted() {\n  static int n = 0;\n  return ++n;\n}\ncounted()', '1')
    k.step('counts through the cells', 'counted()', '2')
    k.step('begins anew with its function', 'int counted() {\n  static int n = 0;\n  return ++n;\n}\ncounted()', '1')
    k.step('constants', 'const int size = 3;\nconstexpr int depth = 2;\nconst auto longer = std::string("ab") + "c";\nint sized[size] = {1, 2, 3};')
    k.step('in a later cell', 'std::array<int, depth * size>{}.size() + longer.size() + sized[2]', '12')
    k.step('const is const', 'longer += "d";', error='CompileError')
    k.step('lambdas', 'int k = 3;\nauto plus = [](int i) { return i + k; };\nauto copy = [k] { return k; };\nauto copies = [=] { return k; };\nauto refers = [&] { return k; };\n'
           'auto ticks = [n = 0]() mutable { return ++n; };\nk = 5;\nfmt::format("{} {} {} {} {}", plus(1), copy(), copies(), refers(), ticks())', '"6 3 3 5 1"')
    k.step('in a later cell', 'int apply(const std::function<int(int)>& f) { return f(1); }\nfmt::format("{} {} {}", apply(plus), apply([&](int i) { return i * k; }), ticks())', '"6 5 2"')
    k.step('a lambda follows a new variable', 'int k = 7;\nplus(1) + refers()', '15', stderr='copy .*copies ')
    k.step('a recursive std::function', 'std::function<int(int)> factorial = [&](int i) { return i < 2 ? 1 : i * factorial(i - 1); };\nfactorial(5)', '120')
    k.step('a type that no later cell can name', 'auto local() {\n  struct Local { int i = 3; };\n  return std::pair(Local{}, 1);\n}\nauto [first, second] = local();\nauto kept = local();', stderr='first: its type has no name')
    k.step('is found by its initialiser', 'kept.first.i + second', '4')
    k.step('a lock ends with its name', '#include <mutex>\nstd::mutex m;\nstd::lock_guard<std::mutex> guard(m);')
    k.step('so it can be made again', 'std::lock_guard<std::mutex> guard(m);')
    k.step('and so does a tape', 'auto A = ones<double>({2});\nTape<double> tape;\ntape.watch({{"A", A}});\nauto y = sum(A * A);')
    k.step('over several cells', 'tape.backward(y)[A]', '[2. 2.]')
    k.step('a new tape is empty and the only one', 'Tape<double> tape;\ntape.size() == 0 && Tape<double>::innermost() == &tape && tape.outer() == nullptr', 'true')
    k.step('one name of several', 'auto [q, r] = std::pair(1, 2);\nauto [s, t] = std::pair(10, 20);\nauto [u, q2] = std::pair(q, r);\nint r = 5;', error='CompileError.*redecl|CompileError.*conflict')
    k.step('names of a structured binding apart', 'auto [q, r] = std::pair(1, 2);')
    k.step('the other one stays', 'int q = 40;\nq + r', '42')


def what_goes_wrong(k):
    k.step('exceptions', '#include <cassert>\n#include <thread>\nint x = 1;\nint boom() { throw std::runtime_error("boom"); }\ntry {\n  boom();\n} catch (const std::exception& e) {\n  say("{}", e.what());\n}', stdout='boom\n')
    k.step('not caught: what was done before stays', 'x = 2;\nint before = 5;\nboom();\nint after = 6;', error=r'std::runtime_error: boom.*In\[3\], line 3.*boom\(\);')
    k.step('it does', 'x + before', '7')
    k.step('not what came after', 'after', error='CompileError.*after.*not declared')
    k.step('a variable whose new value throws keeps the old one', 'std::string x = std::to_string(boom());', error='boom')
    k.step('it does', 'x', '2')
    k.step('a type of the cell is thrown', 'struct Mine : std::logic_error { using std::logic_error::logic_error; };\nthrow Mine("own");', error='^Mine: own')
    k.step('caught in a later cell', 'try { throw Mine("b"); } catch (const Mine& m) { std::cout << m.what(); }', stdout='b')
    k.step('an error of the library', 'matmul(ones<double>({2, 2}), ones<double>({3, 1}));', error=r'ShapeError: matmul: \(2, 2\) @ \(3, 1\).*line 1')
    k.step('a compile error has its line, and nothing has run', 'x = 9;\n\nint fine = undeclared + 1;', error=r'CompileError: .undeclared. was not declared.*In\[11\], line 3: error.*int fine')
    k.step('in a function', 'int f(int a) {\n  int b = a;\n  return c;\n}', error='line 3: error')
    k.step('a missing ;', 'x = 1;\nint y = 2\nint z = 3;', error="CompileError: a ';' is missing.*line 2")
    k.step('a missing }', 'x = 1;\nif (x) {\n', error="CompileError: '{' is not closed.*line 2")
    k.step('a string without an end', 'std::string s = "abc;', error='CompileError')
    k.step('a missing return', 'int none() { }\nnone()', error='CompileError.*return')
    k.step('a header that is not there', '#include <not_there.hpp>', error='CompileError.*not_there')
    k.step('a function that is not there', 'int nowhere(int i);\nnowhere(1)', error=r'LinkError.*nowhere\(int\)')
    k.step('#if at the top', '#ifdef X\nint y = 1;\n#endif', error='CompileError.*#ifdef')
    k.step('the session is intact', 'int got = x;\nstd::cin >> got;\nstd::cin.eof()', 'true')
    afresh = ' line {}: {}.*C\\+\\+ was restarted.*run the cells again from the first'
    for name, line, code, error, stderr in (
            ('a failed assert', 2, '#include <cassert>\nassert(1 == 2);', 'abort', 'Assertion .1 == 2'),
            ('an index beyond the end', 2, 'std::vector<int> v(3);\nv[3]', 'abort', '__n < this->size'),
            ('an exception in a thread', 2, '#include <thread>\nstd::thread([] { throw std::runtime_error("there"); }).join();', 'abort', 'runtime_error.*there'),
            ('a null pointer', 2, 'volatile int* none = nullptr;\n*none = 1;', 'segmentation fault', ''),
            ('a function that calls itself without end', 2, 'int deep(int i) { return i < 0 ? 0 : deep(i + 1) + 1; }\ndeep(0)', 'the stack is full.*calls itself', ''),
            ('a division by zero', 1, 'std::raise(SIGFPE);  // as the processor does for 1 / 0', 'division', ''),
            ('exit', 1, 'std::exit(0);', 'the cell ended the program with exit code 0', '')):
        k.step(name, f'{SETUP}\n{code}', error='Crash: .*' + afresh.format(line + 1, error), stderr=stderr)
    k.step('after a crash the first cell is asked for', 'Tensor<double> t{1};', error='CompileError: .*run the first cell')
    k.step('a memory limit', f'{SETUP}\nstd::vector<std::vector<char>> all;\nfor (int i = 0; i < 100; ++i) all.emplace_back(1 << 28, \'x\');', error='bad_alloc: the 4 GiB')
    k.step('after it', 'all.clear();\nauto t = ones<double>({2});\nt', '[1. 1.]')
    k.manager.restart_kernel()
    k.client.wait_for_ready(timeout=60)
    k.step('after a restart the first cell is asked for', 'auto A = softmax(Tensor<double>{0, 0}, -1);', error='CompileError: .*run the first cell')
    k.step('then the cells above', f'{SETUP}\nsum(A)', error='CompileError: .A. was not declared.*a cell above')


def output_and_stopping(k):
    k.step('the order of printf, cout and fmt', 'std::printf("one ");\nstd::cout << "two ";\nfmt::print("√{}\\n", 3);', stdout='one two √3\n')
    k.step('stderr', 'std::cerr << "careful";', stderr='^careful$')
    got = k.run('say("before");\nshow(heatmap_svg(eye<double>(2)));')
    k.judge('a picture', got['stdout'] == 'before\n' and got['shown'][0]['image/svg+xml'].startswith('<svg') and got['shown'][0]['text/plain'], got)
    k.step('text that looks like a report of the host', 'std::cout << "\\x1e" "0123\\tdone\\tok\\nabc";', stdout='\x1e0123\tdone\tok\nabc')
    got = k.run('for (int i = 0; i < 200000; ++i) say("line {}", i);\nsay("end");')
    k.judge('200,000 lines come in batches and are cut', got['stdout'].count('\n') == 2001 and got['messages'] < 40 and not got['error'] and
            got['stdout'].startswith('line 0\n') and got['stdout'].endswith('line 1999\n[198,001 more lines are not shown]\n'), (got['messages'], got['stdout'][-99:]))
    got = k.run('for (int i = 0; i < 3000000; ++i) std::cout << i << \' \';')
    k.judge('a line without end is cut', len(got['stdout']) < 2 << 20 and 'not shown' in got['stdout'], len(got['stdout']))
    got = k.run('for (int i = 0; i < 1000; ++i) show("<svg/>");')
    k.judge('pictures are cut too', len(got['shown']) == 100 and 'not shown' in got['stdout'], (len(got['shown']), got['stdout']))
    k.step('the next cell is shown', 'say("here");', stdout='here\n')
    for name, code in (('a loop', 'while (true) {\n}'), ('a loop without braces', 'for (;;)\n  ;'), ('a do loop', 'do ; while (true);'),
                       ('recursion', 'int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }\nfib(60)'),
                       ('sleep', '#include <thread>\nstd::this_thread::sleep_for(std::chrono::seconds(60));'),
                       ('the library in a loop', 'for (;;) matmul(ones<double>({9, 9}), ones<double>({9, 9}));'),
                       ('endless output', 'for (;;) say("more");')):
        got = k.run('struct Loud { ~Loud() { std::cerr << "gone"; } };\nint state = 41;\nstate = 42;\nstd::cout << "begun" << std::endl;\n' + code, True)
        k.judge(f'stopped: {name}', got['error'].startswith('Interrupted: stopped') and got['seconds'] < 5, got)
        k.step('variables are kept', 'state', '42')
    got = k.run('#include <mutex>\nstd::mutex held;\nheld.lock();\nstd::cout << "begun" << std::endl;\nheld.lock();', True)
    k.judge('what cannot be stopped is ended', re.search('Interrupted: .*was ended.*C\\+\\+ was restarted', got['error']) and got['seconds'] < 6, got)
    pid = k.manager.provisioner.process.pid
    with open(f'/proc/{pid}/task/{pid}/children') as file:
        host = file.read().split()
    os.kill(pid, signal.SIGKILL)
    time.sleep(1)
    left = [p for p in host if os.path.exists(f'/proc/{p}') and ') Z ' not in open(f'/proc/{p}/stat').read()]
    k.judge('a kernel that is killed leaves no process', len(host) == 1 and not left, (host, left))


def notebooks(k):
    """What `make notebooks` takes for equal, and what it says of a notebook that fails; that opening one changes nothing."""
    info = k.client.kernel_info(reply=True, timeout=30)['content']['language_info']
    spec = k.manager.kernel_spec
    os.environ.update({name: value for name, value in spec.env.items() if name.startswith('XCPP20_')})
    for path in sys.argv[2:]:
        stored = nbformat.read(path, as_version=4).metadata
        k.judge(f'{os.path.basename(path)} names this kernel as it names itself', stored == {
            'kernelspec': {'display_name': spec.display_name, 'language': spec.language, 'name': 'xcpp20'}, 'language_info': info}, (stored, info))
    opened = subprocess.run([os.environ.get('TAPEHEAD_MAKE', 'make'), 'notebook', 'ARGS=--show-config-json'], capture_output=True, text=True)
    k.judge('`make notebook` trusts the notebooks, so that their pictures are shown',
            all(NotebookNotary().check_signature(nbformat.read(path, as_version=4)) for path in sys.argv[2:]), opened)
    k.judge('and keeps checkpoints in the build folder', os.environ['XCPP20_FOLDER'] + '/checkpoints"' in opened.stdout, opened)
    with tempfile.TemporaryDirectory(prefix='a b') as folder:
        for name in ('host', 'command'):
            os.symlink(os.path.join(os.environ['XCPP20_FOLDER'], name), os.path.join(folder, name))
        os.environ['XCPP20_FOLDER'], shown = folder, []
        session = Session(lambda kind, data: shown.append(data))
        session.run(SETUP + '\n1 + 1', 'In[1]')
        session.close()
    k.judge('a folder with a space in its name', shown == [{'text/plain': '2'}], shown)
    text, svg = 'x 0.681 [1. 2.]\n  3 4', "<svg><g class='a'><text x='1'>0.5</text></g></svg>"
    k.judge('one in the last digit is equal', run.same_text(text, 'x 0.682 [1. 2.] 3 4') and run.same_text('1.2e-07', '1.3e-07'))
    k.judge('two are not, nor other words, signs, lengths, integers', not any(run.same_text(text, text.replace(*pair)) for pair in (
        ('681', '683'), ('x', 'y'), ('0.', '-0.'), ('3 4', '3 4 5'), ('4', '5'), ('1.', 'nan'))))
    k.judge('a figure equals itself, and no other one', not run.figure_fault(svg, svg) and all(run.figure_fault(svg.replace(*pair), svg) for pair in (
        ('0.5', '0.7'), ("'a'", "'b'"), ("x='1'", "x='3'"), ("x='1'", "y='1'"), ('text', 'tspan'), ('</g>', '<b/></g>'), ('</g>', ''))))
    for name, cell, expected in (('throws', 'throw std::runtime_error("boom");', 'cell 2 failed.*boom.*cell 3 did not run'),
                                 ('does not compile', 'int x = y;', 'cell 2 failed.*line 1: error.*y.*not declared'),
                                 ('prints something else', 'say("{}", 3);', 'cell 2: the outputs are of the kinds')):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'broken.ipynb')
            nbformat.write(new_notebook(cells=[new_code_cell(SETUP), new_code_cell(cell), new_code_cell('1 + 1')]), path)
            ran = subprocess.run([sys.executable, run.__file__, 'check', path], capture_output=True, text=True)
        k.judge(f'a notebook that {name} fails', ran.returncode == 1 and re.search(expected, ran.stdout, re.S), ran)


SESSIONS = {f.__name__: f for f in (what_goes_wrong, output_and_stopping, what_a_cell_may_hold, what_is_defined_again, notebooks)}


def walk(name):
    k = Kernel()
    try:
        SESSIONS[name](k)
    except Exception as e:  # as a kernel that does not answer
        k.judge(f'{name} runs to its end', False, f'{type(e).__name__}: {e}')
    return k.close()


if __name__ == '__main__':
    with concurrent.futures.ProcessPoolExecutor(2) as pool:
        counts = list(pool.map(walk, [name for name in SESSIONS if sys.argv[1] in ('all', name)]))
    print(f'{sum(p for p, _ in counts)} passed, {sum(f for _, f in counts)} failed')
    sys.exit(not counts or any(f for _, f in counts))
