"""The extras of the package: dependencies that only some features need."""

from importlib.util import find_spec

_MODULES = {"archive": ("warcio",), "tools": ("crawleruseragents", "jinja2")}
"""The modules that ``need_extra`` looks for, by the name of the extra."""


class MissingExtraError(ImportError):
    """A feature needs an extra that is not installed."""


def need_extra(extra: str, feature: str) -> None:
    """Raise MissingExtraError if a package of *extra* is not installed.

    The message names *feature*, and has the command to install *extra*.
    """
    if any(find_spec(module) is None for module in _MODULES[extra]):
        raise MissingExtraError(
            f'{feature} needs packages that are not installed: pip install "scrapy-koster[{extra}]"'
        )
