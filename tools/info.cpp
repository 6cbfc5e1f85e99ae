// tools/info.cpp - what `kassette info` prints.
#include <kassette/show_config.h>

#include <iostream>

int main() { kassette::show_config(std::cout); }
