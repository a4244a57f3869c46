#!/usr/bin/env python3
"""Prints scikit-learn's values for the data of tests/train_metrics_test.cpp: python3 tests/oracle/metrics.py"""

import numpy as np
from sklearn import metrics as m

N, C = 60, 5
scores = np.array([[(i * 37 + c * 61 + i * c * 13) % 101 for c in range(C)] for i in range(N)]) / 101.0
labels = np.array([(i * 7 + i // 5) % 4 for i in range(N)])  # class 4 is never a target
predicted = scores.argmax(1)
probability = np.array([(i * 29) % 17 for i in range(N)]) / 17.0  # with ties
positive = np.array([int((i * 29) % 17 + (i * 5) % 11 > 12) for i in range(N)])
x = np.array([[(i * 31) % 23, (i * 19) % 29 + 1000] for i in range(N)]) / 7.0
y = x + np.array([[(i * 11) % 5 - 2, (i * 3) % 7 - 3] for i in range(N)]) / 4.0


def show(name, value):
    print(f"{name:24} {value!r}")


show("accuracy", m.accuracy_score(labels, predicted))
for k in (1, 2, 3):
    show(f"top{k}", m.top_k_accuracy_score(labels, scores, k=k, labels=range(C)))
for average in ("micro", "macro", "weighted"):
    for f in (m.precision_score, m.recall_score, m.f1_score):
        show(f"{f.__name__[:-6]} {average}", f(labels, predicted, average=average, zero_division=0))
decided = (probability > 0.5).astype(int)
show("binary accuracy", m.accuracy_score(positive, decided))
for f in (m.precision_score, m.recall_score, m.f1_score):
    show(f"{f.__name__[:-6]} binary", f(positive, decided))
show("confusion", m.confusion_matrix(labels, predicted, labels=range(C)).tolist())
show("confusion true[0]", m.confusion_matrix(labels, predicted, labels=range(C), normalize="true")[0].tolist())
show("confusion pred[0]", m.confusion_matrix(labels, predicted, labels=range(C), normalize="pred")[0].tolist())
show("auc", m.roc_auc_score(positive, probability))
show("perplexity", float(np.exp(m.log_loss(labels, np.exp(scores) / np.exp(scores).sum(1, keepdims=True), labels=range(C)))))
show("mae", m.mean_absolute_error(y, x))
show("mse", m.mean_squared_error(y, x))
show("r2", m.r2_score(y, x))
