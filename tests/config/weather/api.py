from django.http import HttpRequest
from ninja import Router

from tailrace.web.api.auth import Needs

forecasts = Router()
routers = {"/forecasts": forecasts}
scopes = {"weather:read": "see forecasts"}


@forecasts.get("", auth=Needs("weather:read"), response=str, summary="The forecast")
def forecast(request: HttpRequest) -> str:
    return "sunny"
