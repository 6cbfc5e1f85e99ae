#!/usr/bin/env python3
"""tests/repl/repl_corpus.py REPL [--every N] [--show] - thousands of lines, most of them wrong; after each the session has to work.

A case is one input, or a few lines, and a line with a known value that must be shown after it. Where it can be, that line uses the very
templates that the wrong one has instantiated. --every N tries each N-th case; --show prints the sessions of the cases that fail."""
import argparse, concurrent.futures, os, random, re, subprocess, sys, tempfile

options = argparse.ArgumentParser()
options.add_argument("repl")
options.add_argument("--every", type=int, default=1)
options.add_argument("--show", action="store_true")
options = options.parse_args()
options.repl = os.path.abspath(options.repl)

PRELUDE = r"""
#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <sstream>
#include <thread>
#include <tuple>
#include <unordered_map>
#include <variant>
template <int n> struct Id { int value = n; bool operator<(const Id& o) const { return value < o.value; } bool operator==(const Id& o) const { return value == o.value; } };
template <int n> struct std::hash<Id<n>> { std::size_t operator()(const Id<n>& i) const { return i.value; } };
template <int n> int fresh() { static int calls = 0; return n + calls; }
template <class T> T twice(T v) { return v + v; }
template <class T> struct Box { T held; T get() const { return held; } template <class F> auto with(F f) const { return f(held); } virtual ~Box() {} virtual int kind() const { return 1; } };
template <class... T> int count_of(T...) { return sizeof...(T); }
template <int n> inline int global_of = n;
int a = 1, b = 2; int* p = &a; int list[4] = {1, 2, 3, 4}; double d = 0.5; bool yes = true; std::string text = "text"; std::vector<int> v{3, 1, 2};
struct S { int x = 1; int f(int i) { return x + i; } } s; enum Colour { red, green }; namespace space { int inside = 7; }
Tensor t = K::ones({2, 3});
"""

# Expressions with a value that is known, each with templates of its own: N is another number in every case.
FRESH = [
    ("fresh<N>()", "N"),
    ("std::vector<Id<N>>(3).size()", "3"),
    ("std::map<int, Id<N>>{{1, {}}}[1].value", "N"),
    ("std::set<Id<N>>{{}, {}}.size()", "1"),
    ("std::unordered_map<Id<N>, int>{{Id<N>(), 5}}.at(Id<N>())", "5"),
    ("Box<Id<N>>{}.get().value", "N"),
    ("Box<Box<Id<N>>>{}.kind()", "1"),
    ("Box<Id<N>>{}.with([](Id<N> i) { return i.value + 1; })", "N+1"),
    ("count_of(Id<N>(), 1, 2)", "3"),
    ("std::make_shared<Id<N>>()->value", "N"),
    ("std::get<1>(std::tuple<int, Id<N>>{}).value", "N"),
    ("std::optional<Id<N>>(Id<N>())->value", "N"),
    ("std::function<int(Id<N>)>([](Id<N> i) { return i.value; })(Id<N>())", "N"),
    ("std::array<Id<N>, 4>{}.size()", "4"),
    ("global_of<N>", "N"),
    ("std::variant<int, Id<N>>(Id<N>()).index()", "1"),
    ("std::accumulate(v.begin(), v.end(), 0, [](int x, int y) { return x + y + fresh<N>(); })", "6+3*N"),
    ("K::int_shape(K::zeros({N, 2}))[0]", "N"),
    ("[](auto x) { return x + fresh<N>(); }(0)", "N"),
]

# What is wrong around such an expression E. Some of it compiles; it must change nothing that E needs.
MISTAKES = """
E + nope
E; nope;
nope(E)
(E
E)
(E) nope
E nope
E E
E;; )
{ E; nope; }
{ E; nope }
{ E
if (true) { E; nope; }
if (E) nope
if (E) { nope; } else E
if (nope) E;
if E { }
for (int i = E; i < nope; ++i) {}
for (int i : nope) { E; }
for (auto x : {E, nope}) {}
while (nope) { E; }
do { E; } while (nope);
switch (E) { case nope: break; }
switch (1) { case 1: E; case 1: E; }
try { E; nope; } catch (...) {}
try { E; } catch (nope&) {}
auto z = [] { E; nope; };
auto z = [&] { return E nope; };
auto z = [nope] { return E; };
[] { return E; nope; }()
([] { E; return nope; })();
struct Z { int f() { return E; } nope };
struct Z { int f() { E; nope; } };
struct Z { int x = E nope; };
struct Z : nope { int x = E; };
class Z { int x = E; public: Z() : y(0) {} };
union Z { E; };
enum Z { z = E nope };
namespace zone { auto z = E; int x = }
namespace zone { int x = E; nope }
namespace zone { auto z = E; nope() }
namespace { int hidden = E nope; }
namespace zone = E;
inline namespace zone { nope z = E; }
template <class T> T wrong(T t) { E; return nope(); }
template <class T> auto wrong(T t) -> decltype(E, nope) { return t; }
template <int n = E nope> struct Wrong {};
template <> struct Wrong<E> {};
int wrong() { return E; nope; }
int wrong() { E
int wrong(int x = E nope);
int wrong(nope n) { return E; }
auto wrong() { return E; return "two"; }
constexpr int wrong = E nope;
constexpr auto wrong = (E, nope);
static_assert(E == nope);
static_assert(E < -5, "no");
using Z = decltype(E, nope);
typedef decltype(E) nope nope;
auto [q, r] = E;
auto [q, r] = nope(E);
int wrong[] = {E, nope};
int wrong[E nope];
const int wrong = E, other = nope;
int wrong = E, wrong = 2;
decltype(E) wrong = nope;
auto wrong = E nope;
auto wrong{E, 1};
auto* wrong = E;
void wrong = E;
E = nope;
E.nope()
E->nope
E::nope
E<nope>
E[nope]
E ? nope : 1
E ? : 1
E ? E
*E nope
&E nope;
!E nope
-E nope;
++E nope
(void)E; nope
(nope)E
static_cast<nope>(E)
static_cast<int*>(E)
reinterpret_cast<nope*>(E);
sizeof(E nope)
sizeof(nope(E))
typeid(E, nope)
new nope(E)
delete E nope;
throw nope(E);
throw (E nope);
return nope(E);
goto nope; E;
break; E nope;
co_return E;
co_await E;
extern "C" { int z = E; nope }
extern nope z = E;
asm("nonsense"); E;
asm(E);
[[nodiscard]] E nope
[[gnu::nope(E
alignas(nope) int z = E;
E, nope
E || nope
E << nope
nope << E
E + "text
E + 'c
E /* open
E R"(open
E \\
operator E
operator+(E, nope)
K::nope(E)
K::zeros({E, nope})
K::sum(t, E, nope)
t.nope(E)
t + nope(E)
t + E +
std::nope(E)
std::vector<nope>{E}
std::vector<int>{E, nope}
std::vector<int>{E, "text"}
std::sort(v.begin(), v.end(), [](int x, int y) { return E, nope; });
std::sort(v.begin(), E);
std::string(E, nope)
std::map<nope, int> z; E;
std::unique_ptr<S> z = E nope;
for (int i : kassette::progress(E)) { nope }
K::map_fn([](const Tensor& x) { E; return nope; }, t)
K::map_fn([](const Tensor& x) { return x * nope(E); }, t)
"""

# Lines that are right, and what they show; `a` and the others of the prelude stand as they were behind them.
RIGHT = r"""
*p = 3; a = 1;
*p;
&a;
**&p;
*p => 1
(a);
(a) = 1;
(void)a;
-a;
!yes;
~a;
++*p; --*p; a => 1
if (true) *p = 8; a = 1; a => 1
if (yes) { a = 2; } else { a = 3; } a => 2
if (int n = a; n > 100) a = 5; else if (n > 50) a = 6; else a = 7; a => 7
if constexpr (sizeof(int) == 4) { a = 4; } a => 4
a = 1; for (int i = 0; i < 3; ++i) a += i; a => 4
a = 1; for (int i : v) { if (i == 1) continue; a += i; } a => 6
a = 1; while (a < 10) { a *= 3; if (a > 20) break; } a => 27
a = 1; do a += 1; while (a < 5); a => 5
a = 1; switch (b) { case 1: a = 10; break; case 2: a = 20; break; default: a = 30; } a => 20
try { throw 5; } catch (int i) { a = i; } a => 5
try { auto f = [] { throw 6; }; f(); } catch (int i) { a = i; } a => 6
try { throw std::string("x"); } catch (const std::exception&) { a = 1; } catch (...) { a = 2; } a => 2
{ int a = 5; a += 1; } a => 2
{ struct Local { int x; }; Local l{3}; a = l.x; } a => 3
{ static int kept = 4; a = kept; } a => 4
{ using std::swap; swap(a, b); swap(a, b); } a => 4
{ int i = 0; again: ++i; if (i < 3) goto again; a = i; } a => 3
[] { a = 9; }(); a => 9
[&] { return a; }() => 9
[](auto... x) { return (x + ... + 0); }(1, 2, 3) => 6
[n = 5]() mutable { return ++n; }() => 6
auto adder = [](int x) { return [x](int y) { return x + y; }; };
adder(1)(2) => 3
auto [m, n] = std::pair<int, int>(3, 4);
m + n => 7
auto& [sx] = s; sx => 1
int arr[2] = {5, 6}; auto [a0, a1] = arr; a1 => 6
int zero{}; zero => 0
int one(1), two{2}, three = 3; one + two + three => 6
const int fixed = 4; fixed => 4
constexpr int square(int x) { return x * x; }
static_assert(square(3) == 9);
square(4) => 16
static int counter = 3; ++counter => 4
inline int inl = 5; inl => 5
unsigned long long big = 1ull << 40; big => 1099511627776
char letter = 'x'; letter => 'x'
auto raw = R"(a "b" \c)"; std::string(raw).size() => 8
auto multi = "one" "two"; std::string(multi) => "onetwo"
0x1F + 0b11 + 017 + 1'000 => 1049
u8"x"[0] == 'x' => true
sizeof(int) => 4
alignof(double) => 8
typeid(int) == typeid(a) => true
noexcept(a + 1) => true
decltype(a) other = 3; other => 3
using Alias = std::vector<int>; Alias{1, 2}.size() => 2
typedef int Number; Number(3) => 3
enum class Kind : char { x, y }; static_cast<int>(Kind::y) => 1
enum { anonymous = 12 }; anonymous => 12
green => 1
struct Point { int x, y; int sum() const { return x + y; } }; Point{1, 2}.sum() => 3
struct Base { virtual int f() { return 1; } virtual ~Base() = default; }; struct Derived : Base { int f() override { return 2; } }; std::unique_ptr<Base>(new Derived)->f() => 2
struct WithStatic { static int n; }; int WithStatic::n = 3; WithStatic::n => 3
struct WithOperator { int v; WithOperator operator+(WithOperator o) const { return {v + o.v}; } }; (WithOperator{1} + WithOperator{2}).v => 3
struct Bits { unsigned x : 3, y : 5; }; sizeof(Bits) => 4
union Either { int i; float f; }; Either{1}.i => 1
class Counter { int n = 0; public: int next() { return ++n; } friend int peek(const Counter& c) { return c.n; } }; Counter c; c.next() => 1
peek(c) => 1
template <class T> struct Pair { T x, y; }; Pair<int>{1, 2}.y => 2
template <class T> struct Pair<T*> { int z = 3; }; Pair<int*>().z => 3
template <class T, class U = int> U convert(T t) { return U(t); } convert(2.7) => 2
template <> int convert<char, int>(char) { return 99; } convert('x') => 99
template <class T> constexpr bool is_int = std::is_same<T, int>::value; is_int<int> => true
template <template <class...> class C> int of() { return C<int>(3).size(); } of<std::vector>() => 3
template <class... T> auto sum(T... x) { return (x + ...); } sum(1, 2, 3, 4) => 10
template <int n> struct Factorial { static const int value = n * Factorial<n - 1>::value; }; template <> struct Factorial<0> { static const int value = 1; }; Factorial<5>::value + 0 => 120
namespace outer { namespace inner { int x = 5; } } outer::inner::x => 5
namespace outer::inner { int y = 6; } outer::inner::y => 6
namespace alias = outer::inner; alias::x + alias::y => 11
inline namespace v2 { int versioned = 2; } versioned => 2
namespace { int unnamed = 8; } unnamed => 8
using namespace space; inside => 7
using space::inside; inside => 7
extern "C" { int c_function(int x) { return x + 1; } } c_function(1) => 2
extern int declared; int declared = 6; declared => 6
int overloaded(int) { return 1; } int overloaded(double) { return 2; } overloaded(1.5) => 2
int defaulted(int x, int y = 5) { return x + y; } defaulted(1) => 6
auto trailing(int x) -> double { return x / 2.0; } trailing(1) => 0.5
int recursive(int n) { return n ? n + recursive(n - 1) : 0; } recursive(4) => 10
[[nodiscard]] int important() { return 3; } important() => 3
[[maybe_unused]] int maybe = 2; maybe => 2
alignas(64) int aligned = 3; aligned => 3
__attribute__((noinline)) int attributed() { return 4; } attributed() => 4
asm("nop");
asm volatile("" ::: "memory"); a = 1; a => 1
int through_asm; asm("" : "=r"(through_asm) : "0"(7)); through_asm > 0 => true
int* heap = new int(5); *heap => 5
delete heap;
int* block = new int[3]{1, 2, 3}; block[2] => 3
delete[] block;
std::unique_ptr<int> owner = std::make_unique<int>(7); *owner => 7
int (*function)(int) = [](int x) { return x + 1; }; function(2) => 3
int S::*member = &S::x; s.*member => 1
(s.*(&S::f))(2) => 3
std::thread([] { a = 77; }).join(); a => 77
std::sort(v.begin(), v.end()); v => {1, 2, 3}
std::reverse(v.begin(), v.end()); v[0] => 3
std::accumulate(v.begin(), v.end(), 0) => 6
std::count_if(v.begin(), v.end(), [](int x) { return x > 1; }) => 2
std::max_element(v.begin(), v.end()) - v.begin() => 0
std::find(v.begin(), v.end(), 9) == v.end() => true
std::transform(v.begin(), v.end(), v.begin(), [](int x) { return x * 2; }); v => {6, 4, 2}
v.erase(std::remove(v.begin(), v.end(), 4), v.end()); v.size() => 2
std::stringstream stream; stream << 1 << "x" << 2.5; stream.str() => "1x2.5"
std::map<std::string, std::vector<int>> groups; groups["x"].push_back(1); groups["x"].size() => 1
std::visit([](auto x) { return int(x); }, std::variant<int, double>(2.5)) => 2
std::tie(a, b) = std::make_tuple(1, 2); a => 1
a, b => 2
a ? b : 0 => 2
a << 3 | b => 10
text.substr(1, 2) => "ex"
text + "!" => "text!"
t.shape()[1] => 3
K::sum(t).item<float>() => 6.0
K::eval(K::sum(t * 2.0)).item<float>() => 12.0
(t + t).shape() == t.shape() => true
K::map_fn([](const Tensor& x) { return K::sum(x); }, t).shape()[0] => 2
K::gradients(K::sum(K::square(t)), {t}).size() => 1
Tensor w = K::variable({1, 2}); auto f = K::function({}, {w * 2.0}); f({})[0].shape()[0] => 2
auto captured = [w](const Tensor& x) { return x * w; };
for (int i : kassette::progress(3)) a = i; a = 1; a => 1
#define TWICE(x) ((x) + (x))
TWICE(4) => 8
#define JOIN(x, y) x##y
JOIN(a, ) => 1
#define STRING(x) #x
std::string(STRING(a b)) => "a b"
#define BODY { a = 3; }
if (yes) BODY
a => 3
#undef TWICE
#pragma once
#pragma GCC diagnostic push
#pragma GCC diagnostic pop
#pragma nonsense
#include <utility>
#include <string>
#line 7
#
;
;;
{}
{ ; }
// a comment
/* another */ a => 3
a /* inside */ + /* twice */ 1 => 4
a = 1; // behind
int spread(int x, int y) { return x + y; } spread(1, 2) => 3
abort();
*(int*)nullptr = 1;
throw 5;
throw std::runtime_error("thrown");
int crash() { throw std::logic_error("in a function"); } crash();
K::dot(t, t)
std::vector<int>().at(3)
int divide(int x) { return 1 / x; } divide(0);
"""

# Wrong lines of every kind, alone.
WRONG = r"""
namespace v1 { int x = }
namespace v1 { struct X { int y = }; }
namespace v1 { void f( }
namespace v1 { template <class T> }
namespace v1 { using }
namespace { auto x = [ }
struct X { int x = }
struct X { void f() { }
struct X { X( }; }
class X { public int x; };
class X { private: ; } x y;
class { };
union;
enum E { a b };
enum class;
template
template <
template <class
template <class T
template <class T>
template <class T> class
template <class T> T
template <> int;
template int f<int>(int);
template <class T> requires true void f();
extern
extern "C"
extern "D" int x;
extern template class std::vector<nope>;
using
using namespace nope;
using X
using X =
using std::nope;
typedef
typedef int
typedef int 3;
typename T::x y;
friend class X;
virtual void f();
public: int x;
static
static static int x;
const
constexpr int x;
constexpr int x = a;
inline
inline inline;
mutable int x;
register int x;
thread_local int x = 3 nope;
auto
auto x;
auto x = ;
auto x = {};
auto x = {1, 2.0};
auto [x] = ;
auto [x, y] = 3;
auto [x, y] = s;
auto [] = s;
auto [x, x] = std::pair<int, int>();
auto& [x, y] = std::pair<int, int>();
int
int int
int x y
int x =
int x = ;
int x(
int x[
int x[];
int x[-1];
int x{
int x{1.5};
int& x;
int& x = 3;
int&& x = a;
int* const;
void x;
void f(void x);
void f(int, ..., int);
void f() const;
void f() override;
int f() { return; }
int f() { return "x"; }
int f() { nope
int f() : x(1) {}
f() { return 1; }
main() {}
S::S() {}
int S::nope = 3;
int S::nope() { return 1; }
operator int() { return 1; }
int operator+(int, int);
int operator""(int);
~S();
S() = default;
void f() = delete; f()
struct S2 { S2() = delete; }; S2 x;
struct A { A(A&) = delete; }; A x; A y = x;
struct A { virtual void f() = 0; }; A x;
struct A : B {};
struct A : A {};
struct A { A a; };
struct A { int x; int x; };
struct A final {}; struct B : A {};
if
if (
if ()
if (a
if (a) else
if (a) { else }
if (int) {}
if constexpr (a) {}
else
else {}
for
for (
for (;
for (;;
for (int i) {}
for (int i : ) {}
for (int i : a) {}
for (auto [x, y] : v) {}
while
while (
while ()
do
do {
do {} nope
do {} while
switch
switch (
switch (a) { case }
switch (a) { default: default: ; }
switch (text) {}
case 1:
default:
break
break;
continue;
return
return;
return 3;
return nope;
goto
goto x;
goto *p;
x: y: z:
try
try {}
try {} catch
try {} catch (
try {} catch (int
try {} catch (...) {} catch (int) {}
catch (int) {}
throw nope;
throw throw;
new
new int[
new (int
new nope;
delete
delete a;
delete[] 3;
sizeof
sizeof(
sizeof int;
sizeof(void)
alignof(
decltype
decltype(
decltype(nope) x;
typeid
typeid(
noexcept(
static_assert
static_assert(
static_assert(false);
static_assert(a);
static_cast
static_cast<
static_cast<int>
static_cast<int>(
static_cast<int*>(1.5)
dynamic_cast<S*>(p)
const_cast<int>(a)
reinterpret_cast<float>(a)
(int
(int)
(int*)text
int(
int()
int{}nope
this
this->x
operator
operator+
asm
asm(
asm("nop"
asm("nonsense");
asm("movl %0" : "=nope"(a));
asm(".section nope,\"zz\"");
asm("label:"); asm("label:");
__asm__("jmp nowhere_at_all");
__attribute__
__attribute__((
__attribute__((nope)) int;
__attribute__((alias("nope"))) int aliased();
[[
[[nope
[[nope]]
[[nope]] 3
[[noreturn]] int x;
[
[]
[] {
[](
[](int
[](int x)
[](auto
[=
[&
[a]
[a] { return a; }
[a] { return a; }();
[this] {}
[&&] {}
[] { return nope; }
[] { return 1; return "x"; }
[]<class T>(T) {}
[x = ] {}
[...x] {}
[] { [] { [] { nope; } } }
[](this auto) {}
{
{ {
{ { }
{ nope
{ int
{ int x = }
{ return 3; }
{ struct X { int f() { return } }; }
{1, 2}
}
)
]
(
()
((
(,)
({
({ 1; })
({ nope; })
,
, a
a,
a b
a b c
a.
a->
a..b
a::
a::b
::
::nope
::a::b
a +
a + + +
a ++ ++
+
-
*
* *
**p
*nope
*a
*p nope
&
&&
&& a
&nope
&3
!
!nope
~
~nope
/
/ a
%
^
|
||
<
< a
>
>>
=
= a
==
a =
a = = b
a := b
a <=> b
a ** b
a // b
a === b
a !== b
a <> b
a -> b
a ? b
a ? b :
a ? : b
a : b
3 = a
a = "text";
p = 3;
p = "text"
text = p;
text.nope
text.size
text.size(3)
text()
text[
text[nope]
a[3]
a(3)
a{3}
3(a)
3[list]
3.x
3.5.6
3abc
0b3
089
0x
1e
1e+
'
''
'ab
'abcde'
"
"a
"a" "b
"\x"
"\u12"
"\q"
L"x" u"y"
R"
R"(
R"x(
R"x()y"
R"toolongadelimiterthatnobodycanuse(x)"
u8'xx'
`
@
@a
$
\
\n
\u0041
#
##
#nope
#define
#define 3
#define A(
#define A(x
#define A(x) #y
#define A(x,) x
#undef
#undef 3
#include
#include "
#include <
#include "nope.h"
#include <nope>
#include nope
#include_next <vector>
#if
#if nope(
#if 1 /
#if (1
#ifdef
#ifndef 3
#else
#elif 1
#endif
#error stop
#warning careful
#line
#line nope
#pragma
#pragma once nope
#pragma GCC poison
#pragma GCC error "x"
#pragma clang nope
#pragma pack(
#pragma omp parallel
#import <vector>
#ident 3
#assert x
%:define
??=define X
_Pragma("once")
_Pragma("
__COUNTER__
__LINE__ nope
__FILE__ nope
__func__
__VA_ARGS__
co_await 3
co_yield 3
co_return
co_return 3;
concept X = true;
import nope;
export int x;
module;
module nope;
export module nope;
requires true
print("x")
import numpy as np
def f(x): return x
lambda x: x
for i in range(3):
x = 3
y += 1
None
True and False
not a nope
a and
K
K::
K::nope
K.zeros({3})
K::zeros
K::zeros(
K::zeros({
K::zeros({3)
K::zeros(3, nope)
K::zeros({1, {2}})
K::zeros([3])
K::constant([[1, 2], [3]])
K::constant({{1, 2}, {3}})
K::constant({1, "x"})
K::sum()
K::sum(t, t, t, t)
K::sum(nope)
K::dot(t)
K::dot(t, nope)
K::map_fn(
K::map_fn([](
K::map_fn([](int x) { return x; }, t)
K::map_fn([](const Tensor& x) { nope }, t)
K::function({t}, {nope})
K::gradients(t)
Tensor
Tensor x
Tensor x = 
Tensor x = nope;
Tensor x(1, 2, 3, 4);
Tensor x = "text";
Tensor& x = 3;
Tensors{nope}
t.
t.nope
t.shape
t.shape(
t(
t(nope)
t[
t[nope]
t["x"]
t["..., nope"]
t == nope
t && t
t = nope
t += 1
if (t) {}
while (t)
std::
std::nope
std::cout <<
std::vector
std::vector<
std::vector<int
std::vector<int>
std::vector<int>(
std::vector<int>{"x"}
std::vector<nope>
std::vector<void> x;
std::vector<int&> x;
std::vector<std::unique_ptr<int>> x(3, nullptr);
std::vector<std::unique_ptr<int>> x{std::make_unique<int>(1)};
std::map<S, int>{{s, 1}}
std::map<S, int> m; m[s] = 1;
std::set<S>{s, s}
std::sort(1, 2)
std::sort(v)
std::sort(v.begin(), text.end());
std::sort(v.begin(), v.end(), 3);
std::list<int> l; std::sort(l.begin(), l.end());
std::function<int()>(nope)
std::function<int()> f = [](int) { return 1; };
std::make_unique<S>(1, 2, 3)
std::make_shared<nope>()
std::unique_ptr<int> x = p; 
std::unique_ptr<int> x = std::make_unique<int>(1), y = x;
std::get<3>(std::pair<int, int>())
std::get<double>(std::variant<int>())
std::tuple_size<int>::value
std::visit(3, std::variant<int>())
std::optional<int&>()
std::thread(nope)
std::async(
std::string(1, 2, 3, 4, 5)
std::string x = 3 nope
std::enable_if<false>::type
std::enable_if_t<false, int> x;
std::is_same<int>::value
std::integral_constant<int, nope>::value
twice(s)
twice(p)
twice<int>("x")
twice<>()
twice
Box<int>
Box<nope>
Box<int>{}.nope
Box<void>{}
Box<int>{1, 2, 3}
fresh<a>()
fresh<-1>
Id<"x">()
count_of(nope...)
template <int n> struct Deep : Deep<n - 1> {}; Deep<5> x;
template <int n> struct Forever { static const int v = Forever<n + 1>::v; }; int(Forever<0>::v)
template <class T> struct Grow { Grow<Grow<T>> next; }; Grow<int> x;
constexpr int forever(int n) { return forever(n + 1); } constexpr int x = forever(0);
constexpr int loop() { int i = 0; while (true) ++i; return i; } constexpr int x = loop();
template <class T> auto guess(T t) { return guess(t); } guess(1)
auto undeduced(); undeduced()
int nowhere(int); nowhere(3)
extern int nothing_there; nothing_there
struct Incomplete; Incomplete x;
struct Incomplete; sizeof(Incomplete)
template <class T> struct Later; Later<int> x;
struct V { virtual void undefined(); }; V x;
struct W { static int undefined; }; W::undefined
static int never(); never()
inline int never_inline(); never_inline()
template <class T> T never_template(T); never_template(3)
extern "C" int c_name() { return 1; } extern "C" double c_name() { return 2; }
int same() { return 1; } int same() { return 2; }
int same; double same;
struct Twice {}; struct Twice {};
enum Twice2 { t1, t1 };
int f(int x) { int x = 3; return x; }
namespace a { }
namespace std { int a; } nope
int K = 3; nope
struct S { nope }; 
"""

# Programs whose every beginning is tried: what a cursor passes while it is typed, with and without what would close it.
PROGRAMS = [
    "int f(int x) { if (x > 1) { return f(x - 1) * x; } else { return 1; } }",
    "template <class T> struct Stack { std::vector<T> items; void push(T t) { items.push_back(t); } T top() const { return items.back(); } };",
    "for (int i = 0; i < 3; ++i) { for (auto& x : v) { x += i; if (x > 10) { continue; } } }",
    "auto compose = [](auto f, auto g) { return [=](auto x) { return f(g(x)); }; };",
    "namespace geometry { struct Point { double x, y; }; inline double norm(const Point& p) { return p.x * p.x + p.y * p.y; } }",
    "try { std::map<int, std::string> m{{1, \"a\"}}; m.at(2); } catch (const std::out_of_range& e) { a = 1; } catch (...) { a = 2; }",
    "switch (a) { case 1: { b = 2; break; } case 2: b = 3; break; default: b = 4; }",
    "K::map_fn([](const Tensor& row) { return K::sum(row * 2.0) + K::constant({1, 2})[0]; }, K::constant({{1, 2}, {3, 4}}))",
    "std::sort(v.begin(), v.end(), [](int x, int y) { return std::make_pair(x, 1) < std::make_pair(y, 2); });",
    "class Shape2 { public: virtual double area() const = 0; virtual ~Shape2() {} protected: int sides = 3; private: struct Hidden { int n; } h; };",
    "enum class Level : unsigned char { low = 1, high = 1 << 3 }; constexpr int of(Level l) { return static_cast<int>(l); }",
    "template <class T, std::enable_if_t<std::is_integral<T>::value, int> = 0> constexpr T gcd2(T x, T y) { return y == 0 ? x : gcd2(y, x % y); }",
    "auto [first, second] = std::make_pair(std::vector<int>{1, 2}, std::string(\"x\"));",
    "do { a = [&] { return a + 1; }(); } while (a < 5 && (b != 2 || !yes));",
    "struct Op { Op operator+(const Op& o) const { return Op{n + o.n}; } explicit operator bool() const { return n; } int n; } op1{1}, op2{2};",
]

# Several lines, as they are pasted.
PASTED = [
    ("if (a > 100) { a = 5; }\nelse { a = 6; }\na", "6"),
    ("a = 200; if (a > 100) { a = 5; }\nelse { a = 6; }\na", "5"),
    ("a = 50;\nif (a > 100) { a = 1; }\n\nelse if (a > 40) {\n  a = 2;\n}\nelse {\n  a = 3;\n}\na", "2"),
    ("a = 1; if (a > 100)\n  a = 5;\nelse\n  a = 7;\na", "7"),
    ("try {\n  throw 5;\n}\ncatch (int i) {\n  a = i;\n}\na", "5"),
    ("do {\n  ++a;\n}\nwhile (a < 9);\na", "9"),
    ("struct Pasted\n{\n  int x = 4;\n};\nPasted().x", "4"),
    ("namespace pasted\n{\nint y = 5;\n}\npasted::y", "5"),
    ("template <class T>\nT pasted_function(T t)\n{\n  return t + 1;\n}\npasted_function(1)", "2"),
    ("#ifndef GUARD_H\n#define GUARD_H\nint guarded = 3;\n#endif\nguarded", "3"),
    ("#ifndef GUARD_H\n#define GUARD_H\nint guarded = 4;\n#endif\nguarded", "3"),
    ("#if 0\nnope (\n#else\nint chosen = 2;\n#endif\nchosen", "2"),
    ("#pragma once\nint header_line = 1;\nheader_line", "1"),
    ("#define LONG(x) \\\n  ((x) + \\\n   1)\nLONG(2)", "3"),
    ("/* a comment\n   of two lines */\n3", "3"),
    ("std::string raw2 = R\"(one\ntwo)\";\nraw2.size()", "7"),
    ("int sum3 = 1 +\n  2 +\n  3;\nsum3", "6"),
    ("std::vector<int> wide = {\n  1,\n  2,\n};\nwide.size()", "2"),
    ("auto chain = std::string(\"x\")\n  .append(\"y\");\n1", "1"),
]

SOUP = """a b p s t v d text list yes nope 1 2.5 "x" 'c' int auto const double struct S Tensor K:: std:: vector < > ( ) [ ] { } , ; ; = + - * & ! . -> ::
 :: if else return template class namespace using static [] [&] true nullptr sizeof new throw try catch switch case enum operator
 decltype constexpr twice Box Id <1> fresh typename void . ... # ## == << ? : @ $ \\ noexcept alignas asm union""".split()


def in_order():
    """Cases that build on those before them: (lines, line that must work, what it shows)"""
    for line in RIGHT.strip("\n").split("\n"):
        line, _, value = line.partition(" => ")
        yield ("", line, value) if value else (line, "7 * 6", "42")
    for text, shown in PASTED:
        lines, _, last = text.rpartition("\n")
        yield lines, last, shown


def cases():
    """Cases that stand alone."""
    number = 1000
    for e, value in FRESH:
        for wrong in MISTAKES.strip().split("\n"):
            number += 1
            expression = e.replace("N", str(number))
            shown = str(eval(value.replace("N", str(number))))
            yield re.sub(r"\bE\b", lambda _: expression, wrong), expression, shown
    for line in WRONG.strip("\n").split("\n"):
        for ending in ("", ";", " }", "\n}"):
            number += 1
            yield line + ending, f"twice(fresh<{number}>())", str(2 * number)
    for program in PROGRAMS:
        words = re.findall(r"\w+|::|->|\S", program)
        for n in range(1, len(words)):
            number += 1
            begun = " ".join(words[:n])
            yield begun, f"fresh<{number}>()", str(number)
            if n % 3 == 0:
                yield begun + " nope;" + "})]"[n % 2 :: 2], f"Box<Id<{number}>>{{}}.get().value", str(number)
    draw = random.Random(20)
    for _ in range(800):
        number += 1
        yield " ".join(draw.choice(SOUP) for _ in range(draw.randint(2, 9))), f"std::vector<Id<{number}>>(2).size()", "2"


def session(part, folder):
    """Runs cases in one session: (lines, lost, what went wrong, compiler crashes survived)"""
    typed = []
    for lines, probe, _ in part:
        typed += lines.split("\n") + ["^C", '"the next"', probe]
    text = PRELUDE.strip() + "\n" + "\n".join(typed) + "\n"
    run = subprocess.run([options.repl, "--echo"], input=text.encode(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=folder)
    shown = run.stdout.decode(errors="replace")
    pieces = re.split(r'^(?:kassette>|     \.\.\.>) "the next"\n', shown, flags=re.M)
    wrong = []
    for i, (lines, probe, value) in enumerate(part):
        if i + 1 >= len(pieces):
            wrong.append(("the session ended", lines, pieces[-1], run.returncode))
            break
        answer = re.search(r"^kassette> " + re.escape(probe) + r"\n(.*?)(?=\nkassette> |\Z)", pieces[i + 1], re.M | re.S)
        got = answer.group(1).strip() if answer else pieces[i + 1]
        if got != value:
            wrong.append(("the session is broken", lines, f"{probe}: expected {value}, got {got}", 0))
    if not wrong and run.returncode != 0:
        wrong.append(("the session ended badly", "", shown[-300:], run.returncode))
    return len(text.split("\n")), wrong, re.findall(r"the compiler (?:crashes|does not finish).*", shown), pieces


everything = [c for i, c in enumerate(cases()) if i % options.every == 0]
size = 250
ordered = [list(in_order())] + [everything[i : i + size] for i in range(0, len(everything), size)]
total, ended, broken, survived = 0, 0, 0, 0
with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(max(2, os.cpu_count() or 2)) as pool:
    os.environ["KASSETTE_HISTORY"] = os.path.join(folder, "history")
    for part, (lines, wrong, crashes, pieces) in zip(ordered, pool.map(lambda part: session(part, folder), ordered)):
        total += lines
        survived += len(crashes)
        if options.show:
            for i, piece in enumerate(pieces[:-1]):
                if re.search(r"the compiler (?:crashes|does not finish)", piece):
                    print(f"a crash of the compiler's that was survived, after: {part[i][0]!r}")
        for what, line, detail, code in wrong:
            ended += what != "the session is broken"
            broken += what == "the session is broken"
            print(f"{what} after: {line!r}\n    {detail[-600:]} {code or ''}")
print(f"lines {total}, cases {sum(map(len, ordered))}, crashes {ended}, poisoned sessions {broken}, crashes of the compiler survived {survived}")
sys.exit(1 if ended or broken else 0)
