// tools/info.cpp - what `kassette info` prints.
#include <kassette/version.h>

#include <cstdio>

int main() { std::printf("kassette %s\n", kassette::version()); }
