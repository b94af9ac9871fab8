"""The findings of libraries.py, on made-up reports."""

import copy
import unittest

import libraries

KERNELS = [(kernel + "_f16", f"module 0123 of {library}.12") for library, kernel, _ in libraries.LIBRARIES.values()]
OUTPUTS = {number: [[[64 * i, 1] for i in range(marks)]] * 2 for number, (_, _, marks) in libraries.LIBRARIES.items()}


def started(how, outputs=OUTPUTS):
    return {"start": "restored", "outputs": copy.deepcopy(outputs)}, [(how, *kernel) for kernel in KERNELS]


class TestLibraries(unittest.TestCase):
    def setUp(self):
        self.native = {"start": "native", "outputs": copy.deepcopy(OUTPUTS)}
        self.restored, self.untriggered = started("triggered"), started("object")

    def differences(self):
        return libraries.differences(self.native, self.restored, self.untriggered)

    def test_equal(self):
        self.assertEqual(self.differences(), [])

    def test_found_otherwise(self):
        self.untriggered = started("triggered")
        self.assertEqual(len(self.differences()), 1)

    def test_another_librarys_module(self):
        how, name, _ = self.restored[1][2]
        self.restored[1][2] = (how, name, self.restored[1][0][2])
        self.assertIn("libcudnn.so", self.differences()[0])

    def test_semaphores_were_not_restored(self):
        self.restored[0]["outputs"]["1"][0] = []
        self.assertEqual(len(self.differences()), 1)

    def test_nothing_was_computed(self):
        for outputs in (self.native["outputs"], self.restored[0]["outputs"], self.untriggered[0]["outputs"]):
            outputs["2"] = [[], []]
        self.assertEqual(len(self.differences()), 2)


if __name__ == "__main__":
    unittest.main()
