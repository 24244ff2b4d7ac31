//! Files whose checks are right and whose contents are not: questions by own operators are answered or fail in words.

use plinth_core::random::Random;
use plinth_format::File;

use crate::common::{Dir, plinth};
use crate::forge::{Forged, Sample};

/// Files that are forged.
const FILES: u64 = 30;

/// Of text that one dictionary codes, and of numbers by their bounds.
const QUESTIONS: [&str; 3] = [
    "SELECT s, count(*), sum(n), min(s) FROM 'forged.plinth' GROUP BY s ORDER BY s",
    "SELECT n, count(DISTINCT s), max(f), avg(n) FROM 'forged.plinth' GROUP BY n ORDER BY n",
    "SELECT a.n, count(*) FROM 'forged.plinth' AS a JOIN 'sample.plinth' AS b ON a.n = b.n GROUP BY a.n ORDER BY a.n",
];

fn sample(dir: &Dir) -> Sample {
    let rows = "SELECT value % 40 AS n, concat('text ', value * 31 % 97) AS s, 1.25 * (value % 7) AS f FROM generate_series(1, 700)";
    plinth(dir, &["-c", &format!("COPY ({rows}) TO 'sample.plinth'")]).ok();
    let path = dir.path("sample.plinth");
    let file = File::open(&path).unwrap();
    Sample {
        file: Forged::new(&std::fs::read(&path).unwrap(), 3),
        rows: file.row_groups().iter().map(|group| group.rows).collect(),
        block_rows: 8192,
        one_value_a_row: vec![true; 3],
    }
}

#[test]
fn forged_files_are_answered_or_refused_in_words() {
    let dir = Dir::new();
    let sample = sample(&dir);
    let random = &mut Random(plinth_core::random::trials("PLINTH_SEED", 1));
    let (mut answered, mut refused) = (0, 0);
    for _ in 0..plinth_core::random::trials("PLINTH_FORGED", FILES) {
        std::fs::write(dir.path("forged.plinth"), sample.mutated(&mut || random.next_u64())).unwrap();
        for question in QUESTIONS {
            for native in ["true", "false"] {
                let run = plinth(&dir, &["-c", &format!("SET plinth.native = {native}; {question}")]);
                assert!(matches!(run.code, Some(0 | 1)), "{question}, native {native}: {:?} {}", run.code, run.stderr);
                let is_bug = |text: &str| text.contains("panicked") || text.to_lowercase().contains("internal error");
                assert!(!is_bug(&run.stderr), "{question}, native {native}: {}", run.stderr);
                assert_eq!(run.code == Some(0), run.stderr.is_empty(), "{question}, native {native}: {}", run.stderr);
                *if run.code == Some(0) { &mut answered } else { &mut refused } += 1;
            }
        }
    }
    assert!(answered > 0 && refused > 0, "{answered} answered, {refused} refused");
}
