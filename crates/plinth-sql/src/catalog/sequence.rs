//! A sequence: which number comes next.

use datafusion::common::{Result, exec_err};
use datafusion::sql::sqlparser::ast::{self, DataType, SequenceOptions};

/// The numbers that are still to be handed out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sequence {
    /// None if there are no more.
    next: Option<i64>,
    step: i64,
    least: i64,
    most: i64,
    cycles: bool,
}

impl Sequence {
    /// What `CREATE SEQUENCE` asks for.
    pub(crate) fn of(statement: &str, data_type: Option<&DataType>, options: &[SequenceOptions]) -> Result<Self> {
        let number = |what: &str, value: &ast::Expr| match value.to_string().parse::<i64>() {
            Ok(number) => Ok(number),
            Err(_) => exec_err!("{statement}: {what} {value}: is no whole number of 64 bits"),
        };
        let (lowest, highest) = match data_type {
            None | Some(DataType::BigInt(None) | DataType::Int8(None)) => (i64::MIN, i64::MAX),
            Some(DataType::Int(None) | DataType::Integer(None) | DataType::Int4(None)) => {
                (i32::MIN.into(), i32::MAX.into())
            }
            Some(DataType::SmallInt(None) | DataType::Int2(None)) => (i16::MIN.into(), i16::MAX.into()),
            Some(other) => return exec_err!("{statement}: AS {other}: takes BIGINT, INT or SMALLINT"),
        };
        let (mut step, mut least, mut most, mut start, mut cycles) = (1, None, None, None, false);
        for option in options {
            match option {
                SequenceOptions::IncrementBy(by, _) => step = number("INCREMENT", by)?,
                SequenceOptions::MinValue(value) => {
                    least = value.as_ref().map(|value| number("MINVALUE", value)).transpose()?;
                }
                SequenceOptions::MaxValue(value) => {
                    most = value.as_ref().map(|value| number("MAXVALUE", value)).transpose()?;
                }
                SequenceOptions::StartWith(value, _) => start = Some(number("START", value)?),
                // The parser's sign is that of NO.
                SequenceOptions::Cycle(no) => cycles = !no,
                SequenceOptions::Cache(_) => {
                    return exec_err!("{statement}: CACHE is not supported: numbers are taken as rows need them");
                }
            }
        }
        let least = least.unwrap_or(if step > 0 { 1 } else { lowest });
        let most = most.unwrap_or(if step > 0 { highest } else { -1 });
        let start = start.unwrap_or(if step > 0 { least } else { most });
        if step == 0 {
            return exec_err!("{statement}: INCREMENT 0 would give one number again and again");
        }
        if least > most || !(least..=most).contains(&start) || least < lowest || most > highest {
            return exec_err!("{statement}: START {start} is to be between MINVALUE {least} and MAXVALUE {most}");
        }
        Ok(Self { next: Some(start), step, least, most, cycles })
    }

    /// The next number; none if there are no more.
    pub(crate) fn take(&mut self) -> Option<i64> {
        let number = self.next?;
        let after = number.checked_add(self.step).filter(|after| (self.least..=self.most).contains(after));
        let again = if self.step > 0 { self.least } else { self.most };
        self.next = after.or(self.cycles.then_some(again));
        Some(number)
    }

    /// Has it go on with a number that was taken before.
    pub(crate) fn go_back_to(&mut self, number: i64) {
        self.next = Some(number);
    }

    /// The texts that a catalog keeps.
    pub(super) fn fields(&self) -> [String; 5] {
        let next = self.next.map(|next| next.to_string()).unwrap_or_default();
        let cycles = if self.cycles { "cycle" } else { "once" };
        [next, self.step.to_string(), self.least.to_string(), self.most.to_string(), cycles.to_owned()]
    }

    /// What such texts say.
    pub(super) fn parse(fields: &[&str]) -> Option<Self> {
        let [next, step, least, most, cycles] = fields else { return None };
        let next = if next.is_empty() { None } else { Some(next.parse().ok()?) };
        let cycles = match *cycles {
            "cycle" => true,
            "once" => false,
            _ => return None,
        };
        let known =
            Self { next, step: step.parse().ok()?, least: least.parse().ok()?, most: most.parse().ok()?, cycles };
        let within = known.next.is_none_or(|next| (known.least..=known.most).contains(&next));
        (known.step != 0 && within).then_some(known)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests;
