//! Domains that are kept from one query for those that come: of a column whose values come as codes of several dictionaries, most of a query's time
//! goes to find which codes of one are which of another.
//!
//! A domain numbers values, whatever they come from, so that one which is kept is never wrong: of a file that has changed it has values that
//! do not occur, and lacks others. It goes as soon as a reservation needs its memory and no query has it.

use std::sync::{Arc, Mutex, Weak};

use arrow_schema::DataType;
use plinth_core::sync::lock;
use plinth_io::{MemoryBudget, Reclaim};

use crate::domain::Domain;

/// Domains that are kept at most.
const MOST: usize = 16;

/// Of the memory, what is kept from one query to the next.
const SHARE: u64 = 8;

/// More values than so many times those that a column has are those of files that are gone.
const STALE: usize = 2;

/// Values that a domain may have of files that are gone.
const FEW: usize = 1 << 16;

/// More dictionaries than this are those of files that are gone, too.
const DICTIONARIES: usize = 1 << 12;

/// The domains of columns, that of the last query last.
#[derive(Debug)]
pub struct Domains {
    budget: Arc<MemoryBudget>,
    kept: Mutex<Vec<Kept>>,
}

#[derive(Debug)]
struct Kept {
    column: String,
    domain: Arc<Domain>,
}

impl Domains {
    /// No domains yet, whose memory is of a budget.
    pub fn new(budget: Arc<MemoryBudget>) -> Arc<Self> {
        let domains = Arc::new(Self { budget, kept: Mutex::default() });
        let weak = Arc::downgrade(&domains);
        domains.budget.register(weak as Weak<dyn Reclaim>);
        domains
    }

    /// Whose memory it is.
    pub fn budget(&self) -> &Arc<MemoryBudget> {
        &self.budget
    }

    /// The domain of a column that has a name and about so many different values; `None` if its values are no byte strings.
    pub fn of(&self, column: &str, data_type: &DataType, values: usize) -> Option<Arc<Domain>> {
        let mut kept = lock(&self.kept);
        let most = values.saturating_mul(STALE).saturating_add(FEW);
        let is_it = |one: &Kept| one.column == column && one.domain.data_type() == data_type;
        let one = match kept.iter().position(is_it).map(|at| kept.remove(at)) {
            Some(one) if one.domain.len() <= most && one.domain.dictionaries() <= DICTIONARIES => one,
            _ => Kept { column: column.to_owned(), domain: Arc::new(Domain::new(data_type, &self.budget)?) },
        };
        let domain = Arc::clone(&one.domain);
        let mut bytes: u64 = kept.iter().map(|one| one.domain.bytes()).sum();
        while kept.len() >= MOST || (bytes > self.budget.limit() / SHARE && !kept.is_empty()) {
            // A thread may have added to it meanwhile.
            bytes = bytes.saturating_sub(kept.remove(0).domain.bytes());
        }
        kept.push(one);
        Some(domain)
    }
}

impl Reclaim for Domains {
    fn reclaim(&self, bytes: u64) -> u64 {
        let Ok(mut kept) = self.kept.try_lock() else { return 0 };
        let mut given = 0;
        kept.retain(|one| {
            let goes = given < bytes && Arc::strong_count(&one.domain) == 1;
            given += if goes { one.domain.bytes() } else { 0 };
            !goes
        });
        given
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use arrow_array::StringViewArray;

    use super::*;
    use crate::vector::Vector;

    const TEXT: DataType = DataType::Utf8View;

    fn numbers(domain: &Domain, texts: &[String]) -> Vec<i64> {
        let mut numbers = Vec::new();
        let array = StringViewArray::from_iter_values(texts);
        domain.numbers(&Vector::Array(Arc::new(array)), &mut numbers).unwrap();
        numbers
    }

    fn texts(count: usize) -> Vec<String> {
        (0..count).map(|at| format!("a value that is long enough, and the {at}th")).collect()
    }

    #[test]
    fn a_column_has_the_numbers_it_had_before() {
        let domains = Domains::new(MemoryBudget::new(64 << 20));
        let texts = texts(1000);
        let first = numbers(&domains.of("a", &TEXT, 1000).unwrap(), &texts);
        let backwards: Vec<String> = texts.iter().rev().cloned().collect();
        let second = numbers(&domains.of("a", &TEXT, 1000).unwrap(), &backwards);
        assert!(first.iter().eq(second.iter().rev()));
        assert!(domains.of("b", &TEXT, 1000).unwrap().is_empty());
        assert!(domains.of("a", &DataType::Binary, 1000).unwrap().is_empty());
        assert!(domains.of("a", &DataType::Int64, 1000).is_none());
        // Values of files that are gone do not stay for ever.
        numbers(&domains.of("a", &TEXT, 1000).unwrap(), &self::texts(100_000));
        assert_eq!(domains.of("a", &TEXT, 100_000).unwrap().len(), 100_000);
        assert!(domains.of("a", &TEXT, 1000).unwrap().is_empty());
    }

    #[test]
    fn memory_that_is_needed_is_given_back() {
        let budget = MemoryBudget::new(8 << 20);
        let domains = Domains::new(Arc::clone(&budget));
        let texts = texts(10_000);
        let used = domains.of("a", &TEXT, 10_000).unwrap();
        numbers(&used, &texts);
        numbers(&domains.of("b", &TEXT, 10_000).unwrap(), &texts);
        // What a query has is not given back, what none has is.
        let held = budget.used();
        assert!(budget.reserve("test", budget.limit()).is_err());
        assert!(budget.used() < held && budget.used() >= used.bytes());
        drop(used);
        let all = budget.reserve("test", budget.limit()).unwrap();
        assert_eq!(budget.used(), all.bytes());
        drop(all);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn little_is_kept_from_query_to_query() {
        let budget = MemoryBudget::new(16 << 20);
        let domains = Domains::new(Arc::clone(&budget));
        let texts = texts(10_000);
        for column in 0..100 {
            numbers(&domains.of(&column.to_string(), &TEXT, 10_000).unwrap(), &texts);
            let two = 2 * domains.of(&column.to_string(), &TEXT, 10_000).unwrap().bytes();
            assert!(budget.used() <= budget.limit() / SHARE + two, "{column}");
        }
    }
}
