"""Publish events to Kafka and read photos from it, if PHOTOS_KAFKA_BROKERS is set.

The client is an optional package: these modules import it only when they use it.
"""
