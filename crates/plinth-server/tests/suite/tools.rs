//! What tools ask the catalog of PostgreSQL: psql's `\d`, SQLAlchemy, drivers of JDBC. Their statements are written here as they send them.

use crate::harness::{Place, READER, run};
use crate::postgres::{cells, connected, writer};

/// A place with tables, a view and a schema of their own.
async fn filled() -> (Place, tokio_postgres::Client) {
    let place = Place::with_postgres().await;
    let client = writer(&place).await;
    client
        .batch_execute(
            "CREATE TABLE items (id BIGINT PRIMARY KEY, name TEXT NOT NULL, price DECIMAL(8, 2), sold TIMESTAMP, tags TEXT[]);
             CREATE UNIQUE INDEX items_name ON items (name, sold);
             CREATE TABLE pairs (a INT, b INT, c DOUBLE, PRIMARY KEY (b, a));
             CREATE VIEW dear AS SELECT id, name FROM items WHERE price > 100;
             INSERT INTO items VALUES (1, 'lamp', 30, NULL, NULL), (2, 'desk', 120.5, NULL, ['a'])",
        )
        .await
        .unwrap();
    (place, client)
}

/// The statement of `\dt`, `\dv` and their kin.
fn listed(kinds: &str) -> String {
    format!(
        "SELECT n.nspname as \"Schema\", c.relname as \"Name\",
           CASE c.relkind WHEN 'r' THEN 'table' WHEN 'v' THEN 'view' WHEN 'i' THEN 'index' END as \"Type\",
           pg_catalog.pg_get_userbyid(c.relowner) as \"Owner\"
         FROM pg_catalog.pg_class c
              LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
              LEFT JOIN pg_catalog.pg_am am ON am.oid = c.relam
         WHERE c.relkind IN ({kinds})
               AND n.nspname <> 'pg_catalog'
               AND n.nspname !~ '^pg_toast'
               AND n.nspname <> 'information_schema'
           AND pg_catalog.pg_table_is_visible(c.oid)
         ORDER BY 1,2;"
    )
}

#[test]
fn psql_lists_what_there_is() {
    run(async {
        let (_place, client) = filled().await;
        let tables = ["public|items|table|writer", "public|pairs|table|writer"];
        assert_eq!(cells(&client, &listed("'r','p',''")).await, tables);
        assert_eq!(cells(&client, &listed("'v',''")).await, ["public|dear|view|writer"]);
        let indexes =
            ["public|items_name|index|writer", "public|items_pkey|index|writer", "public|pairs_pkey|index|writer"];
        assert_eq!(cells(&client, &listed("'i','I',''")).await, indexes);
        // It is in no list of the user's tables.
        assert_eq!(
            cells(&client, "SELECT count(*) FROM information_schema.tables WHERE table_schema = 'pg_catalog'").await,
            ["0"]
        );
    });
}

#[test]
fn psql_describes_a_table() {
    run(async {
        let (_place, client) = filled().await;
        let found = cells(
            &client,
            "SELECT c.oid, n.nspname, c.relname FROM pg_catalog.pg_class c
                 LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
             WHERE c.relname OPERATOR(pg_catalog.~) '^(items)$' COLLATE pg_catalog.default
               AND pg_catalog.pg_table_is_visible(c.oid) ORDER BY 2, 3;",
        )
        .await;
        let number = found[0].split('|').next().unwrap();
        assert_eq!(found, [format!("{number}|public|items")]);
        let columns = cells(
            &client,
            &format!(
                "SELECT a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod),
                   (SELECT pg_catalog.pg_get_expr(d.adbin, d.adrelid, true) FROM pg_catalog.pg_attrdef d
                    WHERE d.adrelid = a.attrelid AND d.adnum = a.attnum AND a.atthasdef),
                   a.attnotnull,
                   (SELECT c.collname FROM pg_catalog.pg_collation c, pg_catalog.pg_type t
                    WHERE c.oid = a.attcollation AND t.oid = a.atttypid AND a.attcollation <> t.typcollation) AS attcollation,
                   a.attidentity, a.attgenerated
                 FROM pg_catalog.pg_attribute a
                 WHERE a.attrelid = '{number}' AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum;"
            ),
        )
        .await;
        assert_eq!(
            columns,
            [
                "id|bigint|NULL|t|NULL||",
                "name|text|NULL|t|NULL||",
                "price|numeric(8,2)|NULL|f|NULL||",
                "sold|timestamp without time zone|NULL|f|NULL||",
                "tags|text[]|NULL|f|NULL||"
            ]
        );
        let indexes = cells(
            &client,
            &format!(
                "SELECT c2.relname, i.indisprimary, i.indisunique, i.indisclustered, i.indisvalid,
                   pg_catalog.pg_get_indexdef(i.indexrelid, 0, true),
                   pg_catalog.pg_get_constraintdef(con.oid, true), contype, condeferrable, condeferred, i.indisreplident, c2.reltablespace
                 FROM pg_catalog.pg_class c, pg_catalog.pg_class c2, pg_catalog.pg_index i
                   LEFT JOIN pg_catalog.pg_constraint con
                     ON (conrelid = i.indrelid AND conindid = i.indexrelid AND contype IN ('p','u','x'))
                 WHERE c.oid = '{number}' AND c.oid = i.indrelid AND i.indexrelid = c2.oid
                 ORDER BY i.indisprimary DESC, c2.relname;"
            ),
        )
        .await;
        assert_eq!(
            indexes,
            [
                "items_pkey|t|t|f|t|CREATE UNIQUE INDEX items_pkey ON public.items USING btree (id)|PRIMARY KEY (id)|p|f|f|f|0",
                "items_name|f|t|f|t|CREATE UNIQUE INDEX items_name ON public.items USING btree (name, sold)|NULL|NULL|NULL|NULL|f|0"
            ]
        );
        let policies = cells(
            &client,
            &format!(
                "SELECT pol.polname, pol.polpermissive,
                   CASE WHEN pol.polroles = '{{0}}' THEN NULL ELSE pg_catalog.array_to_string(array(
                     select rolname from pg_catalog.pg_roles where oid = any (pol.polroles) order by 1),',') END,
                   pg_catalog.pg_get_expr(pol.polqual, pol.polrelid),
                   pg_catalog.pg_get_expr(pol.polwithcheck, pol.polrelid),
                   CASE pol.polcmd WHEN 'r' THEN 'SELECT' WHEN 'a' THEN 'INSERT' END AS cmd
                 FROM pg_catalog.pg_policy pol WHERE pol.polrelid = '{number}' ORDER BY 1;"
            ),
        )
        .await;
        assert!(policies.is_empty(), "{policies:?}");
    });
}

#[test]
fn names_are_numbers_and_numbers_are_names() {
    run(async {
        let (_place, client) = filled().await;
        for (asked, answer) in [
            ("SELECT relname FROM pg_class WHERE oid = 'items'::regclass", "items"),
            ("SELECT relname FROM pg_class WHERE oid = 'public.pairs'::regclass", "pairs"),
            ("SELECT conrelid::regclass::text FROM pg_constraint WHERE conname = 'pairs_pkey'", "pairs"),
            ("SELECT indkey, indoption FROM pg_index WHERE indrelid = 'pairs'::regclass", "2 1|0 0"),
            (
                "SELECT json_build_object('a', oid = 11, 'b', nspname, 'c', NULL) FROM pg_namespace WHERE nspname = 'pg_catalog'",
                "{\"a\" : true, \"b\" : \"pg_catalog\", \"c\" : null}",
            ),
            ("SELECT conkey::text FROM pg_constraint WHERE conname = 'pairs_pkey'", "[2, 1]"),
            (
                "SELECT atttypid::regtype FROM pg_attribute WHERE attname = 'price' AND attrelid = 'items'::regclass",
                "numeric",
            ),
            ("SELECT nspname FROM pg_namespace WHERE oid = 'public'::regnamespace", "public"),
            ("SELECT typname FROM pg_type WHERE oid = 'bigint'::regtype", "int8"),
            ("SELECT pg_get_viewdef('dear'::regclass, true) LIKE '%price > 100%'", "t"),
            ("SELECT to_regclass('nothing') IS NULL", "t"),
            ("SELECT count(*) FROM pg_description WHERE classoid = 'pg_catalog.pg_class'::regclass", "0"),
            ("SELECT 'pg_class'::regclass = to_regclass('pg_catalog.pg_class')", "t"),
            (
                "SELECT current_schema(), current_database(), has_table_privilege('items', 'INSERT')",
                "public|datafusion|t",
            ),
            (
                "SELECT pg_size_pretty(10239), pg_size_pretty(10240), pg_size_pretty(1572864), pg_size_pretty(21474836480)",
                "10239 bytes|10 kB|1536 kB|20 GB",
            ),
            ("SELECT count(*) FROM pg_class WHERE array_to_string(relacl, ',') IS NOT NULL", "0"),
            ("SHOW transaction isolation level", "repeatable read"),
            ("show standard_conforming_strings", "on"),
            ("SELECT current_setting('search_path'), current_setting('nothing', true)", "public|NULL"),
            ("SELECT pg_catalog.version() LIKE 'PostgreSQL 16%'", "t"),
            ("SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1 LIMIT 1", "items"),
            ("SELECT count(*) > 100 FROM pg_catalog.pg_type t WHERE t.typelem = 0", "t"),
        ] {
            assert_eq!(cells(&client, asked).await, [answer], "{asked}");
        }
    });
}

#[test]
fn names_of_nothing_are_refused() {
    run(async {
        let (_place, client) = filled().await;
        for (asked, code) in [
            ("SELECT 'nothing'::regclass", "42P01"),
            ("SELECT relname FROM pg_class WHERE oid = 'nothing'::regclass", "42P01"),
            ("SELECT 'nothing'::regnamespace", "3F000"),
            ("SELECT 'nothing'::regtype", "42704"),
            // Texts have one order here.
            ("SELECT relname FROM pg_class ORDER BY relname COLLATE \"de_DE\"", "0A000"),
        ] {
            let failed = client.simple_query(asked).await.unwrap_err();
            assert_eq!(failed.code().map(|code| code.code()), Some(code), "{asked}: {failed}");
        }
        let asked = "SELECT relname FROM pg_class WHERE relname = 'items' COLLATE \"C\"";
        assert_eq!(cells(&client, asked).await, ["items"]);
    });
}

#[test]
fn readers_are_told_what_they_may_do() {
    run(async {
        let (place, writer) = filled().await;
        let reader = connected(&place, "reader", READER).await.unwrap();
        for (asked, answer) in [
            ("SELECT has_table_privilege('items', 'SELECT'), has_table_privilege('items', 'INSERT')", "t|f"),
            ("SELECT current_user, rolname FROM pg_roles", "reader|reader"),
        ] {
            assert_eq!(cells(&reader, asked).await, [answer], "{asked}");
        }
        // The catalog is read alone.
        for change in [
            "DELETE FROM pg_catalog.pg_class",
            "INSERT INTO pg_catalog.pg_am VALUES (1, 'a', 'b', 'c')",
            "DROP TABLE pg_catalog.pg_class",
        ] {
            assert!(writer.simple_query(change).await.is_err(), "{change}");
        }
    });
}

#[test]
fn keys_are_found_as_sqlalchemy_and_jdbc_ask_for_them() {
    run(async {
        let (_place, client) = filled().await;
        let key = "SELECT attr.conrelid::regclass::text, array_agg(CAST(attr.attname AS TEXT) ORDER BY attr.ord) AS cols, attr.conname
             FROM (SELECT con.conrelid AS conrelid, con.conname AS conname, con.ord AS ord, pg_catalog.pg_attribute.attname AS attname
                   FROM pg_catalog.pg_attribute JOIN (
                     SELECT pg_catalog.pg_constraint.conrelid AS conrelid, pg_catalog.pg_constraint.conname AS conname,
                            unnest(pg_catalog.pg_constraint.conkey) AS attnum,
                            generate_subscripts(pg_catalog.pg_constraint.conkey, 1) AS ord
                     FROM pg_catalog.pg_constraint WHERE pg_catalog.pg_constraint.contype = 'p') AS con
                   ON pg_catalog.pg_attribute.attnum = con.attnum AND pg_catalog.pg_attribute.attrelid = con.conrelid) AS attr
             GROUP BY attr.conrelid, attr.conname ORDER BY attr.conname";
        assert_eq!(cells(&client, key).await, ["items|{id}|items_pkey", "pairs|{b,a}|pairs_pkey"]);
        let jdbc = "SELECT result.TABLE_NAME, result.COLUMN_NAME, result.KEY_SEQ, result.PK_NAME
             FROM (SELECT n.nspname AS TABLE_SCHEM, ct.relname AS TABLE_NAME, a.attname AS COLUMN_NAME,
                     (information_schema._pg_expandarray(i.indkey)).n AS KEY_SEQ, ci.relname AS PK_NAME,
                     information_schema._pg_expandarray(i.indkey) AS KEYS, a.attnum AS A_ATTNUM
                   FROM pg_catalog.pg_class ct
                     JOIN pg_catalog.pg_attribute a ON (ct.oid = a.attrelid)
                     JOIN pg_catalog.pg_namespace n ON (ct.relnamespace = n.oid)
                     JOIN pg_catalog.pg_index i ON (a.attrelid = i.indrelid)
                     JOIN pg_catalog.pg_class ci ON (ci.oid = i.indexrelid)
                   WHERE true AND ct.relname = 'pairs' AND i.indisprimary) result
             where result.A_ATTNUM = (result.KEYS).x ORDER BY result.table_name, result.pk_name, result.key_seq";
        assert_eq!(cells(&client, jdbc).await, ["pairs|b|1|pairs_pkey", "pairs|a|2|pairs_pkey"]);
        // With values, as drivers of Python bind them.
        let rows = client
            .query(
                "SELECT pg_catalog.pg_class.relname FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace
                   ON pg_catalog.pg_namespace.oid = pg_catalog.pg_class.relnamespace
                 WHERE pg_catalog.pg_class.relname = $1 AND pg_catalog.pg_class.relkind = ANY (ARRAY['r', 'p', 'f', 'v', 'm'])
                   AND pg_catalog.pg_table_is_visible(pg_catalog.pg_class.oid) AND pg_catalog.pg_namespace.nspname != 'pg_catalog'",
                &[&"items"],
            )
            .await
            .unwrap();
        assert_eq!(rows.iter().map(|row| row.get::<_, &str>(0)).collect::<Vec<_>>(), ["items"]);
    });
}

#[test]
fn transactions_go_back_to_savepoints() {
    run(async {
        let (_place, client) = filled().await;
        client.batch_execute("BEGIN; INSERT INTO pairs VALUES (1, 1, 0); SAVEPOINT one").await.unwrap();
        assert!(client.batch_execute("INSERT INTO pairs VALUES (1, 1, 2)").await.is_err());
        let failed = client.query("SELECT count(*) FROM pairs", &[]).await.unwrap_err();
        assert_eq!(failed.code().unwrap().code(), "25P02");
        client.execute("ROLLBACK TO SAVEPOINT one", &[]).await.unwrap();
        client.execute("INSERT INTO pairs VALUES (2, 1, 2)", &[]).await.unwrap();
        client.batch_execute("RELEASE SAVEPOINT one; COMMIT").await.unwrap();
        assert_eq!(cells(&client, "SELECT a FROM pairs ORDER BY a").await, ["1", "2"]);
    });
}
