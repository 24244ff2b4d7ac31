"""The compliance tests of DB-API 2.0 (the package dbapi-compliance), on `plinth.dbapi` with transactions as PEP 249 has them."""

import shutil
import tempfile
import unittest

import dbapi20

from plinth import dbapi


class TestCompliance(dbapi20.DatabaseAPI20Test):
    driver = dbapi
    # A writable table, to which each statement that changes rows belongs.
    table_prefix = "dbapi20test_"
    ddl1 = f"create table {table_prefix}booze (name varchar(20))"
    ddl2 = f"create table {table_prefix}barflys (name varchar(20), drink varchar(30))"

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.connect_args = (self.folder,)
        self.connect_kw_args = {"autocommit": False, "threads": 2}

    def tearDown(self):
        shutil.rmtree(self.folder)

    def executeDDL2(self, cursor):
        # A transaction changes rows, and makes no tables.
        cursor.connection.commit()
        cursor.execute(self.ddl2)

    @unittest.skip("there are no stored procedures")
    def test_callproc(self):
        """Refused: `test_dbapi.py`."""

    @unittest.skip("a statement has one set of rows")
    def test_nextset(self):
        """None: `test_dbapi.py`."""

    @unittest.skip("sizes need not be known")
    def test_setoutputsize(self):
        """Nothing to see."""


del dbapi20.DatabaseAPI20Test
