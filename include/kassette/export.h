// include/kassette/export.h - marks what libkassette.so exports; all else is hidden.
#ifndef KASSETTE_EXPORT_H
#define KASSETTE_EXPORT_H

#define KASSETTE_API __attribute__((visibility("default")))

// At the end of a declaration that exists to say what to write instead. KASSETTE_DELETED also hides the function from
// std::is_constructible and its like, for which g++ takes an unavailable function as any other; g++ then shows the
// sentence as part of the line of the declaration.
#if defined(__clang__)
#define KASSETTE_UNAVAILABLE(sentence) __attribute__((unavailable(sentence)))
#define KASSETTE_DELETED(sentence) __attribute__((unavailable(sentence)))
#elif __GNUC__ >= 12
#define KASSETTE_UNAVAILABLE(sentence) __attribute__((unavailable(sentence)))
#define KASSETTE_DELETED(sentence) = delete
#else
#define KASSETTE_UNAVAILABLE(sentence) = delete
#define KASSETTE_DELETED(sentence) = delete
#endif

#endif  // KASSETTE_EXPORT_H
