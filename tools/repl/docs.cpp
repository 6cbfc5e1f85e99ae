// tools/repl/docs.cpp - reading `///` comments.
//
// The format: lines of `///` and, right below them, a declaration, over as many lines as it has, up to its `;` or `{`.
// Overloads that follow without a comment of their own belong to the same one. Namespaces and classes are followed by
// their braces.
#include "tools/repl/docs.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tools/repl/cell.h"
#include "tools/repl/input.h"

namespace repl {
namespace {

/// The name that a declaration declares: before its first `(` outside of `<>`, else before `=`, `{` or `;`.
std::string declared_name(const std::string& text) {
  std::size_t end = text.size();
  int angle = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '<') ++angle;
    if (text[i] == '>' && (i == 0 || text[i - 1] != '-')) --angle;
    if (angle > 0 && text.compare(0, 8, "template") == 0) continue;
    if (text.compare(i, 8, "operator") == 0 && (i == 0 || !is_word(text[i - 1]))) {
      auto open = text.find('(', i + 9);
      return trimmed(text.substr(i, open - i));
    }
    if (text[i] == '(' || text[i] == '{' || text[i] == ';' || text[i] == '=' ||
        (text[i] == ':' && text[i + 1] != ':' && (i == 0 || text[i - 1] != ':'))) {
      end = i;
      break;
    }
  }
  while (end > 0 && !is_word(text[end - 1])) --end;
  std::size_t begin = end;
  while (begin > 0 && is_word(text[begin - 1])) --begin;
  return text.substr(begin, end - begin);
}

void replace(std::string* text, const std::string& from, const std::string& to) {
  for (std::size_t at; (at = text->find(from)) != std::string::npos;) text->replace(at, from.size(), to);
}

struct Reader {
  std::vector<DocEntry>* out;
  std::string header;
  /// What an open brace belongs to.
  struct Scope {
    std::string name;
    enum Kind { kNone, kClass, kNamespace } kind;
  };
  std::vector<Scope> scopes;
  std::string comment, pending;
  bool joined = false;  // no empty line, and nothing but functions, since the last comment
  bool hidden = false;  // behind private:

  std::string scope() const {
    std::string s;
    for (const auto& [name, kind] : scopes)
      if (kind != Scope::kNone) s += (s.empty() ? "" : "::") + name;
    return s;
  }
  bool inside_body() const {
    return std::any_of(scopes.begin(), scopes.end(),
                       [](const Scope& s) { return s.kind == Scope::kNone || s.name == "detail"; });
  }
  void finish(char end) {
    std::string text = trimmed(pending);
    pending.clear();
    replace(&text, "KASSETTE_API ", "");
    replace(&text, "template <int = 0> ", "");  // which only ranks an overload
    if (text.empty() || text == "}") return;
    bool space = text.rfind("namespace", 0) == 0;
    bool type = text.rfind("class ", 0) == 0 || text.rfind("struct ", 0) == 0 ||
                text.find(" class ") != std::string::npos || text.find("> struct ") != std::string::npos ||
                text.rfind("enum", 0) == 0;
    std::string name = declared_name(text + end);
    bool fresh = !comment.empty();
    if (!hidden && !inside_body() && !space && !name.empty()) {
      // An overload without a comment shares that of the one before it.
      if (!fresh && !out->empty() && out->back().name == name && out->back().scope == scope() &&
          out->back().header == header) {
        out->back().declaration += "\n" + text;
      } else if (fresh) {  // constructors and the like have nothing to say
        out->push_back({name, scope(), text, comment, header});
      } else if (joined && scopes.back().kind == Scope::kNamespace && !type && text.find('(') != std::string::npos) {
        // A comment counts for all functions up to the next empty line, but for those that are a class's, too.
        const auto member = std::find_if(out->begin(), out->end(), [&, inner = scope() + "::"](const DocEntry& e) {
          return e.name == name && e.header == header && e.scope.rfind(inner, 0) == 0;
        });
        const std::string shared = (member == out->end() ? out->back() : *member).comment;
        out->push_back({name, scope(), text, shared, header});
      }
      joined = (joined || fresh) && !type;
    }
    comment.clear();
    if (end == '{') {
      if (space) name = trimmed(text.substr(9));
      scopes.push_back({name, space ? Scope::kNamespace : type ? Scope::kClass : Scope::kNone});
    }
  }
};

void read_header(const std::string& path, const std::string& header, std::vector<DocEntry>* out) {
  std::ifstream file(path);
  Reader reader{out, header, {}, "", ""};
  int parentheses = 0;
  bool first = true;
  for (std::string line; std::getline(file, line);) {
    std::string text = trimmed(line);
    if (text.rfind("///", 0) == 0) {
      if (trimmed(reader.pending).empty()) {
        auto content = text.size() > 3 && text[3] == ' ' ? text.substr(4) : text.substr(3);
        reader.comment += (reader.comment.empty() ? "" : "\n") + content;
      }
      continue;
    }
    if (text.rfind("//", 0) == 0) {
      // The first line: "// include/kassette/nn.h - the functions of neural networks: namespace nn = kassette::nn."
      const auto about = text.find(" - ");
      if (first && about != std::string::npos) out->push_back({"", "", "", text.substr(about + 3), header});
      first = false;
      continue;
    }
    if (text.rfind("#", 0) == 0) {
      while (text.back() == '\\' && std::getline(file, line)) text = " " + trimmed(line);
      continue;
    }
    if (text.empty()) {
      if (trimmed(reader.pending).empty()) reader.comment.clear(), reader.joined = false;
      continue;
    }
    if (auto c = text.find("  //"); c != std::string::npos) text = trimmed(text.substr(0, c));
    if (text == "public:" || text == "private:" || text == "protected:") {
      reader.hidden = text != "public:";
      continue;
    }
    for (char c : text) {
      if (c == '(') ++parentheses;
      if (c == ')') --parentheses;
      if (parentheses == 0 && c == ';') {
        reader.finish(';');
      } else if (parentheses == 0 && c == '{') {
        reader.finish('{');
      } else if (parentheses == 0 && c == '}') {
        reader.pending.clear();
        if (!reader.scopes.empty()) reader.scopes.pop_back();
        reader.hidden = false;
      } else {
        reader.pending += c;
      }
    }
    reader.pending += ' ';
  }
}

}  // namespace

std::vector<DocEntry> read_headers(const std::string& include_dir) {
  std::vector<DocEntry> out;
  std::vector<std::filesystem::path> files;
  std::error_code error;
  for (auto& entry : std::filesystem::recursive_directory_iterator(
           include_dir + "/kassette", std::filesystem::directory_options::follow_directory_symlink, error))
    if (entry.path().extension() == ".h") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const auto& path : files) read_header(path, path.lexically_relative(include_dir).string(), &out);
  return out;
}

namespace {

/// "softmax" of "K::softmax", "numpy::sort" of "np::sort".
std::string without_our_scopes(std::string name) {
  for (const char* prefix : {"::", "kassette::", "backend::", "K::"})
    if (name.rfind(prefix, 0) == 0) name = name.substr(std::string(prefix).size());
  return name.rfind("np::", 0) == 0 ? "numpy" + name.substr(2) : name;
}

/// "np::sort" of "kassette::numpy" and "sort": as a prompt has it.
std::string as_typed(const DocEntry& e) {
  static const std::pair<std::string, std::string> kPrompt[] = {
      {"kassette::backend", "K"}, {"kassette::numpy", "np"}, {"kassette::nn", "nn"}};
  for (const auto& [whole, name] : kPrompt)
    if (e.scope.rfind(whole, 0) == 0) return name + e.scope.substr(whole.size()) + "::" + e.name;
  return e.scope == "kassette" ? e.name : e.scope + "::" + e.name;
}

bool is_type(const DocEntry& e) {
  return e.declaration.find('(') == std::string::npos &&
         (e.declaration.find("class ") != std::string::npos || e.declaration.find("struct ") != std::string::npos ||
          e.declaration.find("enum ") != std::string::npos || e.declaration.rfind("using ", 0) == 0);
}

}  // namespace

std::string documentation(const std::vector<DocEntry>& entries, std::string name) {
  if (name.rfind("K::", 0) == 0)  // np has many of its names, too
    if (std::string text = documentation(entries, "backend" + name.substr(1)); !text.empty()) return text;
  if (name.rfind("backend::", 0) != 0) name = without_our_scopes(name);
  auto full = [](const DocEntry& e) { return e.scope + "::" + e.name; };
  std::string out;
  for (bool backend : {true, false}) {  // K's functions first
    for (const DocEntry& e : entries) {
      if (e.name.empty() || (e.scope == "kassette::backend") != backend) continue;
      std::string whole = full(e);
      if (whole != name && (whole.size() <= name.size() + 2 ||
                            whole.compare(whole.size() - name.size() - 2, std::string::npos, "::" + name) != 0))
        continue;
      if (!out.empty()) out += '\n';
      out += e.declaration + '\n';
      if (!e.comment.empty()) {
        out += "    " + e.comment + '\n';
        for (auto at = out.find('\n', out.size() - e.comment.size() - 1);
             at != std::string::npos && at + 1 < out.size(); at = out.find('\n', at + 5))
          out.insert(at + 1, "    ");
      }
      out += "    <" + e.header + ">\n";
    }
  }
  return out;
}

std::string namespace_page(const std::vector<DocEntry>& entries, const std::string& name) {
  std::string scope = name == "K" ? "backend" : name == "np" ? "numpy" : without_our_scopes(name);
  if (name != "kassette") scope = "kassette::" + scope;
  const auto exists = [&](const DocEntry& e) { return e.scope == scope && !is_type(e); };
  if (std::none_of(entries.begin(), entries.end(), exists)) {
    if (scope.rfind("kassette::numpy", 0) == 0 || name.find("::") != std::string::npos) return "";
    const auto inner = [&](const DocEntry& e) { return e.scope == "kassette::numpy::" + name; };  // ?linalg
    return std::any_of(entries.begin(), entries.end(), inner) ? namespace_page(entries, "np::" + name) : "";
  }
  // A row for each header: what it is about, then its names.
  std::string out, about, header, row, inner;
  std::vector<std::string> seen;
  const auto finish = [&] {
    if (!row.empty()) out += (about.empty() ? header : about) + "\n    " + row + '\n';
    row.clear();
  };
  for (const DocEntry& e : entries) {
    if (e.name.empty()) {
      finish();
      header = e.header;
      about = e.comment;
    }
    if (e.scope.rfind(scope + "::", 0) == 0 && e.header.rfind("kassette/", 0) == 0 && !is_type(e)) {
      const std::string below = e.scope.substr(scope.size() + 2);
      if (std::islower(static_cast<unsigned char>(below[0])) && below.find("::") == std::string::npos &&
          below != "detail" && inner.find(' ' + below + ' ') == std::string::npos)
        inner += ' ' + below + ' ';
    }
    if (!exists(e) || std::find(seen.begin(), seen.end(), e.name) != seen.end()) continue;
    seen.push_back(e.name);
    row += (row.empty() ? "" : " ") + e.name;
  }
  finish();
  if (!inner.empty()) out += "namespaces in it, each with a page of its own\n   " + inner + '\n';
  return out;
}

std::string no_documentation(const std::vector<DocEntry>& entries, const std::string& name) {
  const std::string bare = without_our_scopes(name);
  const std::size_t last = bare.rfind("::");
  // A name in the namespace that was typed, if there is one that is like it.
  const std::string space = last == std::string::npos ? "" : "::" + bare.substr(0, last);
  const std::string word = last == std::string::npos ? bare : bare.substr(last + 2);
  for (const bool anywhere : {false, true}) {
    std::vector<std::string> names;
    for (const DocEntry& e : entries)
      if (!e.name.empty() && (anywhere || ("::" + e.scope).ends_with(space))) names.push_back(e.name);
    std::string near = nearest(word, names);
    for (const std::string& n : names)  // inverse: inv
      if (near.empty() && !anywhere && !space.empty() && n.size() > 2 && word.rfind(n, 0) == 0) near = n;
    if (near.empty()) continue;
    for (const DocEntry& e : entries)
      if (e.name == near && (anywhere || ("::" + e.scope).ends_with(space)))
        return "there is no documentation of " + name + "; did you mean " + as_typed(e) + "?\n";
  }
  return "there is no documentation of " + name + '\n';
}

std::string wrapped(const std::string& text, std::size_t width) {
  std::string out;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    const std::size_t indent = std::min(line.find_first_not_of(' '), line.size());
    const std::size_t gap = line.find("  ", indent);
    std::size_t column = gap == std::string::npos ? indent + 4 : line.find_first_not_of(' ', gap);
    if (column == std::string::npos || column > width / 2) column = std::min(indent + 4, width / 2);
    for (bool first = true; line.size() > width; first = false) {
      std::size_t at = line.rfind(' ', width);  // a word that is too long stays whole
      if (at == std::string::npos || at < (first ? indent + 1 : column + 1)) at = line.find(' ', width);
      if (at == std::string::npos) break;
      const std::size_t next = line.find_first_not_of(' ', at);
      out += line.substr(0, line.find_last_not_of(' ', at) + 1) + '\n';
      line = next == std::string::npos ? "" : std::string(column, ' ') + line.substr(next);
    }
    out += line + '\n';
  }
  if (!text.empty() && text.back() != '\n' && !out.empty()) out.pop_back();
  return out;
}

}  // namespace repl
