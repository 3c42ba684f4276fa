from django.db import migrations

DARKWATCH, HOMETITLE = "protection.darkwatch_scan", "protection.hometitle_scan"
REPORTS = "protection.reports_generate"
TABLE = {
    "basic": (False, {DARKWATCH: "monthly", HOMETITLE: "monthly"}),
    "plus": (False, {DARKWATCH: "weekly", HOMETITLE: "weekly", REPORTS: "monthly"}),
    "premium": (True, {DARKWATCH: "daily", HOMETITLE: "daily", REPORTS: "weekly"}),
}
"""The jobs of each plan, and whether it has monitoring."""


def create(apps, schema_editor):
    """Create the plans that are not there yet; operators edit them afterwards."""
    plans, jobs = (apps.get_model("tailrace_subscriptions", name) for name in ("Plan", "PlanJob"))
    for name, (monitoring, table) in TABLE.items():
        plan, created = plans.objects.get_or_create(name=name, defaults={"monitoring": monitoring})
        for handler, frequency in table.items() if created else ():
            jobs.objects.create(plan=plan, handler=handler, frequency=frequency)


class Migration(migrations.Migration):
    dependencies = [("tailrace_subscriptions", "0008_plans")]

    operations = [migrations.RunPython(create, migrations.RunPython.noop)]
