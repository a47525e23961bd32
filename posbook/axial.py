r"""Turn a head by several coordinates: each pair reads one of them.

.. math:: \text{angle}_{t,i} = m_{t,\,a(i)}\;\theta_i

Token :math:`t` of an image or a video stands at :math:`m_t = (m_{t,0}, m_{t,1}, \dots)`, as its row and
column; :math:`a(i)` is the axis that pair :math:`i` reads. ``rotary.rotate`` turns by these angles as by any
others, so a score depends only on the offset along every axis.

Schemes differ in :math:`a` and :math:`\theta` alone. :func:`split` gives every axis the same frequencies, as
Qwen2-VL's vision encoder does. M-RoPE, in the language models of Qwen2-VL (:func:`chunked`) and Qwen3-VL
(:func:`interleaved`), shares out the frequencies of plain RoPE, and is plain RoPE where all coordinates are
equal, as for text.
"""

from collections.abc import Sequence

from jaxtyping import Float, Float64, Real
from torch import Tensor

from posbook.frequencies import angles as along_each


def angles(
    coordinates: Real[Tensor, "*batch seq axes"],
    frequencies: Float[Tensor, " pairs"],
    axes: Sequence[int],
) -> Float64[Tensor, "*batch seq pairs"]:
    r"""The phase :math:`m_{t,a(i)}\,\theta_i` of every pair, in radians, where :math:`a(i)` is ``axes[i]``.

    ``axes`` comes from :func:`chunked`, from :func:`interleaved`, or is any other list. Coordinates of a
    batch give (batch, seq, pairs): write ``angles[:, None]`` to rotate heads by them. Raises ValueError
    unless every pair has an axis and every coordinate a pair, and as
    :func:`posbook.frequencies.angles` does.

    >>> import torch
    >>> from posbook import frequencies
    >>> places = torch.tensor([[5, 0, 0], [5, 0, 1], [5, 1, 0]])  # time, row, column
    >>> angles(places, torch.tensor([1.0, 0.5, 0.25, 0.125]), axes=[0, 1, 2, 0]).tolist()
    [[5.0, 0.0, 0.0, 0.625], [5.0, 0.0, 0.25, 0.625], [5.0, 0.5, 0.0, 0.625]]
    """
    pairs = frequencies.shape[-1]
    if len(axes) != pairs:
        raise ValueError(
            f"axes names an axis for each of {len(axes)} pairs, but there are {pairs} frequencies: "
            "sections must sum to the number of pairs, dim/2"
        )
    if coordinates.ndim < 2 or sorted(set(axes)) != list(range(coordinates.shape[-1])):
        raise ValueError(
            f"coordinates must be (..., seq, axes) with one column for each of the axes {sorted(set(axes))} "
            f"that pairs read, not {tuple(coordinates.shape)}: movedim(0, -1) turns (axes, batch, seq) round"
        )
    return along_each(coordinates, frequencies)[..., list(axes), list(range(pairs))]


def split(
    coordinates: Real[Tensor, "*batch seq axes"], frequencies: Float[Tensor, " pairs"]
) -> Float64[Tensor, "*batch seq all_pairs"]:
    r"""Angles in which every axis has the same frequencies, one axis after the other.

    For a head of width dim the ``frequencies`` of one axis are ``geometric(dim // axes)``. Equal coordinates
    are not plain RoPE here: each axis is as fast as the other. Raises ValueError for coordinates that are not
    (…, seq, axes), and as :func:`posbook.frequencies.angles` does.

    >>> import torch
    >>> split(torch.tensor([[0, 0], [0, 1], [1, 0]]), torch.tensor([1.0, 0.5])).tolist()
    [[0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.5], [1.0, 0.5, 0.0, 0.0]]
    """
    count = coordinates.shape[-1]
    return angles(coordinates, frequencies.repeat(count), chunked([frequencies.shape[-1]] * count))


def chunked(sections: Sequence[int]) -> list[int]:
    r"""The axis of each pair where the axes follow each other: ``sections[0]`` pairs, then ``sections[1]``.

    Qwen2-VL has ``[16, 24, 24]`` for time, height, width, so time has the fastest pairs. Raises ValueError
    for a negative section.

    >>> chunked([1, 2, 3])
    [0, 1, 1, 2, 2, 2]
    """
    _check(sections)
    return [axis for axis, section in enumerate(sections) for _ in range(section)]


def interleaved(sections: Sequence[int]) -> list[int]:
    r"""The axis of each pair where the axes take turns, and pairs left over read axis 0.

    Qwen3-VL has ``[24, 20, 20]`` for time, height, width, so each axis has fast pairs and slow ones. Axis
    :math:`a > 0` of :math:`A` reads its pairs :math:`a, a + A, a + 2A, \dots`. Raises ValueError where these
    do not fit among all pairs, as for ``[16, 24, 24]``, and for a negative section.

    >>> interleaved([4, 2, 2])
    [0, 1, 2, 0, 1, 2, 0, 0]
    """
    _check(sections)
    pairs = [0] * sum(sections)
    for axis, section in enumerate(sections[1:], start=1):
        turns = range(axis, axis + section * len(sections), len(sections))
        # Hugging Face's code drops these turns, and the axis has fewer pairs than its section says.
        if section and turns[-1] >= len(pairs):
            raise ValueError(
                f"sections {list(sections)} cannot be interleaved: axis {axis} would read pair {turns[-1]}, "
                f"but the last is {len(pairs) - 1}; use chunked, or give axis 0 more pairs"
            )
        for pair in turns:
            pairs[pair] = axis
    return pairs


def _check(sections: Sequence[int]) -> None:
    if any(section < 0 for section in sections):
        raise ValueError(f"sections are numbers of pairs and not negative, not {list(sections)}")
