"""Status lines of requests that the web server refuses, with Retry-After."""

UNAVAILABLE = "503 Service Unavailable"
TOO_MANY = "429 Too Many Requests"
