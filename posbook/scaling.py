r"""Slow the pairs down for a context longer than the trained one: frequencies to frequencies.

.. math:: \theta'_i = \theta_i / s                                        \quad\text{linear}, \qquad
          \theta'_i = \theta_i / s^{2i/(\text{dim}-2)}                    \quad\text{NTK-aware}, \qquad
          \theta'_i = \theta_i / \lambda_i                                \quad\text{LongRoPE}

.. math:: \theta'_i = \gamma_i\,\theta_i + (1 - \gamma_i)\,\theta_i / s   \quad\text{YaRN, Llama 3.1}

``factor`` is :math:`s`, the extended length over the trained one; :math:`\gamma_i` falls from 1 for a pair
that is kept to 0 for one that is slowed by all of :math:`s`; ``dim`` is twice the number of pairs. Chen et
al. (2023, eq. 4); bloc97 (2023), which is definition 1 of Peng et al. (2024), whose definitions 2 and 3 are
YaRN; Ding et al. (2024); Llama 3.1's released code. Everything here is float64.
"""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float, Float64, Real
from torch import Tensor

from posbook.frequencies import turns
from posbook.positions import has_values


def linear(frequencies: Float[Tensor, " pairs"], factor: float | int) -> Float64[Tensor, " pairs"]:
    r"""Every pair slowed alike: :math:`\theta_i / s`.

    This is position interpolation, since :math:`m(\theta_i/s) = (m/s)\,\theta_i`. Raises ValueError for a
    ``factor`` below 1 and for frequencies with more than one axis.

    >>> linear(torch.tensor([1.0, 0.25]), factor=8).tolist()
    [0.125, 0.03125]
    """
    return _checked(frequencies, factor) / factor


def ntk(frequencies: Float[Tensor, " pairs"], factor: float | int) -> Float64[Tensor, " pairs"]:
    r"""Pair :math:`i` slowed by :math:`s^{2i/(\text{dim}-2)}`: the first not at all, the last by :math:`s`.

    For geometric frequencies this is the base times :math:`s^{\text{dim}/(\text{dim}-2)}`, as it is usually
    written. Raises ValueError for a single pair, which would be first and last at once, and as :func:`linear`
    does.

    >>> from posbook.frequencies import geometric
    >>> (geometric(8) / ntk(geometric(8), factor=8)).round(decimals=9).tolist()
    [1.0, 2.0, 4.0, 8.0]
    """
    theta = _checked(frequencies, factor, "ntk")
    return theta / factor ** (_index(theta) / (len(theta) - 1))


def dynamic_ntk(
    frequencies: Float[Tensor, " pairs"],
    length: float | int,
    trained_length: float | int,
    factor: float | int,
) -> Float64[Tensor, " pairs"]:
    r"""NTK-aware for the length :math:`l` of the moment: :func:`ntk` by :math:`s\,l/L - (s - 1)`.

    Up to the trained length :math:`L` nothing changes. This is the released rule; ``factor=1`` gives the
    paper's :math:`l/L`. Each longer sequence changes the frequencies, so keys that were turned and cached
    before no longer fit: cache them unturned, or keep ``length`` fixed. Raises ValueError for lengths that
    are not positive, and as :func:`ntk` does.

    >>> from posbook.frequencies import geometric
    >>> theta = geometric(8)
    >>> bool((dynamic_ntk(theta, length=4096, trained_length=4096, factor=2) == theta).all())
    True
    >>> slowed = dynamic_ntk(theta, length=8192, trained_length=4096, factor=2)
    >>> round((theta / slowed)[-1].item(), 12)
    3.0
    """
    theta = _checked(frequencies, factor, "dynamic_ntk", trained_length)
    if not 0 < length < math.inf:
        raise ValueError(f"length must be a positive number of tokens, not length={length}")
    # s·l/L − (s − 1), without the difference of large numbers.
    return ntk(theta, 1 + factor * (max(length, trained_length) - trained_length) / trained_length)


def yarn(
    frequencies: Float[Tensor, " pairs"],
    factor: float | int,
    trained_length: float | int,
    beta_fast: float | int = 32,
    beta_slow: float | int = 1,
    ramp: str = "index",
    truncate: bool = True,
) -> Float64[Tensor, " pairs"]:
    r"""Pairs with ``beta_fast`` turns in the trained length kept, with ``beta_slow`` slowed by :math:`s`.

    In between, the share :math:`\gamma_i` that is kept falls along a ramp. Paper and code have different
    ones:

    ``"turns"``
        the paper's, linear in the turns: :math:`\gamma_i = (r_i - \beta_\text{slow}) /
        (\beta_\text{fast} - \beta_\text{slow})` with :math:`r_i = L\theta_i/2\pi`.
    ``"index"``
        the released code's, linear in the pair's number: :math:`\gamma_i = (b - i)/(b - a)`. Pairs :math:`a`
        and :math:`b`, which may be fractions, would make just :math:`\beta_\text{fast}` and
        :math:`\beta_\text{slow}` turns; ``truncate`` rounds them outwards. Then :math:`a \ge 0` and
        :math:`b \le \text{dim} - 1`, and 0.001 is added to :math:`b` if they are equal.

    ``beta_slow`` and ``beta_fast`` are the paper's :math:`\alpha` and :math:`\beta`. YaRN also multiplies
    queries and keys by :func:`yarn_temperature`.

    Raises ValueError for another ``ramp``, a ``trained_length`` that is not positive, betas other than
    :math:`0 < \beta_\text{slow} < \beta_\text{fast}`, and as :func:`ntk` does. The index ramp reads its base
    from the frequencies, which must fall geometrically. It also refuses :math:`a > b`, a trained length or a
    base too small for it, where the released code keeps the pairs it should slow, or slows those to keep.

    >>> from posbook.frequencies import geometric
    >>> theta = geometric(8)
    >>> (yarn(theta, factor=4, trained_length=128) / theta).round(decimals=4).tolist()
    [1.0, 0.625, 0.25, 0.25]
    >>> (yarn(theta, factor=4, trained_length=128, ramp="turns") / theta).round(decimals=4).tolist()
    [0.7187, 0.2751, 0.25, 0.25]
    """
    theta = _checked(frequencies, factor, "yarn", trained_length)
    if not 0 < beta_slow < beta_fast < math.inf:
        raise ValueError(
            "beta_fast, the turns from which a pair is kept, must exceed beta_slow, which must be positive, "
            f"not beta_fast={beta_fast} and beta_slow={beta_slow}"
        )
    if ramp == "turns":
        return _mixed(theta, factor, _over_turns(theta, trained_length, beta_slow, beta_fast))
    if ramp == "index":
        return _mixed(theta, factor, _over_index(theta, trained_length, beta_slow, beta_fast, truncate))
    raise ValueError(f"ramp must be 'index' (the released code's) or 'turns' (the paper's), not {ramp!r}")


def yarn_temperature(factor: float | int, mscale: float | int = 1.0) -> float:
    r"""What multiplies queries and keys in YaRN: :math:`0.1\,\text{mscale}\,\ln s + 1`.

    The paper's :math:`\sqrt{1/t}`, and 1 for :math:`s \le 1`. It stands on both, so scores grow by its
    square; code usually puts it on cosines and sines. Raises ValueError for a factor that is not positive and
    for a negative ``mscale``.

    >>> [round(yarn_temperature(s), 6) for s in (1, 8, 32)]
    [1.0, 1.207944, 1.346574]
    """
    if not 0 < factor < math.inf:
        raise ValueError(f"factor must be finite and positive, not factor={factor}")
    if not 0 <= mscale < math.inf:
        raise ValueError(f"mscale must be finite and not negative, not mscale={mscale}")
    return 0.1 * mscale * math.log(factor) + 1.0 if factor > 1 else 1.0


def deepseek_temperatures(
    factor: float | int, mscale: float | int = 1.0, mscale_all_dim: float | int = 0.0
) -> tuple[float, float]:
    r"""YaRN's temperature as DeepSeek's code divides it: the factor of cosines and sines, that of the scores.

    .. math:: t(\text{mscale}) / t(\text{mscale\_all\_dim}), \qquad t(\text{mscale\_all\_dim})^2,
              \qquad t(k) = 0.1\,k \ln s + 1

    The second reaches also the features that do not turn. Other code reads these keys in another way:
    transformers takes :math:`t(1)` for the first if either is 0 or missing. Raises ValueError as
    :func:`yarn_temperature` does.

    >>> [round(t, 6) for t in deepseek_temperatures(40, mscale=0.707, mscale_all_dim=0.707)]
    [1.0, 1.589626]
    """
    everywhere = yarn_temperature(factor, mscale_all_dim)
    return yarn_temperature(factor, mscale) / everywhere, everywhere**2


def llama3(
    frequencies: Float[Tensor, " pairs"],
    factor: float | int,
    trained_length: float | int,
    low: float | int = 1,
    high: float | int = 4,
) -> Float64[Tensor, " pairs"]:
    r"""Pairs with ``high`` turns in the trained length kept, with ``low`` slowed by :math:`s`.

    In between :math:`\gamma_i = (r_i - \text{low})/(\text{high} - \text{low})`, where :math:`r_i =
    L\theta_i/2\pi`: the ramp of ``yarn(ramp="turns")`` with other ends, and no temperature. Llama 3.1 has
    ``factor=8``, ``trained_length=8192`` and the defaults. Raises ValueError unless :math:`0 < \text{low} <
    \text{high}`, for a ``trained_length`` that is not positive, and as :func:`linear` does.

    >>> from posbook.frequencies import geometric
    >>> theta = geometric(8)
    >>> (llama3(theta, factor=4, trained_length=128) / theta).round(decimals=4).tolist()
    [1.0, 0.5093, 0.25, 0.25]
    """
    theta = _checked(frequencies, factor, trained_length=trained_length)
    if not 0 < low < high < math.inf:
        raise ValueError(
            "high, the turns from which a pair is kept, must exceed low, which must be positive, "
            f"not low={low} and high={high}"
        )
    return _mixed(theta, factor, _over_turns(theta, trained_length, low, high))


def longrope(
    frequencies: Float[Tensor, " pairs"], factors: Sequence[float | int] | Real[Tensor, " factors"]
) -> Float64[Tensor, " pairs"]:
    r"""Each pair slowed by a factor of its own, :math:`\theta_i / \lambda_i`, found by search for one model.

    Models come with two lists, the short one up to the trained length and the long one beyond it: the caller
    chooses, and keys cached under one do not fit the other. The paper also leaves the first positions as they
    are, which no change of frequencies can do. Raises ValueError unless there is one finite, positive factor
    for each pair, and for frequencies with more than one axis.

    >>> longrope(torch.tensor([1.0, 0.5, 0.25]), factors=[1, 1.25, 4]).tolist()
    [1.0, 0.4, 0.0625]
    """
    theta = _checked(frequencies)
    slower = torch.as_tensor(factors, dtype=torch.float64, device=theta.device)
    if slower.shape != theta.shape:
        raise ValueError(
            f"longrope needs one factor for each of the {len(theta)} pairs, not shape {tuple(slower.shape)}: "
            "a list for another rotary width does not fit"
        )
    if has_values(slower) and not (good := slower.isfinite() & (slower > 0)).all():
        raise ValueError(f"every factor must be finite and positive, not {slower[~good][0].item()}")
    return theta / slower


def longrope_temperature(factor: float | int, trained_length: float | int) -> float:
    r"""What multiplies queries and keys in models with LongRoPE: :math:`\sqrt{1 + \ln s/\ln L}`.

    As transformers has it: 1 for :math:`s \le 1`, and the same for the short list of factors and the long
    one. Raises ValueError for a factor that is not positive and for a ``trained_length`` of 1 or less.

    >>> round(longrope_temperature(32, trained_length=4096), 6)
    1.190238
    """
    if not 0 < factor < math.inf:
        raise ValueError(f"factor must be finite and positive, not factor={factor}")
    if not 1 < trained_length < math.inf:
        raise ValueError(f"trained_length must be more than 1 token, not trained_length={trained_length}")
    return math.sqrt(1 + math.log(factor) / math.log(trained_length)) if factor > 1 else 1.0


def _mixed(
    theta: Float64[Tensor, " pairs"], factor: float | int, kept: Float64[Tensor, " pairs"]
) -> Float64[Tensor, " pairs"]:
    return kept * theta + (1 - kept) * theta / factor


def _over_turns(
    theta: Float64[Tensor, " pairs"], trained_length: float | int, slow: float | int, fast: float | int
) -> Float64[Tensor, " pairs"]:
    return ((turns(theta, trained_length) - slow) / (fast - slow)).clamp(0, 1)


def _over_index(
    theta: Float64[Tensor, " pairs"],
    trained_length: float | int,
    slow: float | int,
    fast: float | int,
    truncate: bool,
) -> Float64[Tensor, " pairs"]:
    # From the first and the last pair: over so many steps their rounding hardly counts, even in float32.
    step = (theta[0] / theta[-1]).log() / (len(theta) - 1)
    if has_values(theta):
        _check_geometric(theta, step)
    a, b = ((turns(theta[0], trained_length) / beta).log() / step for beta in (fast, slow))
    if truncate:
        a, b = a.floor(), b.ceil()
    a, b = a.clamp(min=0), b.clamp(max=2 * len(theta) - 1)
    if has_values(theta) and a > b:
        raise ValueError(
            f"the index ramp would run backwards, from pair {a.item():g} to pair {b.item():g}, with "
            f"trained_length={trained_length} and these frequencies: use ramp='turns'"
        )
    b = torch.where(a == b, b + 0.001, b)
    return ((b - _index(theta)) / (b - a)).clamp(0, 1)


def _check_geometric(theta: Float64[Tensor, " pairs"], step: Float64[Tensor, ""]) -> None:
    expected = theta[0] * (-step * _index(theta)).exp()
    # Frequencies that were rounded to float32 still pass.
    if not step > 0 or not ((theta - expected).abs() <= 1e-5 * expected).all():
        raise ValueError(
            "the index ramp takes its base from frequencies that fall geometrically, which "
            f"{[float(f'{f:.3g}') for f in theta[:4]]}… do not: use ramp='turns', or scale geometric ones"
        )


def _index(theta: Float64[Tensor, " pairs"]) -> Float64[Tensor, " pairs"]:
    return torch.arange(len(theta), dtype=torch.float64, device=theta.device)


def _checked(
    frequencies: Float[Tensor, "..."],
    factor: float | int = 1,
    needs_two: str | None = None,
    trained_length: float | int = 1,
) -> Float64[Tensor, " pairs"]:
    if frequencies.ndim != 1:
        raise ValueError(f"frequencies have one axis, (pairs,), not shape {tuple(frequencies.shape)}")
    if needs_two and len(frequencies) < 2:
        raise ValueError(
            f"{needs_two} treats the fastest pair unlike the slowest, so it needs two pairs or more, "
            f"not {len(frequencies)}: use linear"
        )
    if not 1 <= factor < math.inf:
        raise ValueError(
            f"factor, the longer over the trained length, must be finite and at least 1, not factor={factor}"
        )
    if not 0 < trained_length < math.inf:
        raise ValueError(
            f"trained_length must be a positive number of tokens, not trained_length={trained_length}"
        )
    return frequencies.to(torch.float64)
