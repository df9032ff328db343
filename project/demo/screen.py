"""What the demo shows: words on one stream, and on a terminal a progress bar below them."""

from __future__ import annotations

import textwrap
from typing import Any, TextIO

from tqdm import tqdm

WIDTH = 100


class Screen:
    """`words`: where sentences go. The bar goes to stderr, if that is a terminal."""

    def __init__(self, words: TextIO) -> None:
        self._words = words
        self._bar: Any = None

    def say(self, text: str = "", *, indent: str = "") -> None:
        """One paragraph, with a hanging indent of `indent`'s width."""
        lines = textwrap.fill(
            text, WIDTH, initial_indent=indent, subsequent_indent=" " * len(indent), break_long_words=False
        )
        # Not print: where a bar is on the screen, the words go above it.
        tqdm.write(lines, file=self._words)
        self._words.flush()

    def begin_bar(self, total: int) -> None:
        # disable=None: nothing at all where stderr is no terminal.
        self._bar = tqdm(total=total, unit=" items", desc="saved", disable=None, leave=True)

    def move_bar(self, done: int) -> None:
        self._bar.update(done - self._bar.n)

    def end_bar(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None
