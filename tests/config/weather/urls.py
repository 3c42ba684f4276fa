from django.http import HttpRequest, HttpResponse
from django.urls import path

app_name = "weather"


def forecast(request: HttpRequest) -> HttpResponse:
    return HttpResponse("sunny")


urlpatterns = [path("weather/", forecast, name="forecast")]
