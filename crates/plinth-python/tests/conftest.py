import pytest

import plinth


@pytest.fixture
def con():
    with plinth.connect(threads=2) as connection:
        yield connection


@pytest.fixture
def db(tmp_path):
    with plinth.connect(tmp_path, threads=2) as connection:
        yield connection
