// tools/repl/messages.h - what clang has to say of an input.
#pragma once
#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "clang/Basic/DiagnosticOptions.h"
#include "clang/Basic/SourceManager.h"
#include "clang/Frontend/TextDiagnosticPrinter.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/raw_ostream.h"

namespace repl {

/// Errors as they are shown, kept until it is known whether this attempt is the one that counts.
class Messages : public clang::DiagnosticConsumer {
 public:
  explicit Messages(clang::DiagnosticOptions* options) : stream_(text_), printer_(stream_, options) {}
  void BeginSourceFile(const clang::LangOptions& options, const clang::Preprocessor* preprocessor) override {
    printer_.BeginSourceFile(options, preprocessor);
  }
  void EndSourceFile() override { printer_.EndSourceFile(); }
  void HandleDiagnostic(clang::DiagnosticsEngine::Level level, const clang::Diagnostic& info) override {
    DiagnosticConsumer::HandleDiagnostic(level, info);
    if (level == clang::DiagnosticsEngine::Warning && errors_) return;
    if (level >= clang::DiagnosticsEngine::Error) ++errors_;
    if (errors_ > 1) {  // the rest mostly follows from the first
      if (on_error) on_error(/*first=*/false);
      return;
    }
    if (level >= clang::DiagnosticsEngine::Error) converts_ = begins(info, "no viable conversion");
    if (level == clang::DiagnosticsEngine::Note && (repeats_error(info) || (converts_ && is_candidate(info)))) return;
    if (level == clang::DiagnosticsEngine::Note && is_declaration_of_system(info)) {
      stream_ << kOfSystem << '\n';
      return;
    }
    printer_.HandleDiagnostic(level, info);
    if (on_error && errors_) on_error(/*first=*/true);
  }
  /// Called after the first error and each of its notes, and at the second error, from which on nothing is added.
  std::function<void(bool first)> on_error;
  const std::string& text() {
    stream_.flush();
    return text_;
  }
  /// Messages as a terminal shows them: what they are and where they point to in colours.
  static std::string coloured(const std::string& text) {
    static const std::pair<const char*, const char*> kWords[] = {
        {"error:", "\033[1;31m"}, {"warning:", "\033[1;35m"}, {"note:", "\033[1;30m"}, {"hint:", "\033[1;36m"}};
    std::string out;
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = std::min(text.find('\n', begin), text.size() - 1) + 1;
      std::string line = text.substr(begin, end - begin);
      begin = end;
      if (line.find('^') != std::string::npos && line.find_first_not_of(" ~^\n") == std::string::npos) {
        out += "\033[1;32m" + line.substr(0, line.size() - 1) + "\033[0m\n";
        continue;
      }
      for (const auto& [word, colour] : kWords)
        if (const std::size_t at = line.find(word);
            at == 0 || (at != std::string::npos && at > 1 && line.compare(at - 2, 2, ": ") == 0)) {
          line.replace(at, std::string(word).size(), colour + std::string(word) + "\033[0m");
          break;
        }
      out += line;
    }
    return out;
  }
  /// In Shown::error, if a name that is proposed is one of the C library's or the standard library's.
  static constexpr const char* kOfSystem = "note: declared in a system's header";
  /// What is shown of an input, and its first error alone.
  struct Shown {
    std::string text, error;
  };
  Shown take() {
    Shown out = shown(text());
    text_.clear();
    errors_ = 0;
    return out;
  }
  static Shown shown(const std::string& text) {
    Shown out;
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = std::min(text.find('\n', begin), text.size() - 1) + 1;
      std::string line = text.substr(begin, end - begin);
      begin = end;
      // Every input counts as included from the one before; nobody wants to know.
      if (const auto ours = line.find("void function 'shown_"); ours != std::string::npos)  // what the code was put in
        line.replace(ours, std::string::npos, "there is no function here that `return` could end\n");
      if (line == std::string(kOfSystem) + '\n') {
        out.error += line;
        continue;
      }
      if (line.rfind("In included file", 0) == 0 || line.find("<<< inputs >>>") != std::string::npos) continue;
      out.text += line;
      if (out.error.empty() && line.find("error: ") != std::string::npos)
        out.error = line.substr(line.find("error: ") + 7);
      for (const char* part : {"no known conversion from", "const Tensors&"})
        if (line.find(part) != std::string::npos && line.find("error: ") == std::string::npos) out.error += line;
    }
    // clang proposes the whole name.
    for (const auto& [whole, prompt] : {std::pair<std::string, const char*>{"kassette::backend::", "K::"},
                                        {"kassette::numpy::", "np::"},
                                        {"kassette::nn::", "nn::"}})
      if (out.text.find("did you mean '" + whole) != std::string::npos)
        for (std::size_t at; (at = out.text.find(whole)) != std::string::npos;)
          out.text.replace(at, whole.size(), prompt);
    return out;
  }

 private:
  /// What says where a function was declared unavailable; the error has the reason.
  static bool repeats_error(const clang::Diagnostic& note) {
    llvm::SmallString<128> said;
    note.FormatDiagnostic(said);
    return said.str().ends_with("has been explicitly marked unavailable here");
  }
  static bool begins(const clang::Diagnostic& info, const char* words) {
    llvm::SmallString<128> said;
    info.FormatDiagnostic(said);
    return said.str().starts_with(words);
  }
  /// Where a name that is proposed is declared, if that is no header of ours or the user's.
  static bool is_declaration_of_system(const clang::Diagnostic& note) {
    llvm::SmallString<128> said;
    note.FormatDiagnostic(said);
    return said.str().ends_with(" declared here") && note.hasSourceManager() && note.getLocation().isValid() &&
           note.getSourceManager().isInSystemHeader(note.getLocation());
  }
  /// All that an argument could have been made of, which is a page.
  static bool is_candidate(const clang::Diagnostic& note) {
    return begins(note, "candidate ") || begins(note, "remaining ") || begins(note, "explicit conversion function");
  }
  std::string text_;
  llvm::raw_string_ostream stream_;
  clang::TextDiagnosticPrinter printer_;
  int errors_ = 0;
  bool converts_ = false;  // the error is about a conversion
};

}  // namespace repl
