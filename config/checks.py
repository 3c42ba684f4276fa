"""System checks of the settings: `manage.py check`, and with --deploy what production needs."""

from typing import Any

from django.core.checks import CheckMessage, Error, Info, Warning, register

from environment.loading import Environment
from events.suggest import did_you_mean

LEVELS = {"E": Error, "W": Warning, "I": Info}


@register("settings")
def check_environment(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Report each wrong variable by its name, and unknown ones with the nearest known name."""
    from config.settings import env

    names = [variable.name for variable in env.variables]
    return [
        *(Error(str(problem), id="tailrace.E001") for problem in env.problems),
        *(
            Warning(f"{name}: no such setting{did_you_mean(name, names)}", id="tailrace.W001")
            for name in env.unknown()
        ),
    ]


@register("settings", deploy=True)
def check_insecure(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Report each setting that is missing or insecure in production."""
    from config.settings import env

    return insecure_settings(env)


def insecure_settings(env: Environment) -> list[CheckMessage]:
    """Return a message for each rule in the `insecure` of the settings' classes that applies."""
    return [
        LEVELS[rule.id.rpartition(".")[2][0]](
            f"{rule.setting}: {rule.problem.format(value)}", hint=rule.way_out, id=rule.id
        )
        for values in env.settings.values()
        for rule in values.insecure
        if (value := rule.when(values))
    ]
