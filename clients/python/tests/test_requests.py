"""The requests that are written without a message are those that messages would be."""

import os
import random
import unittest

from strata_documents import increment, messages, operations, types
from strata_documents.core import Settings

ROUNDS = 3000
# What is written without a message, and what is left to messages.
PLAIN = {"id": "dé", "content": {"n": 1}, "replace": {"title": "x" * 300}, "actor": "ann", "on_behalf_of": "é", "reason": "r" * 200,
         "request_id": "mine"}
OTHER = {"if_version": 3, "if_exists": False, "validate_only": True, "omit_content": True, "labels": {"a": "b"}, "merge": {"n": None},
         "operations": [increment("/n", 1)], "at_position": 7, "version": 2, "fields": ["/n"], "lease": types.LeaseToken(name="l", token=5)}
SILENT = (None, (), False)


class Requests(unittest.TestCase):
    def test_both_ways_make_the_same(self):
        seed = int(os.environ.get("SEED") or random.SystemRandom().randrange(1 << 32))
        print(f"requests: seed {seed}")
        rng = random.Random(seed)
        ways = {True: 0, False: 0}
        for n in range(ROUNDS):
            name = rng.choice(["Get", "Create", "Update", "Delete", "Restore"])
            kind = operations.REQUESTS[name]
            usual = [argument for argument in PLAIN if argument in kind.setters]
            given = {argument: PLAIN[argument] for argument in rng.sample(usual, rng.randrange(len(usual) + 1))}
            for argument in kind.setters:
                if argument not in given and argument != "if_exists" and rng.random() < 0.3:
                    given[argument] = None if argument in PLAIN else rng.choice(SILENT)
            others = [argument for argument in OTHER if argument in kind.setters]
            if rng.random() < 0.3:
                given[rng.choice(others)] = None
                other = rng.choice(others)
                given[other] = OTHER[other]
                given.pop("replace", None)
            given["self"] = self
            settings = Settings(30, 30, rng.choice([None, "bob"]))
            encoded = kind.encode(settings, operations.collection_part("ç" * 100), given)
            said = {argument for argument, value in given.items()
                    if argument in OTHER and (value not in SILENT or argument == "if_exists" and value is False)}
            self.assertEqual(not said, encoded is not None, f"seed {seed}, round {n}: {given}")
            ways[encoded is not None] += 1
            if encoded is None:
                continue
            data, request_id = encoded
            # The request id that is drawn is another each time.
            made = kind.make(settings, dict(given, request_id=request_id) if request_id else given, collection="ç" * 100)
            self.assertEqual(made, kind.kind.FromString(data), f"seed {seed}, round {n}: {given}")
            self.assertEqual(getattr(made, "request_id", "") or None, request_id)
        self.assertGreater(min(ways.values()), ROUNDS / 10)

    def test_numbers_are_written_as_protobuf_writes_them(self):
        for number in (0, 1, 127, 128, 300, 16383, 16384, 2097151, 2097152, (1 << 31) - 1):
            self.assertEqual(messages.METHODS["ListCollections"].request(page_size=number).SerializeToString() if number else b"",
                             messages.tag(messages.METHODS["ListCollections"].request, "page_size") + messages.varint(number) if number else b"")


if __name__ == "__main__":
    unittest.main()
