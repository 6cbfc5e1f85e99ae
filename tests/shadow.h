// tests/shadow.h - shadow mode: while the unit tests run, the engine's work is repeated in another way, and the results
// are compared.
#pragma once

namespace kassette::test {

/// Turns shadow mode on if KASSETTE_TEST_SHADOW is set.
void start_shadow();
/// The exit status: `result`, that of the tests; in shadow mode, whether something differed.
int end_shadow(int result);

}  // namespace kassette::test
