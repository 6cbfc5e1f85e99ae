// tests/shadow.h - what the engine does is done again, another way, while the unit tests run.
#pragma once

namespace kassette::test {

/// Where KASSETTE_TEST_SHADOW is set.
void start_shadow();
/// The exit status: that of the tests, or with a shadow whether something differed.
int end_shadow(int result);

}  // namespace kassette::test
