"""Put photos into gatherings: the clustering rules, and the SQL that stores their results."""
