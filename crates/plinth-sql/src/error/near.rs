//! What is likely meant by a name that is not there.

use std::path::Path;

use plinth_core::text::nearest;

/// Functions of other databases, and those that do the same here.
pub(super) const FUNCTIONS: [(&str, &str); 27] = [
    ("charindex", "strpos"),
    ("collect_list", "array_agg"),
    ("convert", "CAST"),
    ("date_format", "to_char"),
    ("dateadd", "date + INTERVAL"),
    ("explode", "unnest"),
    ("gen_random_uuid", "uuid"),
    ("getdate", "now"),
    ("group_concat", "string_agg"),
    ("iif", "CASE WHEN"),
    ("isnull", "coalesce"),
    ("lcase", "lower"),
    ("listagg", "string_agg"),
    ("mid", "substr"),
    ("newid", "uuid"),
    ("rand", "random"),
    ("safe_cast", "TRY_CAST"),
    ("sign", "signum"),
    ("stdev", "stddev"),
    ("substring_index", "split_part"),
    ("sysdate", "now"),
    ("to_number", "CAST"),
    ("try_convert", "TRY_CAST"),
    ("ucase", "upper"),
    ("unix_timestamp", "to_unixtime"),
    ("var", "var_samp"),
    ("year_of", "date_part"),
];

/// The function that is meant, if that can be told: by what it does, or because the engine's proposal is spelled much the same.
pub(super) fn function(name: &str, proposed: Option<&str>) -> Option<String> {
    let lower = name.to_ascii_lowercase();
    let known = FUNCTIONS.iter().find(|(theirs, _)| *theirs == lower).map(|(_, ours)| (*ours).to_owned());
    known.or_else(|| nearest(name, proposed).map(str::to_owned))
}

/// The path that is likely meant by one that is not there: a name in the same folder that is spelled much the same.
pub fn near_path(path: &Path) -> Option<String> {
    let wanted = path.file_name()?.to_str()?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let entries = std::fs::read_dir(folder.unwrap_or(Path::new("."))).ok()?;
    let mut names: Vec<String> = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    let near = nearest(wanted, names.iter().map(String::as_str))?;
    Some(folder.map_or_else(|| near.to_owned(), |folder| folder.join(near).display().to_string()))
}
