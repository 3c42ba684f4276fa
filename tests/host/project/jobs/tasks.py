from celery import shared_task
from db import SHORTEST


@shared_task
def count_words(text):
    return len([word for word in text.split() if len(word) >= SHORTEST])


@shared_task
def rank(scores):
    return sorted(scores)
