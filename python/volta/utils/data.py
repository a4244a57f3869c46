"""Data sets, samplers and a loader that makes batches, with worker threads."""

import bisect
import itertools
import threading
from collections import deque
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

from .. import _volta
from .._volta import Tensor
from .samplers import *  # noqa: F403
from .samplers import BatchSampler, RandomSampler, SequentialSampler


class Dataset:
    """Items by number: `__getitem__` and `__len__`."""

    def __class_getitem__(cls, item):
        return cls

    def __getitem__(self, index):
        raise NotImplementedError(f"{type(self).__name__} has no __getitem__")

    def __add__(self, other):
        return ConcatDataset([self, other])


class IterableDataset(Dataset):
    """Items one after the other: `__iter__`."""

    def __iter__(self):
        raise NotImplementedError(f"{type(self).__name__} has no __iter__")

    def __add__(self, other):
        return ChainDataset([self, other])


class TensorDataset(Dataset):
    """Rows of tensors of one length."""

    def __init__(self, *tensors):
        rows = [x.shape[0] if x.shape else None for x in tensors]
        if len(set(rows)) != 1 or rows[0] is None:
            raise ValueError(f"TensorDataset: the tensors have {rows} rows")
        self.tensors = tensors

    def __getitem__(self, index):
        return tuple(x[index] for x in self.tensors)

    def __len__(self):
        return self.tensors[0].shape[0]


class Subset(Dataset):
    """Some items of a data set."""

    def __init__(self, dataset, indices):
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, index):
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __len__(self):
        return len(self.indices)


class ConcatDataset(Dataset):
    """Data sets one after the other."""

    def __init__(self, datasets):
        self.datasets = list(datasets)
        if not self.datasets:
            raise ValueError("ConcatDataset: needs a data set")
        self.cumulative_sizes = list(itertools.accumulate(len(d) for d in self.datasets))

    def __getitem__(self, index):
        if not -len(self) <= index < len(self):
            raise IndexError(f"item {index} of {len(self)}")
        index %= len(self)
        part = bisect.bisect_right(self.cumulative_sizes, index)
        return self.datasets[part][index - (self.cumulative_sizes[part - 1] if part else 0)]

    def __len__(self):
        return self.cumulative_sizes[-1]


class ChainDataset(IterableDataset):
    """Iterable data sets one after the other."""

    def __init__(self, datasets):
        self.datasets = list(datasets)

    def __iter__(self):
        return itertools.chain.from_iterable(self.datasets)

    def __len__(self):
        return sum(len(d) for d in self.datasets)


class StackDataset(Dataset):
    """Items of several data sets together, as a tuple or by name as a dict."""

    def __init__(self, *args, **kwargs):
        if bool(args) == bool(kwargs):
            raise ValueError("StackDataset: takes data sets, or data sets by name")
        self.datasets = args or kwargs
        if len({len(d) for d in (args or kwargs.values())}) != 1:
            raise ValueError("StackDataset: the data sets differ in length")

    def __getitem__(self, index):
        if isinstance(self.datasets, dict):
            return {name: d[index] for name, d in self.datasets.items()}
        return tuple(d[index] for d in self.datasets)

    def __len__(self):
        return len(next(iter(self.datasets.values() if isinstance(self.datasets, dict) else self.datasets)))


def random_split(dataset, lengths, generator=None):
    """The data set in disjoint random parts of these lengths, or shares that add up to 1."""
    if abs(sum(lengths) - 1) < 1e-9 and not all(isinstance(n, int) for n in lengths):
        sizes = [int(len(dataset) * share) for share in lengths]
        for i in range(len(dataset) - sum(sizes)):
            sizes[i % len(sizes)] += 1
        lengths = sizes
    if sum(lengths) != len(dataset):
        raise ValueError(f"random_split: {lengths} do not add up to {len(dataset)}")
    order = _volta.randperm(len(dataset), generator=generator).tolist()
    ends = [sum(lengths[: i + 1]) for i in range(len(lengths))]
    return [Subset(dataset, order[end - n : end]) for n, end in zip(lengths, ends)]


def default_convert(item):
    """Arrays as tensors, also within tuples, lists and dicts; all else as it is."""
    if isinstance(item, Tensor) or isinstance(item, (str, bytes)):
        return item
    if hasattr(item, "__array_interface__"):
        return _volta.tensor(item)
    if isinstance(item, Mapping):
        return {key: default_convert(value) for key, value in item.items()}
    if isinstance(item, tuple) and hasattr(item, "_fields"):
        return type(item)(*(default_convert(value) for value in item))
    if isinstance(item, (tuple, list)):
        return [default_convert(value) for value in item]
    return item


def default_collate(items):
    """One batch of items: tensors and numbers stacked; tuples, lists and dicts by their parts; texts as a list."""
    first = items[0]
    if isinstance(first, Tensor):
        return _volta.stack(items)
    if isinstance(first, (str, bytes)):
        return items
    if isinstance(first, Mapping):
        return {key: default_collate([item[key] for item in items]) for key in first}
    if isinstance(first, (tuple, list)):
        if len({len(item) for item in items}) != 1:
            raise RuntimeError("default_collate: the items of a batch differ in length")
        parts = [default_collate(list(part)) for part in zip(*items)]
        return type(first)(*parts) if hasattr(first, "_fields") else parts
    if hasattr(first, "__array_interface__"):
        return _volta.stack([_volta.tensor(item) for item in items])
    if not isinstance(first, (bool, int, float)):
        raise TypeError(
            f"default_collate: a batch has tensors, arrays, numbers, dicts or lists, not {type(first).__name__}; "
            "collate_fn may say how to put these together"
        )
    return _volta.tensor(items)


_worker = threading.local()


def get_worker_info():
    """In a worker: its `id`, `num_workers`, `seed` and `dataset`; elsewhere None."""
    return getattr(_worker, "info", None)


class DataLoader:
    """Batches of a data set: for x, y in DataLoader(data, batch_size=32, shuffle=True). Workers are threads.

    What belongs to PyTorch's worker processes (multiprocessing_context, persistent_workers, timeout) and pin_memory is
    accepted and changes nothing.
    """

    def __init__(
        self,
        dataset,
        batch_size=1,
        shuffle=None,
        sampler=None,
        batch_sampler=None,
        num_workers=0,
        collate_fn=None,
        pin_memory=False,
        drop_last=False,
        timeout=0,
        worker_init_fn=None,
        multiprocessing_context=None,
        generator=None,
        *,
        prefetch_factor=None,
        persistent_workers=False,
        pin_memory_device="",
        in_order=True,
    ):
        if num_workers < 0:
            raise ValueError(f"DataLoader: {num_workers} workers")
        if prefetch_factor is not None and (num_workers == 0 or prefetch_factor < 1):
            raise ValueError("DataLoader: prefetch_factor is at least 1, and for workers")
        if sampler is not None and shuffle:
            raise ValueError("DataLoader: a sampler says the order, shuffle must be False")
        self._iterable = isinstance(dataset, IterableDataset)
        if self._iterable and (shuffle or sampler is not None or batch_sampler is not None):
            raise ValueError("DataLoader: an iterable data set says the order, without shuffle or sampler")
        if batch_sampler is not None and (batch_size != 1 or shuffle or sampler is not None or drop_last):
            raise ValueError("DataLoader: batch_sampler excludes batch_size, shuffle, sampler and drop_last")
        if batch_sampler is not None:
            batch_size, drop_last = None, False
        elif batch_size is None and drop_last:
            raise ValueError("DataLoader: drop_last is for batches, batch_size is None")
        elif batch_size is not None and batch_size < 1:
            raise ValueError(f"DataLoader: a batch of {batch_size} items")
        if sampler is None and not self._iterable:
            sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
        if batch_sampler is None and batch_size is not None and not self._iterable:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.dataset, self.batch_size, self.sampler, self.batch_sampler = dataset, batch_size, sampler, batch_sampler
        self.num_workers, self.drop_last, self.generator = num_workers, drop_last, generator
        self.pin_memory, self.worker_init_fn, self.prefetch_factor = pin_memory, worker_init_fn, prefetch_factor or 2
        whole = batch_sampler is None and batch_size is None
        self.collate_fn = collate_fn or (default_convert if whole else default_collate)

    def __class_getitem__(cls, item):
        return cls

    def __len__(self):
        if not self._iterable:
            return len(self.sampler if self.batch_sampler is None else self.batch_sampler)
        count = len(self.dataset)
        if self.batch_size is None:
            return count
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)

    def _fetch(self, indices):
        if self.batch_sampler is None:
            return self.collate_fn(self.dataset[indices])
        if type(self.dataset) is TensorDataset and self.collate_fn is default_collate:
            return list(self.dataset[indices])  # one gather instead of a stack of rows
        fetch = getattr(self.dataset, "__getitems__", None)
        return self.collate_fn(fetch(indices) if fetch else [self.dataset[i] for i in indices])

    def __iter__(self):
        if self._iterable:
            return self._stream()
        order = iter(self.sampler if self.batch_sampler is None else self.batch_sampler)
        return map(self._fetch, order) if self.num_workers == 0 else self._with_workers(order)

    def _stream(self):
        if self.batch_size is None:
            yield from map(self.collate_fn, self.dataset)
            return
        for items in BatchSampler(self.dataset, self.batch_size, self.drop_last):
            yield self.collate_fn(items)

    def _with_workers(self, order):
        ids = itertools.count()
        seed = _volta.randint(0, 2**31, (1,), generator=self.generator).item()

        def begin():
            number = next(ids)
            _worker.info = SimpleNamespace(
                id=number, num_workers=self.num_workers, seed=seed + number, dataset=self.dataset
            )
            if self.worker_init_fn is not None:
                self.worker_init_fn(number)

        with ThreadPoolExecutor(self.num_workers, initializer=begin) as pool:
            ahead = deque()
            try:
                for indices in order:
                    ahead.append(pool.submit(self._fetch, indices))
                    if len(ahead) >= self.num_workers * self.prefetch_factor:
                        yield ahead.popleft().result()
                while ahead:
                    yield ahead.popleft().result()
            finally:
                for waiting in ahead:
                    waiting.cancel()
