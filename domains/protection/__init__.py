"""Identity protection: scheduled scans, alerts, removals and reports for subscribers of a plan."""
