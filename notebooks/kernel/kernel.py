"""The Jupyter kernel xcpp20: C++20 in cells. This is Jupyter's side of it; session.py is the side of C++.

`kernel.py install FOLDER` describes it to Jupyter; the command that compiles a cell is in FOLDER/command.
"""

import json
import os
import signal
import sys

from ipykernel.kernelapp import IPKernelApp
from ipykernel.kernelbase import Kernel

from session import Failure, Session


class Cpp(Kernel):
    implementation = 'xcpp20'
    implementation_version = '1'
    banner = 'C++20, one cell at a time, with tapehead'
    language_info = {'name': 'C++', 'version': '20', 'mimetype': 'text/x-c++src', 'file_extension': '.cpp',
                     'codemirror_mode': 'text/x-c++src', 'pygments_lexer': 'c++'}

    def __init__(self, **more):
        super().__init__(**more)
        self.cpp = Session(self.show)

    def show(self, kind, data):
        if self.silent:
            return
        if kind in ('stdout', 'stderr'):
            self.send_response(self.iopub_socket, 'stream', {'name': kind, 'text': data})
            return
        content = {'data': {'text/plain': self.alternative(data), **data}, 'metadata': {}}
        if kind == 'result':
            content['execution_count'] = self.execution_count
        self.send_response(self.iopub_socket, 'execute_result' if kind == 'result' else 'display_data', content)

    @staticmethod
    def alternative(data):
        """The title and description of a figure, for readers who do not see it."""
        svg = data.get('image/svg+xml', '')
        part = lambda tag: svg.partition(f'<{tag}>')[2].partition(f'</{tag}>')[0]
        return ': '.join(filter(None, (part('title'), part('desc')))) or '(a figure)'

    def do_execute(self, code, silent, store_history=True, user_expressions=None, allow_stdin=False, **_):
        self.silent = silent
        reply = {'status': 'ok', 'execution_count': self.execution_count}
        before = signal.signal(signal.SIGINT, lambda *_: self.cpp.interrupt())
        try:
            self.cpp.run(code, f'In[{self.execution_count}]')
        except Failure as e:
            error = {'ename': e.name, 'evalue': e.value, 'traceback': e.details or [f'{e.name}: {e.value}']}
            if not silent:
                self.send_response(self.iopub_socket, 'error', error)
            return {**reply, **error, 'status': 'error'}
        finally:
            signal.signal(signal.SIGINT, before)
        return {**reply, 'payload': [], 'user_expressions': {}}

    def do_shutdown(self, restart):
        self.cpp.close()
        return {'status': 'ok', 'restart': restart}


def install(folder):
    folder = os.path.abspath(folder)
    spec = os.path.join(folder, 'share', 'jupyter', 'kernels', 'xcpp20')
    for needed in (spec, os.path.join(folder, 'home', 'ipython')):
        os.makedirs(needed, exist_ok=True)
    with open(os.path.join(spec, 'kernel.json'), 'w') as file:
        json.dump({'argv': [sys.executable, os.path.abspath(__file__), '-f', '{connection_file}', '--log-level=ERROR'],
                   'display_name': 'C++20', 'language': 'C++', 'interrupt_mode': 'signal',  # both as in the notebooks
                   'env': {'XCPP20_FOLDER': folder, 'XCPP20_TOP': os.getcwd(),
                           'IPYTHONDIR': os.path.join(folder, 'home', 'ipython'), 'PYTHONDONTWRITEBYTECODE': '1'}}, file, indent=1)


if __name__ == '__main__':
    if sys.argv[1:2] == ['install']:
        install(sys.argv[2])
    else:
        IPKernelApp.launch_instance(kernel_class=Cpp)
