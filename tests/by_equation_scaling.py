r"""The scalings written again, with loops, for ``math`` or, to fifty digits, for ``mpmath``.

As their sources write them, from the base and the width; posbook works from the frequencies alone.
"""

import math


def real(x, m):
    return m.mpf(x) if hasattr(m, "mpf") else float(x)


def geometric(dim, base, m=math):
    return [real(base, m) ** (-real(2 * i, m) / dim) for i in range(dim // 2)]


def proportional(dim, fraction, base, m=math):
    turning = int(fraction * dim // 2)
    return [f if i < turning else 0 for i, f in enumerate(geometric(dim, base, m))]


def linear(dim, base, factor, m=math):
    return [f / real(factor, m) for f in geometric(dim, base, m)]


def ntk_base(dim, base, factor, m=math):
    return real(base, m) * real(factor, m) ** (real(dim, m) / (dim - 2))


def ntk(dim, base, factor, m=math):
    return geometric(dim, ntk_base(dim, base, factor, m), m)


def dynamic_ntk(dim, base, length, trained_length, factor, m=math):
    if length <= trained_length:
        return geometric(dim, base, m)
    factor = real(factor, m)
    return ntk(dim, base, factor * length / trained_length - (factor - 1), m)


def clamp(x):
    return min(max(x, 0), 1)


def yarn_kept_over_turns(dim, base, trained_length, fast=32, slow=1, m=math):
    """Definition 2 of Peng et al. (2024)."""
    kept = []
    for f in geometric(dim, base, m):
        wavelength = 2 * m.pi / f
        kept.append(clamp((trained_length / wavelength - slow) / (real(fast, m) - slow)))
    return kept


def yarn_range(dim, base, trained_length, fast=32, slow=1, truncate=True, m=math):
    """The pairs between which the released code's ramp runs."""
    a, b = (
        dim * m.log(real(trained_length, m) / (beta * 2 * m.pi)) / (2 * m.log(real(base, m)))
        for beta in (fast, slow)
    )
    if truncate:
        a, b = m.floor(a), m.ceil(b)
    return max(a, 0), min(b, dim - 1)


def yarn_kept_over_index(dim, base, trained_length, fast=32, slow=1, truncate=True, m=math):
    a, b = yarn_range(dim, base, trained_length, fast, slow, truncate, m)
    if a == b:
        b += real("0.001", m)
    return [1 - clamp((i - a) / real(b - a, m)) for i in range(dim // 2)]


def mixed(dim, base, factor, kept, m=math):
    return [(1 - g) * f / real(factor, m) + g * f for f, g in zip(geometric(dim, base, m), kept, strict=True)]


def llama3(dim, base, factor, trained_length, low=1, high=4, m=math):
    """Llama 3.1's three cases, by wavelength."""
    scaled = []
    for f in geometric(dim, base, m):
        wavelength = 2 * m.pi / f
        if wavelength < real(trained_length, m) / high:
            scaled.append(f)
        elif wavelength > real(trained_length, m) / low:
            scaled.append(f / real(factor, m))
        else:
            smooth = (trained_length / wavelength - low) / (real(high, m) - low)
            scaled.append((1 - smooth) * f / real(factor, m) + smooth * f)
    return scaled


def longrope(dim, base, factors, m=math):
    return [f / real(x, m) for f, x in zip(geometric(dim, base, m), factors, strict=True)]


def yarn_temperature(factor, mscale=1, m=math):
    return m.log(real(factor, m)) * real(mscale, m) / 10 + 1 if factor > 1 else 1


def longrope_temperature(factor, trained_length, m=math):
    if factor <= 1:
        return 1
    return m.sqrt(1 + m.log(real(factor, m)) / m.log(real(trained_length, m)))
