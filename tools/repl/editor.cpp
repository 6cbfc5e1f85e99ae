// tools/repl/editor.cpp - libedit's line.
#include "tools/repl/editor.h"

#include <histedit.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>

#include "tools/repl/docs.h"
#include "tools/repl/session.h"

namespace repl {

struct Editor::Impl {
  EditLine* line = nullptr;
  History* history = nullptr;
  HistEvent event{};
  std::string file, prompt;
  Complete complete;
  Page page;
  bool cancelled = false;
};

namespace {

Editor::Page* pages;
Editor::Complete* completer;  // libedit hands its own handle to what it calls
bool* cancelled;
std::string* prompt_text;

constexpr char kEscape = '\1';  // before and after what takes no place in a prompt
char* prompt_of(EditLine*) { return prompt_text->data(); }

unsigned char on_cancel(EditLine* line, int) {
  *cancelled = true;
  const LineInfo* info = el_line(line);
  el_cursor(line, static_cast<int>(info->lastchar - info->cursor));
  el_deletestr(line, static_cast<int>(info->lastchar - info->buffer));
  std::fputs("^C\n", stdout);
  return CC_NEWLINE;
}

/// A terminal that brackets what is pasted: it comes as one text, which Enter runs as a whole.
unsigned char on_paste(EditLine* line, int) {
  static const std::string kEnd = "\033[201~";
  std::string text;
  for (char c; (text.size() < kEnd.size() || text.compare(text.size() - kEnd.size(), kEnd.size(), kEnd) != 0);) {
    if (el_getc(line, &c) != 1) return CC_EOF;
    text += c == '\r' ? '\n' : c;
  }
  text.resize(text.size() - kEnd.size());
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return el_insertstr(line, text.c_str()) ? CC_ERROR : CC_REFRESH;
}

unsigned char on_suspend(EditLine*, int) {
  raise(SIGTSTP);
  return CC_REFRESH;
}

std::size_t columns() {
  winsize size{};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

void show_columns(const std::vector<std::pair<std::string, std::string>>& found) {
  std::size_t widest = 0;
  for (const auto& f : found) widest = std::max(widest, f.second.size() + 2);
  const std::size_t across = std::max<std::size_t>(1, columns() / widest);
  const std::size_t rows = (found.size() + across - 1) / across;
  std::fputc('\n', stdout);
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t i = r; i < found.size(); i += rows)
      std::printf("%-*s", i + rows < found.size() ? static_cast<int>(widest) : 0, found[i].second.c_str());
    std::fputc('\n', stdout);
  }
  std::fflush(stdout);
}

unsigned char on_tab(EditLine* line, int) {
  const LineInfo* info = el_line(line);
  std::string before(info->buffer, static_cast<std::size_t>(info->cursor - info->buffer));
  if (before.find_first_not_of(" \t") == std::string::npos) return el_insertstr(line, "  ") ? CC_ERROR : CC_REFRESH;
  auto found = (*completer)(before);
  if (found.empty()) {
    const std::string page = (*pages)(before);
    if (page.empty()) return CC_REFRESH_BEEP;
    std::printf("\n%s", wrapped(page, columns()).c_str());
    std::fflush(stdout);
    return CC_REDISPLAY;
  }
  std::string common = found[0].first;
  for (const auto& f : found) {
    std::size_t n = 0;
    while (n < common.size() && n < f.first.size() && common[n] == f.first[n]) ++n;
    common.resize(n);
  }
  if (!common.empty()) return el_insertstr(line, common.c_str()) ? CC_ERROR : CC_REFRESH;
  if (found.size() == 1) return CC_REFRESH;
  show_columns(found);
  return CC_REDISPLAY;
}

}  // namespace

Editor::Editor(const std::string& history_file, Complete complete, Page page) : impl_(new Impl) {
  impl_->file = history_file;
  impl_->complete = std::move(complete);
  impl_->page = std::move(page);
  pages = &impl_->page;
  completer = &impl_->complete;
  cancelled = &impl_->cancelled;
  prompt_text = &impl_->prompt;
  impl_->history = history_init();
  history(impl_->history, &impl_->event, H_SETSIZE, 5000);
  history(impl_->history, &impl_->event, H_SETUNIQUE, 1);
  if (!impl_->file.empty()) history(impl_->history, &impl_->event, H_LOAD, impl_->file.c_str());
  impl_->line = el_init("kassette", stdin, stdout, stderr);
  el_set(impl_->line, EL_PROMPT_ESC, prompt_of, kEscape);
  el_set(impl_->line, EL_EDITOR, "emacs");
  el_set(impl_->line, EL_HIST, history, impl_->history);
  el_set(impl_->line, EL_ADDFN, "kassette-tab", "completes a name", on_tab);
  el_set(impl_->line, EL_ADDFN, "kassette-cancel", "cancels the line", on_cancel);
  el_set(impl_->line, EL_ADDFN, "kassette-suspend", "stops the program", on_suspend);
  el_set(impl_->line, EL_ADDFN, "kassette-paste", "takes what is pasted", on_paste);
  el_set(impl_->line, EL_BIND, "\t", "kassette-tab", nullptr);
  el_set(impl_->line, EL_BIND, "\033[200~", "kassette-paste", nullptr);
  el_set(impl_->line, EL_BIND, "^R", "em-inc-search-prev", nullptr);
  // While a line is typed Ctrl-C is a key; while it runs it is a signal.
  el_set(impl_->line, EL_SETTY, "-d", "-isig", nullptr);
  el_set(impl_->line, EL_BIND, "^C", "kassette-cancel", nullptr);
  el_set(impl_->line, EL_BIND, "^Z", "kassette-suspend", nullptr);
  el_set(impl_->line, EL_BIND, "\033[1~", "ed-move-to-beg", nullptr);
  el_set(impl_->line, EL_BIND, "\033[4~", "ed-move-to-end", nullptr);
  el_set(impl_->line, EL_BIND, "\033[3~", "ed-delete-next-char", nullptr);
  el_set(impl_->line, EL_BIND, "\033[1;5C", "em-next-word", nullptr);
  el_set(impl_->line, EL_BIND, "\033[1;5D", "ed-prev-word", nullptr);
}

Editor::~Editor() {
  el_end(impl_->line);
  history_end(impl_->history);
  delete impl_;
}

Editor::Got Editor::read(const std::string& prompt, std::string* line) {
  impl_->prompt = prompt;
  if (shows_colours(STDOUT_FILENO) && !prompt.empty()) {
    const std::string mark(1, kEscape);
    // libedit leaves out what stands behind the last character.
    impl_->prompt =
        mark + "\033[32m" + mark + prompt.substr(0, prompt.size() - 1) + mark + "\033[0m" + mark + prompt.back();
  }
  impl_->cancelled = false;
  int count = 0;
  // Before libedit writes the prompt: whoever answers it must not find that Ctrl-C is still a signal.
  el_set(impl_->line, EL_PREP_TERM, 1);
  std::fputs("\033[?2004h", stdout);
  std::fflush(stdout);
  const char* text = el_gets(impl_->line, &count);
  std::fputs("\033[?2004l", stdout);
  std::fflush(stdout);
  if (impl_->cancelled) return kCancelled;
  if (!text || count <= 0) return kEnd;
  line->assign(text, static_cast<std::size_t>(count));
  while (!line->empty() && (line->back() == '\n' || line->back() == '\r')) line->pop_back();
  return kLine;
}

void Editor::remember(const std::string& input) {
  std::string one = input;
  while (!one.empty() && one.back() == '\n') one.pop_back();
  if (one.empty()) return;
  history(impl_->history, &impl_->event, H_ENTER, one.c_str());
  if (impl_->file.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(impl_->file).parent_path(), error);
  mode_t mask = umask(077);
  history(impl_->history, &impl_->event, H_SAVE, impl_->file.c_str());
  umask(mask);
}

}  // namespace repl
