"""What notebooks show: summaries of models, tensors."""

import pytest

import volta as v
from volta import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(0.5))
        self.first, self.second = nn.Linear(4 * 36, 10), nn.Linear(10, 10)
        self.second.weight = nn.Parameter(v.ones(10, 10), requires_grad=False)
        self.third = nn.Linear(10, 10, bias=False)
        self.third.weight = self.second.weight
        self.unused = nn.Identity()

    def forward(self, x):
        return self.third(self.second(self.first(self.features(x).flatten(1))))


def test_summary_of_a_model():
    net = Net().train()
    net.features[3].eval()
    before = net.features[1].num_batches_tracked.item()
    found = nn.summary(net, (2, 1, 8, 8))
    rows = {(depth, name): (kind, shape, count) for depth, name, kind, shape, count in found.rows}
    assert rows[0, "model"] == ("Net", "(2, 10)", 0) and rows[1, "features"] == ("Sequential", "(2, 4, 6, 6)", 0)
    assert rows[2, "0"] == ("Conv2d", "(2, 4, 6, 6)", 40) and rows[1, "first"] == ("Linear", "(2, 10)", 1450)
    assert rows[1, "second"][2] == 110 and rows[1, "third"][2] == 0 and rows[1, "unused"][1] == ""
    assert found.parameters == 40 + 8 + 1450 + 110 and found.trainable == found.parameters - 100 and found.buffers == 9
    text = repr(found)
    assert "1,608 parameters (1,508 trainable, 100 frozen)" in text and "    0" in text
    assert len({len(line) for line in text.splitlines()[:-2]}) == 1
    # The model is as before: modes, statistics, hooks.
    assert net.training and not net.features[3].training and net.features[1].training
    assert net.features[1].num_batches_tracked.item() == before
    assert not any(m._hooks for m in net.modules())


def test_summaries_of_other_inputs():
    assert nn.summary(nn.Embedding(10, 3), (2, 5), dtype=v.int64).rows[0][3] == "(2, 5, 3)"
    assert nn.summary(nn.LSTM(4, 6), (5, 2, 4)).rows[0][3] == "[(5, 2, 6), [(1, 2, 6), (1, 2, 6)]]"
    assert nn.summary(nn.Bilinear(2, 3, 4), [(1, 2), v.ones(1, 3)]).rows[0][3] == "(1, 4)"
    assert nn.summary(nn.Linear(2, 3)).rows == [(0, "model", "Linear", "", 9)]
    net = nn.Sequential(nn.Linear(2, 3))
    with pytest.raises(ValueError):
        nn.summary(net, (1, 5))
    assert net.training and not net[0]._hooks


def test_summary_as_html():
    class Odd(nn.Module):
        pass

    Odd.__name__ = "<b>&"
    html = nn.summary(nn.Sequential(Odd()))._repr_html_()
    assert "<b>" not in html and "&lt;b&gt;&amp;" in html and html.count("<tr>") == 3


def test_tensors_as_html():
    html = v.ones(2, 3, requires_grad=True)._repr_html_()
    assert "(2, 3)" in html and "float32" in html and "cpu" in html and "requires_grad" in html and "1." in html
    large = v.zeros(1000, 1000)._repr_html_()
    assert len(large) < 5000 and "..." in large
    assert "Parameter" in nn.Parameter(v.ones(1))._repr_html_()
    for x in (v.tensor(True), v.zeros(0, 3), v.ones(3, dtype=v.bfloat16), v.tensor([float("nan")])):
        assert x._repr_html_().startswith("<div>")


def test_stacks_of_matrices_end_no_line_with_spaces():
    assert repr(v.ones(2, 2, 1)) == "tensor([[[1.],\n         [1.]],\n\n        [[1.],\n         [1.]]])"
    assert not any(line.endswith(" ") for line in repr(v.ones(2, 2, 2, 2)).splitlines())
