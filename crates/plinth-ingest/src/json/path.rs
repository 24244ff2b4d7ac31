//! Where in a document its rows are.

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Key(String),
    Index(u64),
    /// A JSON Pointer's digits, which are an index in an array and a key in an object.
    Either(String, u64),
    /// Every element of an array.
    Any,
}

/// The steps from the document to the array whose elements are rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Root {
    pub(crate) steps: Vec<Step>,
}

impl Root {
    /// Understands a JSON Pointer (`/a/b`), a JSONPath of names, indexes and `[*]` (`$.a.b[*]`), and names with dots between
    /// (`a.b`). Nothing at all, and `$`, is the document itself.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut steps = if let Some(pointer) = text.strip_prefix('/') {
            pointer.split('/').map(pointer_step).collect::<Option<Vec<_>>>().ok_or("~ must be ~0, and / must be ~1")?
        } else if let Some(path) = text.strip_prefix('$') {
            path_steps(path)?
        } else if text.is_empty() {
            Vec::new()
        } else {
            path_steps(&format!(".{text}"))?
        };
        // The elements of what the path leads to are the rows anyway.
        if steps.last() == Some(&Step::Any) {
            steps.pop();
        }
        Ok(Self { steps })
    }

    /// Whether it can lead to several arrays.
    pub(crate) fn is_pattern(&self) -> bool {
        self.steps.contains(&Step::Any)
    }
}

fn pointer_step(step: &str) -> Option<Step> {
    let mut parts = step.split('~');
    let mut key = parts.next()?.to_owned();
    for part in parts {
        let rest = part.strip_prefix(['0', '1'])?;
        key.push(if part.starts_with('0') { '~' } else { '/' });
        key.push_str(rest);
    }
    let index = key.parse().ok().filter(|index: &u64| index.to_string() == key);
    Some(match index {
        Some(index) => Step::Either(key, index),
        None => Step::Key(key),
    })
}

fn path_steps(mut rest: &str) -> Result<Vec<Step>, String> {
    let mut steps = Vec::new();
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('.') {
            let end = after.find(['.', '[']).unwrap_or(after.len());
            let (name, after) = after.split_at(end);
            match name {
                "" => return Err("a name is missing; .. can't be followed".to_owned()),
                "*" => return Err("only the elements of arrays can be taken all, as [*]".to_owned()),
                name => steps.push(Step::Key(name.to_owned())),
            }
            rest = after;
            continue;
        }
        let Some(inner) = rest.strip_prefix('[') else { return Err(format!("{rest:?} is no step of a path")) };
        let quote = inner.chars().next().filter(|c| matches!(c, '\'' | '"'));
        let (step, after) = match quote {
            Some(quote) => {
                let (name, after) =
                    inner.get(1..).and_then(|inner| inner.split_once(quote)).ok_or("a quote is not closed")?;
                (Step::Key(name.to_owned()), after.strip_prefix(']').ok_or("] is missing")?)
            }
            None => {
                let (index, after) = inner.split_once(']').ok_or("] is missing")?;
                let step = match index {
                    "*" => Step::Any,
                    index => Step::Index(index.parse().map_err(|_| format!("[{index}] is neither an index nor [*]"))?),
                };
                (step, after)
            }
        };
        steps.push(step);
        rest = after;
    }
    Ok(steps)
}

#[cfg(test)]
mod tests;
