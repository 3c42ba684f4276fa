"""Kafka, where PHOTOS_KAFKA_BROKERS names a cluster: publish events, and consume photos.

The client is an optional package: nothing here imports it before it is used.
"""
