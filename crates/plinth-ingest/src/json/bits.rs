//! Stage one: what the bytes of a text are, 64 at a time.
//!
//! A [`Kernel`] turns a block into bitmaps, one bit a byte; what follows from them is worked out here, on words: which bytes
//! are within strings, where tokens start ([`tokens`]), how deep brackets are nested ([`scan`]). What crosses the end of a
//! block is carried in two or three bits, so a text may come in parts of any size. The idea is that of simdjson (Langdale and
//! Lemire, "Parsing Gigabytes of JSON per Second", VLDB Journal 2019).

#[cfg(target_arch = "x86_64")]
mod avx2;
mod scalar;
#[cfg(target_arch = "x86_64")]
mod sse2;

/// Bytes of a block.
pub(crate) const BLOCK: usize = 64;

/// Which implementation runs. They give the same answers; the choice exists for tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Portable Rust.
    Scalar,
    /// 128-bit vectors, which every x86-64 has.
    Sse2,
    /// 256-bit vectors of x86-64.
    Avx2,
}

impl Level {
    /// Those this machine has, the fastest last.
    pub fn all() -> Vec<Self> {
        let mut all = vec![Self::Scalar];
        #[cfg(target_arch = "x86_64")]
        {
            all.push(Self::Sse2);
            if avx2::available() {
                all.push(Self::Avx2);
            }
        }
        all
    }

    /// The fastest this machine has.
    pub(crate) fn best() -> Self {
        Self::all().last().copied().unwrap_or(Self::Scalar)
    }
}

/// Bitmaps of a block for [`tokens`].
struct Bytes {
    quotes: u64,
    backslashes: u64,
    /// Brackets, commas and colons.
    operators: u64,
    /// Spaces, tabs and line ends.
    spaces: u64,
    /// Bytes below 0x20.
    controls: u64,
    line_feeds: u64,
}

/// Bitmaps of a block for [`scan`].
struct Brackets {
    quotes: u64,
    backslashes: u64,
    opens: u64,
    closes: u64,
    commas: u64,
}

/// What a vector unit does.
trait Kernel {
    fn bytes(block: &[u8; BLOCK]) -> Bytes;
    fn brackets(block: &[u8; BLOCK]) -> Brackets;

    /// Bit `i` says whether an odd number of the bits up to and including `i` is set: where quotes are, what is between.
    #[inline(always)]
    fn parity(bits: u64) -> u64 {
        [1, 2, 4, 8, 16, 32].into_iter().fold(bits, |bits, by| bits ^ (bits << by))
    }
}

/// What the bytes before say about the next.
#[derive(Clone, Copy, Debug, Default)]
struct Carry {
    /// One if a backslash precedes that is not itself escaped.
    escaped: u64,
    /// All ones within a string.
    string: u64,
    /// One if a number or a word may go on.
    scalar: u64,
}

impl Carry {
    /// The bytes that a backslash precedes. Backslashes are rare enough to be looked at one by one.
    #[inline(always)]
    fn escaped(&mut self, backslashes: u64) -> u64 {
        let mut escaped = std::mem::take(&mut self.escaped);
        let mut rest = backslashes & !escaped;
        while rest != 0 {
            let at = rest.trailing_zeros();
            if at == 63 {
                self.escaped = 1;
                break;
            }
            escaped |= 2 << at;
            rest &= !(3 << at);
        }
        escaped
    }

    /// The bytes within strings, opening quotes included; `quotes` are those that are not escaped.
    #[inline(always)]
    fn strings<K: Kernel>(&mut self, quotes: u64) -> u64 {
        let strings = K::parity(quotes) ^ self.string;
        self.string = if strings >> 63 == 1 { u64::MAX } else { 0 };
        strings
    }
}

/// Bytes that [`Tokens`] looks at at once: few enough that they and what is known about them stay in a core's cache.
const WINDOW: usize = 16 << 10;

/// Where the tokens of a text start, found window by window: brackets, commas, colons, both quotes of strings, the first
/// bytes of numbers and words; line feeds outside of strings where lines mean something.
#[derive(Debug)]
pub(crate) struct Tokens {
    level: Level,
    lines: bool,
    /// Of the window, relative to `base`.
    starts: Box<[u32]>,
    len: usize,
    next: usize,
    base: usize,
    scanned: usize,
    /// Bytes to look at next time: less at first, in case there are few.
    ahead: usize,
    carry: Carry,
    /// Whether strings that end in the window may hold a backslash or a control character.
    special: bool,
}

impl Tokens {
    pub(crate) fn new(level: Level) -> Self {
        let starts = vec![0; WINDOW + BLOCK].into_boxed_slice();
        let (carry, ahead) = (Carry::default(), 0);
        Self { level, lines: false, starts, len: 0, next: 0, base: 0, scanned: 0, ahead, carry, special: false }
    }

    /// Starts again at a byte that is outside of strings. With `lines`, line feeds are tokens.
    pub(crate) fn seek(&mut self, at: usize, lines: bool) {
        (self.len, self.next, self.scanned, self.lines) = (0, 0, at, lines);
        (self.carry, self.special, self.ahead) = (Carry::default(), false, 8 * BLOCK);
    }

    /// The next token, or the end of the text.
    #[inline(always)]
    pub(crate) fn peek(&mut self, text: &[u8]) -> usize {
        if self.next < self.len
            && let Some(start) = self.starts.get(self.next)
        {
            return self.base + *start as usize;
        }
        self.look(text)
    }

    /// Passes over the token that was peeked at.
    #[inline(always)]
    pub(crate) fn pass(&mut self) {
        self.next += 1;
    }

    /// Passes over three tokens if the window has them.
    #[inline(always)]
    pub(crate) fn pass_three(&mut self) -> bool {
        let all = self.next + 3 <= self.len;
        if all {
            self.next += 3;
        }
        all
    }

    /// Whether a string goes beyond its line, where lines mean something: whatever is in it then, it is not closed.
    pub(crate) fn is_cut(&self, inner: &str) -> bool {
        self.lines && inner.contains('\n')
    }

    /// Whether the string that ended last may hold a backslash or a control character.
    #[inline(always)]
    pub(crate) fn special(&self) -> bool {
        self.special
    }

    #[inline(never)]
    fn look(&mut self, text: &[u8]) -> usize {
        while self.next >= self.len {
            let Some(rest) = text.get(self.scanned..).filter(|rest| !rest.is_empty()) else { return text.len() };
            let window = rest.get(..self.ahead.min(rest.len())).unwrap_or_default();
            self.ahead = (self.ahead * 2).min(WINDOW);
            let open = self.carry.string != 0;
            let before = self.special && open;
            (self.next, self.len, self.base) = (0, 0, self.scanned);
            let special = match self.level {
                #[cfg(target_arch = "x86_64")]
                Level::Avx2 => avx2::tokens(window, self.lines, &mut self.carry, &mut self.starts, &mut self.len),
                #[cfg(target_arch = "x86_64")]
                Level::Sse2 => sse2::tokens(window, self.lines, &mut self.carry, &mut self.starts, &mut self.len),
                _ => scalar::tokens(window, self.lines, &mut self.carry, &mut self.starts, &mut self.len),
            };
            self.special = special || before;
            self.scanned += window.len();
        }
        self.base + self.starts.get(self.next).map_or(0, |start| *start as usize)
    }
}

/// Writes down where the tokens of a window are, and says whether a string in it holds a backslash or a control character.
#[inline(always)]
#[allow(clippy::cast_possible_truncation, reason = "a window is small")]
fn tokens<K: Kernel>(window: &[u8], lines: bool, carry: &mut Carry, starts: &mut [u32], count: &mut usize) -> bool {
    let (blocks, rest) = window.as_chunks::<BLOCK>();
    let mut special = 0;
    for (at, block) in blocks.iter().enumerate() {
        let bits = token_bits::<K>(block, lines, carry, &mut special);
        write_down(bits, (at * BLOCK) as u32, starts, count);
    }
    if !rest.is_empty() {
        // What is not there is no token, and ends every number and word; that they go on is known from the bytes themselves.
        let mut block = [b' '; BLOCK];
        block.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
        let bits = token_bits::<K>(&block, lines, carry, &mut special);
        write_down(bits, (blocks.len() * BLOCK) as u32, starts, count);
    }
    special != 0
}

#[inline(always)]
fn token_bits<K: Kernel>(block: &[u8; BLOCK], lines: bool, carry: &mut Carry, special: &mut u64) -> u64 {
    let is = K::bytes(block);
    let escaped = if is.backslashes | carry.escaped == 0 { 0 } else { carry.escaped(is.backslashes) };
    let quotes = is.quotes & !escaped;
    let strings = carry.strings::<K>(quotes);
    *special |= strings & (is.backslashes | is.controls);
    let scalars = !(is.operators | is.spaces | is.quotes);
    let starts = scalars & !(scalars << 1 | carry.scalar);
    carry.scalar = scalars >> 63;
    let feeds = if lines { is.line_feeds } else { 0 };
    (is.operators | starts | feeds) & !strings | quotes
}

/// Appends the places of the bits. Eight are written whatever there are: that is faster than to count.
#[inline(always)]
fn write_down(mut bits: u64, base: u32, starts: &mut [u32], count: &mut usize) {
    let found = bits.count_ones() as usize;
    let Some(room) = starts.get_mut(*count..).and_then(|rest| rest.first_chunk_mut::<BLOCK>()) else { return };
    let mut write = |range: std::ops::Range<usize>| {
        for slot in room.get_mut(range).unwrap_or_default() {
            *slot = base + bits.trailing_zeros();
            bits &= bits.wrapping_sub(1);
        }
    };
    write(0..8);
    if found > 8 {
        write(8..16);
        if found > 16 {
            write(16..found);
        }
    }
    *count += found;
}

/// How values follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Between {
    /// Commas, as in an array: a boundary is after each comma outside of brackets, and the array ends at a bracket that
    /// closes none.
    Commas,
    /// Nothing: a boundary is after each bracket that closes the outermost (or none).
    Nothing,
}

/// Where a [`Scan`] stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The first byte after a boundary.
    Boundary(usize),
    /// The bracket that closes the array.
    End(usize),
    /// The bytes ended; those from here on were not looked at.
    More(usize),
}

/// Looks for boundaries between values by brackets and quotes alone, whatever else is right or wrong. Starts at a boundary.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scan {
    level: Level,
    between: Between,
    carry: Carry,
    depth: usize,
}

impl Scan {
    pub(crate) fn new(level: Level, between: Between) -> Self {
        Self { level, between, carry: Carry::default(), depth: 0 }
    }

    pub(crate) fn between(&self) -> Between {
        self.between
    }

    /// Goes on at `from`, to the first boundary that is not before `goal` (about), or to the array's end wherever it is. Less
    /// than a block at the end of the bytes is left for later unless it is the `last`.
    pub(crate) fn next(&mut self, bytes: &[u8], from: usize, goal: usize, last: bool) -> Stop {
        match self.level {
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => avx2::scan(self, bytes, from, goal, last),
            #[cfg(target_arch = "x86_64")]
            Level::Sse2 => sse2::scan(self, bytes, from, goal, last),
            _ => scalar::scan(self, bytes, from, goal, last),
        }
    }
}

#[inline(always)]
fn scan<K: Kernel>(scan: &mut Scan, bytes: &[u8], from: usize, goal: usize, last: bool) -> Stop {
    let mut at = from;
    loop {
        let rest = bytes.get(at..).unwrap_or_default();
        let stop = match rest.first_chunk::<BLOCK>() {
            Some(block) => scan_block::<K>(scan, block, at + BLOCK > goal),
            None if last && !rest.is_empty() => {
                let mut block = [b' '; BLOCK];
                block.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
                scan_block::<K>(scan, &block, at + BLOCK > goal)
            }
            None => return Stop::More(at),
        };
        match stop {
            None => at = (at + BLOCK).min(bytes.len()),
            Some((bit, end)) => {
                // Outside of brackets and strings, and after no backslash.
                (scan.carry, scan.depth) = (Carry::default(), 0);
                return if end { Stop::End(at + bit) } else { Stop::Boundary(at + bit + 1) };
            }
        }
    }
}

/// The bit at which to stop, and whether the array ends there.
#[inline(always)]
fn scan_block<K: Kernel>(scan: &mut Scan, block: &[u8; BLOCK], wanted: bool) -> Option<(usize, bool)> {
    let is = K::brackets(block);
    let carry = &mut scan.carry;
    let escaped = if is.backslashes | carry.escaped == 0 { 0 } else { carry.escaped(is.backslashes) };
    let outside = !carry.strings::<K>(is.quotes & !escaped);
    let (opens, closes) = (is.opens & outside, is.closes & outside);
    let closed = closes.count_ones() as usize;
    if !wanted && closed <= scan.depth {
        scan.depth = scan.depth - closed + opens.count_ones() as usize;
        return None;
    }
    step(scan, opens, closes, is.commas & outside, wanted)
}

/// As [`scan_block`], bit by bit.
#[inline(never)]
fn step(scan: &mut Scan, opens: u64, closes: u64, commas: u64, wanted: bool) -> Option<(usize, bool)> {
    let commas = if scan.between == Between::Commas { commas } else { 0 };
    let mut rest = opens | closes | commas;
    while rest != 0 {
        let at = rest.trailing_zeros() as usize;
        let bit = rest & rest.wrapping_neg();
        rest &= rest.wrapping_sub(1);
        if opens & bit != 0 {
            scan.depth += 1;
            continue;
        }
        if closes & bit != 0 {
            match (scan.depth.checked_sub(1), scan.between) {
                (None, Between::Commas) => return Some((at, true)),
                (depth, Between::Commas) => scan.depth = depth.unwrap_or(0),
                (depth, Between::Nothing) => {
                    scan.depth = depth.unwrap_or(0);
                    if wanted && scan.depth == 0 {
                        return Some((at, false));
                    }
                }
            }
        } else if wanted && scan.depth == 0 {
            return Some((at, false));
        }
    }
    None
}

#[cfg(test)]
#[path = "bits_tests.rs"]
mod tests;
