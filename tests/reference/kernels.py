"""Kernels in float64, and what kernel SVMs minimise or maximise, from their definitions."""

import numpy as np


def linear(X, Z):
    """x z."""
    return X @ Z.T


def poly(X, Z, gamma, coef0, degree):
    """(gamma x z + coef0)^degree."""
    return (gamma * (X @ Z.T) + coef0) ** degree


def rbf(X, Z, gamma):
    """exp(-gamma |x - z|^2)."""
    differences = X[:, None, :] - Z[None, :, :]
    return np.exp(-gamma * np.square(differences).sum(axis=2))


def sigmoid(X, Z, gamma, coef0):
    """tanh(gamma x z + coef0)."""
    return np.tanh(gamma * (X @ Z.T) + coef0)


def squared_length(K, coefs):
    """|w|^2 of w = sum_i coefs_i phi(x_i)."""
    return coefs @ K @ coefs


def svm_dual(K, y, coefs):
    """What the dual SVM maximises, of signed coefficients: sum_i y_i a_i - |w|^2 / 2."""
    return y @ coefs - squared_length(K, coefs) / 2


def with_slack(K, C, weights=None):
    """K_C(x_i, x_j) = K(x_i, x_j) + delta_ij / C, in float32 as kernel values are."""
    weights = np.ones(len(K)) if weights is None else weights
    out = K.copy()
    np.fill_diagonal(out, (np.diagonal(K) + 1 / (C * weights)).astype(np.float32))
    return out
