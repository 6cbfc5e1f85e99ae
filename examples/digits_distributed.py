"""examples/digits_distributed.py - Keras learns to read handwritten digits on many ranks, each with its own share of them:

    mpirun -n 2 -x KASSETTE_NUM_THREADS=1 python examples/digits_distributed.py

Alone it is an ordinary program. The packages that it takes are in docs/python.md.
"""
import os
import sys

os.environ.setdefault("KERAS_BACKEND", "kassette.keras")
import keras
import numpy as np
from kassette import distributed as D
from kassette.keras_distributed import AverageMetrics, BroadcastWeights, DistributedOptimizer

TRAIN, BATCH, EPOCHS = 1437, 48, 15   # of 1,797 digits of 8 by 8 pixels; the batch of all ranks together

world = D.init()
digits = np.loadtxt(os.path.join(os.path.dirname(os.path.abspath(__file__)), "data/digits.csv"), delimiter=",")
digits = np.random.RandomState(3).permutation(digits)   # in the same order on all ranks
rows = TRAIN - TRAIN % world.size                       # as many for each: all take the same number of steps
mine, test = D.shard(digits[:rows]), digits[TRAIN:]
x, y = mine[:, :64] / 16, mine[:, 64]

np.random.seed(world.rank)   # each rank draws weights and batches of its own; BroadcastWeights makes the weights rank 0's
model = keras.Sequential([keras.layers.Dense(128, activation="tanh", input_shape=(64,)), keras.layers.Dense(10, activation="softmax")])
model.compile(DistributedOptimizer(keras.optimizers.SGD(0.1, momentum=0.9)), "sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(x, y, batch_size=max(1, BATCH // world.size), epochs=EPOCHS, verbose=2 if world.rank == 0 else 0,
          callbacks=[BroadcastWeights(), AverageMetrics()])

accuracy = model.evaluate(test[:, :64] / 16, test[:, 64], verbose=0)[1]
spread = max(np.max(D.all_reduce(w, D.max) - D.all_reduce(w, D.min)) for w in model.get_weights())
if world.rank == 0:
    print(f"{world.size} rank{'s' * (world.size > 1)}: accuracy {accuracy:.4f}; weights differ by {spread:g} between ranks")
sys.exit(0 if accuracy >= 0.95 and spread == 0 else 1)
