//! The files in which the command line of AWS keeps credentials: `~/.aws/credentials` and `~/.aws/config`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use plinth_io::Result;

use crate::error::refused;

/// The most bytes of such a file.
const MOST: u64 = 1 << 20;

/// What the files say of a profile.
#[derive(Clone, Default)]
pub(crate) struct Profile(BTreeMap<String, String>);

impl Profile {
    /// A profile by its name, else by `AWS_PROFILE`, else `default`.
    ///
    /// # Errors
    /// If a profile that was named is not there, or signs in by a way that is not known here.
    pub(crate) fn load(url: &str, named: Option<&str>) -> Result<Self> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let named = named.map(str::to_owned).or_else(|| variable("AWS_PROFILE"));
        let name = named.as_deref().unwrap_or("default");
        let home = variable("HOME").or_else(|| variable("USERPROFILE"));
        let file = |of: &str, name: &str| {
            let usual = || Some(PathBuf::from(home.as_deref()?).join(".aws").join(name));
            variable(of).map(PathBuf::from).or_else(usual)
        };
        let mut found = false;
        let mut values = BTreeMap::new();
        let sections = [format!("profile {name}"), name.to_owned()];
        for (path, known) in [
            (file("AWS_CONFIG_FILE", "config"), &sections[..]),
            (file("AWS_SHARED_CREDENTIALS_FILE", "credentials"), &sections[1..]),
        ] {
            let Some(path) = path.filter(|path| path.is_file()) else { continue };
            let text = plinth_io::regular::read_text(&path, MOST)?;
            for section in known {
                let of_section = section_of(&text, section);
                found |= of_section.is_some();
                values.extend(of_section.unwrap_or_default());
            }
        }
        if !found && let Some(named) = named {
            let what = format!("there is no profile {named:?} in ~/.aws/config or ~/.aws/credentials");
            return Err(refused(url, what));
        }
        let profile = Self(values);
        let other = ["credential_process", "sso_session", "sso_start_url", "role_arn"];
        if profile.get("aws_access_key_id").is_none()
            && let Some(way) = other.iter().find(|way| profile.get(way).is_some())
        {
            let what = format!(
                "profile {name:?} signs in by {way}, which is not done here; put its keys into the environment: \
                 eval \"$(aws configure export-credentials --profile {name} --format env)\""
            );
            return Err(refused(url, what));
        }
        Ok(profile)
    }

    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }
}

/// The values of a section; `None` if there is none.
fn section_of(text: &str, section: &str) -> Option<BTreeMap<String, String>> {
    let mut values: Option<BTreeMap<String, String>> = None;
    let mut within = false;
    for line in text.lines() {
        // Values of nested settings stand behind blanks.
        let nested = line.starts_with([' ', '\t']);
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.split_once(']')).map(|(name, _)| name) {
            within = name.split_whitespace().collect::<Vec<_>>().join(" ") == section;
            if within {
                values.get_or_insert_default();
            }
        } else if within
            && !nested
            && let Some((key, value)) = line.split_once('=')
        {
            let value = value.split(" #").next().unwrap_or_default();
            values.get_or_insert_default().insert(key.trim().to_ascii_lowercase(), value.trim().to_owned());
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_are_found_and_nested_settings_passed_over() {
        let text = "# mine\n[default]\nregion = eu-west-1\n\n[profile  work ]\naws_access_key_id=A=B\ns3 =\n  endpoint_url = x\nRegion = us-east-2 # far\n";
        let work = section_of(text, "profile work").unwrap();
        assert_eq!(work.get("aws_access_key_id").map(String::as_str), Some("A=B"));
        assert_eq!(work.get("region").map(String::as_str), Some("us-east-2"));
        assert_eq!(work.get("endpoint_url"), None);
        assert_eq!(section_of(text, "default").unwrap().len(), 1);
        assert!(section_of(text, "none").is_none());
        assert!(section_of("[x\n]=\n=\n[]", "x").is_none());
    }
}
