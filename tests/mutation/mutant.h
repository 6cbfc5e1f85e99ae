// tests/mutation/mutant.h - the switch between a line and its mutants; only in a tree that mutants.py has rewritten.
#ifndef KASSETTE_TESTS_MUTATION_MUTANT_H
#define KASSETTE_TESTS_MUTATION_MUTANT_H

namespace kassette::mutation {

/// The mutant that KASSETTE_MUTANT names; 0: none.
[[gnu::visibility("default")]] extern int active;
/// One byte per mutant, 1 once its place was reached; shared with child processes.
[[gnu::visibility("default")]] extern unsigned char* reached;

// Inlined: a copy that the linker picks from the code of one CPU level must not serve the others. Not constexpr: what has to be
// known when compiling then does not compile, and is drawn again.
[[gnu::always_inline]] inline bool mutant(int id) {
  reached[id] = 1;
  return active == id;
}

}  // namespace kassette::mutation

#endif  // KASSETTE_TESTS_MUTATION_MUTANT_H
