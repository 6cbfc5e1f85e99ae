"""A Jupyter kernel for C++ with kassette. `kassette notebook` installs and starts it."""
