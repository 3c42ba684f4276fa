"""Which addresses users may make us send to: forms of addresses, names, rebinding."""

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from tailrace.net import http_client, ssrf_guard
from tailrace.net.http_client import Client, Reply, Request
from tailrace.net.ssrf_guard import AddressRefused, check_address, check_url
from tests.kit import PATIENCE
from tests.servers.web import Response, serving

NOT_PUBLIC = [
    "0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.127.255.254",
    "100.100.100.200", "127.0.0.1", "127.255.255.254", "168.63.129.16", "169.254.169.254",
    "169.254.0.1", "172.16.0.1", "172.31.255.255", "192.0.0.1", "192.0.0.192", "192.0.2.1",
    "192.31.196.1", "192.52.193.1", "192.88.99.1", "192.168.0.1", "192.175.48.1", "198.18.0.1",
    "198.19.255.255", "198.51.100.7", "203.0.113.9", "224.0.0.1", "239.255.255.255", "240.0.0.1",
    "255.255.255.255",
    "::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:7f00:1", "::ffff:10.0.0.1",
    "::ffff:8.8.8.8", "::ffff:0:127.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::1", "100::1", "2001::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001:2::1",
    "2001:10::1", "2001:20::1", "2001:db8::1", "2002:7f00:1::1", "2002:c0a8:101::1",
    "2620:4f:8000::1", "3fff::1", "4000::1", "5f00::1", "fc00::1", "fd00:ec2::254", "fe80::1",
    "fe80::1%eth0", "febf::1", "fec0::1", "ff02::1",
]  # fmt: skip
PUBLIC = ["1.1.1.1", "8.8.8.8", "93.184.216.34", "100.63.255.255", "100.128.0.1", "172.32.0.1",
          "169.253.1.1", "2606:4700:4700::1111", "2a00:1450:4001:81b::200e"]  # fmt: skip

TRICKS = [
    # addresses in forms that other programs read as such
    "https://2130706433/", "https://0x7f000001/", "https://0x7f.0x0.0x0.0x1/", "https://0177.0.0.1/",
    "https://017700000001/", "https://127.1/", "https://127.0.1/", "https://0/", "https://0x/",
    "https://127.0.0.1./", "https://127.000.000.001/", "https://1.2.3.4.5/", "https://999.1.1.1/",
    "https://example.0x7f/", "https://3232235777/",
    # characters that become others
    "https://①②⑦.⓪.⓪.①/", "https://１２７.０.０.１/", "https://127。0。0。1/", "https://127．0．0．1/",
    "https://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ/", "https://ex\u00adample.org/", "https://exa\u200bmple.org/",
    "https://127%2e0.0.1/", "https://%31%32%37.0.0.1/", "https://localhost%00.example.org/",
    # brackets and zones
    "https://[::1]/", "https://[::ffff:169.254.169.254]/", "https://[::ffff:a9fe:a9fe]/",
    "https://[64:ff9b::a9fe:a9fe]/", "https://[fe80::1%25eth0]/", "https://[fe80::1%eth0]/",
    "https://[::1/", "https://::1/", "https://[]/", "https://[127.0.0.1]/", "https://[v1.x]/",
    # who is the host?
    "https://user@example.org/", "https://user:pass@example.org/", "https://@example.org/",
    "https://example.org@127.0.0.1/", "https://127.0.0.1\\@example.org/",
    "https://1.1.1.1 &@2.2.2.2# @3.3.3.3/", "https://example.org\\.evil.org/",
    "https:///example.org", "https://", "https:example.org", "//example.org/", "example.org",
    "https://:443/", "https://.example.org/", "https://example..org/", "https://example.org./",
    "https://example.org../", "https://-example.org/", "https://exa mple.org/",
    "https://example.org/\r\nHost: evil", "https://example.org/\ttab", "https://exam\nple.org/",
    "https://localhost/", "https://LOCALHOST/", "https://x.localhost/", "https://localhost./",
    f"https://{'a' * 64}.org/", f"https://{'a.' * 127}org/", f"https://example.org/{'a' * 2000}",
    # schemes and ports
    "http://example.org/", "ftp://example.org/", "file:///etc/passwd", "gopher://example.org/",
    "javascript:alert(1)", "https+unix://example.org/", "HTTP://example.org/", "",
    "https://example.org:0/", "https://example.org:22/", "https://example.org:25/",
    "https://example.org:6379/", "https://example.org:5432/", "https://example.org:65536/",
    "https://example.org:-1/", "https://example.org:8x/", "https://example.org:2375/",
]  # fmt: skip


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_an_address_that_is_not_public_is_refused_with_its_kind(address: str) -> None:
    with pytest.raises(
        AddressRefused, match=r"is not a public address: .+WEBHOOK_ALLOWED_NETWORKS"
    ):
        check_address(address)


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is_accepted(address: str) -> None:
    check_address(address)


def test_every_special_network_is_refused_at_both_ends() -> None:
    import ipaddress

    for text, _words in (*ssrf_guard._SPECIAL_IPV4, *ssrf_guard._SPECIAL_IPV6):
        network = ipaddress.ip_network(text)
        for address in (network.network_address, network.broadcast_address):
            with pytest.raises(AddressRefused):
                check_address(str(address))


@pytest.mark.parametrize("url", TRICKS)
def test_a_url_with_a_trick_is_refused(url: str) -> None:
    with pytest.raises(AddressRefused):
        check_url(url)


@pytest.mark.parametrize(
    ("url", "used"),
    [
        ("https://example.org", "https://example.org"),
        ("https://example.org/hook?token=a%20b#part", "https://example.org/hook?token=a%20b"),
        ("HTTPS://EXAMPLE.ORG:8443/Hook", "https://example.org:8443/Hook"),
        ("https://bücher.example/", "https://xn--bcher-kva.example/"),
        ("https://hooks_1.example.org/a@b?c=d@e", "https://hooks_1.example.org/a@b?c=d@e"),
        ("https://1.1.1.1/", "https://1.1.1.1/"),
        ("https://[2606:4700:4700::1111]/", "https://[2606:4700:4700::1111]/"),
        ("https://4.example.org/", "https://4.example.org/"),
    ],
)
def test_a_plain_url_is_accepted_and_normalized(url: str, used: str) -> None:
    assert str(check_url(url)) == used


def test_a_refusal_shows_no_token_of_the_url() -> None:
    for url in ("https://me:s3cret-word@example.org/", "http://example.org/?token=s3cret-word"):
        with pytest.raises(AddressRefused) as refused:
            check_url(url)
        assert "s3cret-word" not in str(refused.value)


def test_networks_can_be_allowed_and_so_can_http(settings) -> None:
    settings.WEBHOOK_ALLOWED_NETWORKS = ["10.20.0.0/16", "fd00:20::/32"]
    check_address("10.20.3.4")
    check_address("fd00:20::1")
    assert check_url("http://10.20.3.4/hook").scheme == "http"
    for other in ("10.21.0.1", "127.0.0.1", "fd00:21::1", "::ffff:10.20.3.4"):
        with pytest.raises(AddressRefused):
            check_address(other)
    with pytest.raises(AddressRefused, match="WEBHOOK_ALLOW_HTTP"):
        check_url("http://example.org/")
    settings.WEBHOOK_ALLOW_HTTP = True
    assert check_url("http://example.org/").scheme == "http"


# --- at connect -----------------------------------------------------------------------------------


@pytest.fixture
def _local(settings) -> None:
    settings.WEBHOOK_ALLOWED_NETWORKS = ["127.0.0.0/8"]
    settings.WEBHOOK_ALLOW_HTTP = True


async def post(url: str, resolve: ssrf_guard.Resolver) -> Reply:
    async with Client(resolve=resolve) as client:
        return await client.send(Request(url, {}, b"{}"))


async def test_a_name_with_one_private_address_is_refused() -> None:
    reply = await post("https://hook.example.org/", lambda host, port: ["1.1.1.1", "10.0.0.1"])
    assert reply.refused
    assert "10.0.0.1 is not a public address: private" in reply.error
    assert reply.status is None


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1"])
async def test_a_name_of_this_machine_is_refused_at_connect(address: str) -> None:
    assert (await post("https://hook.example.org/", lambda host, port: [address])).refused


async def test_an_address_in_another_form_is_refused_at_connect() -> None:
    """The system's resolver reads these as 127.0.0.1; the guard looks at what it found."""
    for host in ("2130706433", "0x7f.1", "127.1", "017700000001"):
        with pytest.raises((AddressRefused, OSError)):
            ssrf_guard.public_addresses(host, 443, ssrf_guard.system_resolver)


@pytest.mark.usefixtures("_local")
async def test_it_connects_to_the_checked_address_with_the_name() -> None:
    with serving() as server:
        names: list[str] = []

        def resolve(host: str, port: int) -> list[str]:
            names.append(host)
            return ["127.0.0.1"]

        reply = await post(f"http://hook.example.org:{server.server_port}/in", resolve)
    assert reply.status == 200
    assert names == ["hook.example.org"], "it is looked up once"
    assert server.requests[0].headers["host"] == f"hook.example.org:{server.server_port}"


@pytest.mark.usefixtures("_local")
async def test_the_next_address_is_tried_where_one_is_not_reached() -> None:
    with serving() as server:
        reply = await post(
            f"http://hook.example.org:{server.server_port}/",
            lambda host, port: ["127.0.0.2", "127.0.0.1"],
        )
    assert reply.status == 200


@pytest.mark.usefixtures("_local")
async def test_a_redirect_to_the_metadata_service_is_not_followed() -> None:
    there = {"Location": "http://169.254.169.254/latest/meta-data/"}
    with serving(lambda request: Response(302, headers=there)) as server:
        reply = await post(server.url, ssrf_guard.system_resolver)
    assert reply.status == 302
    assert len(server.requests) == 1


async def test_dns_rebinding_is_refused_at_the_next_connection(settings) -> None:
    """Rebinding, on a real DNS server: the first answer is allowed, the next one is not."""
    settings.WEBHOOK_ALLOW_HTTP = True
    settings.WEBHOOK_ALLOWED_NETWORKS = ["127.0.0.1/32"]
    answers = ["127.0.0.1", "127.0.0.2", "169.254.169.254"]
    with serving() as server, dns(lambda name: answers.pop(0)) as ask:
        url = f"http://rebind.example.org:{server.server_port}/"
        replies = [await post(url, ask) for _ in range(3)]
    assert replies[0].status == 200
    assert [reply.refused for reply in replies] == [False, True, True]
    assert len(server.requests) == 1


async def test_a_connection_looks_a_name_up_once(
    settings,
) -> None:
    settings.WEBHOOK_ALLOW_HTTP = True
    settings.WEBHOOK_ALLOWED_NETWORKS = ["127.0.0.1/32"]
    names: list[str] = []

    def answer(name: str) -> str:
        names.append(name)
        return "127.0.0.1" if len(names) == 1 else "169.254.169.254"

    with serving() as server, dns(answer) as ask:
        reply = await post(f"http://rebind.example.org:{server.server_port}/", ask)
    assert reply.status == 200
    assert names == ["rebind.example.org"]


@pytest.mark.usefixtures("_local")
async def test_a_resolver_that_hangs_costs_only_the_deadline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http_client, "TOTAL_SECONDS", 0.3)
    over = threading.Event()

    def hang(host: str, port: int) -> list[str]:
        over.wait(PATIENCE)
        return ["127.0.0.1"]

    reply = await post("http://hook.example.org/", hang)
    over.set()
    assert "no answer in 0.3 s" in reply.error
    assert reply.milliseconds < 60_000


async def test_an_unknown_name_is_a_network_error_not_a_refusal() -> None:
    def nobody(host: str, port: int) -> list[str]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    reply = await post("https://nobody.example.org/", nobody)
    assert not reply.refused
    assert "not known" in reply.error
    assert "no address" in (await post("https://nobody.example.org/", lambda *_: [])).error


@pytest.mark.usefixtures("_local")
async def test_unguarded_clients_reach_private_addresses(settings) -> None:
    settings.WEBHOOK_ALLOWED_NETWORKS = []
    with serving() as server:
        async with Client(public_only=False) as client:
            assert (await client.send(Request(server.url, {}, b""))).status == 200


@contextmanager
def dns(answer: Callable[[str], str]) -> Iterator[ssrf_guard.Resolver]:
    """Run a DNS server that answers A queries; yield a resolver that uses it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listening:
        listening.bind(("127.0.0.1", 0))
        listening.settimeout(0.1)
        over = threading.Event()

        def serve() -> None:
            while not over.is_set():
                with suppress(TimeoutError):
                    query, peer = listening.recvfrom(512)
                    name = _name(query)
                    listening.sendto(_answered(query, answer(name)), peer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        place = listening.getsockname()
        try:
            yield lambda host, port: _asked(place, host)
        finally:
            over.set()
            thread.join()


def _asked(server: tuple[str, int], host: str) -> list[str]:
    labels = b"".join(bytes([len(part)]) + part.encode() for part in host.split("."))
    query = struct.pack(">HHHHHH", 7, 0x0100, 1, 0, 0, 0) + labels + b"\0\0\1\0\1"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.settimeout(5)
        asking.sendto(query, server)
        return [socket.inet_ntoa(asking.recv(512)[-4:])]


def _name(query: bytes) -> str:
    place, labels = 12, []
    while size := query[place]:
        labels.append(query[place + 1 : place + 1 + size].decode())
        place += size + 1
    return ".".join(labels)


def _answered(query: bytes, address: str) -> bytes:
    head = query[:2] + struct.pack(">HHHHH", 0x8180, 1, 1, 0, 0) + query[12:]
    return head + struct.pack(">HHHIH", 0xC00C, 1, 1, 0, 4) + socket.inet_aton(address)
