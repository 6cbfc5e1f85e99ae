"""Compares a run of Keras' tests with the failures that are known: judge.py RESULT.xml KNOWN.tsv LOG."""
import sys
import xml.etree.ElementTree


def main(result, known_path, log):
    known = {}
    with open(known_path) as lines:
        for line in lines:
            if line.strip() and not line.startswith("#"):
                test, fault, reason = line.rstrip("\n").split("\t")
                known[test] = reason
    counts, unexpected, mended = {"passed": 0, "failed": 0, "skipped": 0}, [], []
    for case in xml.etree.ElementTree.parse(result).iter("testcase"):
        name = case.get("classname").replace("tests.", "", 1) + "." + case.get("name")
        failed = case.find("failure") is not None or case.find("error") is not None
        outcome = "failed" if failed else "skipped" if case.find("skipped") is not None else "passed"
        counts[outcome] += 1
        if failed and name not in known:
            unexpected.append(name)
        if outcome == "passed" and name in known and "sometimes" not in known[name]:
            mended.append(name)
    for name in unexpected:
        print("failed:", name)
    for name in mended:
        print("passes, but is listed in known.tsv:", name)
    print(f"Keras' own tests: {counts['passed']} passed, {counts['failed']} failed ({counts['failed'] - len(unexpected)} of them known), "
          f"{counts['skipped']} skipped; {log}")
    sys.exit(bool(unexpected or mended))


if __name__ == "__main__":
    main(*sys.argv[1:])
