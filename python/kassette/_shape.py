"""The static shape of a tensor: a tuple with what TensorFlow's TensorShape has."""
import math


class Shape(tuple):
    """Sizes, None where they are not known."""

    __slots__ = ()

    def __getitem__(self, key):
        found = tuple.__getitem__(self, key)
        return Shape(found) if isinstance(key, slice) else found

    def as_list(self):
        return list(self)

    @property
    def ndims(self):
        return len(self)

    rank = ndims

    @property
    def dims(self):
        return list(self)

    def concatenate(self, other):
        return Shape(tuple(self) + tuple(other))

    def is_fully_defined(self):
        return None not in self

    def num_elements(self):
        """The number of elements, None where a size is not known."""
        return math.prod(self) if self.is_fully_defined() else None
