"""Data sets, samplers and a loader that makes batches, with worker threads."""

from collections import deque
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from .. import _volta
from .._volta import Tensor


class Dataset:
    """Items by number: `__getitem__` and `__len__`."""

    def __getitem__(self, index):
        raise NotImplementedError

    def __len__(self):
        raise NotImplementedError


class IterableDataset(Dataset):
    """Items one after the other: `__iter__`."""

    def __iter__(self):
        raise NotImplementedError


class TensorDataset(Dataset):
    """Rows of tensors of one length."""

    def __init__(self, *tensors):
        if len({x.shape[0] for x in tensors}) != 1:
            raise ValueError(f"TensorDataset: the tensors have {[x.shape[0] for x in tensors]} rows")
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
        return self.dataset[self.indices[index]]

    def __len__(self):
        return len(self.indices)


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
        return tuple(default_collate(list(part)) for part in zip(*items, strict=True))
    if hasattr(first, "__array_interface__"):
        return _volta.stack([_volta.tensor(item) for item in items])
    return _volta.tensor(items)


class DataLoader:
    """Batches of a data set: for x, y in DataLoader(data, batch_size=32, shuffle=True). Workers are threads."""

    def __init__(
        self,
        dataset,
        batch_size=1,
        shuffle=False,
        sampler=None,
        num_workers=0,
        collate_fn=None,
        drop_last=False,
        generator=None,
        prefetch_factor=2,
    ):
        if batch_size is not None and batch_size < 1:
            raise ValueError(f"DataLoader: a batch of {batch_size} items")
        if sampler is not None and shuffle:
            raise ValueError("DataLoader: a sampler says the order, shuffle must be False")
        self.dataset, self.batch_size, self.shuffle, self.sampler = dataset, batch_size, shuffle, sampler
        self.num_workers, self.drop_last, self.generator = num_workers, drop_last, generator
        self.collate_fn, self.prefetch_factor = collate_fn or default_collate, prefetch_factor

    def __len__(self):
        count = len(self.sampler if self.sampler is not None else self.dataset)
        if self.batch_size is None:
            return count
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)

    def _order(self):
        if self.sampler is not None:
            return iter(self.sampler)
        count = len(self.dataset)
        return iter(_volta.randperm(count, generator=self.generator).tolist() if self.shuffle else range(count))

    def _groups(self, items):
        group = []
        for item in items:
            if self.batch_size is None:
                yield item
                continue
            group.append(item)
            if len(group) == self.batch_size:
                yield group
                group = []
        if group and not self.drop_last:
            yield group

    def _fetch(self, indices):
        if self.batch_size is None:
            return self.dataset[indices]
        if isinstance(self.dataset, TensorDataset) and self.collate_fn is default_collate:
            return self.dataset[indices]  # one gather instead of a stack of rows
        return self.collate_fn([self.dataset[i] for i in indices])

    def __iter__(self):
        if isinstance(self.dataset, IterableDataset):
            for items in self._groups(self.dataset):
                yield items if self.batch_size is None else self.collate_fn(items)
        elif self.num_workers == 0:
            yield from map(self._fetch, self._groups(self._order()))
        else:
            yield from self._with_workers()

    def _with_workers(self):
        with ThreadPoolExecutor(self.num_workers) as pool:
            ahead = deque()
            for indices in self._groups(self._order()):
                ahead.append(pool.submit(self._fetch, indices))
                if len(ahead) >= self.num_workers * self.prefetch_factor:
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()
