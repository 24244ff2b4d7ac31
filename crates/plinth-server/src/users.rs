//! Who may come in: names, hashes of their tokens, and what they may do.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};

use crate::failure::ServerError;
use crate::random::{Digest, digest};

/// Letters of a token at least: a shorter one can be guessed.
const SHORTEST: usize = 16;

/// Bytes of a file of tokens at most.
const LARGEST: u64 = 1 << 20;

/// The user of a token from the environment.
const OWNER: &str = "owner";

/// What a user may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Ask.
    Read,
    /// Ask and change.
    Write,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Write => "write",
        })
    }
}

/// One who may come in.
pub struct User {
    name: String,
    role: Role,
    digest: Digest,
}

impl fmt::Debug for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("User").field("name", &self.name).field("role", &self.role).finish_non_exhaustive()
    }
}

impl User {
    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the user may do.
    pub fn role(&self) -> Role {
        self.role
    }

    /// Whether statements of another are this one's business.
    pub(crate) fn may_manage(&self, other: &Self) -> bool {
        self.role == Role::Write || self.name == other.name
    }
}

/// All who may come in.
#[derive(Clone, Debug, Default)]
pub struct Users(Vec<Arc<User>>);

impl Users {
    /// Those of a file: a line each, `name token role`. The role is `read` or `write`; in the place of the token its hash may stand, as
    /// `sha256:` and 64 hexadecimal digits. Empty lines and those that begin with `#` say nothing.
    ///
    /// # Errors
    /// If it can't be read, others than its owner can read it, or a line is something else. No message repeats a token.
    pub fn read_file(path: &Path) -> Result<Self, ServerError> {
        let failed = |what: &dyn fmt::Display| ServerError::new(format!("{}: {what}", path.display()));
        if let Some(others) = readers(path).map_err(|e| failed(&format!("cannot be opened: {e}")))? {
            return Err(failed(&others));
        }
        let text = plinth_io::regular::read_text(path, LARGEST).map_err(ServerError::new)?;
        Self::parse(&text).map_err(|what| failed(&what))
    }

    /// One who may do everything, by a token.
    ///
    /// # Errors
    /// If the token is too short.
    pub fn owner(token: &str) -> Result<Self, ServerError> {
        Ok(Self(vec![Arc::new(User { name: OWNER.to_owned(), role: Role::Write, digest: hashed(token)? })]))
    }

    /// Those of a text, as [`Users::read_file`] has it.
    ///
    /// # Errors
    /// If a line is something else.
    pub fn parse(text: &str) -> Result<Self, ServerError> {
        let mut users: Vec<Arc<User>> = Vec::new();
        for (line, number) in text.lines().zip(1_usize..) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let failed = |what: &dyn fmt::Display| ServerError::new(format!("line {number}: {what}"));
            let (name, token, role) = match words.as_slice() {
                [] => continue,
                [first, ..] if first.starts_with('#') => continue,
                [name, token, role] => (*name, *token, *role),
                _ => return Err(failed(&"is not `name token role`")),
            };
            let plain = |letter: char| letter.is_ascii_alphanumeric() || ['_', '-', '.', '@'].contains(&letter);
            if name.len() > 64 || !name.chars().all(plain) {
                return Err(failed(&"a name has up to 64 letters, digits, _, -, . and @"));
            }
            let role = match role {
                "read" => Role::Read,
                "write" => Role::Write,
                _ => return Err(failed(&format!("the role of {name} is neither read nor write"))),
            };
            if users.iter().any(|user| user.name == name) {
                return Err(failed(&format!("{name} is there already")));
            }
            let digest = hashed(token).map_err(|what| failed(&what))?;
            users.push(Arc::new(User { name: name.to_owned(), role, digest }));
        }
        if users.is_empty() {
            return Err(ServerError::new("no line names a user: `name token role`"));
        }
        Ok(Self(users))
    }

    /// The user of a token. Takes as long whatever the token is: each user's hash is compared as a whole.
    pub(crate) fn of_token(&self, token: &str) -> Option<Arc<User>> {
        let given = digest(token.as_bytes());
        let (mut found, mut at) = (Choice::from(0), 0_u32);
        for (user, number) in self.0.iter().zip(0_u32..) {
            let same = user.digest.ct_eq(&given);
            at = u32::conditional_select(&at, &number, same);
            found |= same;
        }
        let user = self.0.get(usize::try_from(at).ok()?)?;
        bool::from(found).then(|| Arc::clone(user))
    }
}

fn hashed(token: &str) -> Result<Digest, ServerError> {
    if let Some(hex) = token.strip_prefix("sha256:") {
        let wrong = || ServerError::new("behind sha256: stand 64 hexadecimal digits");
        let mut digest = Digest::default();
        if hex.len() != 2 * digest.len() || !hex.is_ascii() {
            return Err(wrong());
        }
        for (byte, at) in digest.iter_mut().zip((0..).step_by(2)) {
            let pair = hex.get(at..at + 2).ok_or_else(wrong)?;
            *byte = u8::from_str_radix(pair, 16).map_err(|_| wrong())?;
        }
        return Ok(digest);
    }
    if token.len() < SHORTEST {
        return Err(ServerError::new(format!(
            "a token has {SHORTEST} letters at least: openssl rand -hex 32 makes one"
        )));
    }
    Ok(digest(token.as_bytes()))
}

/// What is said of a file that others can read. None if they can't.
#[cfg(unix)]
fn readers(path: &Path) -> std::io::Result<Option<String>> {
    use std::os::unix::fs::PermissionsExt;
    let mode = path.metadata()?.permissions().mode();
    let what = || format!("others can read it (mode {:o}): chmod 600 {}", mode & 0o777, path.display());
    Ok((mode & 0o077 != 0).then(what))
}

#[cfg(not(unix))]
fn readers(path: &Path) -> std::io::Result<Option<String>> {
    path.metadata().map(|_| None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_or_its_hash_lets_its_user_in_alone() {
        let token = "correct-horse-battery-staple";
        let text = format!(
            "# who\n\nalice {token} write\nbob sha256:{} read\n",
            crate::random::hex(&digest(b"another-token-of-bobs"))
        );
        let users = Users::parse(&text).unwrap();
        let of = |token: &str| users.of_token(token).map(|user| (user.name.clone(), user.role));
        assert_eq!(of(token), Some(("alice".to_owned(), Role::Write)));
        assert_eq!(of("another-token-of-bobs"), Some(("bob".to_owned(), Role::Read)));
        for wrong in ["", "alice", "correct-horse-battery-stapl", "correct-horse-battery-staple ", "sha256:00"] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
        assert!(!format!("{users:?}").contains("staple"));
    }

    #[test]
    fn what_is_wrong_with_a_line_is_said_without_the_token() {
        for (line, what) in [
            ("alice secret-secret-secret", "is not `name token role`"),
            ("alice secret-secret-secret admin", "neither read nor write"),
            ("alice secret read", "16 letters at least"),
            ("alice sha256:secret read", "64 hexadecimal digits"),
            ("<script> secret-secret-secret read", "a name has"),
            ("a secret-secret-secret read\na secret-secret-secret2 read", "there already"),
            ("# nothing", "no line names a user"),
        ] {
            let refused = Users::parse(line).unwrap_err().to_string();
            assert!(refused.contains(what) && !refused.contains("secret"), "{line}: {refused}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_others_can_read_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tokens");
        std::fs::write(&path, "alice secret-secret-secret write\n").unwrap();
        for (mode, taken) in [(0o600, true), (0o400, true), (0o640, false), (0o604, false), (0o644, false)] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            let read = Users::read_file(&path);
            assert_eq!(read.is_ok(), taken, "{mode:o}: {read:?}");
        }
    }
}
