"""Errors of evaluators and their configuration before the first trace, and of schemas out of traces.

EvaluatorError (ValueError)
├── DuplicateEvaluatorError    two evaluators declare the same name and method
├── PluginError                a third party's entry point cannot be loaded
│   └── PluginNotFound         its file is not there
├── SettingsError              a setting names no evaluator, no option, or a value that does not fit
└── ExpectationError           an entry of the expectations file has a wrong form
"""


class EvaluatorError(ValueError):
    """A human must change code or configuration; the message says where."""


class DuplicateEvaluatorError(EvaluatorError):
    """Two evaluators declare the same name and method."""


class PluginError(EvaluatorError):
    """A third party's entry point cannot be loaded."""


class PluginNotFound(PluginError):
    """The file of a plug-in is not there: a mistake in its path."""


class SettingsError(EvaluatorError):
    """A setting is wrong; the message begins with its path, e.g. `evaluators.agent_reliability.signals`."""


class ExpectationError(EvaluatorError):
    """An entry of the expectations file is wrong; the message begins with its place."""


class Unjudgeable(ValueError):
    """Arguments cannot be checked against this schema."""
