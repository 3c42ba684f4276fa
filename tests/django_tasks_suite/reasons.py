"""The tests of the suites that cannot apply to our backend, by reason: classes, or single tests."""

_BY_REASON = {
    "reads or writes the table of django-tasks-db": """
        DatabaseTaskResultTestCase DBTaskResultOrderingTestCase
        DatabaseBackendTestCase::test_database_backend_app_missing
        DatabaseBackendTestCase::test_doesnt_wait_until_transaction_commit
        DatabaseBackendTestCase::test_index_scan_for_ready
        DatabaseBackendTestCase::test_invalid_task_path
        DatabaseBackendTestCase::test_missing_task_path
        DatabaseBackendTestCase::test_priority_range_check
        DatabaseBackendTestCase::test_refresh_result
        DatabaseBackendTestCase::test_refresh_result_async
        DatabaseBackendTestCase::test_run_after_null_0016_migration
        DatabaseBackendTestCase::test_run_after_tz
        DatabaseBackendTestCase::test_task_name
        DatabaseBackendTestCase::test_using_correct_backend
        DatabaseBackendWorkerTestCase::test_invalid_task_path
        DatabaseBackendWorkerTestCase::test_missing_task_path
        DatabaseBackendWorkerTestCase::test_run_after
        DatabaseBackendWorkerTestCase::test_run_after_priority
        DatabaseBackendWorkerTestCase::test_task_import_string
        DatabaseBackendWorkerTestCase::test_worker_with_locked_rows
    """,
    "is about the commands, the admin or the imports of django-tasks-db": """
        AdminTestCase CompatTestCase ConnectionExclusiveTranscationTestCase
        DatabaseBackendPruneTaskResultsTestCase
        DatabaseBackendWorkerTestCase::test_empty_worker_id
        DatabaseBackendWorkerTestCase::test_fractional_interval
        DatabaseBackendWorkerTestCase::test_incorrect_backend
        DatabaseBackendWorkerTestCase::test_infinite_interval
        DatabaseBackendWorkerTestCase::test_max_tasks
        DatabaseBackendWorkerTestCase::test_negative_interval
        DatabaseBackendWorkerTestCase::test_negative_max_tasks
        DatabaseBackendWorkerTestCase::test_too_long_worker_id
        DatabaseBackendWorkerTestCase::test_unknown_backend
        DatabaseBackendWorkerTestCase::test_verbose_logging
        DatabaseBackendWorkerTestCase::test_zero_interval
        DatabaseBackendWorkerTestCase::test_zero_max_tasks
    """,
    "starts the worker of django-tasks-db as a process": "DatabaseWorkerProcessTestCase",
    "sets the ids of results; ours are the ids of jobs": """
        DatabaseBackendTestCase::test_custom_id_function
        DatabaseBackendTestCase::test_postgres_db_id_function
        DatabaseBackendTestCase::test_postgres_id_function_expression
        DatabaseBackendTestCase::test_unknown_id_function
    """,
    "chooses a worker by queue_name or backend; ours are chosen by the function's path": """
        DatabaseBackendWorkerTestCase::test_doesnt_process_different_backend
        DatabaseBackendWorkerTestCase::test_doesnt_process_different_queue
        DatabaseBackendWorkerTestCase::test_exclude_queues_requires_processing_all_queues
        DatabaseBackendWorkerTestCase::test_process_all_queues
        DatabaseBackendWorkerTestCase::test_process_all_queues_excluding_one_queue
    """,
    "calls a sync method in an event loop, which must not use the database": """
        DummyBackendTestCase::test_enqueue_task_async
        DummyBackendTestCase::test_get_missing_result
        DummyBackendTestCase::test_refresh_result_async
        TaskTestCase::test_enqueue_task_async
        TaskTestCase::test_get_missing_result
        TaskTestCase::test_refresh_result
    """,
    "changes the stored result in the memory of the dummy backend": """
        DummyBackendTestCase::test_refresh_result
    """,
    "expects that results or run_after are not supported": """
        ImmediateBackendTestCase::test_cannot_get_result
        ImmediateBackendTestCase::test_cannot_pass_run_after
        ImmediateBackendTestCase::test_cannot_refresh_result
    """,
    "runs a worker inside the event loop or the open transaction of the test, which blocks it": """
        ImmediateBackendTestCase::test_enqueue_task_async
        ImmediateBackendTransactionTestCase
    """,
}
NOT_APPLICABLE = {test: reason for reason, tests in _BY_REASON.items() for test in tests.split()}
