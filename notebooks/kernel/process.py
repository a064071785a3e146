"""The process that runs the cells: host.cpp, from this side."""

import os
import subprocess


class Process:
    """The host, and the mark behind which it puts what is no plain output."""

    def __init__(self, path, folder):
        self.mark = os.urandom(12).hex()
        down, self.commands = os.pipe()
        self.answers, up = os.pipe()

        def descriptors():  # in the child: 3 to read, 4 to write; first out of each other's way
            a, b = os.dup(down), os.dup(up)
            while a < 5:
                a = os.dup(a)
            while b < 5:
                b = os.dup(b)
            os.dup2(a, 3)
            os.dup2(b, 4)
            os.closerange(5, 256)

        self.child = subprocess.Popen([path, self.mark, folder], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, start_new_session=True, close_fds=False,
                                      preexec_fn=descriptors)
        os.close(down)
        os.close(up)
        self.out, self.err = self.child.stdout.fileno(), self.child.stderr.fileno()
        for fd in (self.out, self.err, self.answers):
            os.set_blocking(fd, False)

    def close(self):
        if self.child.poll() is None:
            self.child.kill()
        self.child.wait()
        for fd in (self.commands, self.answers):
            os.close(fd)
        self.child.stdout.close()
        self.child.stderr.close()
