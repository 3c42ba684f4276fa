from django.db import models


class Job(models.Model):
    """A vacancy: in this project, a job is work that somebody looks for."""

    title = models.CharField(max_length=200)
    announced = models.IntegerField(default=0)
