"""The Jupyter kernel xcpp20: C++20 in cells. Jupyter's side of it; session.py has C++'s."""

import atexit
import os
import signal
import sys

sys.dont_write_bytecode = True
from ipykernel.kernelapp import IPKernelApp
from ipykernel.kernelbase import Kernel

from session import Failure, Session


class Cpp(Kernel):
    implementation = 'xcpp20'
    implementation_version = '0.1'
    banner = 'C++20, a cell at a time, with tapehead'
    language_info = {'name': 'C++', 'version': '20', 'mimetype': 'text/x-c++src', 'file_extension': '.cpp',
                     'codemirror_mode': 'text/x-c++src', 'pygments_lexer': 'c++'}

    def __init__(self, **more):
        super().__init__(**more)
        self.session_cpp = Session(self.show)
        atexit.register(self.session_cpp.close)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # so that what atexit knows of is done

    def show(self, kind, data):
        if self.silent:
            return
        if kind in ('stdout', 'stderr'):
            if data:
                self.send_response(self.iopub_socket, 'stream', {'name': kind, 'text': data})
            return
        content = {'data': {'text/plain': self.alternative(data), **data}, 'metadata': {}}
        if kind == 'result':
            content['execution_count'] = self.execution_count
            self.send_response(self.iopub_socket, 'execute_result', content)
        else:
            self.send_response(self.iopub_socket, 'display_data', content)

    @staticmethod
    def alternative(data):
        """For those who do not see the figure: its title and description."""
        svg = data.get('image/svg+xml', '')
        part = lambda tag: svg.partition(f'<{tag}>')[2].partition(f'</{tag}>')[0]
        return ': '.join(filter(None, (part('title'), part('desc')))) or '(a figure)'

    def do_execute(self, code, silent, store_history=True, user_expressions=None, allow_stdin=False, **_):
        self.silent = silent
        before = signal.signal(signal.SIGINT, lambda *_: self.session_cpp.interrupt())
        try:
            self.session_cpp.run(code, f'In[{self.execution_count}]')
        except Failure as e:
            error = {'ename': e.name, 'evalue': e.value, 'traceback': e.details or [f'{e.name}: {e.value}']}
            if not silent:
                self.send_response(self.iopub_socket, 'error', error)
            return {'status': 'error', 'execution_count': self.execution_count, **error}
        finally:
            signal.signal(signal.SIGINT, before)
        return {'status': 'ok', 'execution_count': self.execution_count, 'payload': [], 'user_expressions': {}}

    def do_shutdown(self, restart):
        self.session_cpp.close()
        return {'status': 'ok', 'restart': restart}


class App(IPKernelApp):
    """Writes nothing into the reader's home."""

    def init_crash_handler(self):
        pass


if __name__ == '__main__':
    os.environ.setdefault('IPYTHONDIR', os.path.join(os.environ.get('TMPDIR', '/tmp'), 'xcpp20-ipython'))
    App.launch_instance(kernel_class=Cpp)
