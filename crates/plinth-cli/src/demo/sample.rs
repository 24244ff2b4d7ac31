//! Sample data: TPC-H 0.1 and an event log as Parquet, and queries over them.

use std::fs::File;
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator, PartSuppGenerator,
    RegionGenerator, SupplierGenerator,
};
use tpchgen_arrow::{
    CustomerArrow, LineItemArrow, NationArrow, OrderArrow, PartArrow, PartSuppArrow, RegionArrow, SupplierArrow,
};

use super::{Query, events};
use crate::error::{Failure, Result};
use crate::interrupt;

/// TPC-H's scale factor: 1 is 6 million line items.
const SCALE: f64 = 0.1;

/// Level of zstd, the usual one.
const ZSTD: i32 = 3;

/// Writes the tables as Parquet. Returns their names and files.
pub(super) fn generate(folder: &Path) -> Result<Vec<(String, Vec<PathBuf>)>> {
    interrupt::writes_into(folder.to_path_buf());
    let mut tables = Vec::new();
    macro_rules! tpch {
        ($name:literal, $arrow:ident, $generator:ident) => {
            tables.push(write(folder, $name, $arrow::new($generator::new(SCALE, 1, 1)))?);
        };
    }
    tpch!("lineitem", LineItemArrow, LineItemGenerator);
    tpch!("orders", OrderArrow, OrderGenerator);
    tpch!("partsupp", PartSuppArrow, PartSuppGenerator);
    tpch!("customer", CustomerArrow, CustomerGenerator);
    tpch!("part", PartArrow, PartGenerator);
    tpch!("supplier", SupplierArrow, SupplierGenerator);
    tpch!("nation", NationArrow, NationGenerator);
    tpch!("region", RegionArrow, RegionGenerator);
    tables.push(write(folder, "events", events::batches())?);
    Ok(tables)
}

fn write(
    folder: &Path,
    name: &str,
    batches: impl Iterator<Item = Result<RecordBatch, ArrowError>>,
) -> Result<(String, Vec<PathBuf>)> {
    let path = folder.join(format!("{name}.parquet"));
    // The name the sweep of an interrupted command knows; a rename makes the file whole or absent.
    let temporary = folder.join(format!(".{name}.{}-0{}", std::process::id(), plinth_io::TEMPORARY_SUFFIX));
    let result = write_file(&temporary, batches).and_then(|()| Ok(std::fs::rename(&temporary, &path)?));
    if let Err(failure) = result {
        let _ = std::fs::remove_file(&temporary);
        return Err(match failure {
            Failure::Message(what) => Failure::Message(format!("{}: {what}", path.display())),
            other => other,
        });
    }
    Ok((name.to_owned(), vec![path]))
}

fn write_file(path: &Path, batches: impl Iterator<Item = Result<RecordBatch, ArrowError>>) -> Result {
    let level = ZstdLevel::try_new(ZSTD).map_err(Failure::new)?;
    let properties = WriterProperties::builder().set_compression(Compression::ZSTD(level)).build();
    let mut batches = batches.peekable();
    let Some(Ok(first)) = batches.peek() else { return Err(Failure::new("no rows were made")) };
    let schema = first.schema();
    let mut writer = ArrowWriter::try_new(File::create(path)?, schema, Some(properties)).map_err(Failure::new)?;
    for batch in batches {
        interrupt::check()?;
        writer.write(&batch?).map_err(Failure::new)?;
    }
    writer.close().map_err(Failure::new)?;
    Ok(())
}

/// The queries of the demo: some of TPC-H's, and what people ask of logs.
pub(super) fn queries() -> Vec<Query> {
    let query = |(title, sql): (&str, &str)| Query { title: title.to_owned(), sql: sql.to_owned() };
    [
        (
            "TPC-H 1: pricing summary",
            "SELECT l_returnflag, l_linestatus, sum(l_quantity), sum(l_extendedprice), \
             sum(l_extendedprice * (1 - l_discount)), sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)), \
             avg(l_quantity), avg(l_extendedprice), avg(l_discount), count(*) FROM lineitem \
             WHERE l_shipdate <= date '1998-09-02' GROUP BY l_returnflag, l_linestatus ORDER BY l_returnflag, l_linestatus",
        ),
        (
            "TPC-H 3: shipping priority",
            "SELECT l_orderkey, sum(l_extendedprice * (1 - l_discount)) AS revenue, o_orderdate, o_shippriority \
             FROM customer, orders, lineitem WHERE c_mktsegment = 'BUILDING' AND c_custkey = o_custkey \
             AND l_orderkey = o_orderkey AND o_orderdate < date '1995-03-15' AND l_shipdate > date '1995-03-15' \
             GROUP BY l_orderkey, o_orderdate, o_shippriority ORDER BY revenue DESC, o_orderdate, l_orderkey LIMIT 10",
        ),
        (
            "TPC-H 5: local suppliers",
            "SELECT n_name, sum(l_extendedprice * (1 - l_discount)) AS revenue \
             FROM customer, orders, lineitem, supplier, nation, region WHERE c_custkey = o_custkey \
             AND l_orderkey = o_orderkey AND l_suppkey = s_suppkey AND c_nationkey = s_nationkey \
             AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name = 'ASIA' \
             AND o_orderdate >= date '1994-01-01' AND o_orderdate < date '1995-01-01' \
             GROUP BY n_name ORDER BY revenue DESC",
        ),
        (
            "TPC-H 6: forecast revenue",
            "SELECT sum(l_extendedprice * l_discount) FROM lineitem WHERE l_shipdate >= date '1994-01-01' \
             AND l_shipdate < date '1995-01-01' AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24",
        ),
        (
            "TPC-H 14: promotion effect",
            "SELECT sum(CASE WHEN p_type LIKE 'PROMO%' THEN l_extendedprice * (1 - l_discount) ELSE 0 END), \
             sum(l_extendedprice * (1 - l_discount)) FROM lineitem, part WHERE l_partkey = p_partkey \
             AND l_shipdate >= date '1995-09-01' AND l_shipdate < date '1995-10-01'",
        ),
        ("events: rows and range", "SELECT count(*), min(ts), max(ts), max(latency_ms) FROM events"),
        (
            "events: by country and status",
            "SELECT country, status, count(*), avg(latency_ms) FROM events GROUP BY country, status \
             ORDER BY country, status",
        ),
        (
            "events: top 10 pages",
            "SELECT url, count(*) AS n, count(DISTINCT user_id) FROM events GROUP BY url ORDER BY n DESC, url LIMIT 10",
        ),
        (
            "events: pages with a prefix",
            "SELECT count(*), count(DISTINCT url) FROM events WHERE url LIKE 'https://example.com/checkout/1%' \
             AND status >= 400",
        ),
        (
            "events: one user",
            "SELECT ts, url, status FROM events WHERE user_id = 12345 ORDER BY ts, url LIMIT 20",
        ),
        (
            "events: tags (lists)",
            "SELECT tag, count(*) FROM (SELECT unnest(tags) AS tag FROM events WHERE country = 'KE') \
             GROUP BY tag ORDER BY tag",
        ),
        (
            "events: a field of a struct",
            "SELECT attrs['browser'] AS browser, count(*), max(latency_ms) FROM events WHERE attrs['screen'] = 390 \
             GROUP BY attrs['browser'] ORDER BY browser",
        ),
    ]
    .map(query)
    .into()
}
