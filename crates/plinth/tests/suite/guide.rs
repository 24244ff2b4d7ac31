//! The Rust of README.md and of the guide compiles: each block stands in one of the functions below, or in the documentation of
//! `plinth-sql`, which is compiled as well.
#![allow(dead_code, unused_imports, unused_variables, reason = "the functions are compiled, not called")]

use std::error::Error;
use std::path::Path;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

#[rustfmt::skip]
fn readme() -> Result<(), Box<dyn Error>> {
    use plinth::{File, expr::col};

    let file = File::open("hits.plinth")?;
    for batch in file.scan().select(["URL", "UserID"]).filter(col("CounterID").eq(62)).batches()? {
        println!("{} rows", batch?.num_rows());
    }
    Ok(())
}

#[rustfmt::skip]
fn reading() -> Result<(), Box<dyn Error>> {
    use plinth::expr::col;

    let file = plinth::File::open("hits.plinth")?;
    println!("{} rows in {} bytes", file.num_rows(), file.byte_len());

    let scan = file
        .scan()
        .select(["URL", "UserID"])
        .filter(col("CounterID").eq(62))
        .filter(col("URL").gt_eq("http://"))
        .limit(1_000)
        .build()?;
    for batch in scan {
        println!("{} rows", batch?.num_rows());
    }
    Ok(())
}

#[rustfmt::skip]
fn engine() -> Result<(), Box<dyn Error>> {
    use plinth::{Io, IoMode, IoOptions, MemoryBudget, OpenOptions};

    let budget = MemoryBudget::new(256 << 20);
    let io = Io::new(&budget, IoOptions { mode: IoMode::Uring, ..IoOptions::default() });
    let file = plinth::File::open_with("hits.plinth", &OpenOptions { io, ..OpenOptions::default() })?;
    Ok(())
}

#[rustfmt::skip]
fn writing(batch: RecordBatch) -> Result<(), Box<dyn Error>> {
    let mut writer = plinth::Writer::create("numbers.plinth", &batch.schema(), plinth::WriterOptions::default())?;
    writer.write(&batch)?;
    let summary = writer.finish()?;
    println!("{} rows, {} bytes", summary.rows, summary.file_bytes);
    Ok(())
}

#[rustfmt::skip]
fn rows(schema: SchemaRef, rows: RecordBatch) -> Result<(), Box<dyn Error>> {
    use plinth::rowstore::{Key, Table, TableOptions};

    let table = Table::create("people", &schema, &["id"], TableOptions::default())?;
    table.insert(&rows)?;                      // durable when it returns; a key that is there already is an error
    table.upsert(&rows)?;                      // the row of a key that is there is replaced
    table.delete(&[1_i64.into()])?;
    let one = table.get(2_i64)?;               // a batch of one row, or none
    let snapshot = table.snapshot();           // one version, which never changes
    for batch in snapshot.scan()? { /* ... */ }

    let mut change = table.begin();            // reads its own writes and one snapshot
    change.upsert(&rows)?;
    change.commit()?;                          // or an error that names the key that another commit wrote since
    table.close()?;
    Ok(())
}

#[rustfmt::skip]
fn index(table: &plinth::rowstore::Table) -> Result<(), Box<dyn Error>> {
    use plinth::rowstore::Key;
    table.create_index("by_city", &["city", "name"], false)?;          // kept as rows come and go
    let berlin = table.snapshot().find("by_city", "Berlin")?;          // the rows, in the order of the index
    let (a, c) = (Key::from(("Berlin", "A")), Key::from(("Berlin", "C")));
    let some = table.snapshot().find_range("by_city", &a..&c)?;
    Ok(())
}

/// The lines of a text without what leads them in: indentation, and the marks of documentation, whose hidden lines are left out.
fn plain(text: &str) -> String {
    let lines = text.lines().map(|line| line.trim_start_matches("//!").trim());
    lines.filter(|line| !line.starts_with("# ")).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_rust_of_the_guide_compiles() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap();
    let compiled = [plain(include_str!("guide.rs")), plain(&read("crates/plinth-sql/src/lib.rs"))];
    let mut checked = 0;
    for page in ["README.md", "docs/guide/library.md"] {
        let text = read(page);
        for block in text.split("```rust\n").skip(1).filter_map(|rest| rest.split("```").next()) {
            let block = plain(block.trim_end());
            assert!(compiled.iter().any(|source| source.contains(&block)), "{page}: not compiled anywhere:\n{block}");
            checked += 1;
        }
    }
    assert!(checked >= 7, "{checked} blocks");
}
