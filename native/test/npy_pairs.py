"""Inputs of odd shapes for `kullback pairwise`, and the comparison of two backends' results. Needs Python alone.

    npy_pairs.py make DIR            writes DIR/NAME-{q,p}-{mean,scale}.npy; prints a line NAME OPTION of each case
    npy_pairs.py compare A B         the largest relative difference; exit status 1 if it is too large
"""

import array
import math
import os
import random
import re
import sys

# name, rows of q, rows of p, dimension
SHAPES = [("one", 1, 1, 1), ("narrow", 7, 65, 3), ("odd", 130, 129, 33), ("tall", 1000, 1, 257), ("wide", 63, 2049, 100)]
FULL = [("full", 65, 33, 17), ("full-one", 1, 1, 1), ("full-large", 9, 5, 70)]
# What two results may differ by that each hold to 1e-5; and for double 1e-12, times a condition of L that is below 1e3.
MOST = {"f": 2e-5, "d": 2e-12}
MOST_FULL = {"f": 2e-5, "d": 2e-9}


def write(path, values, shape, typecode):
    text = "{'descr': '<f%d', 'fortran_order': False, 'shape': (%s), }" % (
        array.array(typecode).itemsize, "".join("%d, " % n for n in shape))
    text += " " * (-(len(text) + 11) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode())
        array.array(typecode, values).tofile(file)


def read(path):
    with open(path, "rb") as file:
        head = file.read(8)
        length = int.from_bytes(file.read(2 if head[6] == 1 else 4), "little")
        text = file.read(length).decode("latin-1")
        values = array.array("f" if "<f4" in text else "d")
        values.frombytes(file.read())
    shape = tuple(int(n) for n in re.findall(r"\d+", text[text.index("'shape'"):]))
    assert math.prod(shape) == len(values), path + " is cut off"
    return shape, values


def factor(d):
    values = []
    for r in range(d):
        for c in range(d):
            values.append(math.exp(random.gauss(0, 0.3)) if r == c else 0.3 / math.sqrt(d) * random.gauss(0, 1) if c < r else 0)
    return values


def make(folder):
    random.seed(42)
    for typecode, kind in [("f", "float"), ("d", "double")]:
        for shapes, option in [(SHAPES, "std"), (FULL, "scale-tril")]:
            for name, n, m, d in shapes:
                case = name + "-" + kind
                for side, size in [("q", n), ("p", m)]:
                    mean = [random.gauss(0, 1) for _ in range(size * d)]
                    write(os.path.join(folder, "%s-%s-mean.npy" % (case, side)), mean, (size, d), typecode)
                    if option == "std":
                        scale, shape = [0.5 * math.exp(random.gauss(0, 0.5)) for _ in range(size * d)], (size, d)
                    else:
                        scale, shape = [x for _ in range(size) for x in factor(d)], (size, d, d)
                    write(os.path.join(folder, "%s-%s-scale.npy" % (case, side)), scale, shape, typecode)
                print(case, option)


def compare(a, b):
    (shape, x), (other, y) = read(a), read(b)
    most = (MOST_FULL if "full" in os.path.basename(a) else MOST)[x.typecode]
    assert shape == other and x.typecode == y.typecode, "shapes or types differ"
    assert all(math.isfinite(v) and v >= 0 for v in x), "an entry is not finite, or negative"
    worst = max((abs(u - v) / max(u, v) for u, v in zip(x, y) if u != v), default=0)
    print("%s %s: largest relative difference %.2g, of %.0e allowed" % (os.path.basename(a), shape, worst, most))
    return worst <= most


if __name__ == "__main__":
    if sys.argv[1:2] == ["make"] and len(sys.argv) == 3:
        make(sys.argv[2])
    elif sys.argv[1:2] == ["compare"] and len(sys.argv) == 4:
        sys.exit(0 if compare(sys.argv[2], sys.argv[3]) else 1)
    else:
        print(__doc__)
        sys.exit(2)
