//! Who may do what: one cell of the table each, for a stranger, a user who reads and one who writes.

use std::fmt::Debug;

use tonic::{Code, Status};

use crate::harness::{
    Client, ENDLESS, OTHER, Place, READER, TOKENS, WRITER, ask, basic, change, fetch, page, run, status, until,
};

/// What is expected of the stranger, the user who reads and the one who writes.
const NO: Code = Code::PermissionDenied;
const OUT: Code = Code::Unauthenticated;
const YES: Code = Code::Ok;

fn is<T: Debug>(result: &Result<T, Status>, expected: Code, what: &str) {
    let code = result.as_ref().map_or_else(Status::code, |_| Code::Ok);
    assert_eq!(code, expected, "{what}: {result:?}");
}

/// The three of them.
async fn callers(place: &Place) -> [(&'static str, Client); 3] {
    [
        ("a stranger", place.stranger().await),
        ("who reads", place.client(READER).await),
        ("who writes", place.client(WRITER).await),
    ]
}

/// One row of the table: a statement, and what becomes of it.
async fn row(place: &Place, sql: &str, expected: [Code; 3]) {
    for ((who, mut client), expected) in callers(place).await.into_iter().zip(expected) {
        is(&ask(&mut client, sql).await, expected, &format!("{who}: {sql}"));
    }
}

#[test]
fn the_table_of_statements() {
    run(async {
        let place = Place::new().await;
        place.fill(3).await;
        let file = |below: &str| place.path(below).display().to_string();
        let (read, new) = (file("out/a.csv"), file("out/new"));
        row(&place, "SELECT * FROM t", [OUT, YES, YES]).await;
        row(&place, "SHOW TABLES", [OUT, YES, YES]).await;
        row(&place, "EXPLAIN SELECT * FROM t", [OUT, YES, YES]).await;
        row(&place, "SET plinth.profile = true", [OUT, YES, YES]).await;
        row(&place, "INSERT INTO t VALUES (100, 'x')", [OUT, NO, YES]).await;
        row(&place, "UPDATE t SET name = 'y' WHERE id = 100", [OUT, NO, YES]).await;
        row(&place, "DELETE FROM t WHERE id = 100", [OUT, NO, YES]).await;
        row(&place, "CREATE TABLE u (a BIGINT)", [OUT, NO, YES]).await;
        row(&place, "CREATE INDEX i ON t (name)", [OUT, NO, YES]).await;
        row(&place, "CREATE VIEW v AS SELECT * FROM t", [OUT, NO, YES]).await;
        row(&place, "CREATE SEQUENCE s", [OUT, NO, YES]).await;
        row(&place, "SELECT nextval('s')", [OUT, NO, YES]).await;
        row(&place, "DROP TABLE u", [OUT, NO, YES]).await;
        row(&place, "TRUNCATE t", [OUT, NO, YES]).await;
        // No one reaches files or stores.
        row(&place, &format!("SELECT * FROM '{read}'"), [OUT, NO, NO]).await;
        row(&place, &format!("SELECT * FROM read_csv('{read}')"), [OUT, NO, NO]).await;
        row(&place, &format!("SELECT * FROM glob('{}/*')", file("out")), [OUT, NO, NO]).await;
        row(&place, &format!("COPY t TO '{new}.csv'"), [OUT, NO, NO]).await;
        row(&place, &format!("EXPLAIN ANALYZE COPY t TO '{new}.csv'"), [OUT, NO, NO]).await;
        row(&place, &format!("COPY t FROM '{read}'"), [OUT, NO, NO]).await;
        row(&place, &format!("ATTACH '{}' AS o", file("out")), [OUT, NO, NO]).await;
        row(&place, &format!("CREATE EXTERNAL TABLE e STORED AS CSV LOCATION '{read}'"), [OUT, NO, NO]).await;
        row(&place, "SELECT * FROM 's3://bucket/x.parquet'", [OUT, NO, NO]).await;
        row(&place, "CREATE SECRET (TYPE s3, KEY_ID 'a', SECRET 'b')", [OUT, NO, NO]).await;
        row(&place, "SET datafusion.runtime.temp_directory = '/tmp'", [OUT, NO, NO]).await;
        row(&place, "SET datafusion.runtime.memory_limit = '1T'", [OUT, NO, NO]).await;
        assert_eq!(std::fs::read_dir(place.path("out")).unwrap().count(), 1);
    });
}

#[test]
fn the_table_of_files_with_a_root() {
    run(async {
        let place = Place::with(|mut options, dir| {
            options.root = Some(dir.join("root"));
            options
        })
        .await;
        place.fill(3).await;
        let file = |below: &str| place.path(below).display().to_string();
        row(&place, &format!("SELECT * FROM '{}'", file("root/a.csv")), [OUT, YES, YES]).await;
        row(&place, &format!("COPY t TO '{}'", file("root/new.csv")), [OUT, NO, YES]).await;
        row(&place, &format!("SELECT * FROM '{}'", file("out/a.csv")), [OUT, NO, NO]).await;
        row(&place, &format!("SELECT * FROM '{}'", file("root/../out/a.csv")), [OUT, NO, NO]).await;
        row(&place, &format!("COPY t TO '{}'", file("root/../out/new.csv")), [OUT, NO, NO]).await;
        row(&place, &format!("SELECT * FROM 'file://{}'", file("root/a.csv")), [OUT, NO, NO]).await;
        row(&place, &format!("SELECT * FROM '{}'", file("db/t")), [OUT, NO, NO]).await;
        row(&place, "SELECT * FROM '/etc/passwd'", [OUT, NO, NO]).await;
        assert_eq!(std::fs::read_dir(place.path("out")).unwrap().count(), 1);
    });
}

#[test]
fn a_root_and_the_tables_lie_apart() {
    run(async {
        let place = Place::new().await;
        for root in ["db", "", "db/t"] {
            std::fs::create_dir_all(place.path("db/t")).unwrap();
            let mut options =
                plinth_server::ServerOptions::new(place.path("db"), plinth_server::Users::owner(WRITER).unwrap());
            options.root = Some(place.path(root));
            let refused = plinth_server::Server::bind(options, "127.0.0.1:0").await.unwrap_err().to_string();
            assert!(refused.contains("must lie apart"), "{refused}");
        }
    });
}

#[test]
fn the_table_of_calls() {
    run(async {
        let place = Place::new().await;
        place.fill(3).await;
        for ((who, mut client), expected) in callers(&place).await.into_iter().zip([OUT, YES, YES]) {
            is(&client.get_catalogs().await.map(drop).map_err(status), expected, who);
            is(&client.get_table_types().await.map(drop).map_err(status), expected, who);
            is(&client.get_sql_info(Vec::new()).await.map(drop).map_err(status), expected, who);
            is(&client.prepare("SELECT 1".to_owned(), None).await.map(drop).map_err(status), expected, who);
            is(&client.begin_transaction().await.map(drop).map_err(status), expected, who);
            let ticket = arrow_flight::Ticket { ticket: vec![1, 2, 3].into() };
            let told = client.do_get(ticket).await.map(drop).map_err(status).unwrap_err().code();
            assert_eq!(told == Code::Unauthenticated, expected == OUT, "{who}: {told}");
            let action = arrow_flight::Action { r#type: "CloseSession".to_owned(), body: Vec::new().into() };
            is(&client.do_action(tonic::Request::new(action)).await.map(drop).map_err(status), expected, who);
        }
        let mut stranger = place.stranger().await;
        for (name, token, may) in [
            ("writer", WRITER, true),
            ("reader", READER, true),
            ("writer", READER, false),
            ("stranger", WRITER, false),
            ("writer", "", false),
            ("", WRITER, false),
        ] {
            assert_eq!(stranger.handshake(name, token).await.is_ok(), may, "{name}");
            stranger.clear_token();
        }
    });
}

#[test]
fn the_table_of_pages() {
    run(async {
        let place = Place::new().await;
        place.fill(3).await;
        let who = [String::new(), basic("reader", READER), basic("writer", WRITER)];
        for (path, expected) in [("/", [401, 200, 200]), ("/profile/1", [401, 404, 404]), ("/other", [401, 404, 404])] {
            for (headers, expected) in who.iter().zip(expected) {
                assert_eq!(page(place.address, "GET", path, headers, "").await.status, expected, "{path}: {headers}");
            }
        }
        // A form without the key does nothing.
        for (headers, expected) in who.iter().zip([401, 403, 403]) {
            for form in ["", "statement=1", "statement=1&key=", "statement=1&key=00", "key=%00&statement=-1"] {
                assert_eq!(page(place.address, "POST", "/cancel", headers, form).await.status, expected, "{form}");
            }
            let key = key_of(&page(place.address, "GET", "/", &who[2], "").await.body);
            let across = format!("{headers}Sec-Fetch-Site: cross-site\r\n");
            let form = format!("statement=1&key={key}");
            assert_eq!(page(place.address, "POST", "/cancel", &across, &form).await.status, expected);
        }
        for wrong in
            [basic("writer", READER), basic("writer", ""), basic("", ""), "Authorization: Bearer x\r\n".to_owned()]
        {
            assert_eq!(page(place.address, "GET", "/", &wrong, "").await.status, 401, "{wrong}");
        }
        // Some clients leave the padding out.
        let bare = basic("reader", READER).replace('=', "");
        assert!(bare != basic("reader", READER));
        assert_eq!(page(place.address, "GET", "/", &bare, "").await.status, 200);
        let bearer = format!("Authorization: Bearer {READER}\r\n");
        assert_eq!(page(place.address, "GET", "/", &bearer, "").await.status, 200);
    });
}

/// The key of a page's forms; an empty one has none.
pub(crate) fn key_of(body: &str) -> String {
    body.split("name=\"key\" value=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or_default().to_owned()
}

/// Runs a statement that does not end by itself: its number.
async fn endless(place: &Place, token: &str, name: &str) -> (u64, tokio::task::JoinHandle<Result<usize, Status>>) {
    let mut client = place.client(token).await;
    let info = client.execute(ENDLESS.to_owned(), None).await.unwrap();
    let running = tokio::spawn(async move { fetch(&mut client, info).await.map(|batches| batches.len()) });
    let number = |body: &str| {
        let row = body.lines().find(|line| line.contains("<form") && line.contains("generate_series"))?.to_owned();
        row.split("name=\"statement\" value=\"").nth(1)?.split('"').next()?.parse().ok()
    };
    loop {
        if let Some(number) = number(&page(place.address, "GET", "/", &basic(name, token), "").await.body) {
            return (number, running);
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

#[test]
fn the_table_of_cancelling() {
    run(async {
        let place = Place::new().await;
        place.fill(3).await;
        let (mine, reader) = endless(&place, READER, "reader").await;
        let form = |number: u64, key: &str| format!("statement={number}&key={key}");
        let key = |body: String| key_of(&body);
        // Who reads does not see, and does not stop, what another does.
        let body = page(place.address, "GET", "/", &basic("other", OTHER), "").await.body;
        assert!(!body.contains("generate_series") && !body.contains("reader"), "{body}");
        let (others, other) = endless(&place, OTHER, "other").await;
        let others_key = key(page(place.address, "GET", "/", &basic("other", OTHER), "").await.body);
        let refused = page(place.address, "POST", "/cancel", &basic("other", OTHER), &form(mine, &others_key)).await;
        assert_eq!(refused.status, 404, "{}", refused.body);
        // Nor with a key that is another's.
        let refused = page(place.address, "POST", "/cancel", &basic("reader", READER), &form(mine, &others_key)).await;
        assert_eq!(refused.status, 403);
        assert!(!reader.is_finished());
        let readers_key = key(page(place.address, "GET", "/", &basic("reader", READER), "").await.body);
        let stopped = page(place.address, "POST", "/cancel", &basic("reader", READER), &form(mine, &readers_key)).await;
        assert_eq!(stopped.status, 303);
        assert_eq!(reader.await.unwrap().unwrap_err().code(), Code::Cancelled);
        // Who writes manages all.
        let writers_key = key(page(place.address, "GET", "/", &basic("writer", WRITER), "").await.body);
        let stopped =
            page(place.address, "POST", "/cancel", &basic("writer", WRITER), &form(others, &writers_key)).await;
        assert_eq!(stopped.status, 303);
        assert_eq!(other.await.unwrap().unwrap_err().code(), Code::Cancelled);
    });
}

#[test]
fn handles_are_their_users_alone() {
    run(async {
        let place = Place::new().await;
        let mut writer = place.fill(3).await;
        let info = writer.execute("SELECT * FROM t".to_owned(), None).await.unwrap();
        for token in [READER, OTHER] {
            let mut client = place.client(token).await;
            assert_eq!(fetch(&mut client, info.clone()).await.unwrap_err().code(), Code::NotFound);
        }
        let mut stranger = place.stranger().await;
        assert_eq!(fetch(&mut stranger, info.clone()).await.unwrap_err().code(), Code::Unauthenticated);
        // Another connection of the same user may fetch them, once.
        let mut again = place.writer().await;
        assert_eq!(crate::harness::rows(&fetch(&mut again, info.clone()).await.unwrap()), 3);
        assert_eq!(fetch(&mut writer, info).await.unwrap_err().code(), Code::NotFound);
    });
}

#[test]
fn no_token_is_shown_anywhere() {
    run(async {
        let place = Place::with(|mut options, _| {
            options.profile = true;
            options
        })
        .await;
        let mut writer = place.fill(3).await;
        let mut seen = String::new();
        let mut reader = place.stranger().await;
        reader.handshake("reader", READER).await.unwrap();
        let session = reader.token().unwrap().clone();
        ask(&mut reader, "SELECT * FROM t").await.unwrap();
        for mut client in [place.client("wrong-token-0123456789").await, place.stranger().await] {
            seen.push_str(&ask(&mut client, "SELECT 1").await.unwrap_err().to_string());
        }
        seen.push_str(&ask(&mut writer, "SELECT * FROM nothing").await.unwrap_err().to_string());
        change(&mut writer, "INSERT INTO t VALUES (77, 'a value of my own')").await.unwrap();
        ask(&mut writer, "SELECT 'another value of my own' FROM t").await.unwrap();
        until("the profile is kept", || place.log().matches("kind=SELECT state=done").count() >= 2).await;
        for (headers, path) in [
            (basic("writer", WRITER), "/"),
            (basic("reader", READER), "/"),
            (basic("writer", "wrong-token-0123456789"), "/"),
            (basic("writer", WRITER), "/nothing"),
        ] {
            let page = page(place.address, "GET", path, &headers, "").await;
            seen.push_str(&page.head);
            seen.push_str(&page.body);
            for link in page.body.split("href=\"").skip(1) {
                let link = link.split('"').next().unwrap();
                seen.push_str(&self::page(place.address, "GET", link, &headers, "").await.body);
            }
        }
        assert!(seen.contains("another value of my own") && seen.contains("Every stage"), "{seen}");
        let log = place.log();
        for secret in TOKENS.into_iter().chain([session.as_str(), "wrong-token-0123456789"]) {
            assert!(!seen.contains(secret), "{secret} is in {seen}");
            assert!(!log.contains(secret), "{secret} is in {log}");
        }
        // Nor values, nor the texts of statements, in the log.
        assert!(!log.contains("of my own") && !log.contains("FROM"), "{log}");
        assert!(log.contains("user=writer kind=INSERT state=done") && log.contains("why=token"), "{log}");
    });
}

#[test]
fn too_many_wrong_tokens_are_not_heard() {
    run(async {
        let place = Place::with(|mut options, _| {
            options.limits.refusals = 5;
            options
        })
        .await;
        let mut inside = place.fill(1).await;
        let mut wrong = place.client("wrong-token-0123456789").await;
        let mut codes = Vec::new();
        for _ in 0..7 {
            codes.push(ask(&mut wrong, "SELECT 1").await.unwrap_err().code());
        }
        assert_eq!(codes, [vec![OUT; 5], vec![Code::ResourceExhausted; 2]].concat());
        // New connections have to wait, those that came in before have not.
        let mut late = place.writer().await;
        assert_eq!(ask(&mut late, "SELECT 1").await.unwrap_err().code(), Code::ResourceExhausted);
        assert_eq!(page(place.address, "GET", "/", &basic("writer", WRITER), "").await.status, 429);
        assert_eq!(crate::harness::number(&mut inside, "SELECT 1").await, 1);
    });
}
