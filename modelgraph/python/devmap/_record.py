"""An object of a JSON document, its fields as attributes."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


class Record:
    """Read-only. A subclass names the fields that type checkers know; one that the program has since is there too."""

    __slots__ = ("_fields",)
    if TYPE_CHECKING:
        _fields: dict[str, Any]

    def __init__(self, fields: dict[str, Any]) -> None:
        object.__setattr__(self, "_fields", fields)

    if not TYPE_CHECKING:  # a name that no subclass has is reported by type checkers

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_"):
                raise AttributeError(name)
            try:
                return self._fields[name]
            except KeyError:
                raise AttributeError(
                    f"{type(self).__name__} has no {name!r}: it has {', '.join(self._fields)}"
                ) from None

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__}.{name} is read-only")

    def __dir__(self) -> list[str]:
        return sorted([*super().__dir__(), *self._fields])

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        return iter(self._fields.items())

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._fields == other._fields

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[type, tuple[dict[str, Any]]]:
        return type(self), (self._fields,)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self._fields.items())})"


def gib(size: float) -> str:
    """Bytes as people read them."""
    return f"{size / 2**30:.2f} GiB" if size >= 2**30 else f"{size / 2**20:.1f} MiB"
