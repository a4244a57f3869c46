"""PyTorch as the oracle for every op that both have: dtypes, layouts, values, gradients. Skipped without torch.

A seeded part of the samples by default; VOLTA_ORACLE=whole for all of them. What differs is listed in
`oracle_differences.py`, with its reason, and in docs/python.md. As a program it prints a table:

    python python/tests/test_torch_oracle.py [--whole] [NAMES...]
"""

import collections
import os
import pathlib
import sys

import pytest

torch = pytest.importorskip("torch")

import oracle_compare  # noqa: E402
import oracle_differences  # noqa: E402
import oracle_samples  # noqa: E402
import oracle_written  # noqa: E402

WHOLE = os.environ.get("VOLTA_ORACLE") == "whole"
NAMES = oracle_samples.names()
DOCS = pathlib.Path(__file__).parents[2] / "docs" / "python.md"
counts = {}  # (place, name): how many samples of each outcome


@pytest.fixture(scope="module")
def table():
    try:
        return oracle_samples.torch_list()
    except ImportError as error:  # it is no public part of PyTorch
        pytest.skip(f"PyTorch's list of operators: {error}")


def run(table, place, name, whole):
    """The outcomes of one name, counted, and what disagrees: (sample, outcome, the difference it is an instance of).

    Counted apart: calls that are an error here by a documented rule, and values that agree in a documented other dtype.
    """
    count, differing = collections.Counter(), []
    pointwise = oracle_samples.is_pointwise(table, place, name)
    for sample in oracle_samples.samples(table, oracle_written.WRITTEN, place, name, whole):
        outcome = oracle_compare.compare(sample, pointwise)
        known = oracle_differences.known(sample, outcome)
        if outcome.kind == "dtype" and known:
            count["in another dtype"] += 1
            outcome = oracle_compare.compare(sample, pointwise, cast=True)
            known = oracle_differences.known(sample, outcome)
        count["gradients"] += outcome.gradients
        count["by double"] += outcome.by_double
        if outcome.kind in ("agree", "skip"):
            count[outcome.kind] += 1
            continue
        count["refused here" if known and outcome.kind in ("refused", "no gradient") else "differ"] += 1
        count["documented"] += known is not None and outcome.kind not in ("refused", "no gradient")
        differing.append((sample, outcome, known))
    return count, differing


def compared(count):
    """How many samples both packages had an answer to."""
    return count["agree"] + count["differ"]


@pytest.mark.parametrize("place,name", NAMES, ids=[".".join(n) for n in NAMES])
def test_as_torch(table, place, name):
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    count, differing = run(table, place, name, WHOLE)
    torch.set_num_threads(threads)
    counts[place, name] = count
    unknown = [f"{outcome.kind}: {sample}: {outcome.text}" for sample, outcome, known in differing if known is None]
    assert not unknown, "\n".join([f"{len(unknown)} of {compared(count)} samples differ", *unknown[:20]])
    if compared(count) == 0:
        pytest.skip("there is no sample that both have an answer to")


def test_how_many_agree():
    """At least 99.5% of what both have an answer to, counting documented differences as differences."""
    total = sum(counts.values(), collections.Counter())
    if len(counts) < len(NAMES):
        pytest.skip("asks for all names")
    print(f"\n{len(counts)} names, {compared(total)} samples, {total['agree']} agree", dict(total))
    assert total["agree"] >= 0.995 * compared(total)
    assert total["gradients"] > 0.2 * compared(total)
    nothing = [key for key, count in counts.items() if not compared(count)]
    assert len(nothing) < 0.03 * len(NAMES), nothing


def test_differences_are_documented():
    text = DOCS.read_text(encoding="utf-8")
    for row in oracle_differences.rows():
        assert row in text, f"docs/python.md lacks: {row}"


def main(arguments):
    whole, wanted = "--whole" in arguments, [a for a in arguments if not a.startswith("--")]
    torch.set_num_threads(1)
    table, total, all_differing = oracle_samples.torch_list(), collections.Counter(), []
    print(f"{'op':44} {'samples':>8} {'agree':>8} {'gradients':>9} {'skipped':>8} {'refused':>8} {'documented':>10}")
    for place, name in NAMES:
        if wanted and name not in wanted:
            continue
        count, differing = run(table, place, name, whole)
        total.update(count)
        all_differing += differing
        print(
            f"{place + '.' + name:44} {compared(count):8} {count['agree']:8} {count['gradients']:9} {count['skip']:8} "
            f"{count['refused here']:8} {count['documented']:10}",
            flush=True,
        )
    for sample, outcome, known in all_differing:
        print(f"{known or 'NOT DOCUMENTED'} | {outcome.kind} | {sample} | {outcome.text}")
    share = 100 * total["agree"] / max(compared(total), 1)
    print(
        f"{compared(total)} samples, {total['agree']} agree ({share:.2f}%), {total['documented']} documented", end="; "
    )
    print(
        f"{total['gradients']} with gradients, {total['by double']} nearer to PyTorch's double than its own", end="; "
    )
    print(f"{total['in another dtype']} in another dtype, {total['refused here']} that are an error here", end="; ")
    print(f"{total['skip']} that PyTorch refuses")


if __name__ == "__main__":
    main(sys.argv[1:])
