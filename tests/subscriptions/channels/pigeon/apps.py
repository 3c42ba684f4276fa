from django.apps import AppConfig


class PigeonConfig(AppConfig):
    name = "pigeon"
