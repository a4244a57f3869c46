"""Programs written for the array API: scikit-learn's estimators and metrics and SciPy's functions on tensors."""

import os

import numpy as np
import pytest

os.environ.setdefault("SCIPY_ARRAY_API", "1")  # read when SciPy is imported
sklearn = pytest.importorskip("sklearn", minversion="1.6")
pytest.importorskip("array_api_compat")

from scipy import special, stats  # noqa: E402
from sklearn import metrics  # noqa: E402
from sklearn.decomposition import PCA  # noqa: E402
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis  # noqa: E402
from sklearn.linear_model import Ridge  # noqa: E402
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler  # noqa: E402

import volta as v  # noqa: E402
from volta import array_api as xp  # noqa: E402

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 5))
CLASSES = (X[:, 0] + 0.3 * X[:, 1] > 0).astype("int64")
TARGETS = X @ np.arange(5.0) + RNG.normal(size=60)


@pytest.fixture(autouse=True)
def dispatch():
    with sklearn.config_context(array_api_dispatch=True):
        yield


def close(ours, theirs, rtol=1e-8):
    assert isinstance(ours, v.Tensor)
    np.testing.assert_allclose(np.asarray(ours), theirs, rtol=rtol, atol=rtol)


def test_metrics():
    guesses, labels = TARGETS + 0.1 * X[:, 0], np.where(X[:, 2] > 1, 1 - CLASSES, CLASSES)
    for name in ("r2_score", "mean_absolute_error", "mean_squared_error", "max_error", "explained_variance_score"):
        metric = getattr(metrics, name)
        assert float(metric(xp.asarray(TARGETS), xp.asarray(guesses))) == pytest.approx(metric(TARGETS, guesses))
    for name in ("accuracy_score", "zero_one_loss", "f1_score", "precision_score", "recall_score"):
        metric = getattr(metrics, name)
        assert float(metric(xp.asarray(CLASSES), xp.asarray(labels))) == pytest.approx(metric(CLASSES, labels))


def test_discriminant_analysis():
    ours, theirs = (
        LinearDiscriminantAnalysis().fit(a, b) for a, b in ((xp.asarray(X), xp.asarray(CLASSES)), (X, CLASSES))
    )
    assert ours.predict(xp.asarray(X)).tolist() == theirs.predict(X).tolist()
    close(ours.predict_proba(xp.asarray(X)), theirs.predict_proba(X))


@pytest.mark.parametrize("solver", ["full", "covariance_eigh", "randomized"])
def test_principal_components(solver):
    options = {"n_components": 2, "svd_solver": solver, "power_iteration_normalizer": "QR", "random_state": 0}
    ours, theirs = PCA(**options), PCA(**options)
    found, expected = ours.fit_transform(xp.asarray(X)), theirs.fit_transform(X)
    close(xp.abs(found), np.abs(expected), 1e-6)
    close(ours.explained_variance_, theirs.explained_variance_, 1e-6)
    close(ours.inverse_transform(found), theirs.inverse_transform(expected), 1e-6)


def test_ridge_and_scalers():
    ours, theirs = Ridge(solver="svd").fit(xp.asarray(X), xp.asarray(TARGETS)), Ridge(solver="svd").fit(X, TARGETS)
    close(ours.predict(xp.asarray(X)), theirs.predict(X))
    for scaler in (MinMaxScaler, MaxAbsScaler):
        close(scaler().fit_transform(xp.asarray(X)), scaler().fit_transform(X))


def test_scipy():
    close(special.logsumexp(xp.asarray(X), axis=1), special.logsumexp(X, axis=1))
    for name in ("zscore", "skew", "kurtosis", "variation"):
        close(getattr(stats, name)(xp.asarray(X)), getattr(stats, name)(X))
