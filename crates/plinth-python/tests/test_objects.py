"""Objects of a server that others wrote: moto's S3, which checks signatures and conditions as Amazon's does."""

import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import plinth

boto3 = pytest.importorskip("boto3")
moto = pytest.importorskip("moto.server")

KEYS = {"aws_access_key_id": "test", "aws_secret_access_key": "hush-hush", "region_name": "us-east-1"}


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
    client.create_bucket(Bucket="bucket")
    return client


@pytest.fixture
def far(server, bucket, monkeypatch):
    monkeypatch.setenv("PLINTH_OBJECT_CACHE", "off")
    with plinth.connect(threads=2) as con:
        con.execute(
            f"CREATE SECRET (TYPE s3, KEY_ID 'test', SECRET 'hush-hush', REGION 'us-east-1', ENDPOINT '{server}')"
        )
        yield con


@pytest.fixture(scope="module")
def rows():
    random.seed(3)
    count = 20_000
    return pa.table(
        {
            "id": range(count),
            "name": [random.choice(["Ann", "Bob", "Cy", None]) for _ in range(count)],
            "score": [random.random() for _ in range(count)],
        }
    )


def put(bucket, tmp_path, rows, key):
    """Writes rows in the format that a key ends in, and uploads them."""
    path = tmp_path / key.replace("/", "_")
    if key.endswith(".parquet"):
        pq.write_table(rows, path, row_group_size=5_000)
    else:
        with plinth.connect(threads=2) as con:
            path.unlink(missing_ok=True)
            stored = " STORED AS JSON" if key.endswith(".ndjson") else ""
            con.execute(f"COPY (SELECT * FROM rows) TO '{path}'{stored}")
    bucket.upload_file(str(path), "bucket", key)


@pytest.mark.parametrize("extension", ["plinth", "parquet", "csv", "ndjson"])
def test_each_format(far, bucket, tmp_path, rows, extension):
    put(bucket, tmp_path, rows, f"{extension}/a.{extension}")
    put(bucket, tmp_path, rows.slice(0, 5), f"{extension}/b c%20.{extension}")
    name = f"s3://bucket/{extension}/a.{extension}"
    found = far.sql(f"SELECT * FROM '{name}' WHERE id >= 19990 ORDER BY id").arrow()
    assert found.to_pydict() == rows.slice(19_990).to_pydict()
    assert far.sql(f"SELECT count(*), count(name) FROM '{name}'").fetchall() == [
        (20_000, 20_000 - rows["name"].null_count)
    ]
    assert far.sql(f"SELECT count(*) FROM 's3://bucket/{extension}/b c%20.{extension}'").fetchall() == [(5,)]
    for several in [f"s3://bucket/{extension}/", f"s3://bucket/{extension}/*.{extension}"]:
        assert far.sql(f"SELECT count(*) FROM '{several}'").fetchall() == [(20_005,)]


def test_an_object_that_is_replaced_is_read_anew(far, bucket, tmp_path, rows):
    put(bucket, tmp_path, rows, "twice.plinth")
    assert far.sql("SELECT count(*) FROM 's3://bucket/twice.plinth'").fetchall() == [(20_000,)]
    put(bucket, tmp_path, rows.slice(7), "twice.plinth")
    assert far.sql("SELECT count(*) FROM 's3://bucket/twice.plinth'").fetchall() == [(19_993,)]


def test_more_names_than_a_page(far, bucket, tmp_path, rows):
    put(bucket, tmp_path, rows.slice(0, 3), "first.plinth")
    for i in range(1_003):
        bucket.copy_object(Bucket="bucket", Key=f"many/{i}.plinth", CopySource="bucket/first.plinth")
    assert far.sql("SELECT count(*), sum(id) FROM 's3://bucket/many/*.plinth'").fetchall() == [(3_009, 3_009)]


def test_errors_name_the_object(far, server):
    with pytest.raises(plinth.Error, match="s3://bucket/none.plinth"):
        far.sql("FROM 's3://bucket/none.plinth'").fetchall()
    with pytest.raises(plinth.Error, match="s3://nosuchbucket/none.plinth"):
        far.sql("FROM 's3://nosuchbucket/none.plinth'").fetchall()
    with pytest.raises(plinth.Error) as error:
        far.execute(f"CREATE SECRET default_s3 (TYPE s3, KEY_ID 'x', SECRET 'hush-hush', ENDPOINT '{server}')")
    assert "exists already" in str(error.value) and "hush" not in str(error.value)
    assert "hush" not in str(far.sql("SHOW SECRETS").fetchall())


def test_files_as_datasets(far, bucket, tmp_path, rows, server, monkeypatch):
    put(bucket, tmp_path, rows, "dataset.plinth")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hush-hush")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL", server)
    found = plinth.open("s3://bucket/dataset.plinth").to_table(columns=["id"], filter=pa.compute.field("id") < 4)
    assert found["id"].to_pylist() == [0, 1, 2, 3]
