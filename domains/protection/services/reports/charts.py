"""Charts of reports, as SVG without external references."""

from collections.abc import Mapping
from datetime import timedelta

from tailrace.domains.protection.services.reports.period import Period

MOST_BARS = 31
COLOURS = {"critical": "#b42318", "warning": "#b54708", "info": "#175cd3"}
ORDER = ("critical", "warning", "info")


def bars(series: Mapping[str, Mapping[object, int]], period: Period) -> str:
    """Return a chart of stacked bars, each for one or more days; empty if there is no data."""
    if not series:
        return ""
    import pygal  # imported here, since only workers need it
    from pygal.style import Style

    step = -(-period.days // MOST_BARS)
    days = [period.first_day + timedelta(days=n) for n in range(period.days)]
    groups = [days[n : n + step] for n in range(0, len(days), step)]
    labels = sorted(series, key=lambda label: ORDER.index(label) if label in ORDER else len(ORDER))
    style = Style(
        background="transparent",
        plot_background="transparent",
        font_family="DejaVu Sans, sans-serif",
        colors=[COLOURS.get(label, "#475467") for label in labels],
        opacity="1",
        label_font_size=11,
        major_label_font_size=11,
        legend_font_size=12,
    )
    chart = pygal.StackedBar(
        style=style,
        width=720,
        height=220,
        js=[],
        disable_xml_declaration=True,
        explicit_size=True,
        legend_at_bottom=True,
        show_minor_x_labels=False,
        x_labels_major_count=8,
        truncate_label=-1,
        margin=4,
        value_formatter=lambda value: f"{value:,.0f}",
    )
    chart.x_labels = [f"{group[0]:%d %b}" for group in groups]
    for label in labels:
        chart.add(label, [sum(series[label].get(day, 0) for day in group) for group in groups])
    svg: str = chart.render(is_unicode=True)
    return svg
