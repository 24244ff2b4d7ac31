//! Rows as lines of text: CSV, TSV, Markdown.

use std::io::Write;

use arrow_array::{Array, RecordBatch};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::{ArrowError, Schema};

/// How a row is a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lines {
    /// Cells with this between them; quoted where they hold it, a quote or a line break, and where they are empty: NULL
    /// is what is empty without quotes.
    Separated(char),
    /// Cells between bars.
    Markdown,
}

impl Lines {
    /// The lines before the first row.
    ///
    /// # Errors
    /// If they can't be written.
    pub(crate) fn head(self, out: &mut impl Write, schema: &Schema) -> std::io::Result<()> {
        let mut text = String::new();
        for (at, field) in schema.fields().iter().enumerate() {
            self.cell(&mut text, at, Some(field.name()));
        }
        self.end(&mut text);
        if self == Self::Markdown {
            for field in schema.fields() {
                text.push_str(if field.data_type().is_numeric() { "| --: " } else { "| --- " });
            }
            text.push_str("|\n");
        }
        out.write_all(text.as_bytes())
    }

    /// A line a row.
    ///
    /// # Errors
    /// If a value has no text, or the text can't be written.
    pub(crate) fn rows(self, out: &mut impl Write, batch: &RecordBatch) -> Result<(), ArrowError> {
        use std::fmt::Write;
        let options = FormatOptions::new().with_null("null").with_display_error(false);
        let columns: Vec<_> = batch
            .columns()
            .iter()
            .map(|column| Ok((ArrayFormatter::try_new(column.as_ref(), &options)?, column.logical_nulls())))
            .collect::<Result<_, ArrowError>>()?;
        let (mut line, mut value) = (String::new(), String::new());
        for row in 0..batch.num_rows() {
            line.clear();
            for (at, (formatter, nulls)) in columns.iter().enumerate() {
                if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
                    self.cell(&mut line, at, None);
                    continue;
                }
                value.clear();
                if write!(value, "{}", formatter.value(row)).is_err() {
                    // Said again, with its reason.
                    value = formatter.value(row).try_to_string()?;
                }
                self.cell(&mut line, at, Some(&value));
            }
            self.end(&mut line);
            out.write_all(line.as_bytes())?;
        }
        Ok(())
    }

    fn cell(self, line: &mut String, at: usize, value: Option<&str>) {
        match self {
            Self::Separated(separator) => {
                if at > 0 {
                    line.push(separator);
                }
                let Some(value) = value else { return };
                if value.is_empty() || value.contains([separator, '"', '\n', '\r']) {
                    line.push('"');
                    line.push_str(&value.replace('"', "\"\""));
                    line.push('"');
                } else {
                    line.push_str(value);
                }
            }
            Self::Markdown => {
                line.push_str(if at > 0 { " | " } else { "| " });
                let value = value.unwrap_or("NULL");
                if value.contains(['|', '\\', '\n', '\r']) {
                    let one_line = value.replace('\\', "\\\\").replace('|', "\\|").replace("\r\n", "<br>");
                    line.push_str(&one_line.replace(['\n', '\r'], "<br>"));
                } else {
                    line.push_str(value);
                }
            }
        }
    }

    fn end(self, line: &mut String) {
        line.push_str(if self == Self::Markdown { " |\n" } else { "\n" });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int64Array, StringArray};

    use super::*;

    fn lines(lines: Lines) -> String {
        let texts = [Some("a,b"), Some(""), None, Some("say \"x|y\"\n"), Some("tab\there")];
        let texts: ArrayRef = Arc::new(StringArray::from(texts.to_vec()));
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None, Some(-3), Some(4), Some(5)]));
        let batch = RecordBatch::try_from_iter([("t", texts), ("n", numbers)]).unwrap();
        let mut out = Vec::new();
        lines.head(&mut out, &batch.schema()).unwrap();
        lines.rows(&mut out, &batch).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn empty_text_is_not_null() {
        let csv = "t,n\n\"a,b\",1\n\"\",\n,-3\n\"say \"\"x|y\"\"\n\",4\ntab\there,5\n";
        assert_eq!(lines(Lines::Separated(',')), csv);
        let tsv = "t\tn\na,b\t1\n\"\"\t\n\t-3\n\"say \"\"x|y\"\"\n\"\t4\n\"tab\there\"\t5\n";
        assert_eq!(lines(Lines::Separated('\t')), tsv);
    }

    #[test]
    fn markdown_keeps_its_bars() {
        let expected = "| t | n |\n| --- | --: |\n| a,b | 1 |\n|  | NULL |\n| NULL | -3 |\n| say \"x\\|y\"<br> | 4 |\n\
                        | tab\there | 5 |\n";
        assert_eq!(lines(Lines::Markdown), expected);
    }
}
