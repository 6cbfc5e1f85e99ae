"""The Jupyter kernel of kassette: cells of C++, run by a Session."""
import asyncio
import base64
import codecs
import fnmatch
import os
import re
import signal

from ipykernel.kernelbase import Kernel

from .session import Ended, Session

NAME = re.compile(r"[A-Za-z_]\w*(?:(?:::|\.|->)[A-Za-z_]\w*)*")


def bundle(fields):
    """The forms of a value as Jupyter wants them: text, or base64."""
    text = ("text/", "image/svg", "application/json", "application/javascript")
    return {mime: data.decode("utf-8", "replace") if mime.startswith(text) else base64.b64encode(data).decode()
            for mime, data in fields if "/" in mime}


class KassetteKernel(Kernel):
    implementation = "kassette"
    implementation_version = os.environ.get("KASSETTE_VERSION", "")
    banner = "kassette: C++ whose cells run at once"
    language_info = {"name": "c++", "version": "17", "mimetype": "text/x-c++src", "codemirror_mode": "text/x-c++src",
                     "pygments_lexer": "cpp", "file_extension": ".cpp"}
    command = ()      # of a session
    first = None      # a Session that was started early

    def __init__(self, **options):
        super().__init__(**options)
        self.session_ = KassetteKernel.first or Session(self.command)
        self.history = []  # (session, number, code)
        self.decoders, self.silent, self.asks, self.pages = {}, True, False, []

    # ---- cells ----

    def do_execute(self, code, silent, store_history=True, user_expressions=None, allow_stdin=False, **_):
        self.silent, self._allow_stdin, self.pages = silent, allow_stdin, []
        if store_history and not silent:
            self.history.append((0, self.execution_count, code))
        old = self.handle_interrupts()
        self.watch(False)
        try:
            return self.answer(code)
        finally:
            self.silent = False   # what threads of the session write from now on
            self.watch(True)
            if old is not None:
                signal.signal(signal.SIGINT, old)

    def watch(self, on):
        """Between cells, shows what threads and child processes of the session write."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return
        for stream in self.session_.streams:
            if on:
                loop.add_reader(stream, self.on_idle_output)
            else:
                loop.remove_reader(stream)

    def on_idle_output(self):
        if self.session_.process.poll() is not None:
            self.watch(False)   # the next cell says that it has ended
        self.session_.read_streams(self.on_output)

    def handle_interrupts(self):
        """While a cell runs, an interrupt is the session's, but for the question that the cell waits for."""
        def on_interrupt(number, frame):
            if self.asks:
                raise KeyboardInterrupt
            self.session_.interrupt()
        try:
            return signal.signal(signal.SIGINT, on_interrupt)
        except ValueError:  # not the main thread
            return None

    def answer(self, cell):
        magic, code = self.magic(cell)
        if magic == "%%file":
            return self.write_file(*code)
        try:
            done = dict(self.session_.ask("run", self.on_output, self.on_event, code=code, file=f"In[{self.execution_count}]"))
        except Ended:
            return self.session_ended()
        status = done["status"].decode()
        if magic == "%%time":
            wall, cpu = float(done["wall"]), float(done["cpu"])
            self.stream("stdout", f"{self.time(cpu)} of CPU time, {self.time(wall)} in all\n")
        if status == "exit":
            return self.session_ended()
        if status == "ok":
            return {"status": "ok", "execution_count": self.execution_count, "payload": self.pages, "user_expressions": {}}
        text = {name: value.decode("utf-8", "replace") for name, value in done.items()}
        return self.error(text["name"], text["value"], text["text"].rstrip("\n").split("\n"))

    def session_ended(self):
        code = self.session_.end()
        self.session_ = Session(self.command)
        how = f"exit({code})" if code >= 0 else f"signal {-code}, {signal.strsignal(-code)}"
        return self.error("SessionEnded", f"the session has ended by {how}; its variables are lost, and a new one has begun", [])

    def error(self, name, value, lines):
        head, *rest = lines or [f"{name}: {value}"]
        content = {"ename": name, "evalue": value, "traceback": [f"\033[1;31m{head}\033[0m", *rest]}
        self.publish("error", content)
        return {"status": "error", "execution_count": self.execution_count, **content}

    # ---- what a cell shows ----

    def publish(self, kind, content):
        if not self.silent:
            self.send_response(self.iopub_socket, kind, content)

    def stream(self, name, text):
        if text:
            self.publish("stream", {"name": name, "text": text})

    def on_output(self, name, data):
        """A character may come in two pieces."""
        decoder = self.decoders.setdefault(name, codecs.getincrementaldecoder("utf-8")("replace"))
        self.stream(name, decoder.decode(data))

    def on_event(self, kind, fields):
        if kind == "input":
            return self.answer_input()
        if kind == "page":
            self.pages.append({"source": "page", "data": {"text/plain": dict(fields)["text"].decode()}, "start": 0})
            return None
        content = {"data": bundle(fields), "metadata": {}}
        if kind == "clear":
            self.publish("clear_output", {"wait": True})
        elif kind == "value":
            self.publish("execute_result", {**content, "execution_count": self.execution_count})
        else:
            number = dict(fields)["id"].decode()
            content["transient"] = {"display_id": f"{self.session_.process.pid}-{number}"} if number != "0" else {}
            self.publish("display_data" if kind == "display" else "update_display_data", content)
        self.session_.send("ack")

    def answer_input(self):
        if not self._allow_stdin:
            self.stream("stderr", "there is nobody to ask for input\n")
            return self.session_.send("end")
        self.asks = True
        try:
            line = self.raw_input("")
            self.asks = False
            self.session_.send("line", text=line)
        except KeyboardInterrupt:
            self.asks = False
            self.session_.interrupt()
            self.session_.send("end")
        except EOFError:
            self.session_.send("end")
        finally:
            self.asks = False

    # ---- magics ----

    @staticmethod
    def magic(cell):
        """The magic of a cell and what it is about; lines keep their numbers."""
        first, _, body = cell.partition("\n")
        words = first.split(maxsplit=1)
        if not words or words[0] not in ("%%time", "%%timeit", "%%file"):
            return "", cell
        rest = words[1] if len(words) > 1 else ""
        if words[0] == "%%file":
            return words[0], (rest, body)
        body = rest + "\n" + body
        return words[0], f"kassette::timeit([&] {{{body}\n;}})" if words[0] == "%%timeit" else body

    @staticmethod
    def time(seconds):
        for unit, factor in ("s", 1), ("ms", 1e3), ("us", 1e6):
            if seconds * factor >= 1:
                break
        return f"{seconds * factor:.3g} {unit}"

    def write_file(self, name, text):
        if not name:
            return self.error("ValueError", "%%file takes the name of a file", [])
        path = os.path.join(self.session_.folder(), os.path.expanduser(name.strip()))
        try:
            with open(path, "w") as file:
                file.write(text + ("" if text.endswith("\n") or not text else "\n"))
        except OSError as e:
            return self.error("OSError", str(e), [])
        self.stream("stdout", f"wrote {name.strip()}\n")
        return {"status": "ok", "execution_count": self.execution_count, "payload": [], "user_expressions": {}}

    # ---- help while typing ----

    def ask(self, kind, **fields):
        try:
            return self.session_.ask(kind, self.on_output, lambda what, got: self.session_.send("ack"), **fields)
        except Ended:
            return []   # the next cell says so

    def do_complete(self, code, cursor_pos):
        before = code[:cursor_pos].rpartition("\n")[2]
        found = self.ask("complete", before=before)
        typed = int(found[0][0]) if found else 0
        return {"status": "ok", "matches": [name.decode() for _, name in found], "cursor_start": cursor_pos - typed,
                "cursor_end": cursor_pos, "metadata": {}}

    def do_inspect(self, code, cursor_pos, detail_level=0, omit_sections=()):
        name = name_at(code, cursor_pos)
        text = dict(self.ask("inspect", name=name)).get("text", b"").decode() if name else ""
        return {"status": "ok", "found": bool(text), "data": {"text/plain": text} if text else {}, "metadata": {}}

    def do_is_complete(self, code):
        if code.startswith("%%"):
            return {"status": "complete" if code.endswith("\n\n") else "incomplete", "indent": ""}
        status = dict(self.ask("is_complete", code=code)).get("status", b"unknown").decode()
        return {"status": status, **({"indent": "  "} if status == "incomplete" else {})}

    def do_history(self, hist_access_type, output, raw, session=None, start=None, stop=None, n=None, pattern=None, unique=False):
        """What this kernel has run; front ends keep what earlier ones did."""
        found = self.history
        if hist_access_type == "range":
            found = [h for h in found if (start or 0) <= h[1] and (stop is None or h[1] < stop)]
        if hist_access_type == "search":
            found = [h for h in found if fnmatch.fnmatch(h[2], pattern or "*")]
        if unique:
            found = [h for i, h in enumerate(found) if all(h[2] != later[2] for later in found[i + 1:])]
        if hist_access_type in ("tail", "search") and n:
            found = found[-n:]
        return {"status": "ok", "history": [(s, i, (code, None)) if output else (s, i, code) for s, i, code in found]}

    def do_shutdown(self, restart):
        self.session_.interrupt()
        self.session_.end()
        return {"status": "ok", "restart": restart}


def name_at(code, at):
    """The name that the cursor is in or right behind, or that of the call in whose arguments it is."""
    for match in NAME.finditer(code):
        if match.start() <= at <= match.end():
            return match.group()
    closed = 0
    for i in range(at - 1, -1, -1):
        if code[i] in ")]}":
            closed += 1
        elif code[i] in "([{" and closed:
            closed -= 1
        elif code[i] == "(":
            before = code[:i].rstrip()
            return name_at(before, len(before)) if before else ""
    return ""
