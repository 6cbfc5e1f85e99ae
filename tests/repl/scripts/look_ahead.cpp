// tests/repl/scripts/look_ahead.cpp - what a script shows stands behind //> under it: lines go on as they do in C++.
// clang-format off
// Broken before operators, as GNU and WebKit write it.
float a = 1
    + 2;
a
//> 3.0
Tensor t = K::ones({2})
  - K::ones({2});
t
//> [0. 0.] (2,) float32 cpu
K::ones({2})
    .to("cpu")
    // a comment between

    .shape()
//> (2,)
bool b = a > 2
  && a < 4
  ? true
  : false;
b
//> true
// Allman braces.
float f(float v)
{
  return v * v;
}
f(3)
//> 9.0
auto g = [](int i)
{
  return i + 1;
};
g(1)
//> 2
struct P
{
  int x;
};
namespace n
{
enum class E
  : int
{
  a
};
struct Q : P
{
  explicit Q(int y)
    : P{y}
  {
  }
  int get() const;
};
}
int n::Q::get() const
{
  return x;
}
n::Q(4).get()
//> 4
template <class T>
T twice(T t)
{
  return t + t;
}
twice(4)
//> 8
if (a > 2)
{
  b = false;
}
else
{
  b = true;
}
b
//> false
int s = 0;
do
{
  ++s;
}
while (s < 3);
s
//> 3
try
{
  throw 1;
}
catch (double)
{
  s = 8;
}
catch (int)
{
  s = 9;
}
s
//> 9
// GNU: the type on a line of its own
static inline int
square(int i)
{
  return i * i;
}
square(5)
//> 25
Tensor
plus(const Tensor& l,
     const Tensor& r) noexcept
{
  return l + r;
}
plus(t, t)
//> [0. 0.] (2,) float32 cpu
[[maybe_unused]]
int u = 3;
#define MANY(x) \
  ((x) + \
   1)
#if 0
{ ( "
#endif
MANY(2)
//> 3
std::string raw = R"(a
 ) .b {
)";
raw.size()
//> 10
std::string joined = "ab"
  "cd";
joined
//> "abcd"
/* a comment
   over lines { */
auto h = []
{ return 7; }
  ();
h
//> 7
std::vector<int> v
{
  1, 2
};
v
//> {1, 2}
// Values one after the other, with an empty line between.
s
//> 9

-s
//> -9
s
//> 9
++s;
s
//> 10
{ int q = 3; s = q; }
s
//> 3
for (int i = 0; i < 2; ++i)
{
  s += i;
}
*&s = 12;
#include <iostream>
s
//> 12
std::cout
  << 3
  << std::endl;
//> 3
extern "C"
{
  int abs(int);
}
abs(-4)
//> 4
auto w = std::vector<int>{3, 4}
  .size();
w
//> 2
int big(int i) try
{ return i; }
catch (...)
{ return 0; }
big(3)
//> 3
auto trail(int x)
  -> double
{
  return x / 2.0;
}
trail(3)
//> 1.5
