"""System checks: wrong settings and known traps, each with an id and a hint. The README lists them."""

from . import databases, queue, site, values

__all__ = ["databases", "queue", "site", "values"]
