from django.db import models


class Effect(models.Model):
    """What a handler of the sandbox did, written in a transaction of the handler's own."""

    handler = models.TextField()
    job_id = models.BigIntegerField()
    claim_no = models.IntegerField()
    note = models.TextField(default="")
    process = models.IntegerField(default=0)
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        app_label = "sandbox"

    def __str__(self) -> str:
        return f"{self.handler} {self.job_id}/{self.claim_no} {self.note}"
