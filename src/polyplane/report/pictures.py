"""Small pictures for a terminal: two pixels a letter in colour, or letters from light to dark."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from rich.console import Console
from rich.style import Style
from rich.text import Text

from polyplane.arrays import Array

__all__ = ["ink", "pictures", "signs"]

SHADES = " ░▒▓█"
ASCII_SHADES = " .:*#"
GAP = 2  # letters between pictures


def ink(image: Array) -> Array:
    """Pixels from 0 to `image.max()` as shades of grey."""
    share = image / max(float(image.max()), 1e-30)
    return np.repeat((255 * share)[..., None], 3, axis=2).astype(np.uint8)


def signs(image: Array) -> Array:
    """Weights as colours: those that speak for a class are warm, those against it cold."""
    share = image / max(float(np.abs(image).max()), 1e-30)
    warm, cold = np.clip(share, 0, 1), np.clip(-share, 0, 1)
    colours = [255 * warm, 110 * warm + 130 * cold, 30 * warm + 255 * cold]
    return np.stack(colours, axis=2).astype(np.uint8)


def pictures(console: Console, images: Sequence[Array], captions: Sequence[str]) -> None:
    """Pictures side by side, as many as the terminal has room for, each with words below."""
    width = images[0].shape[1] + GAP
    n_shown = max(1, min(len(images), console.width // width))
    shown = images[:n_shown]
    if console.is_terminal and not console.no_color:
        lines = [_coloured(parts) for parts in zip(*map(_pairs, shown), strict=True)]
    else:
        shades = SHADES if console.encoding.startswith("utf") else ASCII_SHADES
        lines = [_shaded(parts, shades) for parts in zip(*map(_pairs, shown), strict=True)]
    for line in lines:
        console.print(line, no_wrap=True, overflow="crop")
    words = [caption[: width - 1].ljust(width) for caption in captions[:n_shown]]
    console.print("".join(words).rstrip(), no_wrap=True, overflow="crop")


def _pairs(image: Array) -> list[Any]:
    """Two lines of pixels at a time, since letters are twice as high as wide."""
    odd = image if len(image) % 2 == 0 else np.concatenate([image, np.zeros_like(image[:1])])
    return list(odd.reshape(-1, 2, *odd.shape[1:]))


def _coloured(parts: Sequence[Array]) -> Text:
    line = Text()
    for above, below in parts:
        for top, bottom in zip(above.tolist(), below.tolist(), strict=True):
            colours = [f"rgb({red},{green},{blue})" for red, green, blue in (top, bottom)]
            line.append("▀", Style(color=colours[0], bgcolor=colours[1]))
        line.append(" " * GAP)
    return line


def _shaded(parts: Sequence[Array], shades: str) -> Text:
    letters = ""
    for pair in parts:
        light = pair.max(axis=2).mean(axis=0) / 256
        letters += "".join(shades[int(share * len(shades))] for share in light) + " " * GAP
    return Text(letters.rstrip())
