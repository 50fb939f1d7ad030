"""How sure a judge must be: presets by name, and thresholds of one's own."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

from pydantic import BeforeValidator, ValidationError

from guardrail.core.errors import ConfigError
from guardrail.core.fields import did_you_mean
from guardrail.core.types.judging import VerdictThresholds

__all__ = [
    "OwnStrictness",
    "Strictness",
    "StrictnessSetting",
    "as_strictness",
]


class Strictness(StrEnum):
    """Presets of thresholds."""

    LENIENT = "lenient"
    BALANCED = "balanced"
    STRICT = "strict"

    @property
    def thresholds(self) -> VerdictThresholds:
        """The preset's thresholds."""
        return _PRESETS[self]


# A threshold on a calibrated probability of support says what an error costs: from two thirds on,
# a false sentence that passes costs as much as two true ones that are marked; from one third on,
# half of one. Contradictions are reported and acted on only if certain, by precisions that
# ``python -m training calibrate`` measured on validation rows.
_PRESETS = {
    Strictness.LENIENT: VerdictThresholds(support=1 / 3, contradiction=0.7, removal=0.75),
    Strictness.BALANCED: VerdictThresholds(support=0.5, contradiction=0.6, removal=0.75),
    Strictness.STRICT: VerdictThresholds(support=2 / 3, contradiction=0.5, removal=0.75),
}


def as_strictness(value: object) -> Strictness | VerdictThresholds:
    """Read a strictness: a preset, its name, or thresholds.

    Raises:
        ConfigError: It is none of these; the message names the nearest preset.
    """
    if isinstance(value, Strictness | VerdictThresholds):
        return value
    if isinstance(value, str):
        name = value.strip().lower()
        if name in list(Strictness):
            return Strictness(name)
        hint = did_you_mean(name, [item.value for item in Strictness])
        raise ConfigError(f"there is no strictness {value!r}; {hint}")
    if isinstance(value, Mapping):
        try:
            return VerdictThresholds.model_validate(dict(value))
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            if first["type"] == "extra_forbidden":
                known = ", ".join(VerdictThresholds.model_fields)
                raise ConfigError(
                    f"strictness has no {first['loc'][0]!r}; known: {known}"
                ) from None
            raise ConfigError(f"strictness.{first['loc'][0]}: {first['msg']}") from None
    raise ConfigError(
        f"strictness is one of {', '.join(Strictness)}, or a table of support, contradiction and "
        "removal"
    )


def _as_own(value: object) -> Strictness | VerdictThresholds | None:
    return None if value is None else as_strictness(value)


StrictnessSetting = Annotated[Strictness | VerdictThresholds, BeforeValidator(as_strictness)]
"""The type of a setting that holds one."""

OwnStrictness = Annotated[Strictness | VerdictThresholds | None, BeforeValidator(_as_own)]
"""The type of a setting that may leave it to another one."""
