from pathlib import Path

from django.apps import AppConfig


class WebConfig(AppConfig):
    name = "tailrace.web"
    label = "tailrace_web"
    path = str(Path(__file__).parent / "pages")  # where Django looks for templates and static
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from tailrace.web.accounts.security import account_changes

        account_changes.connect()
