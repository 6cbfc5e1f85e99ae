// tools/repl/serve.h - a session that a front end drives over a channel: the kernel of a notebook.
#pragma once
#include <string>

namespace repl {

/// Serves requests on descriptor `channel` until it is closed, and ends the process then.
///
/// Requests:   run {code, file}, complete {before}, inspect {name}, is_complete {code}, line {text} or end to `input`,
///             ack to what is shown.
/// Events:     ready; value, display, update and clear {id, mime type: bytes}, page {text}, input, each while a cell
/// runs;
///             done ends the answer to a request. Of run: {status: ok, error or exit, name, value, line, text, wall,
///             cpu}.
[[noreturn]] void serve(int channel, const std::string& include_dir);

}  // namespace repl
