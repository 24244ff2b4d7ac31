"""What goes wrong between Plinth and a server that others wrote: moto's S3, behind a proxy that has faults."""

import random
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import plinth
from faulty import Proxy

boto3 = pytest.importorskip("boto3")
moto = pytest.importorskip("moto.server")

KEYS = {"aws_access_key_id": "test", "aws_secret_access_key": "hush-hush", "region_name": "us-east-1"}
FORMATS = ["plinth", "parquet", "csv", "ndjson"]
COUNT = 20_000

# Each passes, or is asked past.
PASSING = {
    "late": ("late", 0.3),
    "busy": ("busy",),
    "reset": ("reset",),
    "lost": ("lost",),
    "cut at once": ("cut", 0),
    "cut": ("cut", 10_000),
    "slow": ("slow", 100_000, 0.02),
}


@pytest.fixture(scope="module")
def server():
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture(scope="module")
def bucket(server):
    client = boto3.client("s3", endpoint_url=server, **KEYS)
    client.create_bucket(Bucket="faults")
    return client


@pytest.fixture
def proxy(server):
    proxy = Proxy(server)
    yield proxy
    proxy.stop()


@pytest.fixture
def far(proxy, monkeypatch):
    monkeypatch.setenv("PLINTH_OBJECT_CACHE", "off")
    with plinth.connect(threads=2) as con:
        con.execute(
            f"CREATE SECRET (TYPE s3, KEY_ID 'test', SECRET 'hush-hush', REGION 'us-east-1', ENDPOINT '{proxy.endpoint}')"
        )
        yield con


def rows(shift=0):
    random.seed(5)
    names = [random.choice(["Ann", "Bob", "Cy"]) for _ in range(COUNT)]
    return pa.table({"id": range(shift, COUNT + shift), "name": names, "x": [random.random() for _ in range(COUNT)]})


def files(folder, shift=0):
    """The rows in each format."""
    whole = rows(shift)
    pq.write_table(whole, folder / "a.parquet", row_group_size=4_000)
    with plinth.connect(threads=2) as con:
        con.execute(f"COPY (SELECT * FROM whole) TO '{folder}/a.plinth'")
        con.execute(f"COPY (SELECT * FROM '{folder}/a.plinth') TO '{folder}/a.csv'")
        con.execute(f"COPY (SELECT * FROM '{folder}/a.plinth') TO '{folder}/a.ndjson' STORED AS JSON")
    return {extension: (folder / f"a.{extension}").read_bytes() for extension in FORMATS}


@pytest.fixture(scope="module")
def objects(bucket, tmp_path_factory):
    made = files(tmp_path_factory.mktemp("objects"))
    for extension, data in made.items():
        bucket.put_object(Bucket="faults", Key=f"a.{extension}", Body=data)
    return made


def ask(con, extension, key="a"):
    question = f"SELECT count(*), sum(id), count(DISTINCT name), max(x) < 1 FROM 's3://faults/{key}.{extension}'"
    return con.sql(question).fetchall()


def answer(shift=0):
    return [(COUNT, COUNT * (COUNT - 1) // 2 + COUNT * shift, 3, True)]


@pytest.mark.parametrize("extension", FORMATS)
@pytest.mark.parametrize("name", PASSING)
def test_faults_that_pass_do_not_change_answers(far, proxy, objects, extension, name):
    seen = {}

    def decide(method, path):
        # The first two requests of each kind.
        seen[method] = seen.get(method, 0) + 1
        return PASSING[name] if seen[method] <= 2 else None

    proxy.decide = decide
    assert ask(far, extension) == answer()
    assert sum(seen.values()) >= 1


@pytest.mark.parametrize("extension", FORMATS)
def test_any_faults_at_once(far, proxy, objects, extension):
    chance = random.Random(extension)

    def decide(method, path):
        return chance.choice(list(PASSING.values())) if chance.random() < 0.3 else None

    proxy.decide = decide
    for _ in range(3):
        assert ask(far, extension) == answer()


@pytest.mark.parametrize("fault", [("busy",), ("reset",), ("cut", 0)], ids=lambda fault: fault[0])
def test_faults_that_last_are_errors_that_name_the_object(far, proxy, objects, fault):
    proxy.decide = lambda method, path: fault
    for extension in ["plinth", "csv"]:
        began = time.monotonic()
        with pytest.raises(plinth.Error, match=f"s3://faults/a.{extension}") as error:
            ask(far, extension)
        assert "hush" not in str(error.value)
        assert time.monotonic() - began < 100
    proxy.decide = lambda method, path: None
    assert ask(far, "plinth") == answer()


@pytest.mark.parametrize("extension", FORMATS)
def test_an_object_that_changes_while_it_is_read(far, proxy, bucket, objects, tmp_path, extension):
    """The answer is that of one of both, whole, or an error says that the object was replaced."""
    other = files(tmp_path, shift=7)[extension]
    key = f"changes.{extension}"
    outcomes = []
    for change_at in range(1, 6):
        bucket.put_object(Bucket="faults", Key=key, Body=objects[extension])
        count = 0

        def decide(method, path):
            nonlocal count
            count += 1
            if count == change_at:
                return ("first", lambda: bucket.put_object(Bucket="faults", Key=key, Body=other))
            # A body that breaks off is asked for again, of the object that it was.
            return ("cut", 50_000) if count == change_at - 1 and method == "GET" else None

        proxy.decide = decide
        try:
            found = ask(far, extension, "changes")
            assert found in (answer(), answer(7))
            outcomes.append("answer")
        except plinth.Error as error:
            assert "replaced" in str(error) and key in str(error), error
            outcomes.append("replaced")
    assert outcomes.count("answer") + outcomes.count("replaced") == 5


def test_objects_are_made_once_whatever_happens(far, proxy, bucket, objects):
    chance = random.Random(11)
    kept = 0
    for number in range(20):
        proxy.decide = lambda method, path: (
            chance.choice([("busy",), ("reset",), ("late", 0.05), ("lost",)]) if chance.random() < 0.25 else None
        )
        name = f"made/{number}.plinth"
        try:
            far.execute(f"COPY (SELECT * FROM range({number + 1})) TO 's3://faults/{name}'")
            made = True
        except plinth.Error as error:
            assert name in str(error), error
            made = False
        proxy.decide = lambda method, path: None
        found = bucket.list_objects_v2(Bucket="faults", Prefix=name).get("KeyCount")
        if made:
            assert found == 1
        if found:
            assert far.sql(f"SELECT count(*) FROM 's3://faults/{name}'").fetchall() == [(number + 1,)]
            kept += 1
    assert kept >= 10


def test_appends_lose_and_double_nothing(far, proxy, bucket, objects):
    chance = random.Random(13)
    told = []
    for number in range(20):
        proxy.decide = lambda method, path: (
            chance.choice([("busy",), ("reset",), ("late", 0.05), ("lost",)]) if chance.random() < 0.2 else None
        )
        try:
            far.execute(f"COPY (SELECT {number} AS n) TO 's3://faults/table/' STORED AS PLINTH")
            told.append(number)
        except plinth.Error as error:
            assert "s3://faults/table/" in str(error), error
    proxy.decide = lambda method, path: None
    found = [n for (n,) in far.sql("SELECT n FROM 's3://faults/table/' ORDER BY n").fetchall()]
    assert len(found) == len(set(found)) and set(told) <= set(found)
    assert len(told) >= 10
