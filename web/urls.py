"""URLs of the API, of sign-in and sign-out, and of the account pages."""

from django.urls import include, path, re_path

from tailrace.web.api.docs import pages as docs
from tailrace.web.api.site import api
from tailrace.web.api.views import api_pattern, api_view, unknown_address
from tailrace.web.pages.accounts import account, password
from tailrace.web.pages.accounts.delete_account import delete_account
from tailrace.web.pages.accounts.sign_in import SignIn, SignOut, second_factor_page, start
from tailrace.web.pages.frame import for_strangers

sign_in = for_strangers("sign_in")
api_patterns = [
    path("docs", docs.overview, name="docs"),
    path("docs/<slug:slug>", docs.group_page, name="docs_group"),
    *(api_pattern(pattern) for pattern in api.urls[0]),
    re_path(r"^[\s\S]*$", api_view(unknown_address), name="nothing"),
]
urlpatterns = [
    path("api/", include((api_patterns, "api"))),
    path("accounts/login/", sign_in(SignIn.as_view()), name="login"),
    path("accounts/logout/", SignOut.as_view(), name="logout"),
    path("me/account/delete", delete_account, name="delete_account"),
    path("accounts/second-factor/", sign_in(second_factor_page), name="second_factor"),
    path("accounts/second-factor/set-up/", account.set_up, name="second_factor_setup"),
    path("accounts/second-factor/codes/", account.new_codes, name="second_factor_codes"),
    path("accounts/second-factor/remove/", account.remove, name="second_factor_remove"),
    path("accounts/sign-out-everywhere/", account.sign_out_everywhere, name="sign_out_everywhere"),
    path("accounts/password/change/", password.change_password, name="password_change"),
    path("accounts/password/reset/", sign_in(password.reset_password), name="password_reset"),
    path(
        "accounts/password/reset/<uidb64>/<token>/",
        sign_in(password.ChooseNewPassword.as_view()),
        name="password_reset_confirm",
    ),
    path("me/account", account.account, name="account"),
    path("me/", start, name="me"),
]
