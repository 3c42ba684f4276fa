from tailrace.jobs.overview.panel import Panel


class Forecast(Panel):
    title = "Forecast"
    template = "weather/forecast.html"
