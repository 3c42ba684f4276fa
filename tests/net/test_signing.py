"""The headers of a signed request."""

import base64
import hashlib
import hmac

import pytest
from standardwebhooks import Webhook

from tailrace.net.signing import new_secret, signed_headers, signer

KEY = b"a key of 24 bytes or so."
BODY = '{"a":"é"}'.encode()


def test_a_signature_is_the_hmac_of_id_time_and_body() -> None:
    headers = signed_headers("msg_1", BODY, signer("whsec_" + base64.b64encode(KEY).decode()))
    signed = b".".join((b"msg_1", headers["webhook-timestamp"].encode(), BODY))
    digest = hmac.digest(KEY, signed, hashlib.sha256)
    assert headers["webhook-id"] == "msg_1"
    assert headers["webhook-signature"] == "v1," + base64.b64encode(digest).decode()


def test_each_signer_adds_one_signature() -> None:
    secrets = [new_secret(), new_secret()]
    headers = signed_headers("msg_1", BODY, *map(signer, secrets))
    assert len(headers["webhook-signature"].split(" ")) == 2
    for secret in secrets:
        assert Webhook(secret).verify(BODY, headers) == {"a": "é"}


@pytest.mark.parametrize("secret", ["", "whsec_", "QUJD", "whsec_not base64!"])
def test_a_secret_of_another_form_is_refused(secret: str) -> None:
    with pytest.raises(ValueError, match="whsec_"):
        signer(secret)
