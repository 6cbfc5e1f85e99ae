// tests/catch.h - the Catch2 header, of version 2 or 3, and our own way to skip.
#ifndef KASSETTE_TESTS_CATCH_H
#define KASSETTE_TESTS_CATCH_H

#include <string>

#if KASSETTE_CATCH2 >= 3
#include <catch2/catch_all.hpp>
using Catch::Approx;
namespace Catch {
/// The name that version 2 has for it.
inline auto Contains(const std::string& part) { return Matchers::ContainsSubstring(part); }
}  // namespace Catch
#else
#include <catch2/catch.hpp>
#endif

namespace kassette::test {

/// Counts the running test as skipped and prints `skipped: reason`; the test then returns. Catch2
/// 2.13 has no SKIP, so this is used with every version.
void skip(const std::string& reason);

}  // namespace kassette::test

#endif  // KASSETTE_TESTS_CATCH_H
