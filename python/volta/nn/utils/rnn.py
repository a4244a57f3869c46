"""Sequences of different lengths: padded, and packed without padding."""

from ... import _volta
from ..._volta import PackedSequence, pad_sequence, unpad_sequence

__all__ = [
    "PackedSequence",
    "pack_padded_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpad_sequence",
    "pack_sequence",
    "unpack_sequence",
]


def _require_sorted(lengths, enforce_sorted):
    lengths = lengths.tolist() if hasattr(lengths, "tolist") else list(lengths)
    if enforce_sorted and lengths != sorted(lengths, reverse=True):
        raise RuntimeError(f"the lengths {lengths} do not decrease: sort them, or say enforce_sorted=False")
    return lengths


def pack_padded_sequence(input, lengths, batch_first=False, enforce_sorted=True):
    """Sequences of a padded batch without the padding; any order of lengths with enforce_sorted=False."""
    return _volta.pack_padded_sequence(input, _require_sorted(lengths, enforce_sorted), batch_first)


def pad_packed_sequence(sequence, batch_first=False, padding_value=0.0, total_length=None):
    """The padded batch and the lengths, as a tensor; padded to `total_length` where that is given."""
    padded, lengths = _volta.pad_packed_sequence(sequence, batch_first, padding_value)
    time = 1 if batch_first else 0
    if total_length is not None:
        more = total_length - padded.shape[time]
        if more < 0:
            raise ValueError(f"total_length {total_length} is shorter than the longest sequence, {padded.shape[time]}")
        sides = [0, 0] * (padded.ndim - 1 - time) + [0, more]
        padded = _volta.pad(padded, sides, value=padding_value)
    return padded, _volta.tensor(lengths)


def pack_sequence(sequences, enforce_sorted=True):
    """Sequences packed as they are."""
    _require_sorted([len(x) for x in sequences], enforce_sorted)
    return _volta.pack_sequence(list(sequences))


def unpack_sequence(packed_sequences):
    """The list of sequences that were packed."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return list(unpad_sequence(padded, lengths.tolist(), batch_first=True))
