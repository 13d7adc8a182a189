#!/usr/bin/env python3
"""Makes witness.txt: divergences, gradients, densities and mixtures of small batches, from their definitions.

Nothing of this is the library's: Gaussians are a mean and a covariance matrix of mpmath's numbers of 120 digits, whatever they were
stated by, determinants and inverses are taken of these, and derivatives are differences. It takes half a minute and needs mpmath 1.3.

    python3 witness.py > ../resources/witness.txt
    python3 witness.py --check      # compares the formulas with integrals of densities

A case is lines "name: values", row-major, and ends with an empty line. "inputs" are float or double, and "q.scale" is what "q.kind" says.
"condition" is the greatest condition number of a factor L, of low-rank ones of I + W'WV^-1.
"""
import itertools
import random
import struct
import sys

from mpmath import cholesky, det, diag, eigsy, exp, expm1, eye, inf, inverse, log, matrix, mp, mpf, nstr, pi, quad, sqrt

mp.dps = 120


# --- inputs


def rounded(x, is_double):
    """The number that a reader of its digits has, which are as few as can be."""
    x = float(nstr(mpf(x), 17))
    return x if is_double else struct.unpack("f", struct.pack("f", x))[0]


class Batch:
    def __init__(self, kind, is_double, means, scales, factors=None):
        self.kind = kind
        self.means = [[rounded(x, is_double) for x in row] for row in means]
        self.scales = [[rounded(x, is_double) for x in row] for row in scales]
        self.factors = factors and [[rounded(x, is_double) for x in row] for row in factors]

    def gaussians(self):
        return [self.gaussian(i) for i in range(len(self.means))]

    def gaussian(self, i):
        w = self.factors[i] if self.factors else None
        return matrix(self.means[i]), covariance(self.kind, self.scales[i], len(self.means[i]), w)

    def lines(self, name):
        print(f"{name}.kind: {self.kind}")
        print_values(name + ".mean", [mpf(x) for row in self.means for x in row])
        print_values(name + ".scale", [mpf(x) for row in self.scales for x in row])
        if self.factors:
            print_values(name + ".factor", [mpf(x) for row in self.factors for x in row])


def lower(x, d):
    l, at = matrix(d, d), 0
    for r in range(d):
        for c in range(r + 1):
            l[r, c] = x[at]
            at += 1
    return l


def covariance(kind, scale, d, factor=None):
    """The covariance matrix of a Gaussian whose scale is stated in a way of ScaleKind's."""
    x = [mpf(v) for v in scale]
    if kind == "STD":
        c = diag([v**2 for v in x])
    elif kind == "VARIANCE":
        c = diag(x)
    elif kind == "LOG_VARIANCE":
        c = diag([exp(v) for v in x])
    elif kind == "PRECISION":
        c = diag([1 / v for v in x])
    elif kind == "PACKED_SCALE_TRIL" or kind == "PLAIN_PACKED_SCALE_TRIL":
        l = lower(x, d)
        if kind == "PACKED_SCALE_TRIL":
            for k in range(d):
                l[k, k] = exp(l[k, k])
        c = l * l.T
    else:
        a = matrix(d, d)
        for k in range(d * d):
            a[k // d, k % d] = x[k]
        if kind == "SCALE_TRIL":
            c = a * a.T
        elif kind == "COVARIANCE":
            c = (a + a.T) / 2
        elif kind == "PRECISION_MATRIX":
            c = inverse((a + a.T) / 2)
        else:
            assert kind == "PRECISION_CHOLESKY"
            c = inverse(a * a.T)
    if factor:
        w = matrix(d, len(factor) // d)
        for k, v in enumerate(factor):
            w[k // w.cols, k % w.cols] = mpf(v)
        c = c + w * w.T
    return c


# --- definitions


def trace(a):
    return sum(a[k, k] for k in range(a.rows))


def squares(d, c):
    return (d.T * inverse(c) * d)[0]


def kl_parts(q, p):
    """What of KL is the covariances', and what is the means'."""
    (m, a), (n, b) = q, p
    return (trace(inverse(b) * a) - a.rows + log(det(b) / det(a))) / 2, squares(m - n, b) / 2


def kl(q, p):
    return sum(kl_parts(q, p))


def chernoff(alpha, q, p):
    """-ln of the integral of q^alpha p^(1 - alpha)."""
    (m, a), (n, b) = q, p
    mixed = alpha * b + (1 - alpha) * a
    if alpha > 1 and not is_definite(mixed):
        return -inf
    logs = log(det(mixed)) - (1 - alpha) * log(det(a)) - alpha * log(det(b))
    return (alpha * (1 - alpha) * squares(m - n, mixed) + logs) / 2


def is_definite(a):
    return all(det(a[:k, :k]) > 0 for k in range(1, a.rows + 1))


def squared_wasserstein(q, p):
    (m, a), (n, b) = q, p
    size = trace(a)  # mpmath takes small matrices for singular ones
    l = cholesky(a / size)
    roots = eigsy(l.T * (b / trace(b)) * l, eigvals_only=True)
    return sum(x**2 for x in m - n) + size + trace(b) - 2 * sqrt(size * trace(b)) * sum(sqrt(abs(x)) for x in roots)


def renyi(alpha):
    return lambda q, p: chernoff(mpf(alpha), q, p) / (1 - mpf(alpha))


LOW_RANK = {
    "kl": kl,
    "reverse-kl": lambda q, p: kl(p, q),
    "jeffreys": lambda q, p: kl(q, p) + kl(p, q),
}

DIVERGENCES = LOW_RANK | {
    "bhattacharyya": lambda q, p: chernoff(mpf(0.5), q, p),
    "hellinger": lambda q, p: sqrt(-expm1(-chernoff(mpf(0.5), q, p))),
    "wasserstein-2": lambda q, p: sqrt(abs(squared_wasserstein(q, p))),
    "squared-wasserstein-2": squared_wasserstein,
    "renyi:0.25": renyi(0.25),
    "renyi:1.5": renyi(1.5),
    "chernoff:0.001": lambda q, p: chernoff(mpf(0.001), q, p),
}


def log_density(x, p):
    return -(squares(x - p[0], p[1]) + log(det(p[1])) + x.rows * log(2 * pi)) / 2


# --- gradients of a weighted sum of KL by the parameters as they were given


def gradient(cotangents, q, p):
    """Derivatives by each parameter of q and of p, and the sums of the sizes of their terms."""
    result = {}
    gq, gp = q.gaussians(), p.gaussians()
    for name, batch, others in (("q", q, gp), ("p", p, gq)):
        for of, rows in (("mean", batch.means), ("scale", batch.scales)):
            values, sizes = [], []
            for i, k in itertools.product(range(len(rows)), range(len(rows[0]))):
                if of == "scale" and is_fixed(batch, k):
                    values.append(mpf(0))
                    sizes.append(mpf(0))
                    continue
                h = mpf(10) ** -35 * (abs(mpf(rows[i][k])) or 1)
                at = [moved(batch, of, i, k, s * h) for s in (1, -1)]
                value = size = mpf(0)
                for j, other in enumerate(others):
                    g = cotangents[i][j] if name == "q" else cotangents[j][i]
                    up, down = (kl_parts(x, other) if name == "q" else kl_parts(other, x) for x in at)
                    for part in (0, 1):
                        d = g * (up[part] - down[part]) / (2 * h)
                        if abs(d) > mpf(10) ** -50:  # beyond what the difference errs by
                            value += d
                            size += abs(d)
                values.append(value)
                sizes.append(size)
            result[f"{name}.{of}"] = (values, sizes)
    return result


def is_fixed(batch, k):
    d = len(batch.means[0])
    return batch.kind == "SCALE_TRIL" and k % d > k // d


def moved(batch, of, i, k, h):
    mean, scale = ([mpf(x) for x in row[i]] for row in (batch.means, batch.scales))
    (mean if of == "mean" else scale)[k] += h
    return matrix(mean), covariance(batch.kind, scale, len(mean))


# --- mixtures of two components each


def mixtures(wq, gq, wp, gp, is_diagonal):
    q, p = ([list(zip(w[k : k + 2], g[k : k + 2])) for k in range(0, len(g), 2)] for w, g in ((wq, gq), (wp, gp)))

    def overlap(f, g):
        return exp(log_density(f[0], (g[0], f[1] + g[1])))

    def entropy(f):
        return (len(f[0]) * (1 + log(2 * pi)) + log(det(f[1]))) / 2

    def mean_log(f, of):
        return sum(w * log(sum(v * of(a, b) for v, b in f[1])) for w, a in f[0])

    def ratio(x, y, above, below):
        return mean_log((x, x), above) - mean_log((x, y), below)

    def near(a, b):
        return exp(-kl(a, b))

    pairs = list(itertools.product(q, p))
    yield "componentEntropies", [entropy(a) for x in q for _, a in x]
    yield "entropyUpperBound", [sum(w * entropy(a) for w, a in x) - mean_log((x, x), near) for x in q]
    yield "entropyLowerBound:0.3", [
        sum(w * entropy(a) for w, a in x) - mean_log((x, x), lambda a, b: exp(-chernoff(mpf(0.3), a, b))) for x in q
    ]
    yield "variational", [ratio(x, y, near, near) for x, y in pairs]
    yield "productOfGaussians", [ratio(x, y, overlap, overlap) for x, y in pairs]
    yield "lowerBound", [max(0, ratio(x, y, near, overlap) - sum(w * entropy(a) for w, a in x)) for x, y in pairs]
    yield "matchedPairs", [sum(w * min(kl(a, b) + log(w / v) for v, b in y) for w, a in x) for x, y in pairs]
    yield "upperBound", [upper_bound(x, y) for x, y in pairs]
    yield "transport", [transport(x, y) for x, y in pairs]
    for name, of in (("kl", moments), ("reverse-kl", of_precisions)):
        found = [of(x, is_diagonal) for x in q]
        yield f"barycenter:{name}.mean", [v for m, _ in found for v in m]
        yield f"barycenter:{name}.covariance", [v for _, c in found for v in c]
    yield "runnalls", [cost(x, is_diagonal) for x in q]
    yield "williams", [c for x in q for c in squared_errors(x, is_diagonal, overlap)]
    yield "williams:4", squared_errors(q[0] + q[1], is_diagonal, overlap)


def points(x, w, p):
    """Of points and two mixtures of two components each."""
    terms = [[w[j] * exp(log_density(m, p[j])) for j in range(4)] for m in x]
    yield "logLikelihood", [log(t[k] + t[k + 1]) for t in terms for k in (0, 2)]
    yield "responsibilities", [t[j] / (t[j // 2 * 2] + t[j // 2 * 2 + 1]) for t in terms for j in range(4)]


def moments(x, is_diagonal):
    mean = sum((w * m for w, (m, _) in x), matrix(len(x[0][1][0]), 1))
    c = sum((w * (c + (m - mean) * (m - mean).T) for w, (m, c) in x), matrix(mean.rows, mean.rows))
    return mean, diag([c[k, k] for k in range(c.rows)]) if is_diagonal else c


def of_precisions(x, _):
    d = len(x[0][1][0])
    c = inverse(sum((w * inverse(c) for w, (_, c) in x), matrix(d, d)))
    return c * sum((w * inverse(a) * m for w, (m, a) in x), matrix(d, 1)), c


def cost(x, is_diagonal):
    return (log(det(moments(x, is_diagonal)[1])) - sum(w * log(det(c)) for w, (_, c) in x)) / 2


def squared_errors(f, is_diagonal, overlap):
    """What the mergers that add least to the integral of (f - g)^2 add to it, over that of f^2, until one component is left."""

    def error(g):
        terms = [(w, c) for w, c in g] + [(-w, c) for w, c in f]
        return sum(v * w * overlap(a, b) for v, a in terms for w, b in terms)

    whole = sum(v * w * overlap(a, b) for v, a in f for w, b in f)
    g, before, costs = f, mpf(0), []
    while len(g) > 1:
        found = []
        for i, j in itertools.combinations(range(len(g)), 2):
            w = g[i][0] + g[j][0]
            pair = moments([(g[i][0] / w, g[i][1]), (g[j][0] / w, g[j][1])], is_diagonal)
            merged = [(w, pair)] + [g[k] for k in range(len(g)) if k not in (i, j)]
            found.append((error(merged), merged))
        after, g = min(found, key=lambda x: x[0])
        costs.append((after - before) / whole)
        before = after
    return costs


def upper_bound(x, y):
    """The least of the bound over both couplings, each of which is the best for the other in turn."""
    e = [[exp(-kl(a, b)) for _, b in y] for _, a in x]
    phi = [[w * v for v, _ in y] for w, _ in x]
    value = last = mpf(0)
    for step in range(20000):
        psi = [[y[j][0] * row[j] / sum(r[j] for r in phi) for j in (0, 1)] for row in phi]
        phi = [[x[i][0] * psi[i][j] * e[i][j] / sum(psi[i][k] * e[i][k] for k in (0, 1)) for j in (0, 1)] for i in (0, 1)]
        value = sum(phi[i][j] * log(phi[i][j] / psi[i][j] / e[i][j]) for i in (0, 1) for j in (0, 1))
        if step and abs(last - value) < mpf(10) ** -25:
            break
        last = value
    return value


def transport(x, y):
    (a, _), (b, _) = x
    c, d = y[0][0], y[1][0]
    return min(
        t * kl(x[0][1], y[0][1])
        + (a - t) * kl(x[0][1], y[1][1])
        + (c - t) * kl(x[1][1], y[0][1])
        + (b - c + t) * kl(x[1][1], y[1][1])
        for t in (max(mpf(0), a - d), min(a, c))
    )


# --- cases

DIAGONAL = ("STD", "VARIANCE", "LOG_VARIANCE", "PRECISION")
TRIANGULAR = ("SCALE_TRIL", "PACKED_SCALE_TRIL", "PLAIN_PACKED_SCALE_TRIL")
FULL = TRIANGULAR + ("COVARIANCE", "PRECISION_MATRIX", "PRECISION_CHOLESKY")

# name, centre of the means, their spread, the scales' size and their spread (of logarithms)
REGIMES = {
    "unlike": (0, 1, 1, 0.7),
    "alike": (0.5, 0.05, 0.8, 0.05),
    "near-1e-3": (0.5, 1e-3, 0.8, 1e-3),
    "near-1e-6": (0.5, 1e-6, 0.8, 1e-6),
    "equal": (0.5, 0, 0.8, 0),
    "offset": (1000, 0.05, 0.05, 0.5),
    "collapsed": (0, 1e-4, 1, 1e-4),
    "small": (0, 1e-30, 1e-30, 0.7),
    "large": (0, 1e30, 1e30, 0.7),
    "wide": (0, 1, 1, 6),
    # variances, squares of means and squared divergences underflow
    "extreme": (0, exp(-720), exp(-720), 0.3),
    "extreme near": (0, exp(-514), exp(-500), 1e-6),
    "underflow": (0, 1e-170, 1e-170, 0.7),
    "hardly any": (0, 1e-160, 1, 0),
}

# those of cases of their own
UNDERFLOWS = ("extreme", "extreme near", "underflow", "hardly any")


def short(x, digits):
    return float(nstr(mpf(x), digits))


class Maker:
    def __init__(self, seed, regime, d):
        self.random = random.Random(seed)
        self.center, self.spread, self.size, self.width = REGIMES[regime]
        self.d = d
        # what all Gaussians of a regime of alike ones have in common
        spread = 0 if regime == "collapsed" else 0.3
        self.base = [self.random.gauss(0, 1) for _ in range(d)], [self.random.gauss(0, spread) for _ in range(d)]
        self.below = [self.random.gauss(0, 0.3) for _ in range(d * d)]
        self.digits = 9 if self.spread < 1e-2 * self.size else 8 if self.center > 1 else 5

    def mean(self):
        return [
            short((self.center if self.spread > 0.04 else self.center * (1 + b)) + self.spread * self.random.gauss(0, 1), self.digits)
            for b in self.base[0]
        ]

    def std(self):
        return [self.size * exp(mpf(b + self.width * self.random.gauss(0, 1))) for b in self.base[1]]

    def factor(self):
        std, l = self.std(), matrix(self.d, self.d)
        for r in range(self.d):
            for c in range(r):
                l[r, c] = std[r] * (self.below[r * self.d + c] + min(self.width, 0.4) * self.random.gauss(0, 1))
            l[r, r] = std[r]
        return l

    def diagonal(self, kind, is_double, n):
        to = {"STD": lambda s: s, "VARIANCE": lambda s: s**2, "LOG_VARIANCE": lambda s: 2 * log(s), "PRECISION": lambda s: s**-2}[kind]
        rows = [(self.mean(), [short(to(s), self.digits) for s in self.std()]) for _ in range(n)]
        return Batch(kind, is_double, [m for m, _ in rows], [s for _, s in rows])

    def full(self, kind, is_double, n):
        rows = [(self.mean(), self.matrix(kind)) for _ in range(n)]
        return Batch(kind, is_double, [m for m, _ in rows], [s for _, s in rows])

    def matrix(self, kind):
        l, d, digits = self.factor(), self.d, self.digits + 2
        if kind in ("PACKED_SCALE_TRIL", "PLAIN_PACKED_SCALE_TRIL"):
            of = log if kind == "PACKED_SCALE_TRIL" else lambda x: x
            return [short(of(l[r, c]) if r == c else l[r, c], digits) for r in range(d) for c in range(r + 1)]
        a = {
            "SCALE_TRIL": lambda: l,
            "COVARIANCE": lambda: l * l.T,
            "PRECISION_MATRIX": lambda: inverse(l * l.T),
            "PRECISION_CHOLESKY": lambda: inverse(l).T,
        }[kind]()
        return [short(a[r, c], digits) for r in range(d) for c in range(d)]

    def low_rank(self, kind, is_double, n, rank):
        g = self.diagonal(kind, is_double, n)
        near = self.width < 0.01
        base = [self.random.gauss(0, 1) for _ in range(self.d * rank)]
        w = [
            [
                short(self.size * (b + self.width * self.random.gauss(0, 1) if near else self.random.gauss(0, 1)), self.digits)
                for b in base
            ]
            for _ in range(n)
        ]
        return Batch(kind, is_double, g.means, g.scales, w)


def print_values(name, values):
    print(f"{name}: " + " ".join("inf" if x == inf else nstr(x, 17, strip_zeros=True) for x in values))


def condition(batch):
    worst = mpf(1)
    for i, (_, c) in enumerate(batch.gaussians()):
        if batch.factors:
            v = covariance(batch.kind, batch.scales[i], c.rows)
            c = eye(c.rows) + inverse(v) * (c - v)
            x = sqrt(max(trace(c * c.T), 1))  # at least its norm, and its least eigenvalue is 1
        elif batch.kind in DIAGONAL:
            continue
        else:
            e = eigsy(c, eigvals_only=True)
            x = sqrt(max(e) / min(e))
        worst = max(worst, x)
    return worst


def case(kind, regime, is_double, q, p, with_gradient=False, with_mixtures=False):
    d = len(q.means[0])
    print(f"case: {kind} {regime}")
    print("inputs: " + ("double" if is_double else "float"))
    print(f"dimension: {d}")
    q.lines("q")
    p.lines("p")
    print("condition: " + nstr(max(condition(q), condition(p)), 4))
    gq, gp = q.gaussians(), p.gaussians()
    pairs = list(itertools.product(range(len(gq)), range(len(gp))))
    is_low_rank = q.factors or p.factors
    for name, of in (LOW_RANK if is_low_rank else DIVERGENCES).items():
        print_values(name, [0 if is_equal(q, i, p, j) else of(gq[i], gp[j]) for i, j in pairs])
    unit = matrix(d, 1), eye(d)
    print_values("standard", [kl(g, unit) for g in gq])
    if not is_low_rank:
        print_values("mahalanobis", [squares(gq[i][0] - gp[j][0], gp[j][1]) for i, j in pairs])
        print_values("logDensity", [log_density(gq[i][0], gp[j]) for i, j in pairs])
    if with_gradient:
        g = [[mpf((-1) ** (i + j) * (1 + i + 2 * j)) / 4 for j in range(len(gp))] for i in range(len(gq))]
        print_values("cotangent", [x for row in g for x in row])
        for name, (values, sizes) in gradient(g, q, p).items():
            print_values("gradient." + name, values)
            print_values("size." + name, sizes)
    if with_mixtures:
        w = [mpf(x) for x in (0.25, 0.75, 0.625, 0.375)]
        print_values("weights", w)
        of_points = points([m for m, _ in gq], w, gp)
        for name, values in itertools.chain(mixtures(w, gq, w, gp, q.kind in DIAGONAL), of_points):
            print_values("mixture." + name, values)
    print()


def is_equal(q, i, p, j):
    return (
        q.kind == p.kind
        and q.means[i] == p.means[j]
        and q.scales[i] == p.scales[j]
        and (not q.factors or not p.factors or q.factors[i] == p.factors[j])
    )


def make():
    seed = itertools.count(1)
    for turn, regime in enumerate(r for r in REGIMES if r not in UNDERFLOWS):
        for is_double in (False, True):
            for mixed in (False, True):
                if mixed and regime in ("small", "large", "wide"):
                    continue
                d = (3, 6, 9, 2)[(turn + 3 * mixed) % 4]
                maker = Maker(next(seed), regime, d)
                kind = DIAGONAL[(turn + 2 * is_double) % 4]
                if regime in ("small", "large") and kind in ("VARIANCE", "PRECISION"):
                    kind = ("STD", "LOG_VARIANCE")[is_double]
                other = DIAGONAL[(turn + 2 * is_double + 1) % 4] if mixed else kind
                if regime == "collapsed" and mixed:  # numbers near 1 of different kinds
                    kind, other = ("VARIANCE", "PRECISION") if is_double else ("STD", "VARIANCE")
                q, p = maker.diagonal(kind, is_double, 2), maker.diagonal(other, is_double, 3)
                if not mixed and regime != "equal":
                    p.means[1], p.scales[1] = q.means[1], q.scales[1]
                case("diagonal", regime, is_double, q, p, with_gradient=d < 6)
    for turn, regime in enumerate(r for r in REGIMES if r not in ("wide", "equal") + UNDERFLOWS):
        for is_double in (False, True):
            maker = Maker(next(seed), regime, (3, 5, 2)[turn % 3])
            kind = FULL[(turn + 3 * is_double) % 6]
            if regime in ("small", "large"):
                kind = TRIANGULAR[turn % 3 if is_double else 0]
            q, p = maker.full(kind, is_double, 2), maker.full(kind, is_double, 3)
            if regime != "unlike":
                p.means[1], p.scales[1] = q.means[1], q.scales[1]
            is_plain = regime in ("unlike", "alike", "near-1e-3")
            case("full", regime, is_double, q, p, with_gradient=kind in TRIANGULAR and is_plain)
    for is_double in (False, True):
        maker = Maker(next(seed), "unlike", 4)
        case("full", "of both kinds", is_double, maker.diagonal("STD", is_double, 2), maker.full("SCALE_TRIL", is_double, 3))
        case("full", "of both kinds", is_double, maker.full("COVARIANCE", is_double, 2), maker.diagonal("VARIANCE", is_double, 3))
        maker = Maker(next(seed), "alike", 5)
        q, p = maker.full("SCALE_TRIL", is_double, 2), maker.full("SCALE_TRIL", is_double, 3)
        q.scales, p.scales = q.scales[:1] * 2, p.scales[:1] * 3
        case("full", "of one factor each", is_double, q, p)
        q, p = maker.diagonal("STD", is_double, 2), maker.diagonal("STD", is_double, 3)
        q.scales, p.scales = [x[:1] * 5 for x in q.scales], [x[:1] * 5 for x in p.scales]
        case("spherical", "alike", is_double, q, p)
    for turn, regime in enumerate(r for r in REGIMES if r not in ("wide", "equal", "small", "large") + UNDERFLOWS):
        for is_double in (False, True):
            maker = Maker(next(seed), regime, (5, 7)[turn % 2])
            kind = DIAGONAL[turn % 4]
            q = maker.low_rank(kind, is_double, 2, 2)
            p = maker.diagonal(kind, is_double, 3) if regime == "collapsed" else maker.low_rank(kind, is_double, 3, 2)
            if regime != "collapsed":
                p.means[1], p.scales[1], p.factors[1] = q.means[1], q.scales[1], q.factors[1]
            case("low rank", regime, is_double, q, p)
    for kind in ("STD", "SCALE_TRIL"):
        for regime in ("unlike", "alike"):
            maker = Maker(next(seed), regime, 3)
            of = maker.diagonal if kind == "STD" else maker.full
            case("mixtures of " + kind, regime, True, of(kind, True, 4), of(kind, True, 4), with_mixtures=True)
    for regime in UNDERFLOWS:
        mp.dps = 400 if regime == "hardly any" else 120  # which squares to 1e-320 beside 1
        maker = Maker(next(seed), regime, 3)
        maker.digits = 12
        kind = "LOG_VARIANCE" if regime.startswith("extreme") else "STD"
        case("diagonal", regime, True, maker.diagonal(kind, True, 2), maker.diagonal(kind, True, 3))
    mp.dps = 120
    for regime in ("near-1e-6", "collapsed"):
        maker = Maker(next(seed), regime, 5)
        if regime == "collapsed":  # all but N(0, I)
            maker.below, maker.spread, maker.width, maker.digits = [0] * 25, 1e-7, 1e-7, 12
        case("full", regime, True, maker.full("COVARIANCE", True, 2), maker.full("COVARIANCE", True, 3))


def check():
    """Compares the formulas with integrals over densities of one dimension, and over quantiles for the Wasserstein distance."""
    mp.dps = 20
    q, p = (matrix([0.3]), matrix([[0.8]])), (matrix([-0.4]), matrix([[1.7]]))
    f, g = (lambda x, of=of: exp(log_density(matrix([x]), of)) for of in (q, p))
    line = [-40, -10, -3, 0, 3, 10, 40]
    integrals = {
        "kl": quad(lambda x: f(x) * log(f(x) / g(x)) if f(x) else 0, [-20, -3, 0, 3, 20]),
        "reverse-kl": quad(lambda x: g(x) * log(g(x) / f(x)) if g(x) else 0, [-20, -3, 0, 3, 20]),
        "bhattacharyya": -log(quad(lambda x: sqrt(f(x) * g(x)), line)),
        "hellinger": sqrt(quad(lambda x: (sqrt(f(x)) - sqrt(g(x))) ** 2, line) / 2),
        "squared-wasserstein-2": quad(lambda z: (0.7 + (sqrt(mpf(0.8)) - sqrt(mpf(1.7))) * z) ** 2 * exp(-z * z / 2) / sqrt(2 * pi), line),
        "renyi:0.25": log(quad(lambda x: f(x) ** 0.25 * g(x) ** 0.75, line)) / (0.25 - 1),
        "renyi:1.5": log(quad(lambda x: f(x) ** 1.5 * g(x) ** -0.5, [-20, -3, 0, 3, 20])) / 0.5,
        "chernoff:0.001": -log(quad(lambda x: f(x) ** 0.001 * g(x) ** 0.999, line)),
    }
    for name, integral in integrals.items():
        error = abs(DIVERGENCES[name](q, p) - integral)
        print(name, nstr(integral, 12), nstr(error, 3))
        assert error < 1e-12


check() if "--check" in sys.argv else make()
