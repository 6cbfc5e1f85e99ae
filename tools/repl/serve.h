// tools/repl/serve.h - a session that a front end drives over a channel: the kernel of a notebook.
#pragma once
#include <string>

namespace repl {

/// Serves requests on descriptor `channel` until it is closed, and ends the process then.
///
/// Requests: run {code, file}, complete {before}, inspect {name} and is_complete {code}, each answered by `done`.
/// Events: `ready`, once; then while a cell runs `value`, `display`, `update` and `clear` {id, mime type: bytes}, each
/// answered by `ack`; `input`, answered by `line` {text} or `end`; and `page` {text}, not answered.
/// `done` of run has {status: ok, error or exit, wall, cpu}, and of an error {name, value, line, text}.
[[noreturn]] void serve(int channel, const std::string& include_dir);

}  // namespace repl
