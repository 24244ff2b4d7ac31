//! Plinth files as DataFusion tables and file formats.
