from django.core.validators import RegexValidator
from django.db import models

NAME = RegexValidator(
    r"^[a-z0-9][a-z0-9-]{0,59}\Z",
    "A name has at most 60 characters: lower-case letters, digits and hyphens.",
)


class Source(models.Model):
    """A repository or feed whose records are harvested, page by page, from a cursor on."""

    name = models.TextField(
        unique=True, validators=[NAME], help_text="begins the identifiers of its records"
    )
    kind = models.TextField(help_text="a format of `sources`, such as oai_pmh")
    url = models.TextField()
    settings = models.JSONField(
        default=dict, blank=True, help_text="what the format needs, such as a metadata prefix"
    )
    cursor = models.JSONField(
        null=True, blank=True, help_text="where the next read begins; empty: at the beginning"
    )
    is_active = models.BooleanField(default=True)
    last_read_at = models.DateTimeField(null=True, blank=True, help_text="of a page without error")
    cron = models.TextField(
        default="0 3 * * *", db_default="0 3 * * *", help_text="when it is read, in UTC"
    )
    completed_at = models.DateTimeField(
        null=True, blank=True, help_text="when all there was had been read last"
    )
    list_goes_on = models.BooleanField(
        default=False, db_default=False, help_text="a list of its records has been read in part"
    )
    records_read = models.BigIntegerField(
        default=0, db_default=0, help_text="records of this list that were read"
    )
    records_total = models.BigIntegerField(
        null=True, blank=True, help_text="records of this list, as the source says"
    )
    last_error = models.TextField(
        default="", blank=True, help_text="why its last page could not be read; empty: it could"
    )
    errors_in_row = models.IntegerField(default=0, db_default=0)

    def __str__(self) -> str:
        return self.name

    @property
    def state(self) -> str:
        """The state of the source: error, reading, up to date, or new."""
        if self.last_error:
            return "error"
        if self.list_goes_on:
            return "reading"
        return "up to date" if self.completed_at else "new"
