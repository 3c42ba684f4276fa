"""The exchange with others: photos and events by Kafka, locations of photos by the timeline."""
