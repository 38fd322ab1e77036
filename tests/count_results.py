"""Adds up the parts of a test run: a table, then `N passed, N failed, N skipped`.

    count_results.py FOLDER PART...

Each part left PART.code (exit code and seconds) and, unless it broke before its tests, PART.xml
(JUnit). A part that ended with an error without a failed test, or that ran no test, counts as one
failure. Exit code 1 unless all is well.
"""
import pathlib
import sys
import xml.etree.ElementTree as xml


def count(report):
    """passed, failed, skipped of one JUnit file."""
    passed = failed = skipped = 0
    for case in xml.parse(report).iter("testcase"):
        state = case.get("status")
        if case.find("failure") is not None or case.find("error") is not None or state == "fail":
            failed += 1
        elif case.find("skipped") is not None or state in ("notrun", "disabled"):
            skipped += 1
        else:
            passed += 1
    return passed, failed, skipped


def main(folder, parts):
    total = [0, 0, 0]
    for part in parts:
        code, seconds = map(int, (folder / f"{part}.code").read_text().split())
        report = folder / f"{part}.xml"
        counts = list(count(report)) if report.exists() else [0, 0, 0]
        if (code != 0 and counts[1] == 0) or sum(counts) == 0:
            counts[1] += 1
            print(f"{part}: ended with code {code}, but no test failed")
        total = [a + b for a, b in zip(total, counts)]
        passed, failed, skipped = counts
        print(f"{part:10} {passed:4} passed {failed:3} failed {skipped:3} skipped {seconds:5} s")
    print(f"{total[0]} passed, {total[1]} failed, {total[2]} skipped")
    return 1 if total[1] else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]), sys.argv[2:]))
