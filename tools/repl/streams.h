// tools/repl/streams.h - the standard streams of a session that is served: two pipes that keep their order, and an
// input that asks.
#pragma once
#include <functional>
#include <optional>
#include <string>

namespace repl {

/// Makes stdout, stderr and the streams of C++ write to descriptors 1 and 2 so that whoever reads these pipes at once
/// sees what is written in the order in which it was.
void order_streams();
/// Writes out what is buffered.
void flush_streams();

/// Makes stdin and std::cin call ask() for each line that is read; nullopt is the end of the input.
void ask_for_input(std::function<std::optional<std::string>()> ask);
/// Forgets what was left of a line, and the end of the input.
void forget_input();

}  // namespace repl
