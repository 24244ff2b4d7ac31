//! Pages that need nothing else: no script, no font, no network.

/// The start of a page: its head and its heading, the title. `style` is CSS. The page ends with `</html>`.
pub fn page(title: &str, style: &str) -> String {
    let title = escape(title);
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n<style>{style}</style>\n<h1>{title}</h1>\n"
    )
}

/// Text as HTML shows it. Control characters, which HTML can't hold, are replaced.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() && !c.is_whitespace() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_text() {
        assert_eq!(escape("<a & \"b\">\n\u{1b}"), "&lt;a &amp; &quot;b&quot;&gt;\n\u{fffd}");
        assert!(page("<x>", "p { margin: 0 }").ends_with("<style>p { margin: 0 }</style>\n<h1>&lt;x&gt;</h1>\n"));
    }
}
