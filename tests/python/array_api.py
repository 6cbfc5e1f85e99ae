"""tests/python/array_api.py FOLDER [PYTEST_ARGUMENTS...] - runs the array API standard's own tests, version 2024.12, on kassette.numpy.

FOLDER is a clone of github.com/data-apis/array-api-tests with its submodule; they are in no package index, so that CI does not run them. Wants kassette, pytest,
hypothesis and ndindex installed. A test that fails is an error unless array_api_known.tsv has it, with the reason. Two lines of the suite, which take it for
granted that there are complex dtypes, are changed in a copy. --max-examples 100 has more than the 20 of each test.
"""
import os
import pathlib
import re
import shutil
import sys
import tempfile

KNOWN = pathlib.Path(__file__).with_name("array_api_known.tsv")
EDITS = [("dtype_helpers.py", "for dt in complex_dtypes], key", "for dt in complex_dtypes] or [(None, 0)], key"),
         ("test_signatures.py", "cmplx_name = dh.dtype_to_name[dh.widest_complex_dtype]", 'cmplx_name = "complex128"')]


class Results:
    def __init__(self):
        self.passed, self.failed = 0, []

    def pytest_runtest_logreport(self, report):
        self.passed += report.when == "call" and report.passed
        if report.failed and report.nodeid not in self.failed:
            self.failed.append(report.nodeid)

    def pytest_collectreport(self, report):
        if report.failed:
            self.failed.append(report.nodeid)


def main():
    import pytest

    work = pathlib.Path(tempfile.mkdtemp())
    folder = work / "suite"
    shutil.copytree(sys.argv[1], folder, ignore=shutil.ignore_patterns(".git", "__pycache__"))
    for name, before, after in EDITS:
        path = folder / "array_api_tests" / name
        text = path.read_text()
        if before not in text:
            sys.exit(f"array_api.py: {name} has no line '{before}'; the suite is another version")
        path.write_text(text.replace(before, after))
    os.environ.update(ARRAY_API_TESTS_MODULE="kassette.numpy", ARRAY_API_TESTS_VERSION="2024.12", ARRAY_API_TESTS_SKIP_DTYPES="complex64,complex128")
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    results = Results()
    pytest.main(["-q", "--tb=no", "--no-summary", "--disable-warnings", "-p", "no:cacheprovider", "--max-examples", "20", *(sys.argv[2:] or ["array_api_tests"])],
                plugins=[results])
    known = [line.split("\t") for line in KNOWN.read_text().splitlines() if not line.startswith("#")]
    unknown = [test for test in results.failed if not any(re.search(pattern, test) for pattern, _ in known)]
    for pattern, reason in known:
        print(f"{sum(bool(re.search(pattern, test)) for test in results.failed):4} {reason}")
    for test in unknown:
        print(f"not known: {test}")
    print(f"{results.passed} passed, {len(results.failed)} failed, {len(unknown)} of them not in {KNOWN.name}")
    shutil.rmtree(work)
    return 1 if unknown else 0


if __name__ == "__main__":
    sys.exit(main())
