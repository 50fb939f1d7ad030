"""How the pytest plugin is loaded here, whether or not the installation has its entry point."""

from importlib.metadata import entry_points

PLUGIN = "guardrail.evaluation.pytest_plugin"
_INSTALLED = any(entry.value == PLUGIN for entry in entry_points(group="pytest11"))
LOADING = () if _INSTALLED else ("-p", PLUGIN)
"""Options of pytest: an editable installation from before the plugin does not name it."""
