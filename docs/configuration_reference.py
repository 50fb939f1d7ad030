"""Writes docs/configuration.md from the settings classes.

python docs/configuration_reference.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel

from chains.gateway.settings import GatewaySettings, option_of
from guardrail.config import GuardrailConfig
from guardrail.core.fields import documented
from guardrail.models.settings import GenerationSettings
from guardrail.policy import Policy
from judges.calibration import Calibration
from judges.settings import Spending
from kg.endpoint_settings import EndpointSettings

HEAD = """# Configuration reference

Made from the settings classes by `python docs/configuration_reference.py`; do not edit.

Settings come from a TOML file (`--config FILE`, `GuardrailConfig.from_toml`) and from the
environment, which wins: `GUARDRAIL_JUDGE=onnx`, `GUARDRAIL_GRAPH__LOCATION=…`, with two underscores
between a section and its setting. An unknown setting is an error that names the nearest known one.
"""

GATEWAY = """Read by `guardrail serve` alone. Each setting is an option as well, and a variable of
the environment: `GUARDRAIL_GATEWAY__` and its name in capitals, lists with commas between. The
option wins over the environment, and that over the file. A file that holds keys is for its
service's eyes alone (`chmod 600`).
"""


def main() -> None:
    """Write the page."""
    Path(__file__).with_name("configuration.md").write_text(page(), encoding="utf-8")


def page() -> str:
    """The whole page."""
    parts = [HEAD, "## Top level\n", _table(GuardrailConfig)]
    for name, field in GuardrailConfig.model_fields.items():
        section = _model_of(field.annotation)
        if section is not None and section is not Policy:
            parts += [f"## `[{name}]`\n", _table(section)]
    parts += [
        "## `[chat.calibration]`\n",
        _table(Calibration),
        "## `[chat.per_minute]` and `[second_judge.per_answer]`\n",
        _table(Spending),
        "## `[graph.endpoint]`\n",
        _table(EndpointSettings),
        "## `[model.generation]`\n",
        _table(GenerationSettings),
        "## `[policy]`\n",
        "`base` names the policy that the other keys change.\n",
        _table(Policy),
        "## `[gateway]`\n",
        GATEWAY,
        _gateway_table(),
    ]
    return "\n".join(parts)


def _gateway_table() -> str:
    """The gateway's settings, each with its option of ``guardrail serve``."""
    head, rule, *rows = _table(GatewaySettings).splitlines()
    options = [f"| `{option_of(name)}` " for name in GatewaySettings.model_fields]
    lines = [f"| option {head}", f"|---{rule}"]
    lines += [option + row for option, row in zip(options, rows, strict=True)]
    return "\n".join(lines) + "\n"


def _table(model: type[BaseModel]) -> str:
    told = documented(model)
    lines = ["| setting | default | meaning |", "|---|---|---|"]
    for name, field in model.model_fields.items():
        default = (
            "required"
            if field.is_required()
            else _default(field.get_default(call_default_factory=True))
        )
        lines.append(f"| `{name}` | {default} | {told.get(name, '').replace('|', chr(92) + '|')} |")
    return "\n".join(lines) + "\n"


def _default(value: Any) -> str:
    if isinstance(value, Policy):
        return f"`{value.name}`"
    if isinstance(value, BaseModel):
        return "its section"
    if value is None:
        return "–"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, tuple | list) and not value:
        return "`[]`"
    return f"`{getattr(value, 'value', value)}`"


def _model_of(annotation: Any) -> type[BaseModel] | None:
    kinds = (annotation, *getattr(annotation, "__args__", ()))
    return next((k for k in kinds if isinstance(k, type) and issubclass(k, BaseModel)), None)


if __name__ == "__main__":
    main()
