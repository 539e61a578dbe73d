"""The commands of ``scrapy robots``, by name."""

from scrapy_koster.commands.audit import Audit
from scrapy_koster.commands.cache import Cache
from scrapy_koster.commands.check import Check
from scrapy_koster.commands.explain import Explain
from scrapy_koster.commands.history import History
from scrapy_koster.commands.report import Report
from scrapy_koster.commands.subcommand import Subcommand
from scrapy_koster.commands.survey import Survey

_ALL = (Check(), Explain(), History(), Survey(), Cache(), Report(), Audit())
SUBCOMMANDS: dict[str, Subcommand] = {each.name: each for each in _ALL}
