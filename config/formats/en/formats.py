"""How Django itself writes times, such as in the admin: as the filter `timestamp` does."""

DATETIME_FORMAT = SHORT_DATETIME_FORMAT = "Y-m-d H:i:s T"
DATE_FORMAT = SHORT_DATE_FORMAT = "Y-m-d"
TIME_FORMAT = "H:i:s"
