"""Times of many formats to seconds since the epoch, also where the year or the date is missing.

A line may carry a whole date, a date without a year (vLLM, glog), or a time of day alone. What is
missing is filled in once all files were read, from the dates that were seen elsewhere. Times
without a zone are taken as UTC: only differences matter, and all hosts of a job share a zone.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable
from dataclasses import dataclass

DAY_S = 86_400
MAX_DATE_CHARS = 60
_ZONE = re.compile(r" ?(?:Z|[A-Z]{3,4}|[+-]\d\d:?\d\d)?")


@dataclass(frozen=True)
class Moment:
    """A time as far as its source gave it.

    Attributes:
        seconds: Seconds of the day, or seconds since the epoch when `absolute`.
        year: `None` where the source has none.
        month: From 1.
        day: From 1.
        absolute: Whether `seconds` already counts from the epoch.
    """

    seconds: float
    year: int | None = None
    month: int | None = None
    day: int | None = None
    absolute: bool = False


_CLOCK = r"(?P<h>\d{2}):(?P<mi>\d{2})(?::(?P<s>\d{2})(?:[.,](?P<f>\d{1,9}))?)?"
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH_NAMES = "|".join(_MONTHS)
# Whole dates first: a time of day also stands inside each of them.
_FORMATS: tuple[re.Pattern[str], ...] = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"(?P<y>20\d{{2}})[-/](?P<m>\d{{2}})[-/](?P<d>\d{{2}})[T _:]{_CLOCK}",
        rf"(?P<y>20\d{{2}})(?P<m>\d{{2}})(?P<d>\d{{2}})[-T _]{_CLOCK}",
        rf"(?P<m>\d{{2}})/(?P<d>\d{{2}})/(?P<y>20\d{{2}}) {_CLOCK}",
        rf"(?:mon|tue|wed|thu|fri|sat|sun) (?P<mon>{_MONTH_NAMES}) +(?P<d>\d{{1,2}}) {_CLOCK}"
        r"(?: [A-Z]{3,4})? (?P<y>20\d{2})",
        rf"(?P<mon>{_MONTH_NAMES}) +(?P<d>\d{{1,2}}) {_CLOCK}",
        rf"(?<![\d-])(?P<m>\d{{2}})-(?P<d>\d{{2}}) {_CLOCK}",
        rf"(?<![A-Za-z])[IWEF](?P<m>\d{{1,2}}?)(?P<d>\d{{2}}) {_CLOCK}",
        rf"(?<![\d:.]){_CLOCK}(?![\d:])",
    )
)
_FILE_DATE = re.compile(
    r"(?P<y>20\d{2})[-_]?(?P<m>\d{2})[-_]?(?P<d>\d{2})(?:[-_T](?P<h>\d{2})[-_:]?(?P<mi>\d{2}))?"
)
_FILE_CLOCK = re.compile(
    r"(?<!\d)(?:t\d+[_-]|(?:now|at|rank\d+)[_-])(?P<h>[0-2]\d)[-_:h]?(?P<mi>[0-5]\d)(?!\d)"
)


def find_moment(text: str, anchored: bool = False) -> tuple[Moment, int] | None:
    """The first time in a text and where it ends.

    Args:
        text: A line, or the part of it where a time is expected.
        anchored: Only look at its very beginning.

    Returns:
        The moment and the index behind it, or `None`.
    """
    for pattern in _FORMATS:
        match = pattern.match(text) if anchored else pattern.search(text)
        if match:
            moment = _moment(match.groupdict())
            if moment is not None:
                return moment, match.end()
    return None


def only_moment(text: str) -> Moment | None:
    """The time that is all that a text says: the file that `date > taken_at.txt` leaves."""
    words = text.strip()
    found = find_moment(words, anchored=True) if len(words) <= MAX_DATE_CHARS else None
    return found[0] if found and _ZONE.fullmatch(words[found[1] :]) else None


def moment_by_file_name(name: str) -> Moment | None:
    """The time in a file name: `dump_2026-04-12_2027_rank0.txt`, `rank6.t1_2212.txt`."""
    base = name.rsplit("/", 1)[-1]
    match = _FILE_DATE.search(base)
    if match and match.group("h"):
        return _moment(match.groupdict())
    match = _FILE_CLOCK.search(base)
    return _moment(match.groupdict()) if match else None


def _moment(groups: dict[str, str | None]) -> Moment | None:
    hour, minute = int(groups["h"] or 0), int(groups["mi"] or 0)
    second = int(groups.get("s") or 0)
    if hour > 23 or minute > 59 or second > 60:
        return None
    seconds = hour * 3600 + minute * 60 + second + float(f"0.{groups.get('f') or 0}")
    name = groups.get("mon")
    month = _MONTHS.index(name[:3].lower()) + 1 if name else _number(groups.get("m"))
    day, year = _number(groups.get("d")), _number(groups.get("y"))
    if month is not None and not (1 <= month <= 12 and day is not None and 1 <= day <= 31):
        return None
    return Moment(seconds, year, month, day)


def _number(text: str | None) -> int | None:
    return int(text) if text else None


class Calendar:
    """Fills in what moments leave out, from the whole dates that were seen.

    Args:
        moments: All moments of the incident.
        today: Date to fall back on for the year, when no source has one.
    """

    def __init__(self, moments: Iterable[Moment], today: datetime.date | None = None) -> None:
        self._today = today or datetime.date.today()
        dated = [moment for moment in moments if moment.month or moment.absolute]
        whole = sorted(filter(None, (_date(moment) for moment in dated)))
        self._date: datetime.date | None = whole[-1] if whole else None
        if self._date is None:
            partial = [self._with_year(moment) for moment in dated]
            self._date = max(filter(None, partial), default=None)

    @property
    def date(self) -> datetime.date | None:
        """The last day that any source names, `None` if none does."""
        return self._date

    def epoch_s(self, moment: Moment | None) -> float | None:
        """Seconds since the epoch; times of day of an unknown date count from 1970-01-01."""
        if moment is None:
            return None
        if moment.absolute:
            return moment.seconds
        date = _date(moment) or self._with_year(moment) or self._date
        if date is None:
            return moment.seconds
        days = (date - datetime.date(1970, 1, 1)).days
        return days * DAY_S + moment.seconds

    def _with_year(self, moment: Moment) -> datetime.date | None:
        if moment.month is None or moment.day is None:
            return None
        year = self._date.year if self._date else self._today.year
        date = _safe_date(year, moment.month, moment.day)
        if date and self._date is None and date > self._today:
            return _safe_date(year - 1, moment.month, moment.day)
        return date


def _date(moment: Moment) -> datetime.date | None:
    if moment.absolute:
        if not 0 <= moment.seconds < 4e9:
            return None
        return datetime.date(1970, 1, 1) + datetime.timedelta(seconds=moment.seconds)
    if moment.year is None or moment.month is None or moment.day is None:
        return None
    return _safe_date(moment.year, moment.month, moment.day)


def _safe_date(year: int, month: int, day: int) -> datetime.date | None:
    try:
        return datetime.date(year, month, day)
    except ValueError:
        return None
