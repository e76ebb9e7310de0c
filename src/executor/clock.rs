//! Points in time, as milliseconds since 1970 and as people read them (RFC 3339, in UTC), and times
//! that pass, which nobody can set.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Now.
pub fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    })
}

/// The time since this executor has started. What is measured with it does not change when somebody
/// sets the clock.
#[derive(Debug, Clone, Copy)]
pub struct Uptime {
    started: Instant,
    started_ms: u64,
}

impl Uptime {
    /// It starts now.
    pub fn start() -> Self {
        Self {
            started: Instant::now(),
            started_ms: now_ms(),
        }
    }

    /// How long it is.
    pub fn ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// A time that is not later than now, however the clock was set since the start: nothing is
    /// past its time before that time has passed here.
    pub fn cautious_now_ms(&self) -> u64 {
        earlier(now_ms(), self.started_ms, self.ms())
    }
}

fn earlier(clock_ms: u64, started_ms: u64, uptime_ms: u64) -> u64 {
    clock_ms.min(started_ms.saturating_add(uptime_ms))
}

/// A point in time as text, to the millisecond.
pub fn stamp(ms: u64) -> String {
    let (days, of_day) = (ms / 86_400_000, ms % 86_400_000);
    let (year, month, day) = date(days);
    let (hour, minute) = (of_day / 3_600_000, of_day / 60_000 % 60);
    let (second, rest) = (of_day / 1_000 % 60, of_day % 1_000);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{rest:03}Z")
}

/// The point in time that [`stamp`] wrote.
pub fn parse(text: &str) -> Option<u64> {
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<u64>().ok();
    let marks = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    let ends = [(19, b'.'), (23, b'Z')];
    let bytes = text.as_bytes();
    if bytes.len() != 24
        || !marks
            .iter()
            .chain(&ends)
            .all(|&(at, mark)| bytes[at] == mark)
    {
        return None;
    }
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    if year < 1970 || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let days = days(year, month, day);
    let seconds = number(11, 13)? * 3600 + number(14, 16)? * 60 + number(17, 19)?;
    Some((days * 86_400 + seconds) * 1_000 + number(20, 23)?)
}

/// Days since 1970 of a date. The year is taken to begin in March, so that a leap day is its last.
fn days(year: u64, month: u64, day: u64) -> u64 {
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let leaps = year / 4 - year / 100 + year / 400;
    year * 365 + leaps + (month * 153 + 2) / 5 + day - 1 - 719_468
}

/// The date of so many days since 1970.
fn date(days: u64) -> (u64, u64, u64) {
    let mut year = 1970 + days / 366;
    while self::days(year + 1, 1, 1) <= days {
        year += 1;
    }
    let mut month = 12;
    while self::days(year, month, 1) > days {
        month -= 1;
    }
    (year, month, days - self::days(year, month, 1) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_reads_back_as_what_it_was() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_799_999, "2000-02-29T23:59:59.999Z"),
            (1_796_118_098_123, "2026-12-01T09:41:38.123Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(stamp(ms), text);
            assert_eq!(parse(text), Some(ms));
        }
        for day in (0..80_000).step_by(7) {
            let ms = day * 86_400_000 + 1;
            assert_eq!(parse(&stamp(ms)), Some(ms));
        }
    }

    /// A clock that was set forward by a year expired what had ended a minute before.
    #[test]
    fn a_clock_that_is_set_makes_nothing_older_than_it_is() {
        const YEAR_MS: u64 = 365 * 86_400_000;
        let (started, uptime) = (10 * YEAR_MS, 60_000);
        assert_eq!(earlier(started + uptime, started, uptime), started + uptime);
        assert_eq!(
            earlier(started + YEAR_MS, started, uptime),
            started + uptime
        );
        assert_eq!(
            earlier(started - YEAR_MS, started, uptime),
            started - YEAR_MS
        );
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            "2026-12-01",
            "2026-12-01T09:41:38Z",
            "2026-13-01T09:41:38.123Z",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
