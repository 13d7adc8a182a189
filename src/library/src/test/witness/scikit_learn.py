#!/usr/bin/env python3
"""Prints what scikit-learn says of points by mixtures of each of its kinds of covariances, for PointsTest. Needs scikit-learn 1.9.

    python3 scikit_learn.py
"""
import numpy as np
from sklearn.mixture import GaussianMixture

POINTS = np.array([[0, 0], [1.5, -0.75], [-2, 3], [40, 3]])
FULL = np.array([[[0.9, 0.4], [0.4, 0.3]], [[2, 0.5], [0.5, 1]], [[0.25, -0.1], [-0.1, 4]]])
COVARIANCES = {
    "full": FULL,
    "tied": FULL[1],
    "diag": np.array([[0.9, 0.3], [2, 1], [0.25, 4]]),
    "spherical": np.array([0.5, 2, 0.25]),
}

for kind, covariances in COVARIANCES.items():
    mixture = GaussianMixture(3, covariance_type=kind)
    mixture.weights_ = np.array([0.25, 0.625, 0.125])
    mixture.means_ = np.array([[1, -1], [0, 0], [-1.5, 2.5]])
    mixture.covariances_ = covariances
    if kind in ("full", "tied"):
        factors = np.linalg.inv(np.linalg.cholesky(covariances))
        mixture.precisions_cholesky_ = np.swapaxes(factors, -1, -2)
    else:
        mixture.precisions_cholesky_ = 1 / np.sqrt(covariances)
    print(kind, "score_samples", ", ".join(repr(float(x)) for x in mixture.score_samples(POINTS)))
    print(kind, "predict_proba", ", ".join(repr(float(x)) for x in mixture.predict_proba(POINTS).ravel()))
