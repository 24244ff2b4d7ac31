//! A function's answers over a dictionary: each distinct value is asked once a query, however many rows and scans there are.
//!
//! The scans of a query work them out together, piece by piece: a dictionary of a million values would else be one thread's
//! work, while the others wait for it.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, Weak};

use arrow_array::{Array, ArrayRef, new_null_array};
use plinth_core::sync::lock;
use plinth_encoding::dictionary::Dictionary;
use plinth_encoding::expr::{ColumnFunction, Function};
use plinth_encoding::{DictionaryAnswers, Mask, Result, ValueSet};

use crate::assemble::leaf;
use crate::types::Node;

/// Values of a piece, of a dictionary that is decoded as a whole.
const PIECE: usize = 8192;

/// Answers over a dictionary that the scans of a query share.
#[derive(Debug, Default)]
pub(crate) struct SharedAnswers {
    /// `None` inside if the function fails for some value.
    known: OnceLock<Option<DictionaryAnswers>>,
    /// What is asked, until all was.
    asked: Mutex<Option<Arc<Asked>>>,
}

/// The values of a dictionary in pieces, each of which one thread asks a function about.
#[derive(Debug)]
struct Asked {
    /// All values, where there is room for them; else a piece is a block of the dictionary.
    values: Option<ArrayRef>,
    /// The answers, or what the function said that it failed with.
    pieces: Vec<Mutex<Option<Answers>>>,
    /// The first piece that no thread has begun.
    next: AtomicUsize,
}

type Answers = std::result::Result<Mask, String>;

/// Functions that were asked about dictionaries, for as long as one of the scans that asked lives.
#[derive(Debug, Default)]
pub(crate) struct FunctionCache(Mutex<Vec<CachedAnswers>>);

#[derive(Debug)]
struct CachedAnswers {
    function: Weak<dyn ColumnFunction>,
    /// A stream, and which of its dictionaries.
    of: (usize, usize),
    answers: Arc<SharedAnswers>,
}

impl FunctionCache {
    pub(crate) fn entry(
        &self,
        function: &Arc<dyn ColumnFunction>,
        stream: usize,
        dictionary: usize,
    ) -> Arc<SharedAnswers> {
        let of = (stream, dictionary);
        let mut entries = lock(&self.0);
        entries.retain(|entry| entry.function.strong_count() > 0);
        let same = |entry: &&CachedAnswers| {
            let same = |known: Arc<dyn ColumnFunction>| Arc::ptr_eq(&known, function) || known.same_as(&**function);
            entry.of == of && entry.function.upgrade().is_some_and(same)
        };
        if let Some(entry) = entries.iter().find(same) {
            return Arc::clone(&entry.answers);
        }
        let answers = Arc::<SharedAnswers>::default();
        entries.push(CachedAnswers { function: Arc::downgrade(function), of, answers: Arc::clone(&answers) });
        answers
    }
}

impl SharedAnswers {
    /// The answers, if all are there; `None` inside if the function fails for some value.
    pub(crate) fn known(&self) -> Option<Option<&DictionaryAnswers>> {
        self.known.get().map(Option::as_ref)
    }

    /// Asks about the distinct values and null, side by side with all who do so, unless that is done.
    ///
    /// # Errors
    /// If the dictionary can't be read or is damaged. The next caller tries again.
    pub(crate) fn work_out(
        &self,
        node: &Node,
        dictionary: &Dictionary,
        function: &Function,
    ) -> Result<Option<&DictionaryAnswers>> {
        let asked = {
            let mut asked = lock(&self.asked);
            if let Some(known) = self.known() {
                return Ok(known);
            }
            match &*asked {
                Some(asked) => Arc::clone(asked),
                None => Arc::clone(asked.insert(Arc::new(Asked::new(node, dictionary)?))),
            }
        };
        let answers = asked.all(node, dictionary, function)?;
        let known = self.known.get_or_init(|| {
            let of_null = function.of_null(new_null_array(&node.arrow_type(), 1)).ok()?;
            Some(DictionaryAnswers::new(Mask::concat(&answers.ok()?), of_null, ValueSet::of_codes))
        });
        *lock(&self.asked) = None;
        Ok(known.as_ref())
    }
}

impl Asked {
    fn new(node: &Node, dictionary: &Dictionary) -> Result<Self> {
        let decoded = dictionary.values_within()?;
        let values = decoded.map(|decoded| leaf(node, decoded.column())).transpose()?;
        let pieces = values.as_ref().map_or(dictionary.blocks(), |values| values.len().div_ceil(PIECE));
        let pieces = (0..pieces).map(|_| Mutex::default()).collect();
        Ok(Self { values, pieces, next: AtomicUsize::new(0) })
    }

    /// The answers of all pieces, or what the function failed with.
    fn all(
        &self,
        node: &Node,
        dictionary: &Dictionary,
        function: &Function,
    ) -> Result<std::result::Result<Vec<Mask>, String>> {
        // Those that no thread has begun; then all, of which most are there and some are with other threads.
        let begun = std::iter::repeat_with(|| self.next.fetch_add(1, Relaxed));
        for piece in begun.take_while(|&next| next < self.pieces.len()) {
            if let Err(what) = self.piece(piece, node, dictionary, function)? {
                return Ok(Err(what));
            }
        }
        (0..self.pieces.len()).map(|piece| self.piece(piece, node, dictionary, function)).collect()
    }

    fn piece(&self, at: usize, node: &Node, dictionary: &Dictionary, function: &Function) -> Result<Answers> {
        let mut piece = lock(&self.pieces[at]);
        if let Some(known) = &*piece {
            return Ok(known.clone());
        }
        let values = match &self.values {
            Some(values) => values.slice(at * PIECE, PIECE.min(values.len() - at * PIECE)),
            None => leaf(node, dictionary.block_values(at)?)?,
        };
        let rows = values.len();
        let answers = function.call(&[values], rows).map(|answers| Mask::of(&answers));
        Ok(piece.insert(answers).clone())
    }
}

/// A function's answers over the distinct values of a column, or why it has none for one of them.
pub(crate) fn answers(node: &Node, dictionary: &Dictionary, function: &Function) -> Result<Answers> {
    let masks = Asked::new(node, dictionary)?.all(node, dictionary, function)?;
    Ok(masks.map(|masks| Mask::concat(&masks)))
}
