"""Rules for insecure values of the platform's own settings, which `manage.py check --deploy`
reports. An app's rules are in its settings.py."""

from ipaddress import ip_network
from urllib.parse import urlsplit

from tailrace.environment import insecure
from tailrace.environment.insecure import Insecure
from tailrace.environment.loading import is_set

INSECURE = (
    Insecure(
        "tailrace.E101",
        "DATABASE_URL: is not set, so the embedded PostgreSQL would be used",
        lambda own: not own.DATABASE_URL,
        "Set it to postgres://user:password@host/name?sslmode=verify-full.",
    ),
    Insecure(
        "tailrace.E102",
        "BROKER_URL: is not set, so the embedded Valkey would be used",
        lambda own: not own.BROKER_URL,
        "Set it to rediss://:password@host:6379/0 or amqps://user:password@host/vhost.",
    ),
    Insecure(
        "tailrace.E103",
        "SECRET_KEY: is not set",
        lambda own: not is_set("SECRET_KEY"),
        "Set it to 50 random characters, the same for all processes of one installation.",
    ),
    Insecure(
        "tailrace.E104",
        "PUBLIC_URL: is not set or local",
        lambda own: insecure.is_local(own.PUBLIC_URL),
        "Set it to the public https address: links in mails and feeds need it.",
    ),
    Insecure(
        "tailrace.W101",
        "PUBLIC_URL: is not https",
        lambda own: insecure.lacks_tls(own.PUBLIC_URL),
        "Put a proxy that terminates TLS in front of Tailrace, and set the https address.",
    ),
    Insecure(
        "tailrace.E105",
        "ALLOWED_HOSTS: * accepts any Host header",
        lambda own: "*" in own.ALLOWED_HOSTS,
        "List the host names.",
    ),
    Insecure(
        "tailrace.E106",
        "ALLOWED_HOSTS: does not contain {}, the host of PUBLIC_URL",
        lambda own: (
            not {"*", host_of(own.PUBLIC_URL)} & {*own.ALLOWED_HOSTS} and host_of(own.PUBLIC_URL)
        ),
        "Add this host.",
    ),
    Insecure(
        "tailrace.E107",
        "EMAIL_URL: is not a mail server, so mails are not sent",
        lambda own: not any(url.startswith("smtp") for url in own.EMAIL_URL),
        "Set it to smtp+tls://user:password@host:587.",
    ),
    Insecure(
        "tailrace.E111",
        "EMAIL_URL: sends mails and the password unencrypted to {}",
        lambda own: ", ".join(
            host_of(url)
            for url in own.EMAIL_URL
            if url.startswith("smtp") and insecure.lacks_tls(url)
        ),
        "Set it to smtp+tls://user:password@host:587.",
    ),
    Insecure(
        "tailrace.E108",
        "FLOWER_BASIC_AUTH: is not set, or its password is shorter than 12 characters",
        lambda own: len(own.FLOWER_BASIC_AUTH.partition(":")[2]) < 12,
        "Set it to user:password.",
    ),
    Insecure(
        "tailrace.E110",
        "ENCRYPTION_KEYS: is not set; another SECRET_KEY would make secrets unreadable",
        lambda own: not own.ENCRYPTION_KEYS,
        "Set it to 32 random bytes in URL-safe base64; keep older keys after the newest.",
    ),
    Insecure(
        "tailrace.E112",
        "ENCRYPTION_KEYS: key {} is not random",
        lambda own: ", ".join(
            str(number)
            for number, key in enumerate(own.ENCRYPTION_KEYS, 1)
            if insecure.is_guessable(key)
        ),
        "Put a key of 32 random bytes before this key, and re-encrypt the secrets.",
    ),
    Insecure(
        "tailrace.E113",
        "DATABASE_URL: has no password, and the server is another machine",
        lambda own: insecure.lacks_password(own.DATABASE_URL),
        "Set it to postgres://user:password@host/name?sslmode=verify-full.",
    ),
    Insecure(
        "tailrace.W108",
        "DATABASE_URL: allows unencrypted connections, and the server is another machine",
        lambda own: insecure.lacks_tls(own.DATABASE_URL),
        "Add ?sslmode=verify-full (or require) to the URL.",
    ),
    Insecure(
        "tailrace.E114",
        "BROKER_URL: has no password, and the server is another machine",
        lambda own: insecure.lacks_password(own.BROKER_URL),
        "Set it to rediss://:password@host:6379/0 or amqps://user:password@host/vhost.",
    ),
    Insecure(
        "tailrace.W109",
        "BROKER_URL: uses unencrypted connections, and the server is another machine",
        lambda own: insecure.lacks_tls(own.BROKER_URL),
        "Use a rediss:// or amqps:// URL.",
    ),
    Insecure(
        "tailrace.E115",
        "WEB_HOST: {} is reachable without a proxy and without TLS, and WEB_PROXIES is not set",
        lambda own: (
            not insecure.is_loopback(own.WEB_HOST) and not is_set("WEB_PROXIES") and own.WEB_HOST
        ),
        "Set it to 127.0.0.1; or set WEB_PROXIES to the addresses of the proxies, and let a"
        " firewall admit only these.",
    ),
    Insecure(
        "tailrace.E116",
        "WEB_PROXIES: {} is so large that clients can pretend to be a proxy",
        lambda own: ", ".join(
            network for network in own.WEB_PROXIES if ip_network(network).prefixlen < 8
        ),
        "List only the addresses of the proxies.",
    ),
    Insecure(
        "tailrace.W113",
        "REQUIRE_SECOND_FACTOR: is off, so a stolen password is enough to sign in as staff",
        lambda own: not own.REQUIRE_SECOND_FACTOR and not insecure.is_local(own.PUBLIC_URL),
        "Set it to yes. Staff then set up a second factor when they next sign in.",
    ),
    Insecure(
        "tailrace.W110",
        "SENTRY_DSN: is not https",
        lambda own: insecure.lacks_tls(own.SENTRY_DSN),
        "Use an https:// URL.",
    ),
    Insecure(
        "tailrace.W102",
        "LOG_FORMAT: is not json",
        lambda own: own.LOG_FORMAT != "json",
        "Set it to json.",
    ),
)


def host_of(url: str) -> str:
    return urlsplit(url).hostname or ""
