// nn_backend/trust.h - which files of the configuration are safe to use: see docs/security.md.
#pragma once
#include <string>

namespace kassette {
namespace backend {

/// What a path leads to, and whether somebody else could have put it there or can change it.
struct Found {
  /// Of a trusted regular file that was to be opened, else -1; the caller closes it.
  int descriptor = -1;
  /// 0, or the errno of a path that leads nowhere.
  int error = 0;
  /// Why it is not to be used, and what mends that; empty where it is trusted.
  std::string distrust;
  /// A file, a folder, or something else.
  bool regular = false, directory = false;
};

/// Follows the path from the root, as ssh does before it reads a key: the file, every folder and every link on the way must
/// belong to the user or to root, and nobody else may be able to write there. In a folder with the sticky bit, such as /tmp,
/// what belongs to the user or root is safe. A regular file is opened in the same walk (`open`), so that what was checked is
/// what is read.
Found look_up(const std::string& path, bool open);

/// True where the program runs with more rights than whoever started it (setuid, setgid, capabilities).
bool elevated();

}  // namespace backend
}  // namespace kassette
