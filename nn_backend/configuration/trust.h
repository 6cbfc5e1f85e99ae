// nn_backend/configuration/trust.h - whether a configuration file is safe to use: see docs/security.md.
#pragma once
#include <string>

namespace kassette::backend::detail {

/// The result of look_up(): what is at a path, and whether another user could have put it there or can change it.
struct Found {
  /// An open descriptor, if a trusted regular file was to be opened; else -1. The caller closes it.
  int descriptor = -1;
  /// 0, or the errno if the path cannot be followed.
  int error = 0;
  /// Why the file must not be used, and how to fix that; empty if it is trusted.
  std::string distrust;
  /// The kind of file; both false: neither a regular file nor a directory, or nothing there.
  bool regular = false, directory = false;
};

/// Follows the path from the root, as ssh does before it reads a key: the file, every folder and every link on the way
/// must belong to the user or to root, and no other user may be able to write there. In a folder with the sticky bit,
/// such as /tmp, entries of the user or root are safe. With `open`, a regular file is opened in the same traversal, so
/// that the file that was checked is the one that is read.
Found look_up(const std::string& path, bool open);

/// True if the program runs with more rights than the user who started it (setuid, setgid, capabilities).
bool elevated();

}  // namespace kassette::backend::detail
