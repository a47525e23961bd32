r"""Take position in attention apart: one arrow is one function.

::

    positions ─angles─▶ mθ ─rotate─▶ q̃, k̃ ─scores─▶ s (+ bias) ─weights─▶ α ─output─▶ z

Functions of tensors, without parameters or caches: learned tables are arguments. The modules, by where
position enters:

before it enters
    :mod:`~posbook.positions`: where tokens stand, and how far apart.
    :mod:`~posbook.frequencies`: how fast each pair turns, and its angle at each position.
    :mod:`~posbook.scaling`: other frequencies for a longer context.

added to the input
    :mod:`~posbook.sinusoidal`: a row of clocks for each position.
    :mod:`~posbook.learned`: a row of a table for each position.

applied to queries and keys
    :mod:`~posbook.rotary`: each pair of features turned by its angle.
    :mod:`~posbook.axial`: angles for tokens with several coordinates.
    :mod:`~posbook.xpos`: turned, and scaled so that far scores shrink.

added to the scores
    :mod:`~posbook.shaw`: a learned vector for each clipped offset, on keys and on values.
    :mod:`~posbook.transformer_xl`: sinusoids of the offset, against content and against two learned vectors.
    :mod:`~posbook.t5_bias`: a learned number for each bucket of offsets.
    :mod:`~posbook.alibi`: a fixed slope times the distance.
    :mod:`~posbook.kerple`: a learned power or logarithm of the distance.
    :mod:`~posbook.fire`: a learned function of the distance in units of the query's position.
    :mod:`~posbook.cope`: a learned number for a position counted by the content.

knowing no encoding
    :mod:`~posbook.attention`: scores, masks, weights and output, in full.
    :mod:`~posbook.properties`: what an encoding promises, measured on anyone's implementation.
"""

from . import (
    alibi,
    attention,
    axial,
    cope,
    fire,
    frequencies,
    kerple,
    learned,
    positions,
    properties,
    rotary,
    scaling,
    shaw,
    sinusoidal,
    t5_bias,
    transformer_xl,
    xpos,
)

__all__ = [
    "alibi",
    "attention",
    "axial",
    "cope",
    "fire",
    "frequencies",
    "kerple",
    "learned",
    "positions",
    "properties",
    "rotary",
    "scaling",
    "shaw",
    "sinusoidal",
    "t5_bias",
    "transformer_xl",
    "xpos",
]
