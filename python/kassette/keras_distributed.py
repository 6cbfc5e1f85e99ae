"""Data-parallel training with Keras 2.3: each rank fits the same model on its own share of the data.

    mpirun -n 4 -x KERAS_BACKEND=kassette.keras python train.py

Three lines make a program parallel: the optimizer becomes DistributedOptimizer(optimizer), fit gets the callbacks BroadcastWeights() and
AverageMetrics() before all others, and its data are distributed.shard(...) of the whole. All ranks take the same number of steps. Started alone
the program is as it was.
"""
import contextlib
import copy
import functools
import inspect

import keras
import numpy as np

from . import distributed as D

__all__ = ["AverageMetrics", "BroadcastWeights", "DistributedOptimizer", "broadcast_weights", "load_model"]


class _Averages:
    """What stands before an optimizer's own class: the gradients that it takes are averaged over the ranks."""

    _world = None   # all ranks

    @contextlib.contextmanager
    def _averaging(self):
        # Keras clips what K.gradients gives it. Averaged there, the gradients that are clipped are those of the global batch.
        own = keras.backend.gradients
        keras.backend.gradients = lambda loss, variables: D.gradients(loss, variables, D.mean, world=self._world)
        try:
            yield
        finally:
            keras.backend.gradients = own

    def get_updates(self, *args, **kwargs):
        with self._averaging():
            return super().get_updates(*args, **kwargs)

    def get_gradients(self, loss, params):
        with self._averaging():
            return super().get_gradients(loss, params)


@functools.lru_cache(None)
def _averaging(optimizer_class):
    """That class with _Averages before it, under its own name: what is saved with it any program loads."""
    return type(optimizer_class.__name__, (_Averages, optimizer_class), {"__module__": optimizer_class.__module__, "__doc__": optimizer_class.__doc__})


def DistributedOptimizer(optimizer, world=None):
    """The optimizer, or the one of that name, with gradients averaged over the ranks before they are clipped and used.

    It is of the optimizer's class, and shares its state with it: lr, weights, get_config() and what else a callback asks for are the optimizer's
    own. The model that all ranks fit together is the one that a single rank would fit with their batches in one, where these are equally
    large.
    """
    optimizer = copy.copy(keras.optimizers.get(optimizer))
    if not isinstance(optimizer, _Averages):
        optimizer.__class__ = _averaging(type(optimizer))
    optimizer._world = world
    return optimizer


def broadcast_weights(model, root=0, world=None):
    """Rank root's weights for the model of every rank, and the state of its optimizer: moments, the count of steps, the learning rate."""
    variables = list(model.weights)
    if getattr(model, "optimizer", None) is not None:
        model._make_train_function()   # the optimizer makes its state with it
        variables += model.optimizer.weights
        variables += [v for v in vars(model.optimizer).values() if keras.backend.is_variable(v)]
    D.broadcast(list(dict.fromkeys(variables)), root, world)


class BroadcastWeights(keras.callbacks.Callback):
    """Before training begins, every rank takes rank root's weights and the state of its optimizer."""

    def __init__(self, root=0, world=None):
        super().__init__()
        self.root, self.world = root, world

    def on_train_begin(self, logs=None):
        broadcast_weights(self.model, self.root, self.world)


class AverageMetrics(keras.callbacks.Callback):
    """At the end of each epoch, losses and metrics become their means over the ranks.

    Callbacks behind this one in the list see the means, so that ReduceLROnPlateau, EarlyStopping and ModelCheckpoint decide the same on all ranks;
    so does the history. All ranks have the same metrics.
    """

    def __init__(self, world=None):
        super().__init__()
        self.world = world

    def on_epoch_end(self, epoch, logs=None):
        if not logs:
            return
        names = sorted(logs)
        means = D.all_reduce(np.array([logs[name] for name in names], "float64"), D.mean, self.world)
        logs.update(zip(names, means))


def load_model(filepath, custom_objects=None, compile=True, world=None):
    """keras.models.load_model for training that goes on: the optimizer is a DistributedOptimizer, with the state that was saved.

    Custom optimizers are among the custom_objects, as with Keras. Each rank reads the file; where it is on the disk of one machine alone, let
    that rank load it and BroadcastWeights pass it on.
    """
    def is_optimizer(x):
        return inspect.isclass(x) and issubclass(x, keras.optimizers.Optimizer)

    def made(optimizer_class):
        averages = _averaging(optimizer_class)
        return averages if world is None else type(averages.__name__, (averages,), {"_world": world})

    objects = {}
    for name, x in vars(keras.optimizers).items():
        if is_optimizer(x):
            objects[name] = objects[name.lower()] = x   # Keras looks for its own in lower case
    objects.update(custom_objects or {})
    return keras.models.load_model(filepath, {name: made(x) if is_optimizer(x) else x for name, x in objects.items()}, compile)
