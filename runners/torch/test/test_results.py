"""The file of results keeps the cases that ran, and no cases of other versions."""

import json
import os
import tempfile
import unittest

import results


class TestResults(unittest.TestCase):
    def test_store(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "r.json")

            def cases(versions, rows):
                results.store(path, versions, rows)
                with open(path, encoding="utf-8") as f:
                    return {case: row["graphs"] for case, row in json.load(f)["cases"].items()}

            self.assertEqual(cases({"torch": "1"}, {"b": {"graphs": 2}}), {"b": 2})
            self.assertEqual(list(cases({"torch": "1"}, {"a": {"graphs": 1}}).items()), [("a", 1), ("b", 2)])
            self.assertEqual(cases({"torch": "1"}, {"b": {"graphs": 3}}), {"a": 1, "b": 3})
            with open(path, encoding="utf-8") as f:
                self.assertEqual([line[:3] for line in f], ['{"v', '"a"', '"b"', "}}\n"])
            self.assertEqual(cases({"torch": "2"}, {"c": {"graphs": 1}}), {"c": 1})

    def test_shown(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "r.json")
            self.assertEqual(results.shown(path, {"a": "k"}.get), {})
            results.store(path, {"torch": "1"}, {"a": {"graphs": 1, "differences": 0}, "b": {"graphs": 2, "differences": 1}}, commit="abc", key="k")
            results.store(path, {"torch": "1"}, {"c": {"graphs": 3, "differences": 0}}, commit="abc", key="other")
            results.store(path, {"torch": "1"}, {"d": {"graphs": 4, "differences": 0}}, commit="abc")
            self.assertEqual([*results.shown(path, lambda _: "k")], ["a"])
            self.assertEqual([*results.rows(path, lambda _: "k")], ["a", "b"])
            self.assertEqual([*results.shown(path, {"c": "other"}.get)], ["c"])
            self.assertEqual(results.versions(path), {"torch": "1"})

    def test_own_time(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "status.json")
            with open(path, "w", encoding="utf-8") as f:
                json.dump({"status": "restored", "milliseconds": 41.26, "phases": []}, f)
            self.assertEqual(results.own_time(path), {"milliseconds": 41.3})

    def test_since(self):
        self.assertEqual(results.since({"graphs": 4, "nodes": 10}, {"graphs": 6, "nodes": 11}), {"graphs": 2, "nodes": 1})


if __name__ == "__main__":
    unittest.main()
