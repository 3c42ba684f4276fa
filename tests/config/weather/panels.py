from tailrace.jobs.platform.pages.panel import Panel


class Forecast(Panel):
    title = "Forecast"
    template = "weather/forecast.html"
