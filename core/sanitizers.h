// core/sanitizers.h - the sanitizers that the code is compiled with.
#pragma once

namespace kassette {

#if defined(__has_feature)
inline constexpr bool kAddressSanitizer = __has_feature(address_sanitizer),
                      kThreadSanitizer = __has_feature(thread_sanitizer);
#elif defined(__SANITIZE_ADDRESS__)
inline constexpr bool kAddressSanitizer = true, kThreadSanitizer = false;
#elif defined(__SANITIZE_THREAD__)
inline constexpr bool kAddressSanitizer = false, kThreadSanitizer = true;
#else
inline constexpr bool kAddressSanitizer = false, kThreadSanitizer = false;
#endif

}  // namespace kassette
