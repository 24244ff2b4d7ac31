//! The page, as a browser shows it.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::sample::{ceilings, query};

/// Runs a headless Chromium without a network; `None` if there is none here.
fn chromium(arguments: &[&str], page: &Path) -> Option<String> {
    let home = tempfile::tempdir().unwrap();
    for program in ["chromium", "chromium-browser", "google-chrome", "chrome"] {
        let mut command = Command::new(program);
        command.args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--host-resolver-rules=MAP * ~NOTFOUND",
        ]);
        command.arg(format!("--user-data-dir={}", home.path().display())).args(arguments);
        command.arg(format!("file://{}", page.display()));
        let Ok(mut child) = command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null()).spawn()
        else {
            continue;
        };
        let mut out = child.stdout.take().unwrap();
        let reader = std::thread::spawn(move || {
            let mut text = String::new();
            std::io::Read::read_to_string(&mut out, &mut text).map(|_| text)
        });
        // A browser that hangs is none.
        for _ in 0..600 {
            if child.try_wait().unwrap().is_some() {
                return Some(reader.join().unwrap().unwrap());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        panic!("{program} did not end");
    }
    eprintln!("skipped: no Chromium here to open the page with");
    None
}

#[test]
fn the_page_opens_offline_and_shows_everything() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("profile.html");
    let mut profile = query("SELECT sum(x) FROM hits WHERE a < b");
    let verdict = profile.compare(&ceilings()).verdict.clone();
    let html = profile.to_html();
    for outside in ["http:", "https:", "src=", "@import", "url(", "<script"] {
        assert!(!html.contains(outside), "{outside}");
    }
    // A page that tells what was drawn: the sizes are the browser's.
    let measure = "<script>addEventListener('load', () => {
        const boxes = selector => [...document.querySelectorAll(selector)].map(e => { const r = e.getBoundingClientRect(); return [r.x, r.y, r.width, r.height].map(Math.round).join(' ') });
        const out = document.createElement('pre'); out.id = 'found';
        out.textContent = JSON.stringify({ title: document.title, flame: boxes('.flame rect'), labels: [...document.querySelectorAll('.flame text')].map(e => e.textContent),
            over: [...document.querySelectorAll('.flame g')].filter(g => g.querySelector('text') && g.querySelector('text').getBoundingClientRect().right > g.querySelector('rect').getBoundingClientRect().right + 1).length,
            query: boxes('.chart .query'), chart: boxes('svg.chart'), roofs: boxes('.chart .roof'), bars: boxes('.bars rect'), rows: document.querySelectorAll('table')[1].rows.length,
            wide: document.documentElement.scrollWidth > innerWidth, verdict: document.querySelector('.verdict').textContent, dark: getComputedStyle(document.body).backgroundColor });
        document.body.append(out) })</script>";
    std::fs::write(&page, html.replace("</html>", &format!("{measure}</html>"))).unwrap();
    let Some(dom) = chromium(&["--dump-dom", "--window-size=1280,1600"], &page) else { return };
    let found = dom.split("<pre id=\"found\">").nth(1).unwrap().split("</pre>").next().unwrap();
    let found = found.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    let found: serde_json::Value = serde_json::from_str(&found).unwrap();
    let boxes = |key: &str| -> Vec<Vec<f64>> {
        let boxes = found[key].as_array().unwrap().iter();
        boxes.map(|text| text.as_str().unwrap().split(' ').map(|number| number.parse().unwrap()).collect()).collect()
    };
    assert_eq!(found["title"], "SELECT sum(x) FROM hits WHERE a < b");
    assert_eq!(found["verdict"], verdict);
    // All rows, `other` and the bar above all; widths are times.
    let flame = boxes("flame");
    assert_eq!(flame.len(), profile.rows.len() + 2);
    let whole = profile.whole().as_secs_f64();
    for (found, row) in flame[1..].iter().zip(&profile.rows) {
        let wanted = flame[0][2] * row.total.as_secs_f64() / whole;
        assert!((found[2] - wanted).abs() <= 2.0 && found[0] >= flame[0][0] - 1.0, "{row:?}: {found:?}, not {wanted}");
        if let Some(parent) = row.parent {
            let parent = &flame[parent + 1];
            assert!(found[1] > parent[1] && found[0] >= parent[0] - 1.0, "{row:?} is not below its parent");
            assert!(found[0] + found[2] <= parent[0] + parent[2] + 1.0, "{row:?} is wider than its parent");
        }
    }
    let labels: Vec<_> = found["labels"].as_array().unwrap().iter().map(|label| label.as_str().unwrap()).collect();
    assert!(labels.contains(&"decode bit-packed") && labels.contains(&"DataSourceExec: <hits>"), "{labels:?}");
    assert_eq!(found["over"], 0, "labels leave their bars");
    // One query below three roofs, within the chart.
    let (query, chart) = (boxes("query"), boxes("chart"));
    assert_eq!((query.len(), boxes("roofs").len()), (1, 3));
    assert!(query[0][0] > chart[0][0] && query[0][0] < chart[0][0] + chart[0][2] && query[0][1] > chart[0][1]);
    // What it took, and a bar each for device, checksum, decode, memory, processor: none is longer than what is longest.
    let bars = boxes("bars");
    assert_eq!(bars.len(), 6);
    assert!(bars[1..].iter().all(|bar| bar[2] <= bars[0][2] && bar[2] >= 1.0), "{bars:?}");
    assert_eq!(found["rows"], profile.rows.len() + 3, "a head, all rows, other, idle");
    assert_eq!(found["wide"], false, "the page must not scroll sideways");
    assert_eq!(found["dark"], "rgb(255, 255, 255)");
    let dark =
        chromium(&["--dump-dom", "--blink-settings=preferredColorScheme=0", "--window-size=1280,1600"], &page).unwrap();
    assert!(dark.contains("\"dark\":\"rgb(20, 25, 31)\""), "dark where the system is");
}
