"""A session of C++: the process of kassette's REPL, which is served over a channel, and its standard streams."""
import os
import select
import signal
import socket
import subprocess


class Ended(Exception):
    """The process is gone."""


class Session:
    """The records of the channel are those of tools/repl/channel.h, and what they mean is in tools/repl/serve.h."""

    def __init__(self, command):
        """Starts the process: `command` with the number of the channel added. It is ready once a request is answered."""
        self.channel, theirs = socket.socketpair()
        # A group of its own: an interrupt reaches it only through interrupt().
        self.process = subprocess.Popen([*command, str(theirs.fileno())], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, pass_fds=[theirs.fileno()], start_new_session=True)
        theirs.close()
        self.received, self.ready = bytearray(), False
        self.streams = {self.process.stdout.fileno(): "stdout", self.process.stderr.fileno(): "stderr"}
        for stream in self.streams:
            os.set_blocking(stream, False)

    def ask(self, kind, on_output, on_event=None, **fields):
        """Sends a request and returns the fields of its answer. Meanwhile on_output gets (name, bytes) of the streams, and
        on_event (kind, fields) of other records. Throws Ended."""
        if not self.ready:
            self._next(on_output)
            self.ready = True
        self.send(kind, **fields)
        while True:
            what, got = self._next(on_output)
            if what == "done":
                return got
            on_event(what, got)

    def send(self, kind, **fields):
        out = bytearray(f"{kind} {len(fields)}\n".encode())
        for name, value in fields.items():
            value = value.encode("utf-8", "surrogatepass")
            out += f"{name} {len(value)}\n".encode() + value + b"\n"
        try:
            self.channel.sendall(out)
        except OSError:
            raise Ended from None

    def interrupt(self):
        """As Ctrl-C at a terminal: of all processes of the group."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGINT)

    def read_streams(self, on_output):
        """Hands on what has been written up to now."""
        for stream, name in self.streams.items():
            while data := self._read(stream):
                on_output(name, data)

    def folder(self):
        """Where the process is."""
        try:
            return os.readlink(f"/proc/{self.process.pid}/cwd")
        except OSError:
            return os.getcwd()

    def end(self):
        """Ends the process, and returns its exit code: negative for a signal."""
        self.channel.close()
        try:
            self.process.wait(2)
        except subprocess.TimeoutExpired:
            self.process.kill()
        code = self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()
        return code

    @staticmethod
    def _read(stream):
        try:
            return os.read(stream, 1 << 16)
        except (BlockingIOError, OSError):
            return b""

    def _next(self, on_output):
        """The next record, as its kind and fields. What was written before it has been handed on by then."""
        while True:
            if record := self._parsed():
                self.read_streams(on_output)
                return record
            # A signal that comes right before the wait begins does not end it, and its handler, in Python, runs only behind it.
            readable, _, _ = select.select([self.channel, *self.streams], [], [], 0.1)
            for stream in readable:
                if stream is self.channel:
                    data = self.channel.recv(1 << 16)
                    if not data:
                        self.read_streams(on_output)
                        raise Ended
                    self.received += data
                elif data := self._read(stream):
                    on_output(self.streams[stream], data)
                elif self.process.poll() is not None:
                    raise Ended

    def _parsed(self):
        """The first record of what was received, once it is whole."""
        at, heads = 0, []

        def head():
            nonlocal at
            end = self.received.find(b"\n", at)
            if end < 0:
                return None
            name, _, size = self.received[at:end].rpartition(b" ")
            at = end + 1
            return name.decode(), int(size)

        first = head()
        if first is None:
            return None
        kind, count = first
        for _ in range(count):
            field = head()
            if field is None or at + field[1] + 1 > len(self.received):
                return None
            name, size = field
            heads.append((name, bytes(self.received[at:at + size])))
            at += size + 1
        del self.received[:at]
        return kind, heads
