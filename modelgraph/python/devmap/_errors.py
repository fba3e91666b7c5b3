"""The error that everything in this package raises."""


class DevmapError(Exception):
    """What devmap cannot do, with the place, the value and what to do about it."""
