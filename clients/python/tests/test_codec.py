"""BSON there and back: what was read and is written again has the same bytes."""

import datetime
import decimal
import os
import random
import re
import unittest
import uuid

from strata_documents import Binary, InvalidValue, Int64, MaxKey, MinKey, ObjectId, Regex, Timestamp, bson

ROUNDS = 3000


def value(random, depth):
    kind = random.randrange(16 if depth < 5 else 14)
    if kind == 0:
        return random.choice([0.0, -0.0, 1.5, random.uniform(-1e300, 1e300)])
    if kind == 1:
        return "".join(chr(random.choice([0, 65, 0xE9, 0x20AC, 0x1F600])) for _ in range(random.randrange(8)))
    if kind == 2:
        return random.randrange(-1 << 31, 1 << 31)
    if kind == 3:
        return random.choice([Int64(random.randrange(-5, 5)), random.randrange(1 << 31, 1 << 63), -1 << 63])
    if kind == 4:
        return random.random() < 0.5
    if kind == 5:
        return random.randbytes(random.randrange(9))
    if kind == 6:
        return datetime.datetime.fromtimestamp(random.randrange(1 << 33), datetime.timezone.utc)
    if kind == 7:
        return decimal.Decimal((random.randrange(2), [random.randrange(1, 10) for _ in range(random.randrange(1, 35))], random.randrange(-6000, 6000)))
    return [lambda: ObjectId(random.randbytes(12)), lambda: Binary(random.randbytes(3), random.choice([2, 5, 128])),
            lambda: Regex("^a", "i"), lambda: Timestamp(random.randrange(1 << 32), 1), lambda: random.choice([MinKey(), MaxKey(), None]),
            lambda: uuid.UUID(bytes=random.randbytes(16)),
            lambda: [value(random, depth + 1) for _ in range(random.randrange(4))],
            lambda: document(random, depth + 1)][kind - 8]()


def document(random, depth=0):
    return {f"m{n}é": value(random, depth) for n in random.sample(range(50), random.randrange(6))}


class Codec(unittest.TestCase):
    def setUp(self):
        self.seed = int(os.environ.get("SEED") or random.SystemRandom().randrange(1 << 32))
        print(f"codec: seed {self.seed}")
        self.random = random.Random(self.seed)

    def test_there_and_back(self):
        for n in range(ROUNDS):
            made = document(self.random)
            data = bson.encode(made)
            read = bson.decode(data)
            self.assertEqual(made, read, f"seed {self.seed}, round {n}")
            self.assertEqual(list(made), list(read))
            self.assertEqual(data, bson.encode(read), f"seed {self.seed}, round {n}")

    def test_damaged_bytes_are_refused_or_read(self):
        for n in range(ROUNDS):
            data = bytearray(bson.encode(document(self.random)))
            for _ in range(self.random.randrange(1, 4)):
                data[self.random.randrange(len(data))] = self.random.randrange(256)
            try:
                bson.decode(bytes(data))
            except ValueError:
                pass

    def test_what_has_no_bson_is_refused_where_it_stands(self):
        cycle = {"a": {}}
        cycle["a"]["b"] = cycle
        for wrong, path in (({"a": [1, float("nan")]}, "/a/1"), ({"a/b": {"~": object()}}, "/a~1b/~0"), ({"n": 1 << 63}, "/n"),
                            ({"t": datetime.datetime(2026, 1, 1)}, "/t"), (cycle, "/a/b"), ({"p": re.compile("a", re.A)}, "/p"),
                            ({"t": datetime.datetime(2026, 1, 1, 0, 0, 0, 1, datetime.timezone.utc)}, "/t")):
            with self.assertRaises(InvalidValue) as raised:
                bson.encode(wrong)
            self.assertEqual(path, raised.exception.path)


if __name__ == "__main__":
    unittest.main()
