//! Tables: TPC-H's in small, and one of the shape of ClickBench's.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use datafusion::arrow::array::RecordBatch;
use datafusion::datasource::MemTable;
use plinth_sql::Connection;
use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator, PartSuppGenerator,
    RegionGenerator, SupplierGenerator,
};
use tpchgen_arrow::{
    CustomerArrow, LineItemArrow, NationArrow, OrderArrow, PartArrow, PartSuppArrow, RegionArrow, SupplierArrow,
};

use crate::harness::{alone, rows};

const SCALE: f64 = 0.01;

/// Rows of a row group: so few that small tables have some.
const ROW_GROUP: usize = 4096;

const TPCH: [&str; 8] = ["lineitem", "orders", "partsupp", "customer", "part", "supplier", "nation", "region"];

/// The folder of all tables, made once.
pub(crate) fn folder() -> &'static Path {
    static FOLDER: OnceLock<(tempfile::TempDir, PathBuf)> = OnceLock::new();
    let (_, path) = FOLDER.get_or_init(|| {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().canonicalize().unwrap();
        make(&path);
        (dir, path)
    });
    path
}

fn make(folder: &Path) {
    let mut connection = alone();
    macro_rules! tpch {
        ($name:literal, $arrow:ident, $generator:ident) => {
            let batches: Vec<RecordBatch> = $arrow::new($generator::new(SCALE, 1, 1)).map(Result::unwrap).collect();
            write(&mut connection, folder, $name, batches);
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
    let sql = format!(
        "COPY ({HITS}) TO '{}' STORED AS PLINTH OPTIONS (row_group_rows {ROW_GROUP})",
        folder.join("hits.plinth").display()
    );
    rows(&mut connection, &sql).unwrap();
}

fn write(connection: &mut Connection, folder: &Path, name: &str, batches: Vec<RecordBatch>) {
    let table = MemTable::try_new(batches.first().unwrap().schema(), vec![batches]).unwrap();
    let made = format!("made_{name}");
    connection.session().context().register_table(made.as_str(), Arc::new(table)).unwrap();
    let path = folder.join(format!("{name}.plinth"));
    let sql = format!(
        "COPY (SELECT * FROM {made}) TO '{}' STORED AS PLINTH OPTIONS (row_group_rows {ROW_GROUP})",
        path.display()
    );
    rows(connection, &sql).unwrap();
}

/// Names the tables in a session.
pub(crate) fn name_tables(connection: &Connection) {
    for name in TPCH.into_iter().chain(["hits"]) {
        connection.session().name_path(name, &folder().join(format!("{name}.plinth"))).unwrap();
    }
}

/// Rows with the columns that the queries of ClickBench ask for: few values of some, many of others, empty texts and skew.
const HITS: &str = "
SELECT
    value AS \"WatchID\",
    CASE WHEN value % 17 = 0 THEN value % 5 ELSE 0 END AS \"AdvEngineID\",
    (value * 7919) % 1009 AS \"ClientIP\",
    CASE WHEN value % 3 = 0 THEN 38 ELSE (value * 31) % 97 END AS \"CounterID\",
    CASE WHEN value % 11 = 0 THEN 1 ELSE 0 END AS \"DontCountHits\",
    15880 + (value * 13) % 40 AS \"EventDate\",
    1373900000 + (value * 37) % 86400 AS \"EventTime\",
    CASE WHEN value % 23 = 0 THEN 1 ELSE 0 END AS \"IsDownload\",
    CASE WHEN value % 7 = 0 THEN 1 ELSE 0 END AS \"IsLink\",
    CASE WHEN value % 5 = 0 THEN 1 ELSE 0 END AS \"IsRefresh\",
    value % 6 AS \"MobilePhone\",
    CASE WHEN value % 4 = 0 THEN 'model ' || (value % 40)::text ELSE '' END AS \"MobilePhoneModel\",
    CASE WHEN value % 9 = 0 THEN '' ELSE 'https://www.site' || ((value * 3) % 60)::text || '.example/page/' || (value % 300)::text END AS \"Referer\",
    2947180871991420512 + (value % 2) AS \"RefererHash\",
    (value * value) % 50 AS \"RegionID\",
    800 + (value * 41) % 1200 AS \"ResolutionWidth\",
    CASE WHEN value % 8 = 0 THEN value % 12 ELSE 0 END AS \"SearchEngineID\",
    CASE WHEN value % 6 = 0 THEN 'ведомосквы вместу ' || ((value * 11) % 211)::text ELSE '' END AS \"SearchPhrase\",
    CASE WHEN value % 10 = 0 THEN 'Google Омск ' || (value % 77)::text ELSE 'page ' || (value % 500)::text END AS \"Title\",
    (value % 9) - 1 AS \"TraficSourceID\",
    'https://shop' || ((value * value) % 131)::text || '.example/' || CASE WHEN value % 25 = 0 THEN 'pulover' ELSE 'item' END || '/' || (value % 1000)::text AS \"URL\",
    2649717405027890163 + (value % 3) AS \"URLHash\",
    CASE WHEN value % 100 = 0 THEN -7918574344944952583 ELSE (value * 104729) % 3001 END AS \"UserID\",
    300 + value % 700 AS \"WindowClientHeight\",
    400 + value % 900 AS \"WindowClientWidth\"
FROM generate_series(1, 40000) AS made(value)";
