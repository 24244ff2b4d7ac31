use super::*;
use proptest::prelude::*;

fn view(sql: &str) -> View {
    View { search: "public".to_owned(), sql: sql.to_owned() }
}

fn name(schema: &str, name: &str) -> Name {
    (schema.to_owned(), name.to_owned())
}

#[test]
fn what_one_changes_another_reads() {
    let dir = tempfile::tempdir().unwrap();
    let (one, other) = (Catalog::of(dir.path().to_path_buf()), Catalog::of(dir.path().to_path_buf()));
    assert_eq!(*other.read().unwrap(), Contents::default());
    one.change(|contents| Ok(contents.schemas.insert("s".to_owned()))).unwrap();
    other.change(|contents| Ok(contents.views.insert(name("s", "v"), view("SELECT\t'a\\n'\n")))).unwrap();
    let contents = one.read().unwrap();
    assert!(contents.schemas.contains("s"));
    assert_eq!(contents.view("s", "V"), Some((&"v".to_owned(), &view("SELECT\t'a\\n'\n"))));
    let refused = one.change(|contents| {
        contents.schemas.clear();
        Err::<(), _>(SqlError::new("no"))
    });
    assert!(refused.is_err());
    assert_eq!(one.read().unwrap(), contents);
}

#[test]
fn changes_of_many_threads_are_all_there() {
    let dir = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let folder = dir.path().to_path_buf();
            scope.spawn(move || {
                let catalog = Catalog::of(folder);
                for i in 0..10 {
                    let sql = view(&format!("SELECT {i}"));
                    let add =
                        |contents: &mut Contents| Ok(contents.views.insert(name("s", &format!("{thread}-{i}")), sql));
                    catalog.change(add).unwrap();
                }
            });
        }
    });
    assert_eq!(Catalog::of(dir.path().to_path_buf()).read().unwrap().views.len(), 40);
}

#[test]
fn a_damaged_a_foreign_and_a_later_file_are_errors_that_name_it() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = Catalog::of(dir.path().to_path_buf());
    catalog.change(|contents| Ok(contents.views.insert(name("public", "v"), view("SELECT 1")))).unwrap();
    let path = dir.path().join(NAME);
    let good = std::fs::read(&path).unwrap();
    let fails = |bytes: &[u8], with: &str| {
        std::fs::write(&path, bytes).unwrap();
        let error = catalog.read().unwrap_err().to_string();
        assert!(error.contains(NAME) && error.contains(with), "{error}");
        assert!(catalog.change(|contents| Ok(contents.schemas.insert("s".to_owned()))).is_err());
        assert_eq!(std::fs::read(&path).unwrap(), bytes, "it is left as it is");
    };
    for at in 0..good.len() {
        let mut bytes = good.clone();
        bytes[at] ^= 1;
        fails(&bytes, "");
        fails(&good[..at], "");
    }
    fails(b"", "damaged");
    fails(b"hello\n", "is no catalog");
    fails(b"plinth-catalog\t3\nanything", "version 3");
    std::fs::write(&path, &good).unwrap();
    assert_eq!(catalog.read().unwrap().views.len(), 1);
}

proptest! {
    #[test]
    fn any_names_and_texts_come_back(
        schemas in prop::collection::btree_set(".*", 0..4),
        views in prop::collection::btree_map((".*", ".*"), (".*", ".*"), 0..4),
        sequences in prop::collection::btree_map(
            (".*", ".*"),
            (prop::option::of(-1000_i64..=1000), 1..9_i64, any::<bool>()),
            0..4,
        ),
    ) {
        let views = views.into_iter().map(|(name, (search, sql))| (name, View { search, sql })).collect();
        let sequences = sequences.into_iter().map(|(name, (next, step, cycles))| {
            let next = next.map_or(String::new(), |next: i64| next.to_string());
            let state = [next.as_str(), &step.to_string(), "-1000", "1000", if cycles { "cycle" } else { "once" }];
            (name, Sequence::parse(&state).unwrap())
        });
        let contents = Contents { schemas, views, sequences: sequences.collect() };
        prop_assert_eq!(text::parse(text::write(&contents).as_bytes()).unwrap(), contents);
    }
}
