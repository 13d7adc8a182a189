"""Tests kullback.py with a stand-in for PySpark; NearestTextTest runs the same texts on Spark."""

import pathlib
import string
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "main" / "resources"))
sys.dont_write_bytecode = True

import kullback  # noqa: E402

TEXTS = HERE.parent / "resources" / "dev" / "kullback" / "spark"


class Session:
    """Formats a text as PySpark's session does, and returns it."""

    def __init__(self, functions=("kl_divergence", "kl_divergence_full")):
        self.catalog = self
        self.functionExists = functions.__contains__

    def sql(self, text, **frames):
        return string.Formatter().vformat(text, (), {name: frame.name for name, frame in frames.items()})


class Frame:
    def __init__(self, name, columns, session=None):
        self.name = name
        self.columns = columns
        self.sparkSession = session or Session()


def frames(*columns):
    return Frame("queries", list(columns)), Frame("refs", list(columns))


class NearestTest(unittest.TestCase):
    def assertText(self, file, text):
        self.assertEqual((TEXTS / file).read_text(encoding="utf-8").rstrip("\n"), text)

    def test_texts(self):
        q, p = frames("id", "mean", "std")
        self.assertText("nearest.sql", kullback.nearest(q, p, 5))
        q, p = frames("a.key", "g", "{L}`")
        text = kullback.nearest(q, p, 3, id="a.key", mean="g.mean", scale_tril="{L}`", reverse=True)
        self.assertText("nearest-full.sql", text)

    def test_letters_of_either_case(self):
        q, p = frames("ID", "Mean", "STD")
        self.assertIn("`id` AS id, `mean` AS mean, `std` AS std", kullback.nearest(q, p, 1))
        q, p = frames("Row.Key", "mean", "std")
        self.assertIn("`row.key` AS id", kullback.nearest(q, p, 1, id="row.key"))

    def test_errors(self):
        q, p = frames("id", "mean", "std")
        for k, error, message in (
            (0, ValueError, "k must be at least 1, is 0"),
            (2.5, TypeError, "k must be an int, is 2.5"),
            (True, TypeError, "k must be an int, is True"),
        ):
            with self.assertRaisesRegex(error, message):
                kullback.nearest(q, p, k)
        with self.assertRaisesRegex(ValueError, "queries: no column mu; there are id, mean, std"):
            kullback.nearest(q, p, 1, mean="mu")
        with self.assertRaisesRegex(ValueError, r"queries: no column mean\.\.x; there are id, mean, std"):
            kullback.nearest(q, p, 1, mean="mean..x")
        with self.assertRaisesRegex(ValueError, "references: no column id; there are key"):
            kullback.nearest(q, Frame("refs", ["key"]), 1)
        with self.assertRaisesRegex(TypeError, "std must be a column's name, is None"):
            kullback.nearest(q, p, 1, std=None)
        with self.assertRaisesRegex(TypeError, "references must be a DataFrame, is list"):
            kullback.nearest(q, [], 1)
        bare = Frame("queries", ["id", "mean", "std"], Session(()))
        with self.assertRaisesRegex(RuntimeError, "the session has no function kl_divergence: start it with spark.sql.ext"):
            kullback.nearest(bare, p, 1)


if __name__ == "__main__":
    unittest.main()
