// tools/repl/messages.h - what clang has to say of an input.
#pragma once
#include <algorithm>
#include <string>

#include "clang/Basic/DiagnosticOptions.h"
#include "clang/Frontend/TextDiagnosticPrinter.h"
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
    if (errors_ > 1) return;   // the rest mostly follows from the first
    llvm::SmallString<200> message;
    info.FormatDiagnostic(message);
    if (level >= clang::DiagnosticsEngine::Error && first_.empty()) first_ = message.str();
    printer_.HandleDiagnostic(level, info);
  }
  std::string take() {
    stream_.flush();
    // Every input counts as included from the one before; nobody wants to know.
    std::string out;
    for (std::size_t begin = 0; begin < text_.size();) {
      std::size_t end = std::min(text_.find('\n', begin), text_.size() - 1) + 1;
      std::string line = text_.substr(begin, end - begin);
      if (line.rfind("In included file", 0) != 0 && line.find("<<< inputs >>>") == std::string::npos) out += line;
      begin = end;
    }
    text_.clear();
    errors_ = 0;
    return out;
  }
  std::string take_first() { return std::move(first_); }

 private:
  std::string text_, first_;
  llvm::raw_string_ostream stream_;
  clang::TextDiagnosticPrinter printer_;
  int errors_ = 0;
};

}  // namespace repl
