// tests/consumer/main.cpp - a program outside our tree.
#include <kassette/version.h>

#include <cstdio>

int main() { return std::puts(kassette::version()) < 0; }
