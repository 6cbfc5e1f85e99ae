// examples/hello.cpp - the smallest program.
#include <kassette/version.h>

#include <cstdio>

int main() { std::printf("kassette %s\n", kassette::version()); }
