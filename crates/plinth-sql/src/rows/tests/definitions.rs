//! Random statements about schemas, views and tables against a naive catalog, over several sessions.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::Db;

type Name = (usize, usize);

const SCHEMAS: [&str; 3] = ["public", "s", "\"S t\""];
const NAMES: [&str; 4] = ["a", "b", "\"C\"", "\"d'\"\"\""];

#[derive(Clone, Debug)]
enum Op {
    Schema(usize),
    DropSchema { schema: usize, cascade: bool },
    Table(Name),
    DropTable { name: Name, if_exists: bool },
    View { name: Name, of: Name, replace: bool },
    DropView { name: Name, if_exists: bool },
    Insert(Name, i64),
    Reopen,
    Begin(bool),
}

#[derive(Clone, Debug)]
enum Object {
    Table(Vec<i64>),
    View(Name),
}

#[derive(Debug, Default)]
struct Model {
    schemas: BTreeSet<usize>,
    objects: BTreeMap<Name, Object>,
}

fn op() -> impl Strategy<Value = Op> {
    let name = || (0..SCHEMAS.len(), 0..NAMES.len());
    prop_oneof![
        2 => (1..SCHEMAS.len()).prop_map(Op::Schema),
        1 => (0..SCHEMAS.len(), any::<bool>()).prop_map(|(schema, cascade)| Op::DropSchema { schema, cascade }),
        4 => name().prop_map(Op::Table),
        2 => (name(), any::<bool>()).prop_map(|(name, if_exists)| Op::DropTable { name, if_exists }),
        6 => (name(), name(), any::<bool>()).prop_map(|(name, of, replace)| Op::View { name, of, replace }),
        2 => (name(), any::<bool>()).prop_map(|(name, if_exists)| Op::DropView { name, if_exists }),
        6 => (name(), 0_i64..9).prop_map(|(name, value)| Op::Insert(name, value)),
        2 => Just(Op::Reopen),
        1 => any::<bool>().prop_map(Op::Begin),
    ]
}

fn shown((schema, name): Name) -> String {
    format!("{}.{}", SCHEMAS[schema], NAMES[name])
}

impl Model {
    fn is_schema(&self, schema: usize) -> bool {
        schema == 0 || self.schemas.contains(&schema)
    }

    /// The rows of a name; none if it, or what it reads, is not there.
    fn rows(&self, name: Name, after: &mut Vec<Name>) -> Option<Vec<i64>> {
        match self.objects.get(&name)? {
            Object::Table(rows) => Some(rows.clone()),
            Object::View(_) if after.contains(&name) => None,
            Object::View(of) => {
                after.push(name);
                self.rows(*of, after).map(|rows| rows.into_iter().map(|x| x + 1).collect())
            }
        }
    }

    /// The statement, and whether it is carried out.
    fn take(&mut self, op: &Op) -> (String, bool) {
        match *op {
            Op::Schema(schema) => (format!("CREATE SCHEMA {}", SCHEMAS[schema]), self.schemas.insert(schema)),
            Op::DropSchema { schema, cascade } => {
                let empty = !self.objects.keys().any(|(of, _)| *of == schema);
                let done = schema != 0 && self.is_schema(schema) && (empty || cascade);
                if done {
                    self.schemas.remove(&schema);
                    self.objects.retain(|(of, _), _| *of != schema);
                }
                (format!("DROP SCHEMA {}{}", SCHEMAS[schema], if cascade { " CASCADE" } else { "" }), done)
            }
            Op::Table(name) => {
                let done = self.is_schema(name.0) && !self.objects.contains_key(&name);
                if done {
                    self.objects.insert(name, Object::Table(Vec::new()));
                }
                (format!("CREATE TABLE {} (x BIGINT)", shown(name)), done)
            }
            Op::DropTable { name, if_exists } => {
                let done = match self.objects.get(&name) {
                    Some(Object::Table(_)) => self.objects.remove(&name).is_some(),
                    Some(Object::View(_)) => false,
                    None => if_exists,
                };
                (format!("DROP TABLE {}{}", if if_exists { "IF EXISTS " } else { "" }, shown(name)), done)
            }
            Op::View { name, of, replace } => {
                let free = match self.objects.get(&name) {
                    Some(Object::Table(_)) => false,
                    Some(Object::View(_)) => replace,
                    None => true,
                };
                let before = self.objects.get(&name).cloned();
                self.objects.insert(name, if free { Object::View(of) } else { before.clone().unwrap() });
                let done = free && self.is_schema(name.0) && self.rows(name, &mut Vec::new()).is_some();
                if !done {
                    match before {
                        Some(before) => self.objects.insert(name, before),
                        None => self.objects.remove(&name),
                    };
                }
                let create = if replace { "CREATE OR REPLACE VIEW" } else { "CREATE VIEW" };
                (format!("{create} {} AS SELECT x + 1 AS x FROM {}", shown(name), shown(of)), done)
            }
            Op::DropView { name, if_exists } => {
                let done = match self.objects.get(&name) {
                    Some(Object::View(_)) => self.objects.remove(&name).is_some(),
                    Some(Object::Table(_)) => false,
                    None => if_exists,
                };
                (format!("DROP VIEW {}{}", if if_exists { "IF EXISTS " } else { "" }, shown(name)), done)
            }
            Op::Insert(name, value) => {
                let done = match self.objects.get_mut(&name) {
                    Some(Object::Table(rows)) => {
                        rows.push(value);
                        true
                    }
                    _ => false,
                };
                (format!("INSERT INTO {} VALUES ({value})", shown(name)), done)
            }
            Op::Reopen | Op::Begin(_) => (String::new(), true),
        }
    }
}

fn follow(ops: &[Op]) {
    let dir = tempfile::tempdir().unwrap();
    let mut db = Db::open(dir.path());
    let mut model = Model::default();
    for op in ops {
        match op {
            Op::Reopen => {
                drop(db);
                db = Db::open(dir.path());
            }
            // What can't be taken back is refused, and changes nothing.
            Op::Begin(view) => {
                db.rows("BEGIN");
                db.fails(if *view { "CREATE VIEW q AS SELECT 1 AS x" } else { "CREATE SCHEMA q" }, "COMMIT first");
                db.rows("ROLLBACK");
            }
            op => {
                let (sql, done) = model.take(op);
                let result = db.run(&sql);
                assert_eq!(result.is_ok(), done, "{sql}: {result:?}\n{model:?}");
            }
        }
        // A second session, which has seen nothing of it.
        let fresh = matches!(op, Op::Reopen).then(|| Db::open(dir.path()));
        for schema in 0..SCHEMAS.len() {
            for name in 0..NAMES.len() {
                let name = (schema, name);
                let expected = model.rows(name, &mut Vec::new()).map(|mut rows| {
                    rows.sort_unstable();
                    rows.iter().map(ToString::to_string).collect::<Vec<_>>()
                });
                let found = fresh.as_ref().unwrap_or(&db).run(&format!("SELECT x FROM {} ORDER BY x", shown(name)));
                assert_eq!(found.as_ref().ok(), expected.as_ref(), "{op:?}: {}: {found:?}", shown(name));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4, ..ProptestConfig::default() })]

    #[test]
    fn what_is_defined_is_what_a_naive_catalog_has(ops in prop::collection::vec(op(), 1..25)) {
        follow(&ops);
    }
}
