#![allow(clippy::unwrap_used, clippy::panic)]

use super::*;
use std::sync::atomic::{AtomicUsize, Ordering};

struct Counting {
    items: usize,
    fail: Option<usize>,
    given: Arc<AtomicUsize>,
}

impl Worker<usize, (usize, usize), String> for Counting {
    fn run(&mut self, &task: &usize, give: &mut dyn FnMut(Item<(usize, usize)>) -> bool) -> Result<(), String> {
        for i in 0..self.items + task % 3 {
            self.given.fetch_add(1, Ordering::Relaxed);
            if !give(Item { value: (task, i), bytes: 10 }) {
                return Ok(());
            }
        }
        match self.fail {
            Some(at) if at == task => Err(format!("task {task}")),
            _ => Ok(()),
        }
    }

    fn internal(&self, what: &'static str) -> String {
        what.to_owned()
    }

    fn panicked(&self, task: Option<&usize>) -> String {
        format!("panic in {task:?}")
    }
}

fn start(threads: usize, limit: usize, fail: Option<usize>) -> (Ahead<(usize, usize), String>, Arc<AtomicUsize>) {
    let given = Arc::new(AtomicUsize::new(0));
    let workers = (0..threads).map(|_| Counting { items: 5, fail, given: Arc::clone(&given) }).collect();
    (Ahead::start((0..20).map(Ok), limit, workers).unwrap(), given)
}

#[test]
fn items_come_in_order_whatever_the_threads_and_the_room() {
    for threads in [1, 2, 5] {
        for limit in [0, 15, 1_000] {
            let (mut ahead, _) = start(threads, limit, None);
            let mut got = Vec::new();
            while let Some(item) = ahead.next().unwrap() {
                got.push(item);
            }
            let expected: Vec<_> = (0..20).flat_map(|t| (0..5 + t % 3).map(move |i| (t, i))).collect();
            assert_eq!(got, expected, "{threads} {limit}");
            assert!(ahead.next().unwrap().is_none());
        }
    }
}

#[test]
fn an_error_comes_after_the_items_before_it_and_ends_everything() {
    for threads in [1, 3] {
        let (mut ahead, _) = start(threads, 100, Some(4));
        let mut items = 0;
        let error = loop {
            match ahead.next() {
                Ok(item) => items += usize::from(item.is_some()),
                Err(e) => break e,
            }
        };
        assert_eq!((items, error.as_str()), ((0..5).map(|t| 5 + t % 3).sum(), "task 4"));
        assert!(ahead.next().unwrap().is_none());
    }
}

#[test]
fn a_panic_is_an_error() {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    struct Panics;
    impl Worker<usize, (), String> for Panics {
        fn run(&mut self, _: &usize, _: &mut dyn FnMut(Item<()>) -> bool) -> Result<(), String> {
            panic!("boom")
        }
        fn internal(&self, what: &'static str) -> String {
            what.to_owned()
        }

        fn panicked(&self, task: Option<&usize>) -> String {
            format!("panic in {task:?}")
        }
    }
    let mut ahead = Ahead::start((0..3).map(Ok), 0, vec![Panics]).unwrap();
    assert_eq!(ahead.next().unwrap_err(), "panic in Some(0)");
    let feed = (0..3).map(|i| if i < 2 { Ok(i) } else { panic!("boom") });
    let counting = Counting { items: 0, fail: None, given: Arc::default() };
    let mut ahead = Ahead::start(feed, 0, vec![counting]).unwrap();
    assert_eq!((ahead.next().unwrap(), ahead.next().unwrap_err()), (Some((1, 0)), "panic in None".to_owned()));
    std::panic::set_hook(hook);
}

#[test]
fn what_waits_is_bounded_and_dropping_stops_the_threads() {
    let (mut ahead, given) = start(3, 50, None);
    assert_eq!(ahead.next().unwrap(), Some((0, 0)));
    std::thread::sleep(std::time::Duration::from_millis(50));
    // Five fit by bytes, two more of the current task, one more per thread is in hand, one was taken.
    assert!(given.load(Ordering::Relaxed) <= 5 + 2 + 3 + 1);
    drop(ahead);
}
