//! CREATE SECRET, DROP SECRET and SHOW SECRETS: what object stores are asked with.
//!
//! Secrets last as long as the session. No message repeats a value.

use datafusion::common::{Result, exec_err, plan_err};
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{self, SecretOption};
use plinth_objects::{Kind, Secret};

use crate::names::normal;
use crate::{Session, depth};

/// How the statement is written.
pub(crate) const FORM: &str = "CREATE SECRET name (TYPE s3, KEY_ID '...', SECRET '...', REGION '...')";

/// Whether a text makes a secret, so that it is neither kept nor shown.
pub fn holds_secret(text: &str) -> bool {
    let words: Vec<String> = text.split(|c: char| !c.is_alphanumeric()).map(str::to_ascii_uppercase).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).filter(|word| !word.is_empty()).collect();
    let made = |at: usize| {
        let rest = words.iter().skip(at + 1);
        let next = rest.copied().find(|word| !["OR", "REPLACE", "TEMP", "TEMPORARY", "PERSISTENT"].contains(word));
        next == Some("SECRET")
    };
    words.iter().enumerate().any(|(at, word)| *word == "CREATE" && made(at)) || gives_value(text)
}

/// Whether a text gives a setting that is kept to itself a value, whatever the words before it: CREATE may be misspelt.
fn gives_value(text: &str) -> bool {
    const SETTINGS: [&str; 7] =
        ["SECRET", "SESSION_TOKEN", "SERVICE_ACCOUNT_KEY", "ACCOUNT_KEY", "SAS_TOKEN", "CLIENT_SECRET", "BEARER_TOKEN"];
    let text = text.to_ascii_uppercase();
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    SETTINGS.iter().any(|setting| {
        text.match_indices(setting).any(|(at, _)| {
            let (before, after) = text.split_at(at);
            let value = after.strip_prefix(setting).unwrap_or_default().trim_start();
            !before.ends_with(is_word) && value.starts_with(['\'', '"', '$'])
        })
    })
}

/// Refuses a statement that has CREATE SECRET within, before a message repeats it.
pub(crate) fn refuse_within(statement: &Statement) -> Result<()> {
    let within = match statement {
        Statement::Explain(explain) => match explain.statement.as_ref() {
            Statement::Statement(inner) => inner.as_ref(),
            _ => return Ok(()),
        },
        Statement::Statement(outer) => match outer.as_ref() {
            ast::Statement::Prepare { statement, .. } => statement.as_ref(),
            _ => return Ok(()),
        },
        _ => return Ok(()),
    };
    match within {
        ast::Statement::CreateSecret { .. } => plan_err!("CREATE SECRET can't be explained or prepared"),
        _ => Ok(()),
    }
}

/// Puts a query in the place of `SHOW SECRETS`.
pub(crate) fn show(statement: &mut Statement, session: &Session) -> Result<()> {
    let Statement::Statement(inner) = &*statement else { return Ok(()) };
    let ast::Statement::ShowVariable { variable } = inner.as_ref() else { return Ok(()) };
    if !matches!(variable.as_slice(), [name] if name.quote_style.is_none() && name.value.eq_ignore_ascii_case("secrets"))
    {
        return Ok(());
    }
    let text = |text: &str| format!("'{}'", text.replace('\'', "''"));
    let rows: Vec<String> = session
        .objects
        .secrets()
        .all()
        .iter()
        .map(|secret| {
            let columns = [&*secret.name, secret.kind.name(), &secret.shown_scope(), &secret.shown()].map(text);
            format!("({})", columns.join(", "))
        })
        .collect();
    let (rows, none) = match rows.is_empty() {
        true => ("('', '', '', '')".to_owned(), " WHERE false"),
        false => (rows.join(", "), ""),
    };
    let sql = format!("SELECT * FROM (VALUES {rows}) AS secrets(name, type, scope, settings){none}");
    if let Some(query) = depth::parse(&sql)?.pop() {
        *statement = query;
    }
    Ok(())
}

impl Session {
    pub(super) fn create_secret(&self, statement: &ast::Statement) -> Result<()> {
        let ast::Statement::CreateSecret {
            or_replace,
            temporary,
            if_not_exists,
            name,
            storage_specifier,
            secret_type,
            options,
        } = statement
        else {
            return exec_err!("CREATE SECRET: {FORM}");
        };
        let Some(kind) = Kind::of_name(&secret_type.value) else {
            return exec_err!("CREATE SECRET: type {secret_type} is none of s3, gcs, azure, http");
        };
        if *temporary == Some(false) || storage_specifier.is_some() {
            return exec_err!(
                "CREATE SECRET: secrets last as long as the session and are not stored; for longer ones there are the environment \
                 (AWS_ACCESS_KEY_ID) and profiles (~/.aws/credentials)"
            );
        }
        if *or_replace && *if_not_exists {
            return exec_err!("CREATE SECRET: IF NOT EXISTS and OR REPLACE exclude each other");
        }
        let name = name.as_ref().map_or_else(|| format!("default_{}", kind.name()), normal);
        let mut secret = Secret::new(name.clone(), kind);
        let refused =
            |what: String| datafusion::common::DataFusionError::Execution(format!("CREATE SECRET {name}: {what}"));
        for SecretOption { key, value } in options {
            match key.value.to_ascii_lowercase().as_str() {
                "scope" => secret.scope(&value.value).map_err(refused)?,
                "provider" => provider(&value.value, options).map_err(refused)?,
                setting => secret.set(setting, &value.value).map_err(refused)?,
            }
        }
        if !self.objects.secrets().add(secret, *or_replace) && !if_not_exists {
            return exec_err!("CREATE SECRET {name}: exists already; CREATE OR REPLACE SECRET replaces it");
        }
        Ok(())
    }

    pub(super) fn drop_secret(&self, name: &ast::Ident, if_exists: bool) -> Result<()> {
        let name = normal(name);
        match self.objects.secrets().remove(&name) {
            false if !if_exists => exec_err!("DROP SECRET {name}: there is none"),
            _ => Ok(()),
        }
    }
}

/// Whether a provider is what its other settings make of a secret: with credentials it stands for itself (`config`), without it
/// adds to what the environment and files say (`credential_chain`).
fn provider(named: &str, options: &[SecretOption]) -> std::result::Result<(), String> {
    let credentials =
        ["key_id", "anonymous", "service_account_key", "service_account_path", "account_key", "sas_token"];
    let more = ["client_secret", "bearer_token"];
    let is_one =
        |option: &SecretOption| credentials.iter().chain(&more).any(|name| option.key.value.eq_ignore_ascii_case(name));
    match (named.to_ascii_lowercase().as_str(), options.iter().any(is_one)) {
        ("config", true) | ("credential_chain", false) => Ok(()),
        ("config", false) => {
            Err("provider config needs the credentials themselves, such as KEY_ID and SECRET".to_owned())
        }
        ("credential_chain", true) => {
            Err("provider credential_chain has its credentials from elsewhere; leave one out".to_owned())
        }
        _ => Err("provider is 'config' or 'credential_chain'".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_that_make_secrets_are_told() {
        for text in [
            "create secret (type s3)",
            "SELECT 1; CREATE OR REPLACE\n TEMP secret x(",
            "CREATE PERSISTENT SECRET",
            "CREAT SECRET x (TYPE s3, secret 'y')",
            "crate sceret (TYPE http, BEARER_TOKEN\n\"y\")",
        ] {
            assert!(holds_secret(text), "{text}");
        }
        for text in [
            "SELECT secret FROM t",
            "CREATE TABLE secret (a INT)",
            "DROP SECRET x",
            "SELECT my_secret 'x'",
            "CREATE",
            "",
        ] {
            assert!(!holds_secret(text), "{text}");
        }
    }
}
