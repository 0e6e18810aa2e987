//! Words as a shell takes them, so that what is printed can be copied and means the same.

use std::fmt::Write;

use units::is_unseen;

/// A word as it has to be typed.
///
/// Printable words stand as they are or between single quotes. One with characters that a terminal
/// would obey or hide (controls, those that turn the direction of text, those without width) is
/// written by its bytes, as `$'...'` of POSIX 2024, bash, zsh and ksh: what is seen names exactly
/// what is meant.
pub fn shell_word(word: &str) -> String {
    let safe = |c: char| c.is_ascii_alphanumeric() || "/-_=.,:+@%".contains(c);
    if !word.is_empty() && word.chars().all(safe) {
        return word.to_owned();
    }
    if !word.chars().any(is_unseen) {
        return format!("'{}'", word.replace('\'', r"'\''"));
    }
    let mut out = "$'".to_owned();
    let mut bytes = [0; 4];
    for c in word.chars() {
        match c {
            '\'' | '\\' => out.extend(['\\', c]),
            c if is_unseen(c) => {
                for byte in c.encode_utf8(&mut bytes).bytes() {
                    // Writing to a string cannot fail. Three digits: what follows may be one.
                    let _ = write!(out, "\\{byte:03o}");
                }
            }
            c => out.push(c),
        }
    }
    out.push('\'');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_would_read_them() {
        assert_eq!(shell_word("/dev/sda1"), "/dev/sda1");
        assert_eq!(shell_word("a b"), "'a b'");
        assert_eq!(shell_word("it's;rm"), r"'it'\''s;rm'");
        assert_eq!(shell_word(""), "''");
        assert_eq!(shell_word("/dev/scheib\u{e4}"), "'/dev/scheib\u{e4}'");
    }

    #[test]
    fn what_cannot_be_seen_is_written_by_its_bytes() {
        assert_eq!(shell_word("/dev/\u{202e}vdc"), r"$'/dev/\342\200\256vdc'");
        assert_eq!(shell_word("vd\u{e0063}c"), r"$'vd\363\240\201\243c'");
        assert_eq!(shell_word("a'\\\x1b[1m\n7"), r"$'a\'\\\033[1m\0127'");
    }

    #[test]
    fn a_shell_reads_back_what_was_meant() {
        for word in ["/dev/\u{202e}vdc", "a'\\\x1b[1m\n7", "\u{200b}", "it's $x `y`", "\u{85}0"] {
            let line = format!("printf %s {}", shell_word(word));
            let Ok(done) = std::process::Command::new("bash").args(["-c", &line]).output() else {
                // Nothing to ask: the words above are checked all the same.
                return;
            };
            assert_eq!(String::from_utf8_lossy(&done.stdout), word, "{line}");
        }
    }
}
