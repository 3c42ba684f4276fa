from tailrace.jobs.pages.panel import Panel


class Forecast(Panel):
    title = "Forecast"
    template = "weather/forecast.html"
