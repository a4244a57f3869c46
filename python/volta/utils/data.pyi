from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from volta import Generator, Tensor

from .samplers import BatchSampler as BatchSampler
from .samplers import RandomSampler as RandomSampler
from .samplers import Sampler as Sampler
from .samplers import SequentialSampler as SequentialSampler
from .samplers import SubsetRandomSampler as SubsetRandomSampler
from .samplers import WeightedRandomSampler as WeightedRandomSampler

class Dataset:
    def __class_getitem__(cls, item: Any) -> Any: ...
    def __getitem__(self, index: Any) -> Any: ...
    def __add__(self, other: Dataset) -> Dataset: ...

class IterableDataset(Dataset):
    def __iter__(self) -> Iterator[Any]: ...

class TensorDataset(Dataset):
    tensors: tuple[Tensor, ...]
    def __init__(self, *tensors: Tensor) -> None: ...
    def __getitem__(self, index: Any) -> tuple[Tensor, ...]: ...
    def __len__(self) -> int: ...

class Subset(Dataset):
    dataset: Any
    indices: Sequence[int]
    def __init__(self, dataset: Any, indices: Sequence[int]) -> None: ...
    def __len__(self) -> int: ...

class ConcatDataset(Dataset):
    datasets: list[Any]
    cumulative_sizes: list[int]
    def __init__(self, datasets: Iterable[Any]) -> None: ...
    def __len__(self) -> int: ...

class ChainDataset(IterableDataset):
    datasets: list[Any]
    def __init__(self, datasets: Iterable[Any]) -> None: ...
    def __len__(self) -> int: ...

class StackDataset(Dataset):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def __len__(self) -> int: ...

def random_split(dataset: Any, lengths: Sequence[float], generator: Generator | None = None) -> list[Subset]: ...
def default_convert(item: Any) -> Any: ...
def default_collate(items: list[Any]) -> Any: ...
def get_worker_info() -> Any: ...

class DataLoader:
    dataset: Any
    batch_size: int | None
    sampler: Any
    batch_sampler: Any
    num_workers: int
    drop_last: bool
    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[Any] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], Any] | None = None,
        multiprocessing_context: Any = None,
        generator: Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None: ...
    def __class_getitem__(cls, item: Any) -> Any: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]: ...
