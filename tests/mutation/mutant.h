// tests/mutation/mutant.h - the switch between a line and its mutants; only in a tree that mutants.py has rewritten.
#ifndef KASSETTE_TESTS_MUTATION_MUTANT_H
#define KASSETTE_TESTS_MUTATION_MUTANT_H

namespace kassette::mutation {

/// The mutant that KASSETTE_MUTANT names; 0: none.
[[gnu::visibility("default")]] extern int active;
/// One byte per mutant, 1 once its code was reached; shared with child processes.
[[gnu::visibility("default")]] extern unsigned char* reached;

// Inlined: the linker must not share a copy compiled for one CPU level with the others. Not constexpr: mutants in
// constant expressions then do not compile, and are drawn again.
[[gnu::always_inline]] inline bool mutant(int id) {
  reached[id] = 1;
  return active == id;
}

}  // namespace kassette::mutation

#endif  // KASSETTE_TESTS_MUTATION_MUTANT_H
