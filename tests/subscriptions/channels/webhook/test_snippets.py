"""The code by which receivers verify messages, run as it is shown, where its language is there."""

import base64
import json
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from tailrace.net.signing import new_secret, signed_headers, signer
from tailrace.subscriptions.channels.webhook.snippets import LANGUAGES, snippets

BODY = '{"title":"Grüße, <b>日本</b>"}'.encode()
COMMANDS = {
    "python": ["python3", "verify.py"],
    "javascript": ["node", "verify.js"],
    "java": ["java", "Webhook.java"],
    "go": ["go", "run", "verify.go"],
    "ruby": ["ruby", "verify.rb"],
    "php": ["php", "verify.php"],
}
# What each snippet is followed by: it prints true or false for each case, in their order. A case is
# [secret, id, timestamp, signature, body in base64].
DRIVERS = {
    "python": """
NAMES = ("webhook-id", "webhook-timestamp", "webhook-signature")
for secret, *values, body in CASES:
    print(str(verify(secret, dict(zip(NAMES, values)), base64.b64decode(body))).lower())
""",
    "javascript": """
for (const [secret, id, timestamp, signature, body] of CASES) {
  const headers = { "webhook-id": id, "webhook-timestamp": timestamp };
  headers["webhook-signature"] = signature;
  console.log(verify(secret, headers, Buffer.from(body, "base64")));
}
""",
    "java": """
    public static void main(String[] words) throws Exception {
        String[][] cases = CASES;
        for (String[] c : cases) {
            System.out.println(verify(c[0], Map.of("webhook-id", c[1], "webhook-timestamp", c[2],
                "webhook-signature", c[3]), Base64.getDecoder().decode(c[4])));
        }
    }
}
""",
    "go": """
func main() {
	for _, c := range [][]string CASES {
		headers := http.Header{}
		headers.Set("webhook-id", c[1])
		headers.Set("webhook-timestamp", c[2])
		headers.Set("webhook-signature", c[3])
		body, _ := base64.StdEncoding.DecodeString(c[4])
		println(verify(c[0], headers, body))
	}
}
""",
    "ruby": """
CASES.each do |secret, id, timestamp, signature, body|
  headers = { "webhook-id" => id, "webhook-timestamp" => timestamp }
  headers["webhook-signature"] = signature
  puts verify(secret, headers, Base64.decode64(body))
end
""",
    "php": """
foreach (CASES as [$secret, $id, $timestamp, $signature, $body]) {
    $headers = ['webhook-id' => $id, 'webhook-timestamp' => $timestamp];
    $headers['webhook-signature'] = $signature;
    echo verify($secret, $headers, base64_decode($body)) ? "true" : "false", "\\n";
}
""",
}


def _cases() -> list[tuple[list[str], bool]]:
    secret, old = new_secret(), new_secret()
    both = signed_headers("msg_1", BODY, signer(secret), signer(old))
    id, now, signature = (both[f"webhook-{name}"] for name in ("id", "timestamp", "signature"))
    body = base64.b64encode(BODY).decode()
    other = base64.b64encode(BODY + b" ").decode()
    past = str(int(time.time()) - 600)
    return [
        ([secret, id, now, signature, body], True),
        ([old, id, now, signature, body], True),
        ([new_secret(), id, now, signature, body], False),
        ([secret, "msg_2", now, signature, body], False),
        ([secret, id, now, signature, other], False),
        ([secret, id, past, signature, body], False),
        ([secret, id, now, "v1,", body], False),
    ]


def _program(language: str, cases: list[list[str]]) -> str:
    text = json.dumps(cases)
    if language in ("java", "go"):
        text = text.replace("[", "{").replace("]", "}")
    code = snippets()[LANGUAGES[language]]
    if language == "java":
        code = code.removesuffix("}")
    return f"{code}\n{DRIVERS[language].replace('CASES', text)}"


@pytest.mark.parametrize("language", list(LANGUAGES))
def test_a_snippet_accepts_what_is_signed_and_nothing_else(language: str, tmp_path: Path) -> None:
    command = COMMANDS[language]
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed: the snippet in {language} was not run")
    cases = _cases()
    program = _program(language, [case for case, _ in cases])
    (tmp_path / command[-1]).write_text(program)
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    answers = (done.stdout + done.stderr).split() if language == "go" else done.stdout.split()
    assert answers == [str(is_valid).lower() for _, is_valid in cases], done.stderr


def test_each_snippet_checks_age_and_compares_in_constant_time() -> None:
    safe = (
        "compare_digest",
        "timingSafeEqual",
        "isEqual",
        "hmac.Equal",
        "secure_compare",
        "equals",
    )
    for title, code in snippets().items():
        assert "300" in code, title
        assert any(word in code for word in safe), title
