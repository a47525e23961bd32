r"""Take position in attention apart: one arrow is one function.

::

    positions ─angles─▶ mθ ─rotate─▶ q̃, k̃ ─scores─▶ s (+ bias) ─weights─▶ α ─output─▶ z

Functions of tensors, without parameters or caches: learned tables are arguments. The modules, by where
position enters:

before it enters
    :mod:`~posbook.positions`: where tokens stand, and how far apart.
    :mod:`~posbook.frequencies`: how fast each pair turns, and its angle at each position.

added to the input
    :mod:`~posbook.sinusoidal`: a row of clocks for each position.

applied to queries and keys
    :mod:`~posbook.rotary`: each pair of features turned by its angle.

added to the scores
    :mod:`~posbook.shaw`: a learned vector for each clipped offset, on keys and on values.
    :mod:`~posbook.t5_bias`: a learned number for each bucket of offsets.
    :mod:`~posbook.alibi`: a fixed slope times the distance.

knowing no encoding
    :mod:`~posbook.attention`: scores, masks, weights and output, in full.
    :mod:`~posbook.properties`: what an encoding promises, measured on anyone's implementation.
"""

from . import alibi, attention, frequencies, positions, properties, rotary, shaw, sinusoidal, t5_bias

__all__ = [
    "alibi",
    "attention",
    "frequencies",
    "positions",
    "properties",
    "rotary",
    "shaw",
    "sinusoidal",
    "t5_bias",
]
