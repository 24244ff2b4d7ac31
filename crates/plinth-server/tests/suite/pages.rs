//! The page: what it shows, and that names stay text.

use crate::harness::{Place, READER, WRITER, ask, basic, change, page, run, until};

#[test]
fn names_stay_text_wherever_they_are() {
    run(async {
        let place = Place::with(|mut options, _| {
            options.profile = true;
            options
        })
        .await;
        let mut client = place.writer().await;
        // A slash would make it a path, which is none of a client's.
        let evil = "<script>alert(1)<br>";
        for sql in [
            format!("CREATE TABLE \"{evil}\" (\"{evil}\" BIGINT, \"'><img src=x onerror=alert(1)>\" TEXT)"),
            format!("INSERT INTO \"{evil}\" VALUES (1, '{evil}')"),
            format!("CREATE VIEW \"v{evil}\" AS SELECT '{evil}' AS \"{evil}\" FROM \"{evil}\""),
        ] {
            change(&mut client, &sql).await.unwrap();
        }
        ask(&mut client, &format!("SELECT \"{evil}\" AS \"{evil}\", '{evil}' FROM \"{evil}\" -- {evil}"))
            .await
            .unwrap();
        until("the profile is kept", || place.log().contains("kind=SELECT state=done rows=1")).await;
        let endless = format!("SELECT '{evil}' AS \"{evil}\", value FROM generate_series(1, 1000000000000)");
        let info = client.execute(endless, None).await.unwrap();
        let running = client.do_get(info.endpoint[0].ticket.clone().unwrap()).await.unwrap();
        let headers = basic("writer", WRITER);
        let whole = page(place.address, "GET", "/", &headers, "").await;
        assert!(whole.body.matches("&lt;script&gt;").count() >= 3, "{}", whole.body);
        let mut pages = vec![whole.body.clone()];
        for link in whole.body.split("href=\"").skip(1) {
            pages.push(page(place.address, "GET", link.split('"').next().unwrap(), &headers, "").await.body);
        }
        pages.push(page(place.address, "GET", "/%3Cscript%3Ealert(1)%3C/script%3E", &headers, "").await.body);
        pages.push(page(place.address, "GET", "/profile/<script>", &headers, "").await.body);
        assert!(pages.len() > 3, "no profile is linked: {}", whole.body);
        for page in &pages {
            let lower = page.to_ascii_lowercase();
            assert!(!lower.contains("<script") && !lower.contains("<img"), "{page}");
            assert!(!lower.contains("http://") && !lower.contains("https://") && !lower.contains("@import"), "{page}");
        }
        drop(running);
    });
}

#[test]
fn the_page_shows_what_is_the_users_business() {
    run(async {
        let place = Place::new().await;
        let mut writer = place.fill(3).await;
        let mut reader = place.client(READER).await;
        let info = reader.execute("SELECT * FROM generate_series(1, 1000000000000)".to_owned(), None).await.unwrap();
        let running = reader.do_get(info.endpoint[0].ticket.clone().unwrap()).await.unwrap();
        ask(&mut writer, "SELECT 1").await.unwrap();
        let all = page(place.address, "GET", "/", &basic("writer", WRITER), "").await;
        assert!(all.body.contains("generate_series") && all.body.contains("<td>reader</td>"), "{}", all.body);
        assert!(all.body.contains("<h2>Memory</h2>"), "{}", all.body);
        while !page(place.address, "GET", "/", &basic("writer", WRITER), "").await.body.contains("waits for its reader")
        {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        let own = page(place.address, "GET", "/", &basic("reader", READER), "").await;
        assert!(own.body.contains("generate_series") && !own.body.contains("<td>writer</td>"), "{}", own.body);
        assert!(!own.body.contains("(writer)"), "{}", own.body);
        let head = all.head.to_ascii_lowercase();
        for header in ["default-src 'none'", "frame-ancestors 'none'", "no-store", "nosniff", "no-referrer"] {
            assert!(head.contains(header), "{head}");
        }
        drop(running);
        until("it is over", || place.log().contains("state=abandoned")).await;
        let none = page(place.address, "GET", "/", &basic("reader", READER), "").await.body;
        assert!(none.contains("Nothing runs."), "{none}");
    });
}

#[test]
fn a_form_that_is_too_long_is_not_read() {
    run(async {
        let place = Place::new().await;
        let form = "x".repeat(100_000);
        let refused = page(place.address, "POST", "/cancel", &basic("reader", READER), &form).await;
        assert_eq!(refused.status, 400);
        assert_eq!(page(place.address, "PUT", "/", &basic("reader", READER), "").await.status, 405);
    });
}
