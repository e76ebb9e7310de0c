//! What a member of an executor's answers may look like. An executor is another process, of any
//! quality and of any origin, and what it says is shown to a model that acts upon it.

/// Whether a text is the name of a commit: the whole of a SHA-1 or a SHA-256.
pub fn is_commit(text: &str) -> bool {
    let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    matches!(text.len(), 40 | 64) && text.bytes().all(is_hex)
}

/// Begins a byte of a name that is no part of UTF-8. No name has a NUL, so that no other name has
/// the same text.
pub const RAW_BYTE_MARK: char = '\0';

/// The bytes that a marked byte takes: the mark and two hexadecimal digits.
pub const RAW_BYTE_TEXT_BYTES: usize = 3;

/// The byte that a name goes on with, if it is a marked one: U+0000 and two small hexadecimal
/// digits, of a byte that is not ASCII.
pub fn raw_byte(rest: &str) -> Option<u8> {
    let digits = rest.strip_prefix(RAW_BYTE_MARK)?.get(..2)?;
    let is_lower_hex = |digit: u8| matches!(digit, b'0'..=b'9' | b'a'..=b'f');
    let byte = u8::from_str_radix(digits, 16).ok()?;
    (digits.bytes().all(is_lower_hex) && !byte.is_ascii()).then_some(byte)
}

/// Whether a text is a path that stays within a repository, whatever it is joined to, and outside
/// of its git directory. A byte that is no part of UTF-8 is marked.
pub fn is_inner_path(text: &str) -> bool {
    let is_component =
        |part: &str| !matches!(part, "" | "." | "..") && !part.eq_ignore_ascii_case(".git");
    let mut marks = text.match_indices(RAW_BYTE_MARK);
    marks.all(|(at, _)| raw_byte(&text[at..]).is_some()) && text.split('/').all(is_component)
}

/// Whether a text is an absolute path without detours. Two slashes in front name another machine on
/// some systems.
pub fn is_absolute_path(text: &str) -> bool {
    let inner = text.strip_prefix('/');
    let is_plain = |part: &str| !matches!(part, "." | "..");
    inner.is_some_and(|inner| {
        !inner.starts_with('/') && !inner.contains('\0') && inner.split('/').all(is_plain)
    })
}

/// Whether a text is a code: a word of small letters and underscores.
pub fn is_code(text: &str) -> bool {
    let is_of_a_code =
        |byte: u8| byte.is_ascii_lowercase() || byte == b'_' || byte.is_ascii_digit();
    text.starts_with(|first: char| first.is_ascii_lowercase()) && text.bytes().all(is_of_a_code)
}

/// Whether a text counts changes as git does: `2 files changed, 1 insertion(+), 4 deletions(-)`.
pub fn is_diffstat(text: &str) -> bool {
    const COUNTED: [&str; 6] = [
        "file changed",
        "files changed",
        "insertion(+)",
        "insertions(+)",
        "deletion(-)",
        "deletions(-)",
    ];
    let is_count = |part: &str| {
        let counted = part.split_once(' ');
        counted.is_some_and(|(count, what)| is_number(count) && COUNTED.contains(&what))
    };
    text.split(", ").all(is_count)
}

/// Whether a text is a point in time: `2026-12-01T09:00:00Z`, with any fraction of a second and any
/// distance from UTC.
pub fn is_timestamp(text: &str) -> bool {
    const SECOND: &str = "dddd-dd-ddTdd:dd:dd";
    let Some((second, rest)) = text.split_at_checked(SECOND.len()) else {
        return false;
    };
    let rest = match rest.strip_prefix('.') {
        Some(rest) => {
            let zone = rest.trim_start_matches(|digit: char| digit.is_ascii_digit());
            match zone.len() < rest.len() {
                true => zone,
                false => return false,
            }
        }
        None => rest,
    };
    let zone = rest.strip_prefix(['+', '-']);
    has_form(second, SECOND) && (rest == "Z" || zone.is_some_and(|zone| has_form(zone, "dd:dd")))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a text is a form in which each `d` stands for a digit.
fn has_form(text: &str, form: &str) -> bool {
    let fits = |(byte, wanted): (u8, u8)| match wanted {
        b'd' => byte.is_ascii_digit(),
        _ => byte == wanted,
    };
    text.len() == form.len() && text.bytes().zip(form.bytes()).all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(is: fn(&str) -> bool, good: &[&str], bad: &[&str]) {
        for text in good {
            assert!(is(text), "{text:?} is refused");
        }
        for text in bad {
            assert!(!is(text), "{text:?} is taken");
        }
    }

    #[test]
    fn each_text_has_its_grammar() {
        let (sha1, sha256) = ("0a".repeat(20), "0f".repeat(32));
        let (short, upper) = ("0a".repeat(19), "0A".repeat(20));
        let bad = ["", "HEAD", &short, &upper, "--upload-pack=touch /tmp/x"];
        check(is_commit, &[&sha1, &sha256], &bad);
        check(
            is_inner_path,
            &[
                "a",
                "a/b.c",
                "-rf",
                "..a",
                "a..",
                "...",
                ".gitignore",
                "\u{1B}[m",
                "a\\b",
                " ",
                "a\0ff",
                "\0c3/\080x",
            ],
            &[
                "", "/", "/a", "a/", "a//b", ".", "./a", "..", "../a", "a/../b", "a/..", "a\0b",
                "\0", "\0f", "\0FF", "\u{0}7f", "\0+f", "\0é",
            ],
        );
        check(
            is_inner_path,
            &[".github/x"],
            &[".git/config", "a/.GIT/hooks/x", ".git"],
        );
        check(
            is_absolute_path,
            &["/", "/a/b", "/a//b/"],
            &[
                "",
                "a",
                "a/b",
                "//machine/a",
                "/a/../b",
                "/..",
                "/a/.",
                "/\0",
                "-a",
            ],
        );
        check(
            is_code,
            &["gate_failed", "a1"],
            &["", "_a", "A", "a b", "a\u{1B}", "1a"],
        );
        check(
            is_diffstat,
            &[
                "1 file changed",
                "2 files changed, 10 insertions(+), 1 deletion(-)",
            ],
            &[
                "",
                "1",
                "1 file",
                "many files changed",
                "1 file changed\u{1B}[2J",
                "1 file changed,",
            ],
        );
        check(
            is_timestamp,
            &[
                "2026-12-01T09:00:00Z",
                "2026-12-01T09:00:00.123Z",
                "2026-12-01T09:00:00+01:00",
            ],
            &[
                "",
                "now",
                "2026-12-01T09:00:00",
                "2026-12-01T09:00:00.Z",
                "2026-12-01T09:00:00ZZ",
            ],
        );
    }
}
