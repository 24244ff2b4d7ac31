"""pyarrow's own tests of datasets: what they open is written as a Plinth file and opened as one."""

import inspect
import itertools
import pickle

import pyarrow.dataset as ds
import pyarrow.tests.test_dataset as theirs
import pytest

import plinth

opens = ds.dataset


@pytest.fixture
def tempdir(tmp_path):
    return tmp_path


@pytest.fixture
def pickle_module():
    return pickle


@pytest.fixture
def as_plinth(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plinth")
    count = itertools.count()

    def through(dataset):
        path = folder / f"{next(count)}.plinth"
        plinth.write(path, dataset.to_table())
        return plinth.open(path)

    return through


@pytest.fixture(autouse=True)
def opened_as_plinth(monkeypatch, as_plinth):
    def opened(*args, **kwargs):
        dataset = opens(*args, **kwargs)
        # What is in memory is no file.
        return dataset if isinstance(dataset, ds.InMemoryDataset) else as_plinth(dataset)

    monkeypatch.setattr(ds, "dataset", opened)


@pytest.fixture
def dataset(mockfs, as_plinth):
    return as_plinth(theirs.dataset.__wrapped__(mockfs))


FRAGMENTS = "asks for fragments that are files, or row groups of Parquet"
UNION = "scans several datasets as one, which pyarrow does in C++"
DICTIONARY = "keeps dictionary types, which Plinth stores as their values"
UNLIKE = "asks for a file or an error of pyarrow's own"
FIXTURE = "needs a command line option of pyarrow's tests, or a server"

#: Tests that open a dataset and do not apply.
LEFT_OUT = {
    "test_dataset": FRAGMENTS,
    "test_head": FRAGMENTS,
    "test_take": FRAGMENTS,
    "test_count_rows": FRAGMENTS,
    "test_ipc_format": FRAGMENTS,
    "test_csv_format": FRAGMENTS,
    "test_json_format": FRAGMENTS,
    "test_feather_format": FRAGMENTS,
    "test_read_partition_keys_only": FRAGMENTS,
    "test_scanner": "asks for names of files as columns",
    "test_scanner_memory_pool": "counts what pyarrow allocates",
    "test_construct_from_mixed_child_datasets": UNION,
    "test_open_union_dataset": UNION,
    "test_union_dataset_filter": UNION,
    "test_construct_from_invalid_sources_raise": FIXTURE,
    "test_make_fragment": FIXTURE,
    "test_open_dataset_from_fileinfos": FIXTURE,
    "test_open_union_dataset_with_additional_kwargs": FIXTURE,
    "test_union_dataset_from_other_datasets": FIXTURE,
    "test_dataset_from_a_list_of_local_directories_raises": FIXTURE,
    "test_union_dataset_filesystem_datasets": FIXTURE,
    "test_scanner_from_substrait": "gives Substrait to a scan, of which pyarrow takes no batches",
    "test_construct_empty_dataset": "has no columns",
    "test_construct_dataset_with_invalid_schema": "has no columns",
    "test_construct_in_memory": "has no columns",
    "test_specified_schema": UNLIKE,
    "test_incompatible_schema_hang": UNLIKE,
    "test_column_names_encoding": UNLIKE,
    "test_write_dataset_write_page_index": UNLIKE,
    "test_write_dataset_min_rows_per_group": UNLIKE,
    "test_write_dataset_max_rows_per_group": UNLIKE,
    "test_write_dataset_with_field_names": UNLIKE,
    "test_write_dataset_with_field_names_hive": UNLIKE,
    "test_partition_discovery": DICTIONARY,
    "test_dataset_partitioned_dictionary_type_reconstruct": DICTIONARY,
    "test_write_table_partitioned_dict": DICTIONARY,
}

#: The same, by parts of their names.
LEFT_OUT_BY_PART = {
    "fragment": FRAGMENTS,
    "parquet_empty_row_group": FRAGMENTS,
    "partitioning": "asks for the partitioning of folders",
    "orc": UNLIKE,
    "s3": FIXTURE,
}

for name, value in vars(theirs).items():
    if name.startswith("test_") and name not in LEFT_OUT and not any(part in name for part in LEFT_OUT_BY_PART):
        opens_one = "ds.dataset(" in inspect.getsource(value) or "dataset" in inspect.signature(value).parameters
        globals().update({name: value} if opens_one else {})
for name in ("dataset_reader", "mockfs"):
    globals()[name] = vars(theirs)[name]
