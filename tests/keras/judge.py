"""Compares a run of Keras' tests with the failures that are known: judge.py KNOWN.tsv RESULT.xml [RESULT_AGAIN.xml].

Prints the failures that are not known, one node id a line on standard error, and a summary; ends with 1 if there are any. What failed and then
passed in the second run counts as passed.
"""
import re
import sys
import xml.etree.ElementTree


def outcomes(path):
    """(node id, name as known.tsv has it) -> passed, failed or skipped"""
    found = {}
    for case in xml.etree.ElementTree.parse(path).iter("testcase"):
        failed = case.find("failure") is not None or case.find("error") is not None
        outcome = "failed" if failed else "skipped" if case.find("skipped") is not None else "passed"
        module = case.get("file")[:-len(".py")].replace("/", ".")
        of_class = case.get("classname")[len(module) + 1:]
        key = "::".join(filter(None, (case.get("file"), of_class, case.get("name"))))
        name = (case.get("classname") + "." + case.get("name")).replace("tests.", "", 1)
        if found.get((key, name)) != "failed":   # an error while a test is torn down comes as a second case
            found[key, name] = outcome
    return found


def main(known_path, result, again=None):
    known = []
    with open(known_path) as lines:
        for line in lines:
            if line.strip() and not line.startswith("#"):
                known.append(re.compile(re.escape(line.split("\t")[0]).replace(r"\*", ".*") + "$"))
    found = outcomes(result)
    if again:
        found.update(outcomes(again))
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    unexpected = []
    for (key, name), outcome in found.items():
        counts[outcome] += 1
        if outcome == "failed" and not any(k.match(name) for k in known):
            unexpected.append(key)
    for key in unexpected:
        print(key, file=sys.stderr)
    print(f"Keras' own tests: {counts['passed']} passed, {counts['failed']} failed, {counts['failed'] - len(unexpected)} of them known, "
          f"{counts['skipped']} skipped")
    sys.exit(bool(unexpected))


if __name__ == "__main__":
    main(*sys.argv[1:])
