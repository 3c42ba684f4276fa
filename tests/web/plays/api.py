from ninja import Router

routers = {"/plays": Router()}
scopes = {"plays:read": "read plays"}
