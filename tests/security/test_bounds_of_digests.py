"""What one mail may cost."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tailrace.db.query import execute
from tailrace.subscriptions.channels.mail import digest_mail
from tailrace.subscriptions.models import Digest, DigestItem
from tests.subscriptions.sample_domain import FIRST, assign_role, person, publish_event, subscribe

pytestmark = pytest.mark.django_db(transaction=True)
MANY = 5000

_COPIES = """
WITH copies AS (
  INSERT INTO tailrace_events_event (source, source_id, type, schema_version, subject, payload,
                            occurred_at, recorded_at, actor, trace_parent, problem)
  SELECT source, source_id || '/' || n, type, schema_version, subject, payload, occurred_at,
         recorded_at, actor, trace_parent, problem
  FROM tailrace_events_event, generate_series(2, %(many)s) AS n WHERE id = %(event)s
  RETURNING id
)
INSERT INTO tailrace_subscriptions_digestitem (digest_id, event_id, role)
SELECT %(digest)s, id, %(role)s FROM copies
"""


def test_a_digest_of_many_events_got_a_query_for_each(smtp, run_jobs, clock) -> None:
    ann = person("ann")
    assign_role(FIRST, ann)
    subscribe("stage.premiere", FIRST, "mail", user=ann, pace="daily")
    event = publish_event(payload={"title": "Faust"})
    run_jobs("subscriptions.notify")
    digest = Digest.objects.get()
    execute(_COPIES, many=MANY, event=event.id, digest=digest.pk, role=FIRST)
    assert DigestItem.objects.count() == MANY
    clock.step(25 * 3600)
    with CaptureQueriesContext(connection) as queries:
        run_jobs("subscriptions.digest")
    of_items = [each["sql"] for each in queries if "digestitem" in each["sql"].lower()]
    assert len(of_items) <= 4, of_items
    assert len(queries) < 40
    (mail,) = (received.message for received in smtp.received)
    assert mail["Subject"] == f"Daily digest: {MANY} events"
    text = mail.get_body(("plain",)).get_content()
    assert f"And {MANY - digest_mail.MAX_EXAMINED} other events." in text
    assert f"… and {MANY - 20} more." in text
