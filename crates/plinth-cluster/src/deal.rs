//! Which worker reads which part of a file: the one that had it the last time.

use std::cmp::Reverse;

use plinth_datafusion::Piece;
use twox_hash::XxHash3_64;
use url::Url;

/// How many rows more than its share a worker is given, in hundredths, so that a part stays where it was.
const MORE: u64 = 10;

/// How much a worker is wanted for a part of a file: a number that depends on both alone, so that of workers that come and go the others
/// keep their parts (rendezvous hashing).
fn wanted(worker: &Url, name: &str, number: usize) -> u64 {
    let mut key = Vec::with_capacity(worker.as_str().len() + name.len() + 10);
    key.extend_from_slice(worker.as_str().as_bytes());
    key.push(0);
    key.extend_from_slice(name.as_bytes());
    key.push(0);
    key.extend_from_slice(&(number as u64).to_le_bytes());
    XxHash3_64::oneshot(&key)
}

/// The worker for all of a file.
pub(crate) fn home<'a>(workers: &'a [Url], name: &str) -> Option<&'a Url> {
    workers.iter().max_by_key(|worker| wanted(worker, name, 0))
}

/// Deals pieces out: to each worker a list for each of so many partitions. A piece goes to the worker that wants it most, unless that has
/// its share of the rows by then: then to the next.
pub(crate) fn deal(pieces: Vec<Piece>, workers: &[Url], partitions: usize) -> Vec<Vec<Vec<Piece>>> {
    let all: u64 = pieces.iter().map(|piece| piece.rows).sum();
    let most = all.div_ceil(workers.len().max(1) as u64);
    let most = most + most * MORE / 100;
    let mut given: Vec<(u64, Vec<Piece>)> = workers.iter().map(|_| (0, Vec::new())).collect();
    for piece in pieces {
        let mut by_rank: Vec<usize> = (0..workers.len()).collect();
        by_rank.sort_by_key(|&at| Reverse(workers.get(at).map(|worker| wanted(worker, &piece.name, piece.number))));
        let has = |at: usize| given.get(at).map_or(u64::MAX, |(rows, _)| *rows);
        let free = by_rank.iter().copied().find(|&at| has(at).saturating_add(piece.rows) <= most);
        let Some(at) = free.or_else(|| by_rank.iter().copied().min_by_key(|&at| has(at))) else { continue };
        if let Some((rows, list)) = given.get_mut(at) {
            *rows += piece.rows;
            list.push(piece);
        }
    }
    given.into_iter().map(|(_, pieces)| in_partitions(pieces, partitions)).collect()
}

/// Pieces in so many lists of about as many rows each; neighbours are one piece.
fn in_partitions(pieces: Vec<Piece>, partitions: usize) -> Vec<Vec<Piece>> {
    let partitions = partitions.max(1);
    let all: u64 = pieces.iter().map(|piece| piece.rows).sum();
    let share = all.div_ceil(partitions as u64).max(1);
    let mut lists: Vec<Vec<Piece>> = vec![Vec::new(); partitions];
    let mut before = 0;
    for piece in pieces {
        let at = usize::try_from(before / share).unwrap_or(usize::MAX).min(partitions - 1);
        before += piece.rows;
        let Some(list) = lists.get_mut(at) else { continue };
        match list.last_mut() {
            Some(last) if last.goes_on_with(&piece) => last.extend_by(&piece),
            _ => list.push(piece),
        }
    }
    lists
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn workers(many: usize) -> Vec<Url> {
        (0..many).map(|at| Url::parse(&format!("http://127.0.0.1:{}", 9000 + at)).unwrap()).collect()
    }

    #[test]
    fn a_worker_that_goes_leaves_the_others_what_they_have() {
        let all = workers(5);
        let fewer: Vec<Url> = all.iter().filter(|worker| worker.port() != Some(9002)).cloned().collect();
        let mut moved = 0;
        for number in 0..1000 {
            let name = format!("/data/{number}.plinth");
            let before = home(&all, &name).unwrap();
            if before.port() == Some(9002) {
                moved += 1;
            } else {
                assert_eq!(before, home(&fewer, &name).unwrap());
            }
        }
        assert!((100..300).contains(&moved), "{moved}");
    }
}
