"""Who calls: certificates and tokens against a server that asks for them, with the synchronous client and with that of asyncio."""

import asyncio
import json
import os
import pathlib
import subprocess
import tempfile
import unittest
import unittest.mock

from strata_documents import Client, CredentialsInvalid, CredentialsMissing, PermissionDenied, StrataError, Tls, aio, testing

EC = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc"]
POLICY = {"grants": [{"principals": ["spiffe://example.org/shop"], "role": "writer", "resources": ["collection/books"]},
                     {"principals": ["user:batch"], "role": "reader", "resources": ["collection/*"]}]}


def openssl(folder, *arguments):
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)


def authority(folder, name):
    openssl(folder, "req", "-x509", *EC, "-days", "30", "-subj", f"/CN={name}", "-keyout", f"{name}-key.pem", "-out", f"{name}.pem")


def certificate(folder, name, called):
    openssl(folder, "req", *EC, "-subj", f"/CN={name}", "-addext", f"subjectAltName={called}", "-keyout", f"{name}-key.pem", "-out", f"{name}.csr")
    openssl(folder, "x509", "-req", "-in", f"{name}.csr", "-copy_extensions", "copy", "-days", "30", "-CA", "ca.pem", "-CAkey", "ca-key.pem",
            "-out", f"{name}.pem")


def port_of(server):
    return server.target.rpartition(":")[2]


class Credentials(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        made = tempfile.TemporaryDirectory()
        cls.addClassCleanup(made.cleanup)
        cls.folder = folder = pathlib.Path(made.name)
        authority(folder, "ca")
        authority(folder, "other")
        certificate(folder, "server", "DNS:localhost")
        certificate(folder, "shop", "URI:spiffe://example.org/shop")
        cls.token, line = subprocess.run([os.environ["STRATAD"], "token", "batch"], check=True, capture_output=True, text=True).stdout.split("\n")[:2]
        (folder / "tokens").write_text(line + "\n")
        (folder / "policy.json").write_text(json.dumps(POLICY))
        for name in ("tokens", "server-key.pem"):
            (folder / name).chmod(0o600)
        known = ["--tokens", folder / "tokens", "--policy", folder / "policy.json"]
        cls.server = testing.Server(["--engine", "memory", "--listen", "127.0.0.1:0", "--tls-certificate", folder / "server.pem", "--tls-key",
                                     folder / "server-key.pem", "--tls-client-ca", folder / "ca.pem", "--tls-client", "optional", *known])
        cls.addClassCleanup(cls.server.close)
        cls.plain = testing.Server(["--engine", "memory", "--listen", "127.0.0.1:0", *known])
        cls.addClassCleanup(cls.plain.close)
        # What the certificate names, which is not the address.
        cls.target = f"localhost:{port_of(cls.server)}"

    def tls(self, authorities="ca", certificate=None):
        own = [str(self.folder / f"{certificate}{end}") for end in (".pem", "-key.pem")] if certificate else []
        return Tls(str(self.folder / f"{authorities}.pem"), *own)

    def run_both(self, work, *target, **options):
        """`work` with a client of each kind; it yields what the client gives."""
        async def asynchronous():
            async with aio.Client(*target, **options) as client:
                steps, value = work(client), None
                while True:
                    try:
                        step = steps.send(value)
                    except StopIteration:
                        return
                    try:
                        value = [item async for item in step] if hasattr(step, "__aiter__") else await step
                    except StrataError as error:
                        value = error

        with self.subTest("synchronous"), Client(*target, **options) as client:
            steps, value = work(Caught(client)), None
            while True:
                try:
                    value = steps.send(value)()
                except StopIteration:
                    break
        with self.subTest("asyncio"):
            asyncio.run(asynchronous())

    def test_a_certificate_says_who_writes(self):
        def work(client):
            books = client.collection("books")
            done = yield books.update("moby", replace={"stock": 3}, allow_missing=True)
            self.assertEqual(3, done.document.content["stock"])
            versions = yield books.history("moby")
            self.assertEqual("spiffe://example.org/shop", versions[0].change.actor)
            self.assertIsInstance((yield client.collection("secrets").create("x", {})), PermissionDenied)
        self.run_both(work, self.target, tls=self.tls(certificate="shop"))

    def test_a_token_says_who_reads(self):
        def work(client):
            books = client.collection("books")
            self.assertIsNone((yield books.get("none")))
            denied = yield books.create("moby", {})
            self.assertIsInstance(denied, PermissionDenied)
            self.assertFalse(denied.outcome_unknown)
        with Client(self.target, tls=self.tls(certificate="shop")) as client:
            client.collection("books").update("first", replace={}, allow_missing=True)
        self.run_both(work, self.target, tls=self.tls(), token=self.token)

    def test_the_authorities_that_this_machine_trusts_can_be_named_by_ssl_cert_file(self):
        def reached(client):
            self.assertIsNone((yield client.collection("books").get("none")))

        def refused(client):
            self.assertEqual("UNAVAILABLE", (yield client.collection("books").get("none")).code)
        with unittest.mock.patch.dict(os.environ, SSL_CERT_FILE=str(self.folder / "ca.pem")):
            self.run_both(reached, self.target, tls=True, token=self.token)
        with unittest.mock.patch.dict(os.environ, SSL_CERT_FILE=str(self.folder / "other.pem")):
            self.run_both(refused, self.target, tls=True, token=self.token, retry_for=0)

    def test_a_token_goes_without_tls_on_this_machine(self):
        def work(client):
            self.assertEqual([], (yield client.collections.list()))
        self.run_both(work, self.plain.target, token=self.token)

    def test_without_a_token_credentials_are_missing(self):
        def work(client):
            for error in ((yield client.collection("books").create("moby", {})), (yield client.collections.list())):
                self.assertIsInstance(error, CredentialsMissing)
                self.assertEqual(("UNAUTHENTICATED", False), (error.code, error.outcome_unknown))
        self.run_both(work, self.target, tls=self.tls())
        self.run_both(work, self.plain.target)

    def test_a_token_that_is_unknown_is_invalid(self):
        def work(client):
            self.assertIsInstance((yield client.collection("books").get("moby")), CredentialsInvalid)
        self.run_both(work, self.target, tls=self.tls(), token=self.token[:-1] + ("x" if self.token[-1] != "x" else "y"))

    def test_no_other_server_is_talked_to(self):
        def work(client):
            error = yield client.collection("books").get("moby")
            self.assertEqual((StrataError, "UNAVAILABLE", None), (type(error), error.code, error.reason))
        # Another authority's certificate; one of another name; none at all; TLS where none is asked for.
        self.run_both(work, self.target, tls=self.tls("other"), token=self.token, retry_for=0)
        self.run_both(work, self.server.target, tls=self.tls(), token=self.token, retry_for=0)
        self.run_both(work, f"localhost:{port_of(self.plain)}", tls=self.tls(), token=self.token, retry_for=0)
        self.run_both(work, self.target, retry_for=0)

    def test_what_cannot_be_right_is_refused_at_once(self):
        for kind in (Client, aio.Client):
            with self.assertRaisesRegex(ValueError, "a certificate goes with its key"):
                kind(self.target, tls=Tls(certificate=str(self.folder / "shop.pem")))
            with self.assertRaisesRegex(FileNotFoundError, "none.pem"):
                kind(self.target, tls=self.tls("none"))
            with self.assertRaisesRegex(ValueError, "with TLS only"):
                kind("strata.example.org", token=self.token)


class Caught:
    """Of the synchronous client: the same members, whose calls are made later and give their error."""

    def __init__(self, whole):
        self._whole = whole

    def __getattr__(self, name):
        member = getattr(self._whole, name)
        if not callable(member):
            return Caught(member)
        if name == "collection":
            return lambda *arguments: Caught(member(*arguments))

        def later(*arguments, **named):
            def call():
                try:
                    value = member(*arguments, **named)
                    return list(value) if hasattr(value, "__next__") else value
                except StrataError as error:
                    return error
            return call
        return later


if __name__ == "__main__":
    unittest.main()
