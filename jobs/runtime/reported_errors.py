from tailrace.environment.conf import conf

"""The parts of an exception that error reports contain: its class, and its message if the class is
in JOBS_REPORTED_ERRORS.

Other messages may quote payloads: an invalid value, a key of the database, a name. They are stored
with the attempt of the job, for users with the permission to see payloads.
"""


MAX_LENGTH = 500
MAX_CAUSES = 20


def class_name(error: BaseException) -> str:
    """Return the dotted path of the exception's class, such as `builtins.ValueError`."""
    return class_path(type(error))


def class_path(cls: type[BaseException]) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def reported_message(error_class: str, message: str) -> str:
    """Return the first line of the message if JOBS_REPORTED_ERRORS contains the class, else ""."""
    if error_class not in conf.JOBS_REPORTED_ERRORS:
        return ""
    return message.strip().partition("\n")[0][:MAX_LENGTH]


def reported_exception(error: BaseException, depth: int = MAX_CAUSES) -> BaseException:
    """Return a copy of the exception and of its causes: with their class names, tracebacks and
    reported messages, but without attributes."""
    own = type(error)
    like = type(own.__name__, (Exception,), {"__module__": own.__module__})
    like.__qualname__ = own.__qualname__
    message = reported_message(class_name(error), str(error))
    copy: BaseException = like(message) if message else like()
    copy.__traceback__ = error.__traceback__
    if depth:
        if error.__cause__ is not None:
            copy.__cause__ = reported_exception(error.__cause__, depth - 1)
        if error.__context__ is not None and not error.__suppress_context__:
            copy.__context__ = reported_exception(error.__context__, depth - 1)
    copy.__suppress_context__ = error.__suppress_context__
    return copy
