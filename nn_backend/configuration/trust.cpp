// nn_backend/configuration/trust.cpp - whether a configuration file is safe to use.
#include "nn_backend/configuration/trust.h"

#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "core/print/printable.h"
#include "core/text.h"

namespace kassette::backend::detail {
namespace {

/// A descriptor for a scope.
class Descriptor {
 public:
  explicit Descriptor(int d = -1) : d_(d) {}
  ~Descriptor() { reset(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  void reset(int d = -1) {
    if (d_ >= 0) ::close(d_);
    d_ = d;
  }
  int get() const { return d_; }
  int release() { return std::exchange(d_, -1); }

 private:
  int d_;
};

std::string user_name(uid_t uid) {
  std::vector<char> buffer(1 << 14);
  passwd entry, *found = nullptr;
  getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found);
  return found ? found->pw_name : std::to_string(uid);
}

/// Whether a group is a user's private one: distributions give each user a group of the same name without other
/// members, which may write the user's folders.
bool is_private_group(gid_t gid, uid_t owner) {
  std::vector<char> buffer(1 << 16);
  group entry, *found = nullptr;
  if (getgrgid_r(gid, &entry, buffer.data(), buffer.size(), &found) != 0 || !found) return false;
  const std::string user = user_name(owner);
  if (user != found->gr_name) return false;
  for (char** member = found->gr_mem; member && *member; ++member)
    if (user != *member) return false;
  return true;
}

/// Why the file behind a descriptor must not be used, or "".
std::string distrust(int descriptor, const struct stat& s, const std::string& shown) {
  const char* kind = S_ISDIR(s.st_mode) ? "the folder " : S_ISLNK(s.st_mode) ? "the link " : "";
  if (const uid_t user = ::geteuid(); s.st_uid != user && s.st_uid != 0)
    return text(kind, shown, " belongs to ", printable(user_name(s.st_uid)), ", not to ",
                user ? printable(user_name(user)) + " or " : std::string(),
                "root; use a folder of your own (KERAS_HOME, KASSETTE_BACKEND_PATH)");
  // The permission bits of links are all set and have no meaning. In a sticky folder a user cannot replace another
  // user's files.
  if (S_ISLNK(s.st_mode) || (S_ISDIR(s.st_mode) && (s.st_mode & S_ISVTX))) return "";
  bool others = s.st_mode & S_IWOTH, group = s.st_mode & S_IWGRP;
  if (group && is_private_group(s.st_gid, s.st_uid)) {
    // With an access list the group bits are the mask for everyone on the list. O_PATH descriptors have no attributes
    // of their own.
    const std::string self = text("/proc/self/fd/", descriptor);
    group = ::getxattr(self.c_str(), "system.posix_acl_access", nullptr, 0) > 0;
  }
  if (others || group)
    return text(kind, shown, " can be written by ", others ? "everybody" : "its group", "; chmod ",
                others && group ? "go"
                : others        ? "o"
                                : "g",
                "-w ", shown);
  return "";
}

/// Opens a regular file that was found; returns errno, or 0. It is checked again: only the user and root can have
/// replaced it since.
int open_file(int folder, const std::string& name, const std::string& shown, Found& found) {
  Descriptor file(::openat(folder, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat s;
  if (file.get() < 0 || ::fstat(file.get(), &s) != 0) return errno;
  found.distrust = distrust(file.get(), s, shown);
  found.regular = S_ISREG(s.st_mode);
  if (found.distrust.empty() && found.regular) found.descriptor = file.release();
  return 0;
}

}  // namespace

Found look_up(const std::string& path, bool open) {
  Found found;
  std::string rest = path, at = "/";  // the part still to be followed, and the part so far, for messages
  if (path.empty() || path[0] != '/') {
    std::unique_ptr<char, decltype(&std::free)> here(::getcwd(nullptr, 0), &std::free);
    if (!here) {
      found.error = errno;
      return found;
    }
    rest = std::string(here.get()) + '/' + path;
  }
  Descriptor folder(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
  struct stat s;
  auto fail_with = [&](int error) {
    found.error = error;
    return std::move(found);
  };
  if (folder.get() < 0 || ::fstat(folder.get(), &s) != 0) return fail_with(errno);
  found.directory = true;
  found.distrust = distrust(folder.get(), s, "/");
  for (int links = 0; found.distrust.empty();) {
    std::size_t start = rest.find_first_not_of('/');
    if (start == std::string::npos) return found;
    std::size_t end = std::min(rest.find('/', start), rest.size());
    const std::string name = rest.substr(start, end - start);
    const bool last = rest.find_first_not_of('/', end) == std::string::npos;
    rest.erase(0, end);
    if (name == ".") continue;
    Descriptor next(::openat(folder.get(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (next.get() < 0 || ::fstat(next.get(), &s) != 0) return fail_with(errno);
    const std::string where = (at == "/" ? "" : at) + '/' + name, shown = printable(where);
    found.distrust = distrust(next.get(), s, shown);
    if (!found.distrust.empty()) break;
    if (S_ISLNK(s.st_mode)) {
      char target[PATH_MAX];
      ssize_t n = ::readlinkat(next.get(), "", target, sizeof target);
      if (n <= 0 || n == static_cast<ssize_t>(sizeof target) || ++links > 40) return fail_with(n < 0 ? errno : ELOOP);
      rest = std::string(target, n) + rest;
      if (target[0] == '/') {
        at = "/";
        folder.reset(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
        if (folder.get() < 0) return fail_with(errno);
      }
      continue;
    }
    found.directory = S_ISDIR(s.st_mode);
    found.regular = S_ISREG(s.st_mode);
    if (!found.directory) {
      if (!last) return fail_with(ENOTDIR);
      if (!found.regular || !open) return found;
      found.error = open_file(folder.get(), name, shown, found);
      return found;
    }
    at = name == ".." ? at.substr(0, std::max<std::size_t>(at.rfind('/'), 1)) : where;
    folder.reset(next.release());
  }
  return found;
}

bool elevated() { return ::getauxval(AT_SECURE) != 0; }

}  // namespace kassette::backend::detail
