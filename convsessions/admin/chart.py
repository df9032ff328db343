"""Stacked bars as SVG shapes: geometry only, in a box of WIDTH by HEIGHT units; the template draws them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 720, 190
LEFT, RIGHT, TOP, BOTTOM = 44, 4, 8, 22
GAP = 4


@dataclass(frozen=True, slots=True)
class Bar:
    """One piece of a column. `name`: whose colour it has; `text`: what it says when pointed at."""

    x: float
    y: float
    width: float
    height: float
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Mark:
    """A label at an axis, and for the vertical one the line to it."""

    x: float
    y: float
    text: str


@dataclass(frozen=True, slots=True)
class Chart:
    bars: list[Bar]
    columns: list[Mark]
    levels: list[Mark]
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT


def stacked(columns: Sequence[tuple[str, Mapping[str, int]]], order: Sequence[str], every: int = 3) -> Chart:
    """`columns`: (label, counts by name) from left to right; `order`: the names from the bottom up.

    One label in `every` columns is written.
    """
    top = nice(max((sum(counts.values()) for _label, counts in columns), default=0))
    scale, step = (HEIGHT - TOP - BOTTOM) / top, (WIDTH - LEFT - RIGHT) / max(len(columns), 1)
    bars = []
    for number, (label, counts) in enumerate(columns):
        base = float(HEIGHT - BOTTOM)
        for name in order:
            if height := counts.get(name, 0) * scale:
                base -= height
                text = f"{label} {name}: {counts[name]}"
                bars.append(Bar(_r(LEFT + number * step + GAP / 2), _r(base), _r(step - GAP), _r(height), name, text))
    marks = [
        Mark(_r(LEFT + (number + 0.5) * step), HEIGHT - 6, label)
        for number, (label, _counts) in enumerate(columns)
        if number % every == every - 1
    ]
    levels = [Mark(LEFT - 6, _r(HEIGHT - BOTTOM - level * scale), str(level)) for level in _levels(top)]
    return Chart(bars, marks, levels)


def nice(most: int) -> int:
    """The smallest of 1, 2, 5, 10, 20, 50, … (at least 4) that is not below `most`."""
    if most <= 4:
        return 4
    power = int(10 ** int(math.log10(most)))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= most)


def _levels(top: int) -> list[int]:
    return sorted({0, top // 2, top})


def _r(value: float) -> float:
    return round(value, 2)
