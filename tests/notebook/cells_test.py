"""What cells show, in which order, and what ends them. See tests/scripts/notebook.sh."""
import base64
import os
import queue
import re
import tempfile
import time
import unittest

from jupyter_client.manager import start_new_kernel

SECONDS = 120   # for a message: the machine may be busy


class Cells(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.manager, cls.client = start_new_kernel(kernel_name="kassette", startup_timeout=SECONDS)

    @classmethod
    def tearDownClass(cls):
        cls.client.stop_channels()
        cls.manager.shutdown_kernel(now=True)

    def run_cell(self, code, answers=None, when_running=None, stop=None):
        """The reply, and what was shown: (stdout | stderr, text), (value | display | update, forms), (error, name, value, lines)."""
        client, shown = self.client, []
        # stop_on_error: a cell that comes right behind an error would be left out, as the rest of "Run All" is.
        number = client.execute(code, allow_stdin=answers is not None, stop_on_error=False)
        while True:
            if answers:
                try:
                    client.get_stdin_msg(timeout=0.1)
                    client.input(answers.pop(0))
                except queue.Empty:
                    pass
            try:
                message = client.get_iopub_msg(timeout=0.1 if answers else SECONDS)
            except queue.Empty:
                continue
            if message["parent_header"].get("msg_id") != number:
                continue
            kind, content = message["msg_type"], message["content"]
            if kind == "stream":
                if shown and shown[-1][0] == content["name"]:
                    shown[-1] = (content["name"], shown[-1][1] + content["text"])
                else:
                    shown.append((content["name"], content["text"]))
                if when_running and when_running in content["text"]:
                    self.stopped, when_running = time.monotonic(), None
                    self.manager.interrupt_kernel()
            elif kind == "error":
                shown.append((kind, content["ename"], content["evalue"], content["traceback"]))
            elif kind in ("execute_result", "display_data", "update_display_data"):
                name = {"execute_result": "value", "display_data": "display", "update_display_data": "update"}[kind]
                shown.append((name, content["data"]))
            elif kind == "status" and content["execution_state"] == "idle":
                break
        self.ended = time.monotonic()
        while (reply := client.get_shell_msg(timeout=SECONDS))["parent_header"].get("msg_id") != number:
            pass
        return reply["content"], shown

    def shown(self, code, **options):
        reply, shown = self.run_cell(code, **options)
        self.assertEqual(reply["status"], "ok", shown)
        return shown

    def error(self, code, **options):
        reply, shown = self.run_cell(code, **options)
        self.assertEqual(reply["status"], "error", shown)
        self.assertEqual(shown[-1][0], "error")
        self.assertEqual([reply["ename"], reply["evalue"]], list(shown[-1][1:3]))
        return shown[-1][1:]

    def text(self, code):
        (kind, forms), = self.shown(code)
        self.assertEqual(kind, "value")
        return forms["text/plain"]

    # ---- values ----

    def test_only_the_last_expression_is_shown(self):
        self.assertEqual(self.text("1 + 1"), "2")
        self.assertEqual(self.text("1\n2\n3"), "3")
        self.assertEqual(self.shown("4;"), [])
        self.assertEqual(self.shown("int four = 4"), [])
        self.assertEqual(self.shown(""), [])
        self.assertEqual(self.shown("// nothing"), [])

    def test_what_is_there_from_the_start(self):
        self.assertEqual(self.text("np::sort({3, 1, 2})"), "[1. 2. 3.] (3,) float32 cpu")
        self.assertEqual(self.text("np::unique_counts({1, 1}).counts"), "[2] (1,) int64 cpu")
        self.assertEqual(self.text("nn::relu({-1., 1.})"), "[0. 1.] (2,) float32 cpu")
        self.assertEqual(self.shown('std::map<int, int> m{{1, 2}};\nstd::cout << m[1];'), [("stdout", "2")])
        self.assertEqual(self.error("np::argsrt({1})")[1], "no member named 'argsrt' in namespace 'kassette::numpy'; did you mean 'argsort'?")

    def test_a_cell_is_read_as_a_whole(self):
        self.assertEqual(self.text("int twice(int i)\n{\n  return i\n    + i;\n}\ntwice(4)"), "8")
        self.assertEqual(self.text("float sum = 1\n    + 2;\nsum"), "3.0")

    def test_a_cell_may_run_again(self):
        for _ in range(2):
            self.assertEqual(self.text("struct Point { int x; };\nint f(Point p) { return p.x; }\nauto g = [](int i) { return i + 1; };\n"
                                       "const int n = g(f({1}));\nn"), "2")

    def test_a_picture_is_png(self):
        (kind, forms), = self.shown("imshow(K::constant({{0, 1, 2}, {3, 4, 5}}))")
        picture = base64.b64decode(forms["image/png"])
        self.assertEqual(picture[:8], b"\x89PNG\r\n\x1a\n")
        # Three pixels of 80 a side make 240, the least that can be looked at.
        self.assertEqual([int.from_bytes(picture[at:at + 4], "big") for at in (16, 20)], [240, 160])

    def test_forms_of_ones_own_type(self):
        (_, forms), = self.shown('struct Money { int cents; };\n'
                                 'std::vector<std::pair<std::string, std::string>> mime_bundle_repr(const Money& m) {\n'
                                 '  return {{"text/html", "<b>" + std::to_string(m.cents) + "</b>"}, {"text/plain", "money"}};\n}\nMoney{5}')
        self.assertEqual(forms, {"text/html": "<b>5</b>", "text/plain": "money"})

    def test_display_shows_at_once_and_live_in_place(self):
        shown = self.shown("for (int i = 0; i < 2; ++i) display(i);\nLive live;\nfor (int i = 0; i < 3; ++i) live.show(i);")
        self.assertEqual([(kind, forms["text/plain"]) for kind, forms in shown],
                         [("display", "0"), ("display", "1"), ("display", "0"), ("update", "1"), ("update", "2")])

    # ---- streams ----

    def test_streams_keep_their_order(self):
        shown = self.shown('#include <cstdio>\n#include <cstdlib>\n#include <iostream>\n#include <thread>\n'
                           'std::cout << "a\\n"; std::cerr << "b\\n"; std::printf("c\\n"); std::fprintf(stderr, "d\\n");\n'
                           'display(1);\nstd::cout << "e\\n"; std::system("echo f; echo g >&2");\n'
                           'std::thread([] { std::cout << "h\\n"; }).join();\nstd::clog << "i\\n" << std::flush;\nstd::cout << "j";\n2')
        self.assertEqual([s if s[0] in ("stdout", "stderr") else s[1]["text/plain"] for s in shown],
                         [("stdout", "a\n"), ("stderr", "b\n"), ("stdout", "c\n"), ("stderr", "d\n"), "1", ("stdout", "e\nf\n"),
                          ("stderr", "g\n"), ("stdout", "h\n"), ("stderr", "i\n"), ("stdout", "j"), "2"])

    def test_much_output_is_whole(self):
        (_, text), = self.shown('#include <cstdio>\nfor (int i = 0; i < 100000; ++i) std::printf("%d\\n", i);')
        self.assertEqual(text.split(), [str(i) for i in range(100000)])

    def test_characters_of_several_bytes_are_whole(self):
        (_, text), = self.shown('#include <iostream>\nfor (int i = 0; i < 30000; ++i) std::cout << "a\u20ac\U0001f600";')
        self.assertEqual(text, "a\u20ac\U0001f600" * 30000)

    def test_what_a_thread_writes_after_its_cell_is_shown(self):
        self.shown("#include <atomic>\n#include <iostream>\n#include <thread>\nstd::atomic<bool> go{false};\n"
                   'std::thread late([] { while (!go) std::this_thread::yield(); std::cout << "late" << std::endl; });')
        self.client.execute("go = true;")
        text = ""
        while "late" not in text:
            message = self.client.get_iopub_msg(timeout=SECONDS)
            text += message["content"].get("text", "") if message["msg_type"] == "stream" else ""
        self.shown("late.join();")

    # ---- help while typing ----

    def answer(self, ask, *arguments):
        number = ask(*arguments)
        while (reply := self.client.get_shell_msg(timeout=SECONDS))["parent_header"].get("msg_id") != number:
            pass
        return reply["content"]

    def test_completion_replaces_what_was_typed(self):
        self.shown("Tensor completed = K::ones({2});")
        for code, match in (("K::softm", "softmax"), ("np::linalg::sv", "svdvals"), ("nn::gel", "gelu"), ("int a;\ncompleted.sha", "shape"), ("K::dot(complet", "completed")):
            got = self.answer(self.client.complete, code, len(code))
            self.assertIn(match, got["matches"])
            self.assertEqual((code + "|")[got["cursor_start"]:got["cursor_end"]], code[len(code) - len(re.split(r"\W", code)[-1]):])

    def test_documentation_at_the_cursor(self):
        self.shown("Tensor documented = K::ones({2});")
        for code, at, part in (("K::softmax(x)", 4, "Tensor softmax("), ("K::softmax(x, ", 14, "Tensor softmax("),
                               ("np::sort(x)", 5, "in ascending or descending order"), ("np::fft", 7, "rfft irfft"),
                               ("K::zeros({2, 3", 14, "zeros("), ("documented.item<int>()", 14, "item() const"),
                               ("documented", 3, "Tensor documented")):
            got = self.answer(self.client.inspect, code, at)
            self.assertTrue(got["found"], code)
            self.assertIn(part, got["data"]["text/plain"])
        self.assertFalse(self.answer(self.client.inspect, "1 + 1", 2)["found"])

    # ---- errors ----

    def test_an_error_names_cell_and_line(self):
        name, value, lines = self.error("int q = 1;\nK::sofmax(q)")
        self.assertEqual((name, value), ("CompileError", "no member named 'sofmax' in namespace 'kassette::backend'; did you mean 'softmax'?"))
        self.assertRegex(lines[0], r"In\[\d+\]:2:4: error: no member named")
        self.assertEqual(lines[1:3], ["K::sofmax(q)", "~~~^~~~~~"])
        self.assertRegex(lines[4], r"^kassette/backend/softmax\.h:\d+:\d+: note: 'softmax' declared here")

    def test_an_exception_has_its_type_text_and_line(self):
        name, value, lines = self.error("Tensor f(int n) {\n  return K::dot(K::ones({2, 3}), K::ones({n, 5}));\n}\nf(4)")
        self.assertEqual((name, value), ("kassette::ValueError", "dot: (2, 3) x (4, 5): inner dimensions differ, 3 against 4"))
        self.assertRegex(lines[0], r"In\[\d+\]:2: kassette::ValueError: dot")
        self.assertEqual(self.error("throw 3;")[:2], ("int", "an exception of type int"))

    def test_what_was_shown_before_an_error_stays(self):
        reply, shown = self.run_cell('#include <cstdio>\nint before = 7;\nstd::printf("x\\n");\nthrow 1;\nbefore = 8;')
        self.assertEqual((reply["status"], shown[0]), ("error", ("stdout", "x\n")))
        self.assertEqual(self.text("before"), "7")

    def test_a_cell_that_ends_early(self):
        self.assertEqual(self.error("int a = 1;\nfloat f(float x) {")[:2], ("CompileError", "the input ends inside of what begins here, with a { open"))

    # ---- what ends a cell, or the session ----

    def test_interrupt(self):
        for code in ("while (true) {}", "for (;;) K::dot(K::ones({8, 8}), K::ones({8, 8}));", "#include <unistd.h>\nsleep(1000);"):
            name, value, _ = self.error('#include <iostream>\nstd::cout << "go" << std::endl;\n' + code, when_running="go")
            self.assertEqual((name, value), ("Interrupted", "interrupted"))
            self.assertLess(self.ended - self.stopped, 10)  # not the seconds of a test that hangs; docs/notebook.md has figures
            self.assertEqual(self.text("1"), "1")
        # The command may not have begun yet, or its shell may be about to start it.
        for _ in range(5):
            self.assertIn(self.error('std::cout << "go" << std::endl;\n!sleep 1000', when_running="go")[1], ("ended by Interrupt", "interrupted"))

    def test_a_crash_is_survived(self):
        self.shown("int kept = 5;")
        self.assertRegex(self.error("int* p = nullptr; *p = 1;")[1], "^segmentation fault; the session goes on")
        self.assertEqual(self.text("kept"), "5")

    def test_the_end_of_the_session_is_said_and_a_new_one_begins(self):
        for code, how in (("exit", "exit(0)"), ("exit(3);", "exit(3)"), ("#include <csignal>\nraise(SIGKILL);", "signal 9, Killed")):
            self.shown("int lost = 5;")
            name, value, _ = self.error(code)
            self.assertEqual((name, value), ("SessionEnded", f"the session has ended by {how}; its variables are lost, and a new one has begun"))
            self.assertEqual(self.error("lost")[1], "use of undeclared identifier 'lost'")

    # ---- input ----

    def test_input_asks(self):
        (_, forms), = self.shown('#include <iostream>\n#include <cstdio>\nstd::string name, line;\nint n = 0;\nstd::cin >> name;\n'
                                 'std::getline(std::cin >> std::ws, line);\nstd::scanf("%d", &n);\nname + "|" + line + "|" + std::to_string(n)',
                                 answers=["a", "b c", "42"])
        self.assertEqual(forms["text/plain"], '"a|b c|42"')

    def test_without_a_front_end_that_answers_input_ends(self):
        shown = self.shown("#include <iostream>\nstd::string word;\nbool got = bool(std::cin >> word);\ngot")
        self.assertEqual(shown[-1][1]["text/plain"], "false")

    # ---- magics and commands ----

    def test_magics(self):
        (_, text), = self.shown("%%time\nint timed = 3;\n")
        self.assertRegex(text, r"^[\d.]+ [mu]?s of CPU time, [\d.]+ [mu]?s in all\n$")
        self.assertEqual(self.text("timed"), "3")
        self.assertRegex(self.text("%%timeit\nint i = timed"), r" a call \(least ")
        self.assertEqual(self.error("%%timeit\nint i = timed;\nnobody()")[1], "use of undeclared identifier 'nobody'")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "written.h")
            self.assertEqual(self.shown(f"%%file {path}\nint from_file = 9;\n"), [("stdout", f"wrote {path}\n")])
            with open(path) as file:
                self.assertEqual(file.read(), "int from_file = 9;\n")
            self.assertEqual(self.text(f'#include "{path}"\nfrom_file'), "9")
            self.assertEqual(self.shown(f"!cat {path}"), [("stdout", "int from_file = 9;\n")])

    def test_commands_of_the_prompt(self):
        self.shown("double kept_value = 1.5;\nkept_value * 2")
        self.assertEqual(self.text("_ + 1"), "4.0")
        self.assertEqual(self.shown(".type kept_value"), [("stdout", "double\n")])
        self.assertIn("kept_value", self.shown(".names")[0][1])
        self.assertEqual(self.error(".undoo")[1], "there is no command .undoo; did you mean .undo?")
        self.assertEqual(self.error("!exit 3")[1], "exit code 3")

    def test_undo(self):
        self.shown("int taken = 1;")
        self.assertEqual(self.shown(".undo"), [("stdout", "taken back: taken; what that line did besides stays done\n")])
        self.assertEqual(self.error("taken")[1], "use of undeclared identifier 'taken'")


if __name__ == "__main__":
    unittest.main()
