// include/kassette/none.h - makes room for kassette::None where <X11/X.h> has defined a macro None before: the macro
// becomes a constant of the same value. That is below the include guard, since X11 may be included between two of our
// headers.
#ifndef KASSETTE_NONE_H
#define KASSETTE_NONE_H
#endif  // KASSETTE_NONE_H
#ifdef None
#undef None
#ifndef KASSETTE_X11_NONE
#define KASSETTE_X11_NONE
constexpr long None = 0;
#endif
#endif
