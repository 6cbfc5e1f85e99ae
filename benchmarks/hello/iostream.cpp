#include <iostream>

int main() { std::cout << 8 << '\n'; }
