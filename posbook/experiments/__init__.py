r"""A small laboratory: what the book says it measured, it measured here.

One decoder, one loop, every encoding behind the same hooks, on a laptop's processor. ``make experiments``
trains everything anew; ``python -m posbook.experiments NAME`` one experiment. What was measured ships with
the package and is read with :mod:`~posbook.experiments.records`.

what is trained
    :mod:`~posbook.experiments.decoder`: a transformer in a hundred lines.
    :mod:`~posbook.experiments.encodings`: the encodings as three hooks; parameters live only there.

on what
    :mod:`~posbook.experiments.corpus`: English prose that comes with Python.
    :mod:`~posbook.experiments.tasks`: "A before B?", and windows cut from a text.

how
    :mod:`~posbook.experiments.training`: the loop.
    :mod:`~posbook.experiments.language`: the recipe of the character models, and their losses.
    :mod:`~posbook.experiments.records`: what is kept of a run, and how it is written.
    :mod:`~posbook.experiments.laboratory`: which runs there are, and which are missing.

the experiments
    :mod:`~posbook.experiments.extrapolation`: train short, test long.
    :mod:`~posbook.experiments.extension`: a trained rotary model under every rule of :mod:`posbook.scaling`.
    :mod:`~posbook.experiments.position_probe`: where in a model the position can be read.
    :mod:`~posbook.experiments.word_order`: "A before B?" without a mask.
    :mod:`~posbook.experiments.a_before_b`: "A before B?" beyond the trained length.
    :mod:`~posbook.experiments.parity`: learned against sinusoidal, by the length of the training.
    :mod:`~posbook.experiments.broken_pairs`: which rotary pairs fail beyond the trained length.
"""
