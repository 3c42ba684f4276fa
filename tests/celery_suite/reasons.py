"""The tests of the suite that cannot apply, by reason: classes, or single tests."""

_WITH_A_WORKER_PROCESS = {
    "receives signals or logs in its own process, but the worker is another process": """
        test_signal_bound_method_receivers
        test_stamping_mechanism::test_err_linking_stamped_sig
        test_stamping_mechanism::test_linking_stamped_sig
        test_stamping_mechanism::test_task_received_has_access_to_stamps
        test_task_replacement::test_replaced_task_nesting_level_0
        test_trace_log_arguments
    """,
}
_WITH_OUR_RESULTS = {
    "reads the keys or channels of Redis": """
        test_chord::test_chord_on_error
        test_task_redis_result_backend::test_asyncresult_forget_cancels_subscription
        test_task_redis_result_backend::test_asyncresult_get_cancels_subscription
    """,
    "counts the events that are sent with a task's message; a job has no message": """
        test_tasks::test_task_sent_event_respects_publish_retry_limit
    """,
    "expects no state of a task that ignores its result; here it has the state of its job": """
        test_task_redis_result_backend::test_retry_preserves_ignore_result_true
        test_tasks::test_send_task_without_ignore_result_uses_task_ignore_result
    """,
    "expects that a chord begins before it has all of its tasks; here it is created at once": """
        test_chord::test_generator
    """,
}


def not_applicable(*, durable: bool) -> dict[str, str]:
    """Return the reason for each test or class that cannot apply: to our tasks, or to Celery's own
    with the worker as a process."""
    by_reason = _WITH_A_WORKER_PROCESS | (_WITH_OUR_RESULTS if durable else {})
    return {test: reason for reason, tests in by_reason.items() for test in tests.split()}
