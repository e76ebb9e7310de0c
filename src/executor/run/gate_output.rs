//! What a gate prints, heard piece by piece and once: its tests are counted line by line, and its
//! end is kept. No I/O.

use std::collections::VecDeque;

use crate::executor::run::counts::{CountFault, Counts, TestCount};
use crate::executor::run::verdict::end_of;
use crate::limits::{GATE_LINE_BYTES_MAX, GATE_TAIL_BYTES_MAX};

/// The output of a gate, as far as it is of use.
#[derive(Debug)]
pub struct GateOutput<'g> {
    counts: &'g Counts,
    tests: Result<TestCount, CountFault>,
    /// The start of a line that has not ended.
    line: Vec<u8>,
    /// Whether that is not all of the line.
    is_cut: bool,
    tail: VecDeque<u8>,
}

impl<'g> GateOutput<'g> {
    /// That of a gate whose tests are counted like this.
    pub fn new(counts: &'g Counts) -> Self {
        Self {
            counts,
            tests: match counts {
                Counts::Pattern(_) => Err(CountFault::NoSummary),
                _ => Ok(TestCount::default()),
            },
            line: Vec::new(),
            is_cut: false,
            tail: VecDeque::new(),
        }
    }

    /// Takes in what was printed next.
    pub fn hear(&mut self, mut printed: &[u8]) {
        self.keep_tail(printed);
        if let Counts::Nothing | Counts::Report(_) = self.counts {
            return;
        }
        while let Some(at) = memchr::memchr(b'\n', printed) {
            self.keep_line(&printed[..at]);
            self.count_line();
            printed = &printed[at + 1..];
        }
        self.keep_line(printed);
    }

    fn keep_line(&mut self, part: &[u8]) {
        let left = GATE_LINE_BYTES_MAX - self.line.len();
        self.is_cut |= part.len() > left;
        self.line.extend_from_slice(&part[..part.len().min(left)]);
    }

    /// Counts by a line that has ended. One that is longer than what is kept of it counts nothing:
    /// the number of those that failed may be in the rest, and so may the summary of which there
    /// is to be one.
    fn count_line(&mut self) {
        let line = String::from_utf8_lossy(&self.line);
        match (self.counts, &mut self.tests) {
            (Counts::Pattern(_), tests) if self.is_cut => *tests = Err(CountFault::LongLine),
            _ if self.is_cut => {}
            (Counts::Runner(runner), Ok(tests)) => runner.count_line(&line, tests),
            (Counts::Pattern(pattern), tests) => pattern.count_line(line.trim_end(), tests),
            _ => {}
        }
        drop(line);
        self.line.clear();
        self.is_cut = false;
    }

    fn keep_tail(&mut self, printed: &[u8]) {
        let end = &printed[printed.len().saturating_sub(GATE_TAIL_BYTES_MAX)..];
        let surplus = (self.tail.len() + end.len()).saturating_sub(GATE_TAIL_BYTES_MAX);
        self.tail.drain(..surplus);
        self.tail.extend(end);
    }

    /// The tests that ran, if they are counted, and the end of the output, when it is complete.
    pub fn finish(mut self) -> (Result<Option<TestCount>, CountFault>, String) {
        self.count_line();
        let tail = self.tail.make_contiguous();
        // It may begin in the middle of a character.
        let is_inside = |byte: &&u8| **byte & 0xC0 == 0x80;
        let inside = tail.iter().take(3).take_while(is_inside).count();
        let text = String::from_utf8_lossy(&tail[inside..]);
        let tests = match self.counts {
            Counts::Nothing | Counts::Report(_) => Ok(None),
            Counts::Runner(_) | Counts::Pattern(_) => self.tests.map(Some),
        };
        (tests, end_of(&text, GATE_TAIL_BYTES_MAX).to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::executor::run::runners::Runner;

    const CARGO: Counts = Counts::Runner(Runner::Cargo);

    fn heard(
        counts: &Counts,
        output: &[u8],
        piece: usize,
    ) -> (Result<Option<TestCount>, CountFault>, String) {
        let mut kept = GateOutput::new(counts);
        output.chunks(piece).for_each(|part| kept.hear(part));
        kept.finish()
    }

    #[test]
    fn tests_are_counted_over_all_of_the_output_in_whatever_pieces_it_comes() {
        let line = "test result: ok. 3 passed; 1 failed;\n";
        let noise = "x".repeat(3 * GATE_LINE_BYTES_MAX) + "\n";
        let output = line.repeat(2) + &noise.repeat(4) + line.trim_end();
        let wanted = Ok(Some(TestCount {
            passed: 9,
            failed: 3,
            skipped: 0,
        }));
        for piece in [1, 7, 4096, output.len()] {
            let (tests, tail) = heard(&CARGO, output.as_bytes(), piece);
            assert_eq!(tests, wanted, "{piece}");
            assert!(output.ends_with(&tail) && tail.len() == GATE_TAIL_BYTES_MAX);
        }
        assert_eq!(heard(&Counts::Nothing, output.as_bytes(), 99).0, Ok(None));
    }

    #[test]
    fn numbers_beyond_counting_are_no_fault() {
        let line = format!("test result: ok. {0} passed; {0} failed;\n", u64::MAX);
        let (tests, _) = heard(&CARGO, line.repeat(2).as_bytes(), 99);
        let wanted = TestCount {
            passed: u64::MAX,
            failed: u64::MAX,
            skipped: 0,
        };
        assert_eq!(tests, Ok(Some(wanted)));
    }

    #[test]
    fn the_end_of_an_output_begins_with_a_character() {
        let (_, tail) = heard(
            &Counts::Nothing,
            "€".repeat(GATE_TAIL_BYTES_MAX).as_bytes(),
            10,
        );
        assert_eq!(tail, "€".repeat(GATE_TAIL_BYTES_MAX / 3));
        let (_, tail) = heard(&Counts::Nothing, &vec![0x80; 5000], 10);
        assert!(tail.len() <= GATE_TAIL_BYTES_MAX && tail.starts_with('\u{FFFD}'));
        assert_eq!(heard(&Counts::Nothing, b"", 1), (Ok(None), String::new()));
    }

    #[test]
    fn a_gate_that_prints_much_keeps_little() {
        let mut kept = GateOutput::new(&CARGO);
        for _ in 0..256 {
            kept.hear(&[b'x'; 16 << 10]);
        }
        let bytes = kept.tail.capacity() + kept.line.capacity();
        assert!(
            bytes <= 4 * (GATE_TAIL_BYTES_MAX + GATE_LINE_BYTES_MAX),
            "{bytes}"
        );
    }
}
