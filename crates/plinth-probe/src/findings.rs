//! What a probe found, and what shows it.

use std::path::PathBuf;

use crate::{DecodeSpeed, Report, export, html};

/// What is known of a device and of decoding beside it.
#[derive(Clone, Debug)]
pub struct Findings {
    /// The folder.
    pub folder: PathBuf,
    /// What was measured there.
    pub report: Report,
    /// How fast blocks are decoded, by encoding.
    pub decode: Vec<DecodeSpeed>,
}

impl Findings {
    /// Everything as one JSON object.
    pub fn to_json(&self) -> String {
        export::json(self)
    }

    /// A line of CSV for each row of the report.
    pub fn to_csv(&self) -> String {
        export::csv(&self.report)
    }

    /// One HTML page with maps and curves.
    pub fn to_html(&self) -> String {
        html::page(self)
    }
}
