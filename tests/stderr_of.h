// tests/stderr_of.h - capturing stderr.
#pragma once
#include <unistd.h>

#include <cstdio>
#include <string>

namespace kassette::test {

/// The text that f writes to stderr.
template <class F>
std::string stderr_of(F f) {
  std::fflush(stderr);
  std::FILE* file = std::tmpfile();
  int kept = dup(2);
  dup2(fileno(file), 2);
  f();
  std::fflush(stderr);
  dup2(kept, 2);
  close(kept);
  std::rewind(file);
  std::string text(4096, '\0');
  text.resize(std::fread(&text[0], 1, text.size(), file));
  std::fclose(file);
  return text;
}

}  // namespace kassette::test
