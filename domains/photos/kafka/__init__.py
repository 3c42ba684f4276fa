"""Kafka, where PHOTOS_KAFKA_BROKERS names a cluster: an outlet of events, an inlet of photos.

The client is an optional package: nothing here imports it before it is used.
"""
