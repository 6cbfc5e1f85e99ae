// autograd/tape/shadow.cpp - the hook of tests, which no program sets.
#include "autograd/tape/shadow.h"

namespace kassette::autograd {

constinit Shadow* shadow = nullptr;

}  // namespace kassette::autograd
