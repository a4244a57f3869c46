"""Measures of a model over many batches: update with each, then compute. What is counted stays on its device until then.

accuracy = metrics.Accuracy()
for x, y in batches:
    accuracy.update(model(x), y)
print(accuracy.compute())
"""

import math

from . import _volta
from ._grad_mode import no_grad
from ._volta import Tensor

__all__ = [
    "Metric",
    "Mean",
    "Accuracy",
    "TopK",
    "ConfusionMatrix",
    "Precision",
    "Recall",
    "F1",
    "MAE",
    "MSE",
    "R2",
    "Perplexity",
]


def _classes(prediction, target, threshold):
    """Predicted class numbers, and those of the target: of scores [N, C, ...] the largest, of one score whether it is
    above the threshold."""
    if len(prediction.shape) == len(target.shape) + 1:
        prediction = prediction.argmax(1)
    elif prediction.shape != target.shape:
        raise ValueError(f"predictions of shape {prediction.shape} do not fit targets of shape {target.shape}")
    elif prediction.dtype.is_floating_point:
        prediction = prediction > threshold
    if target.dtype.is_floating_point:
        target = target > 0.5
    return prediction.to(_volta.int64), target.to(_volta.int64)


class Metric:
    """What fit measures. One's own derives from it: `measure` gives sums, `result` makes a number of them."""

    name = "metric"

    def __init__(self):
        self.reset()

    def reset(self):
        """Begins anew."""
        self._sums = None

    def measure(self, prediction, target):
        """A tuple of tensors or numbers that add up over the batches."""
        raise NotImplementedError(f"{type(self).__name__} has no measure")

    def result(self, *sums):
        raise NotImplementedError(f"{type(self).__name__} has no result")

    def update(self, prediction, target):
        """Takes a batch into account."""
        with no_grad():
            new = self.measure(prediction, target)
            self._sums = new if self._sums is None else tuple(a + b for a, b in zip(self._sums, new))

    def compute(self):
        """The measure of all batches since the beginning or the last reset; NaN before the first."""
        if self._sums is None:
            return math.nan
        return self.result(*(x.tolist() if isinstance(x, Tensor) else x for x in self._sums))


class Mean(Metric):
    """The mean over samples of a function of prediction and target that gives one number for a batch."""

    def __init__(self, function, name=None):
        super().__init__()
        self.function = function
        self.name = name or getattr(function, "__name__", type(function).__name__)

    def measure(self, prediction, target):
        count = target.shape[0] if target.shape else 1
        value = self.function(prediction, target)
        return (value.detach().to(_volta.float64) if isinstance(value, Tensor) else value) * count, count

    def result(self, total, count):
        return total / count


class Accuracy(Metric):
    """Fraction of right predictions."""

    name = "accuracy"

    def __init__(self, threshold=0.5):
        super().__init__()
        self.threshold = threshold

    def measure(self, prediction, target):
        prediction, target = _classes(prediction, target, self.threshold)
        return (prediction == target).sum(), target.numel()

    def result(self, right, count):
        return right / count if count else math.nan


class TopK(Metric):
    """Fraction of targets among the k largest scores."""

    def __init__(self, k):
        super().__init__()
        if k < 1:
            raise ValueError(f"TopK: k is at least 1, not {k}")
        self.k, self.name = k, f"top{k}"

    def measure(self, prediction, target):
        best = prediction.topk(self.k, 1).indices
        return (best == target.unsqueeze(1)).sum(), target.numel()

    def result(self, right, count):
        return right / count if count else math.nan


class ConfusionMatrix(Metric):
    """How often each class was taken for each other: targets in rows, predictions in columns, as lists."""

    name = "confusion"

    def __init__(self, num_classes, threshold=0.5):
        super().__init__()
        self.num_classes, self.threshold = num_classes, threshold

    def measure(self, prediction, target):
        n = self.num_classes
        prediction, target = _classes(prediction, target, self.threshold)
        places = (target * n + prediction).flatten()
        for numbers in (prediction, target):
            if numbers.numel() and not ((numbers >= 0) & (numbers < n)).all():
                raise ValueError(f"{type(self).__name__}: a class number is not within 0 and {n - 1}")
        return (_volta.bincount(places, minlength=n * n).reshape(n, n),)

    def result(self, counts):
        return counts


class _ClassScore(ConfusionMatrix):
    """Scores of classes, averaged as scikit-learn does: macro, micro, weighted, or of class 1 alone (binary)."""

    def __init__(self, num_classes=2, average="macro", threshold=0.5):
        if average not in ("macro", "micro", "weighted", "binary"):
            raise ValueError(f"average is macro, micro, weighted or binary, not {average!r}")
        super().__init__(num_classes, threshold)
        self.average = average

    def score(self, right, predicted, real):
        raise NotImplementedError

    def result(self, counts):
        n = range(len(counts))
        each = [(counts[i][i], sum(counts[j][i] for j in n), sum(counts[i])) for i in n]
        if self.average == "binary":
            return self.score(*each[1])
        if self.average == "micro":
            return self.score(*(sum(column) for column in zip(*each)))
        each = [c for c in each if c[1] or c[2]]  # classes that occur
        weights = [c[2] if self.average == "weighted" else 1 for c in each]
        total = sum(weights)
        return sum(w * self.score(*c) for w, c in zip(weights, each)) / total if total else math.nan


class Precision(_ClassScore):
    """Of what was predicted as a class, the fraction that is of it."""

    name = "precision"

    def score(self, right, predicted, real):
        return right / predicted if predicted else 0.0


class Recall(_ClassScore):
    """Of what is of a class, the fraction that was predicted as it."""

    name = "recall"

    def score(self, right, predicted, real):
        return right / real if real else 0.0


class F1(_ClassScore):
    """Harmonic mean of precision and recall."""

    name = "f1"

    def score(self, right, predicted, real):
        return 2 * right / (predicted + real) if predicted + real else 0.0


class _Error(Metric):
    def measure(self, prediction, target):
        if prediction.shape != target.shape:
            raise ValueError(f"predictions of shape {prediction.shape} and targets of shape {target.shape} differ")
        return self.error(prediction.to(_volta.float64) - target.to(_volta.float64)).sum(), target.numel()

    def result(self, total, count):
        return total / count if count else math.nan


class MAE(_Error):
    """Mean absolute error."""

    name, error = "mae", staticmethod(_volta.abs)


class MSE(_Error):
    """Mean squared error."""

    name, error = "mse", staticmethod(_volta.square)


class R2(Metric):
    """Fraction of the target's variance that is explained, the mean over outputs."""

    name = "r2"

    def measure(self, prediction, target):
        p, t = (x.to(_volta.float64).reshape(x.shape[0], -1) for x in (prediction, target))
        return ((p - t) ** 2).sum(0), t.sum(0), (t * t).sum(0), len(t)

    def result(self, errors, sums, squares, count):
        if count < 2:
            return math.nan
        spreads = [max(s - t * t / count, 0.0) for s, t in zip(squares, sums)]
        scores = [1 - e / s if s else float(e == 0) for e, s in zip(errors, spreads)]
        return sum(scores) / len(scores)


class Perplexity(Metric):
    """exp of the mean cross-entropy of logits [N, C, ...]."""

    name = "perplexity"

    def measure(self, prediction, target):
        return _volta.cross_entropy(prediction, target, reduction="sum").to(_volta.float64), target.numel()

    def result(self, total, count):
        return math.exp(total / count) if count else math.nan


def metric_of(given):
    """A metric, the name of one ("accuracy"), or a function of prediction and target."""
    if isinstance(given, str):
        for kind in (Accuracy, MAE, MSE, R2, Perplexity):
            if kind.name == given:
                return kind()
        raise ValueError(f"no metric is named {given!r}")
    if isinstance(given, type):
        return given()
    if hasattr(given, "update") and hasattr(given, "compute"):
        return given
    if callable(given):
        return Mean(given)
    raise TypeError(f"a metric has update and compute, or is a function; {type(given).__name__} is neither")
