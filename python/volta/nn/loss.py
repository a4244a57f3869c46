"""Losses as layers: each a function with its settings; class weights are buffers."""

from .. import _volta
from .._volta import Tensor
from .module import Module

# Layer: the function, its settings, and how many tensors it takes.
_MEAN = {"reduction": "mean"}
_LOSSES = {
    "MSELoss": ("mse_loss", _MEAN, 2),
    "L1Loss": ("l1_loss", _MEAN, 2),
    "SoftMarginLoss": ("soft_margin_loss", _MEAN, 2),
    "SmoothL1Loss": ("smooth_l1_loss", {**_MEAN, "beta": 1.0}, 2),
    "HuberLoss": ("huber_loss", {**_MEAN, "delta": 1.0}, 2),
    "CrossEntropyLoss": ("cross_entropy", {"weight": None, "ignore_index": -100, **_MEAN, "label_smoothing": 0.0}, 2),
    "NLLLoss": ("nll_loss", {"weight": None, "ignore_index": -100, **_MEAN}, 2),
    "BCELoss": ("binary_cross_entropy", {"weight": None, **_MEAN}, 2),
    "BCEWithLogitsLoss": ("binary_cross_entropy_with_logits", {"weight": None, **_MEAN, "pos_weight": None}, 2),
    "KLDivLoss": ("kl_div", {**_MEAN, "log_target": False}, 2),
    "PoissonNLLLoss": ("poisson_nll_loss", {"log_input": True, "full": False, "eps": 1e-8, **_MEAN}, 2),
    "GaussianNLLLoss": ("gaussian_nll_loss", {"full": False, "eps": 1e-6, **_MEAN}, 3),
    "HingeEmbeddingLoss": ("hinge_embedding_loss", {"margin": 1.0, **_MEAN}, 2),
    "MarginRankingLoss": ("margin_ranking_loss", {"margin": 0.0, **_MEAN}, 3),
    "CosineEmbeddingLoss": ("cosine_embedding_loss", {"margin": 0.0, **_MEAN}, 3),
    "TripletMarginLoss": ("triplet_margin_loss", {"margin": 1.0, "p": 2.0, "eps": 1e-6, "swap": False, **_MEAN}, 3),
    "TripletMarginWithDistanceLoss": (
        "triplet_margin_with_distance_loss",
        {"distance_function": None, "margin": 1.0, "swap": False, **_MEAN},
        3,
    ),
    "MultiMarginLoss": ("multi_margin_loss", {"p": 1, "margin": 1.0, "weight": None, **_MEAN}, 2),
    "MultiLabelMarginLoss": ("multilabel_margin_loss", _MEAN, 2),
    "MultiLabelSoftMarginLoss": ("multilabel_soft_margin_loss", {"weight": None, **_MEAN}, 2),
    "CTCLoss": ("ctc_loss", {"blank": 0, **_MEAN, "zero_infinity": False}, 4),
}
__all__ = [*_LOSSES]


class _Loss(Module):
    _settings, _function = {}, None

    def __init__(self, *args, **kwargs):
        super().__init__()
        given = {**dict(zip(self._settings, args)), **kwargs}
        if len(args) > len(self._settings) or any(name not in self._settings for name in given):
            raise TypeError(f"{type(self).__name__}() takes {', '.join(self._settings)}, not {args} {kwargs}")
        for name, usual in self._settings.items():
            value = given.get(name, usual)
            if isinstance(value, Tensor):
                self.register_buffer(name, value)
            else:
                setattr(self, name, value)

    def forward(self, *tensors):
        return self._function(*tensors, **{name: getattr(self, name) for name in self._settings})

    def extra_repr(self):
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in self._settings)


for _name, (_op, _settings, _count) in _LOSSES.items():
    globals()[_name] = type(
        _name,
        (_Loss,),
        {
            "__module__": __name__,
            "__doc__": getattr(_volta, _op).__doc__,
            "_settings": _settings,
            "_function": staticmethod(getattr(_volta, _op)),
        },
    )
