"""Django's time formats, such as in the admin. The filter `timestamp` has the same formats."""

DATETIME_FORMAT = SHORT_DATETIME_FORMAT = "Y-m-d H:i:s T"
DATE_FORMAT = SHORT_DATE_FORMAT = "Y-m-d"
TIME_FORMAT = "H:i:s"
