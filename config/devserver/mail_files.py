"""A mail backend for Django that writes each mail to its own file."""

import os
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.mail import EmailMessage
from django.core.mail.backends.base import BaseEmailBackend


class EmailBackend(BaseEmailBackend):
    """Writes `<Message-ID>.eml` to EMAIL_FILE_PATH. A mail that is sent again is the same file."""

    def __init__(self, *args: Any, file_path: str | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        folder = file_path or settings.EMAIL_FILE_PATH
        if not folder:
            raise ImproperlyConfigured("EMAIL_FILE_PATH, the folder for mails, is not set")
        self.folder = Path(folder)

    def send_messages(self, email_messages: Sequence[EmailMessage]) -> int:
        for message in email_messages:
            self._write(message)
        return len(email_messages)

    def _write(self, message: EmailMessage) -> None:
        """Write the file atomically."""
        self.folder.mkdir(parents=True, exist_ok=True)
        content = message.message()
        name = re.sub(r"[^\w.@-]", "_", content["Message-ID"].strip("<>"))[:200]
        handle, path = tempfile.mkstemp(dir=self.folder, prefix=".", suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content.as_bytes())
            os.replace(path, self.folder / f"{name}.eml")
        except BaseException:
            Path(path).unlink(missing_ok=True)
            raise
