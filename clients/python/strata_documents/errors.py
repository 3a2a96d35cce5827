"""What goes wrong: one class for all, below it one for each reason (reasons.py)."""

from datetime import timedelta
from typing import Any, Dict, Optional


class StrataError(Exception):
    """A call failed. `reason` is None where no Strata server said one, `code` is gRPC's name.

    `outcome_unknown`: the call was a write, and it is not known whether it was done.
    """

    def __init__(self, message: str, *, code: str = "UNKNOWN", reason: Optional[str] = None,
                 metadata: Optional[Dict[str, str]] = None, retry_delay: Optional[timedelta] = None,
                 outcome_unknown: bool = False, request_id: Optional[str] = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.reason = reason
        self.metadata: Dict[str, str] = metadata or {}
        self.retry_delay = retry_delay
        self.outcome_unknown = outcome_unknown
        self.request_id = request_id

    def __str__(self) -> str:
        text = f"{self.code} / {self.reason}" if self.reason else self.code
        return f"{text}: {self.message}" + (" (it may have been done)" if self.outcome_unknown else "")

    def __reduce__(self) -> Any:
        return (_unpickled, (type(self), self.__dict__))


def _unpickled(kind: Any, members: Dict[str, Any]) -> StrataError:
    error = kind(members["message"])
    error.__dict__.update(members)
    return error


class InvalidValue(ValueError):
    """A value cannot be sent, and nothing was. `path` is a JSON Pointer to it."""

    def __init__(self, problem: str, path: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.path = path

    def within(self, name: Any) -> "InvalidValue":
        """The same, seen from the container that holds it as `name`."""
        segment = str(name).replace("~", "~0").replace("/", "~1")
        self.path = f"/{segment}{self.path}"
        return self

    def __str__(self) -> str:
        return f"{self.path or 'the content'}: {self.problem}"
