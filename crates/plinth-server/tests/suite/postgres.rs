//! The door of PostgreSQL's protocol: what clients of it can ask, and who comes in.

use std::process::Command;
use std::time::Duration;

use bytes::BytesMut;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};
use tokio_postgres::{Config, NoTls, SimpleQueryMessage};

use crate::harness::{ENDLESS, Place, READER, TOKENS, WRITER, run, until};

fn config(place: &Place, user: &str, token: &str) -> Config {
    let mut config = Config::new();
    config.host("127.0.0.1").port(place.postgres().port()).user(user).password(token).dbname("plinth");
    config
}

pub(crate) async fn connected(
    place: &Place,
    user: &str,
    token: &str,
) -> Result<tokio_postgres::Client, tokio_postgres::Error> {
    let (client, connection) = config(place, user, token).connect(NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

pub(crate) async fn writer(place: &Place) -> tokio_postgres::Client {
    connected(place, "writer", WRITER).await.unwrap()
}

/// The cells of a text's rows.
pub(crate) async fn cells(client: &tokio_postgres::Client, sql: &str) -> Vec<String> {
    let rows = client.simple_query(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    let rows = rows.iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => {
            let cells = (0..row.len()).map(|at| row.get(at).unwrap_or("NULL").to_owned());
            Some(cells.collect::<Vec<_>>().join("|"))
        }
        _ => None,
    });
    rows.collect()
}

fn state(error: &tokio_postgres::Error) -> SqlState {
    error.code().cloned().unwrap_or_else(|| panic!("{error:?}"))
}

#[test]
fn texts_are_answered_one_statement_after_the_other() {
    run(async {
        let place = Place::with_postgres().await;
        let client = writer(&place).await;
        client
            .batch_execute(
                "CREATE TABLE t (id BIGINT PRIMARY KEY, name TEXT, d DATE, at TIMESTAMP, x DECIMAL(9, 2), ok BOOLEAN, f DOUBLE);
                 INSERT INTO t VALUES (1, 'a', '2024-02-29', '2024-02-29 10:30:00', 1.5, true, 0.1), (2, NULL, NULL, NULL, NULL, NULL, NULL)",
            )
            .await
            .unwrap();
        assert_eq!(
            cells(&client, "SELECT * FROM t ORDER BY id").await,
            ["1|a|2024-02-29|2024-02-29 10:30:00.000000|1.50|t|0.1", "2|NULL|NULL|NULL|NULL|NULL|NULL"]
        );
        assert_eq!(
            cells(&client, "SELECT 1; UPDATE t SET name = 'b' WHERE id = 2; SELECT name FROM t WHERE id = 2").await,
            ["1", "b"]
        );
        assert!(cells(&client, ";;").await.is_empty());
        assert_eq!(cells(&client, "SELECT value FROM generate_series(1, 20000)").await.len(), 20_000);
        for (sql, count) in [("INSERT INTO t (id) VALUES (3), (4)", 2), ("DELETE FROM t WHERE id > 2", 2)] {
            assert_eq!(client.execute(sql, &[]).await.unwrap(), count, "{sql}");
        }
        let error = client.simple_query("SELECT nothing FROM t").await.unwrap_err();
        assert!(error.as_db_error().unwrap().message().contains("no column nothing"), "{error:?}");
        // What was before it is told, and the connection goes on.
        assert_eq!(cells(&client, "SELECT count(*) FROM t").await, ["2"]);
    });
}

#[test]
fn prepared_statements_take_values_of_all_types() {
    run(async {
        let place = Place::with_postgres().await;
        let client = writer(&place).await;
        client
            .batch_execute("CREATE TABLE t (id BIGINT PRIMARY KEY, name TEXT, n INT, x DOUBLE, ok BOOLEAN, b BLOB)")
            .await
            .unwrap();
        let insert = client.prepare("INSERT INTO t VALUES ($1, $2, $3, $4, $5, $6)").await.unwrap();
        assert_eq!(insert.params(), [Type::INT8, Type::TEXT, Type::INT4, Type::FLOAT8, Type::BOOL, Type::BYTEA]);
        for id in 0..5_i64 {
            let n = i32::try_from(id).unwrap() * 2;
            let bytes: &[u8] = &[0, 255, b'a'];
            let written = client.execute(&insert, &[&id, &format!("n{id}"), &n, &0.5, &(id % 2 == 0), &bytes]).await;
            assert_eq!(written.unwrap(), 1);
        }
        let none: Option<String> = None;
        client
            .execute(
                &insert,
                &[
                    &9_i64,
                    &none,
                    &Option::<i32>::None,
                    &Option::<f64>::None,
                    &Option::<bool>::None,
                    &Option::<&[u8]>::None,
                ],
            )
            .await
            .unwrap();
        let query =
            client.prepare("SELECT id, name, n, x, ok, b FROM t WHERE id >= $1 AND n < $2 ORDER BY id").await.unwrap();
        assert_eq!(query.params(), [Type::INT8, Type::INT4]);
        let rows = client.query(&query, &[&3_i64, &100_i32]).await.unwrap();
        let read: Vec<(i64, String, i32, f64, bool, Vec<u8>)> =
            rows.iter().map(|row| (row.get(0), row.get(1), row.get(2), row.get(3), row.get(4), row.get(5))).collect();
        let bytes = vec![0, 255, b'a'];
        assert_eq!(
            read,
            [(3, "n3".to_owned(), 6, 0.5, false, bytes.clone()), (4, "n4".to_owned(), 8, 0.5, true, bytes)]
        );
        let row = client.query_one("SELECT name, n FROM t WHERE id = $1", &[&9_i64]).await.unwrap();
        assert_eq!((row.get::<_, Option<String>>(0), row.get::<_, Option<i32>>(1)), (None, None));
        // A key that is there, in words and a code.
        let error =
            client.execute(&insert, &[&9_i64, &none, &1_i32, &0.5, &true, &[0_u8].as_slice()]).await.unwrap_err();
        assert_eq!(state(&error), SqlState::UNIQUE_VIOLATION);
    });
}

/// A NUMERIC as it is sent: how many groups of four digits, where the first stands, its sign, its places, the groups.
#[derive(Debug)]
struct Numeric(&'static [u16]);

impl ToSql for Numeric {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        self.0.iter().for_each(|word| out.extend_from_slice(&word.to_be_bytes()));
        Ok(IsNull::No)
    }

    fn accepts(of: &Type) -> bool {
        *of == Type::NUMERIC
    }

    to_sql_checked!();
}

/// What is compared with a column is not rounded to its places; what is stored in it is.
#[test]
fn numbers_that_are_bound_keep_their_digits() {
    run(async {
        let place = Place::with_postgres().await;
        let client = writer(&place).await;
        client.batch_execute("CREATE TABLE pr (id INT PRIMARY KEY, price DECIMAL(10, 2))").await.unwrap();
        client.batch_execute("INSERT INTO pr VALUES (1, 1.01), (2, 2.50), (3, 1.00)").await.unwrap();
        let (near, exact) = (Numeric(&[2, 0, 0, 3, 1, 50]), Numeric(&[2, 0, 0, 2, 1, 100]));
        let typed = |sql: &'static str| client.prepare_typed(sql, &[Type::NUMERIC]);
        let delete = typed("DELETE FROM pr WHERE price = $1").await.unwrap();
        assert_eq!(client.execute(&delete, &[&near]).await.unwrap(), 0);
        let above = typed("SELECT count(*) FROM pr WHERE price >= $1").await.unwrap();
        assert_eq!(client.query_one(&above, &[&near]).await.unwrap().get::<_, i64>(0), 2);
        let insert = typed("INSERT INTO pr VALUES (4, $1)").await.unwrap();
        assert_eq!(client.execute(&insert, &[&near]).await.unwrap(), 1);
        assert_eq!(cells(&client, "SELECT price FROM pr WHERE id = 4").await, ["1.01"]);
        assert_eq!(client.execute(&delete, &[&exact]).await.unwrap(), 2);
    });
}

/// Values go out in the bytes of the types as which they are told, and a transaction that fails in its first text is told to be open.
#[test]
fn values_have_the_bytes_of_the_types_that_are_told() {
    run(async {
        let place = Place::with_postgres().await;
        let client = writer(&place).await;
        let row = client.query_one("SELECT -5::TINYINT, 100::TINYINT, [1::TINYINT, -1::TINYINT]", &[]).await.unwrap();
        assert_eq!((row.get::<_, i16>(0), row.get::<_, i16>(1), row.get::<_, Vec<i16>>(2)), (-5, 100, vec![1, -1]));
        let intervals = "SELECT NULL::INTERVAL, x FROM (VALUES (INTERVAL '1 day'), (NULL)) AS t(x) ORDER BY x";
        assert_eq!(cells(&client, intervals).await, ["NULL|1 day", "NULL|NULL"]);
        // A column that is a parameter has the type of what is bound.
        let query = client.prepare_typed("SELECT $1, $2 AS x", &[Type::INT8, Type::BOOL]).await.unwrap();
        let row = client.query_one(&query, &[&7_i64, &true]).await.unwrap();
        assert_eq!((row.get::<_, i64>(0), row.get::<_, bool>(1)), (7, true));
        // So it has where nothing says which.
        let row = client.query_one("SELECT $1 AS a, NULL AS b", &[&"text"]).await.unwrap();
        assert_eq!((row.get::<_, &str>(0), row.get::<_, Option<&str>>(1)), ("text", None));
        // Drivers choose an exception by a code.
        client.batch_execute("CREATE TABLE codes (id BIGINT PRIMARY KEY, n INT NOT NULL CHECK (n > 0))").await.unwrap();
        for (sql, expected) in [
            ("SELECT * FROM nosuch", SqlState::UNDEFINED_TABLE),
            ("SELECT nosuch FROM codes", SqlState::UNDEFINED_COLUMN),
            ("SELECT nosuch(1)", SqlState::UNDEFINED_FUNCTION),
            ("selec 1", SqlState::SYNTAX_ERROR),
            ("SELECT 1 // 0", SqlState::DIVISION_BY_ZERO),
            ("CREATE TABLE codes (id BIGINT)", SqlState::DUPLICATE_TABLE),
            ("INSERT INTO codes VALUES (1, NULL)", SqlState::NOT_NULL_VIOLATION),
            ("INSERT INTO codes VALUES (1, -1)", SqlState::CHECK_VIOLATION),
            ("SELECT 'x'::INT", SqlState::INVALID_TEXT_REPRESENTATION),
        ] {
            assert_eq!(state(&client.simple_query(sql).await.unwrap_err()), expected, "{sql}");
        }
        // The encoder gives up at decimals of more than 96 bits.
        let long = "SELECT [CAST('12345678901234567890123456789012345678' AS DECIMAL(38, 0))]";
        assert!(client.simple_query(long).await.is_err());
        assert_eq!(cells(&client, "SELECT [1.5::DECIMAL(5, 2)]").await, ["{1.50}"]);
        // The end of no transaction, and of cursors that are not there.
        client.batch_execute("ROLLBACK; COMMIT; CLOSE ALL").await.unwrap();
        for more in ["ROLLBACK TO SAVEPOINT a", "COMMIT AND CHAIN"] {
            assert!(client.simple_query(more).await.is_err(), "{more}");
        }
        // A transaction that begins in a text which fails is over when it is told to be.
        assert!(client.batch_execute("BEGIN; SELECT nope").await.is_err());
        assert!(client.batch_execute("SELECT 1").await.is_err());
        client.batch_execute("ROLLBACK; SELECT 1").await.unwrap();
    });
}

#[test]
fn rows_of_other_columns_than_those_told_are_refused() {
    run(async {
        let place = Place::with_postgres().await;
        let client = writer(&place).await;
        client.batch_execute("CREATE TABLE t (id BIGINT PRIMARY KEY, n INT)").await.unwrap();
        client.batch_execute("INSERT INTO t VALUES (1, 2)").await.unwrap();
        let query = client.prepare("SELECT * FROM t WHERE n < $1").await.unwrap();
        assert_eq!(client.query(&query, &[&9_i32]).await.unwrap().len(), 1);
        client.batch_execute("ALTER TABLE t ADD COLUMN z DOUBLE").await.unwrap();
        let error = client.query(&query, &[&9_i32]).await.unwrap_err();
        assert_eq!(state(&error), SqlState::FEATURE_NOT_SUPPORTED, "{error:?}");
        let again = client.prepare("SELECT * FROM t WHERE n < $1").await.unwrap();
        assert_eq!(client.query(&again, &[&9_i32]).await.unwrap()[0].len(), 3);
    });
}

#[test]
fn what_can_t_be_told_is_refused_before_it_is_done() {
    run(async {
        let place = Place::with_postgres().await;
        let client = writer(&place).await;
        client.batch_execute("CREATE TABLE t (id BIGINT PRIMARY KEY)").await.unwrap();
        let refused = client.query("INSERT INTO t VALUES ($1) RETURNING id", &[&1_i64]).await.unwrap_err();
        assert_eq!(state(&refused), SqlState::FEATURE_NOT_SUPPORTED);
        assert_eq!(cells(&client, "SELECT count(*) FROM t").await, ["0"]);
        assert_eq!(cells(&client, "INSERT INTO t VALUES (2) RETURNING id").await, ["2"]);
        // Statements that tell of something are told of, too.
        assert_eq!(client.query("SHOW TABLES", &[]).await.unwrap().len(), 1);
        assert!(!client.query("EXPLAIN SELECT * FROM t", &[]).await.unwrap().is_empty());
        for (sql, within) in [
            ("DATE '9999-12-31'", true),
            ("DATE '0001-01-01'", true),
            ("arrow_cast(2147483647, 'Date32')", false),
            ("arrow_cast(-719163, 'Date32')", false),
            ("arrow_cast(9223372036854775807, 'Timestamp(Microsecond, None)')", false),
            ("[arrow_cast(2147483647, 'Date32')]", false),
        ] {
            let answer = client.simple_query(&format!("SELECT {sql}")).await;
            assert_eq!(answer.is_ok(), within, "{sql}: {answer:?}");
        }
    });
}

#[test]
fn rows_come_in_pieces_as_they_are_asked_for() {
    run(async {
        let place = Place::with_postgres().await;
        let mut client = writer(&place).await;
        let transaction = client.transaction().await.unwrap();
        let portal = transaction.bind("SELECT value FROM generate_series(1, 100000)", &[]).await.unwrap();
        let (mut seen, mut pieces) = (0_i64, 0);
        loop {
            let rows = transaction.query_portal(&portal, 30_000).await.unwrap();
            if rows.is_empty() {
                break;
            }
            pieces += 1;
            for row in rows {
                seen += 1;
                assert_eq!(row.get::<_, i64>(0), seen);
            }
        }
        assert_eq!((seen, pieces), (100_000, 4));
        transaction.commit().await.unwrap();
    });
}

#[test]
fn a_transaction_whose_statement_failed_is_not_committed() {
    run(async {
        let place = Place::with_postgres().await;
        let client = writer(&place).await;
        client.batch_execute("CREATE TABLE u (id BIGINT PRIMARY KEY)").await.unwrap();
        // Whatever fails: a text that is no statement, a value that does not fit, a statement that can't be prepared.
        for id in 0..3_i64 {
            client.batch_execute(&format!("BEGIN; INSERT INTO u VALUES ({id})")).await.unwrap();
            match id {
                0 => assert!(client.simple_query("selec 1").await.is_err()),
                1 => assert!(client.prepare("INSERT INTO u VALUES (7) RETURNING id").await.is_err()),
                _ => assert!(client.simple_query("SET datestyle = 'german'").await.is_err()),
            }
            assert!(client.simple_query("SELECT 1").await.is_err(), "{id}");
            client.batch_execute("COMMIT").await.unwrap();
            assert_eq!(cells(&client, "SELECT count(*) FROM u").await, ["0"], "{id}");
        }
        let place = Place::with_postgres().await;
        let client = writer(&place).await;
        client.batch_execute("CREATE TABLE t (id BIGINT PRIMARY KEY)").await.unwrap();
        client.batch_execute("BEGIN; INSERT INTO t VALUES (1); COMMIT").await.unwrap();
        client.batch_execute("BEGIN; INSERT INTO t VALUES (2)").await.unwrap();
        assert!(client.simple_query("SELECT nothing FROM t").await.is_err());
        let refused = client.simple_query("INSERT INTO t VALUES (3)").await.unwrap_err();
        assert_eq!(state(&refused), SqlState::IN_FAILED_SQL_TRANSACTION);
        client.batch_execute("COMMIT").await.unwrap();
        assert_eq!(cells(&client, "SELECT id FROM t").await, ["1"]);
        client.batch_execute("BEGIN; INSERT INTO t VALUES (4); ROLLBACK").await.unwrap();
        assert_eq!(cells(&client, "SELECT id FROM t").await, ["1"]);
    });
}

#[test]
fn a_connection_needs_a_name_and_its_token() {
    run(async {
        let place = Place::with_postgres().await;
        for (user, token) in
            [("writer", READER), ("stranger", WRITER), ("writer", "wrong"), ("", WRITER), ("writer", "")]
        {
            let refused = connected(&place, user, token).await;
            assert!(refused.is_err(), "{user}");
        }
        let reader = connected(&place, "reader", READER).await.unwrap();
        let refused = reader.simple_query("CREATE TABLE t (id BIGINT PRIMARY KEY)").await.unwrap_err();
        assert_eq!(state(&refused), SqlState::INSUFFICIENT_PRIVILEGE);
        let secret = place.path("out").join("a.csv");
        std::fs::write(&secret, "id\n1\n").unwrap();
        assert!(reader.simple_query(&format!("SELECT * FROM '{}'", secret.display())).await.is_err());
        let log = place.log();
        assert!(log.contains("why=token") && TOKENS.iter().all(|token| !log.contains(token)), "{log}");
    });
}

#[test]
fn statements_are_cancelled_from_another_connection_and_end_with_theirs() {
    run(async {
        let place = Place::with_postgres().await;
        let client = writer(&place).await;
        let cancel = client.cancel_token();
        let asked = tokio::spawn(async move {
            let error = client.simple_query(ENDLESS).await.unwrap_err();
            (client, state(&error))
        });
        until("it runs", || place.log().contains("state=open")).await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        cancel.cancel_query(NoTls).await.unwrap();
        let (client, state) = asked.await.unwrap();
        assert_eq!(state, SqlState::QUERY_CANCELED);
        assert_eq!(cells(&client, "SELECT 1").await, ["1"]);
        drop(client);
        until("its session is closed", || place.log().contains("state=closed")).await;
    });
}

#[test]
fn what_drivers_set_at_first_holds_or_is_refused() {
    run(async {
        let place = Place::with_postgres().await;
        let client = writer(&place).await;
        for set in [
            "SET client_encoding = 'UTF8'",
            "SET extra_float_digits = 3",
            "SET DateStyle = 'ISO'",
            "SET application_name = 'x'",
        ] {
            client.batch_execute(set).await.unwrap_or_else(|error| panic!("{set}: {error:?}"));
        }
        for set in ["SET client_encoding = 'LATIN1'", "SET extra_float_digits = 0"] {
            assert!(client.batch_execute(set).await.is_err(), "{set}");
        }
    });
}

#[test]
fn bytes_that_are_no_messages_do_no_harm() {
    use plinth_core::random::Random;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    run(async {
        let place = Place::with_postgres().await;
        let mut random = Random(3);
        // A start that is right, so that some get further.
        let start = b"\0\0\0\x16\0\x03\0\0user\0writer\0\0";
        for trial in 0..200_usize {
            let mut stream = tokio::net::TcpStream::connect(place.postgres()).await.unwrap();
            let mut bytes = vec![0; random.index(300)];
            random.fill(&mut bytes);
            let mut message = if trial % 2 == 0 { start.to_vec() } else { Vec::new() };
            message.extend(bytes);
            let _ = stream.write_all(&message).await;
            let _ = stream.shutdown().await;
            let _ = tokio::time::timeout(Duration::from_secs(5), stream.read_to_end(&mut Vec::new())).await;
        }
        let client = writer(&place).await;
        assert_eq!(cells(&client, "SELECT 1").await, ["1"]);
    });
}

#[test]
fn psql_is_answered() {
    if Command::new("psql").arg("--version").output().is_err() {
        eprintln!("skipped: there is no psql");
        return;
    }
    run(async {
        let place = Place::with_postgres().await;
        let port = place.postgres().port().to_string();
        let asked = tokio::task::spawn_blocking(move || {
            let script = "CREATE TABLE t (id BIGINT PRIMARY KEY, name TEXT);\n\
                          INSERT INTO t VALUES (1, 'x'), (2, NULL);\n\
                          SELECT * FROM t ORDER BY id;\n\
                          SELECT nothing FROM t;\n\
                          \\bind 2\nSELECT count(*) FROM t WHERE id = $1 \\g\n";
            let mut psql = Command::new("psql");
            psql.args(["-h", "127.0.0.1", "-p", &port, "-U", "writer", "-d", "plinth", "-X", "-A", "-t"]);
            psql.env("PGPASSWORD", WRITER).stdin(std::process::Stdio::piped());
            psql.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
            let mut child = psql.spawn().unwrap();
            std::io::Write::write_all(&mut child.stdin.take().unwrap(), script.as_bytes()).unwrap();
            child.wait_with_output().unwrap()
        });
        let output = asked.await.unwrap();
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(out.starts_with("CREATE TABLE\nINSERT 0 2\n1|x\n2|\n"), "{out}{err}");
        assert!(err.contains("no column nothing"), "{err}");
    });
}
