//! Text for terminals: foreign text made harmless, numbers at three digits, dates.

use std::fmt::Write;

/// Text from outside with everything that a terminal would obey or hide instead of print written out
/// as an escape: what [`units::is_unseen`] says.
pub fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if units::is_unseen(c) { out.extend(c.escape_default()) } else { out.push(c) }
    }
    out
}

/// Three significant digits without an exponent; whole numbers from 100 on.
pub fn three_digits(value: f64) -> String {
    let size = value.abs();
    match size {
        _ if !value.is_finite() => "-".to_owned(),
        0.0 => "0".to_owned(),
        99.95.. => format!("{value:.0}"),
        9.995.. => format!("{value:.1}"),
        0.9995.. => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// [`three_digits`], or `-` for what is not known.
pub fn known(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), three_digits)
}

/// At most `width` characters, the last a `~` if some had to go.
pub fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let mut out: String = text.chars().take(width.saturating_sub(1)).collect();
    out.push('~');
    out
}

/// Wall clock as `2009-02-20 00:00:00`, in UTC.
///
/// Method: days to civil date over eras of 400 years (Howard Hinnant, "chrono-Compatible
/// Low-Level Date Algorithms", `civil_from_days`).
pub fn utc(unix_ns: i64) -> String {
    let seconds = unix_ns.div_euclid(1_000_000_000);
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // From 1 March of year 0, so that the leap day is the last of its year.
    let from_march = days + 719_468;
    let (era, day_of_era) = (from_march.div_euclid(146_097), from_march.rem_euclid(146_097));
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
}

/// Widest line of a table, and of text.
pub const WIDTH: usize = 100;

/// Lines of at most [`WIDTH`], the first after `lead`, the others as far in.
pub fn wrapped(lead: &str, text: &str) -> String {
    let indent = lead.chars().count();
    let mut out = String::new();
    let mut line = lead.to_owned();
    let mut used = indent;
    for word in text.split(' ') {
        let mut word: Vec<char> = word.chars().collect();
        if used > indent && used + 1 + word.len() > WIDTH {
            out.push_str(&line);
            out.push('\n');
            line = " ".repeat(indent);
            used = indent;
        } else if used > indent {
            line.push(' ');
            used += 1;
        }
        // Longer than a line: a path.
        while used + word.len() > WIDTH {
            let rest = word.split_off(WIDTH - used);
            line.extend(word);
            out.push_str(&line);
            out.push('\n');
            (line, used, word) = (" ".repeat(indent), indent, rest);
        }
        used += word.len();
        line.extend(word);
    }
    out.push_str(&line);
    out.push('\n');
    out
}

/// Rows of cells as text, columns aligned, two spaces between them, no space at a line's end.
#[derive(Debug, Default)]
pub struct Columns {
    rows: Vec<Vec<String>>,
    left: Vec<bool>,
}

impl Columns {
    /// `left[k]`: whether column `k` is text and starts at its left edge.
    pub fn new(left: Vec<bool>) -> Self {
        Self { rows: Vec::new(), left }
    }

    /// Adds a row; as many cells as there are columns.
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// Widths of the columns.
    pub fn widths(&self) -> Vec<usize> {
        let mut widths = vec![0; self.left.len()];
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = cell.chars().count().max(*width);
            }
        }
        widths
    }

    /// The lines, each with its end.
    pub fn print(&self) -> String {
        let widths = self.widths();
        let mut out = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for ((cell, &width), &left) in row.iter().zip(&widths).zip(&self.left) {
                // Writing to a string cannot fail.
                let _ = if left {
                    write!(line, "{cell:<width$}  ")
                } else {
                    write!(line, "{cell:>width$}  ")
                };
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminals_are_not_given_orders() {
        assert_eq!(plain("/ssd/tést 1.dat"), "/ssd/tést 1.dat");
        assert_eq!(plain("a\x1b[2Jb\x07\r\nc\u{9b}d"), "a\\u{1b}[2Jb\\u{7}\\r\\nc\\u{9b}d");
        assert_eq!(plain("x\u{202e}dcb"), "x\\u{202e}dcb");
        assert_eq!(plain("\u{feff}a\u{200e}b\u{e0041}"), "\\u{feff}a\\u{200e}b\\u{e0041}");
    }

    #[test]
    fn numbers_have_three_digits() {
        for (value, text) in [
            (0.0, "0"),
            (0.0123, "0.012"),
            (0.9996, "1.00"),
            (9.999, "10.0"),
            (12.34, "12.3"),
            (99.96, "100"),
            (123_456.7, "123457"),
            (f64::NAN, "-"),
            (f64::INFINITY, "-"),
        ] {
            assert_eq!(three_digits(value), text, "{value}");
        }
    }

    #[test]
    fn dates_are_right() {
        for (seconds, text) in [
            (0, "1970-01-01 00:00:00"),
            (951_782_400, "2000-02-29 00:00:00"),
            (1_235_088_000, "2009-02-20 00:00:00"),
            (1_709_251_199, "2024-02-29 23:59:59"),
            (4_107_542_400, "2100-03-01 00:00:00"),
            (-1, "1969-12-31 23:59:59"),
        ] {
            assert_eq!(utc(seconds * 1_000_000_000), text);
        }
        // The ends of the range do not overflow.
        utc(i64::MIN);
        utc(i64::MAX);
    }

    #[test]
    fn long_texts_are_wrapped() {
        let text = format!("{} {} {}", "a".repeat(60), "b".repeat(60), "c".repeat(250));
        let lines = wrapped("  1 ", &text);
        assert!(lines.lines().all(|line| line.len() <= WIDTH), "{lines}");
        assert_eq!(lines.lines().count(), 5);
        let letters = lines.chars().filter(|c| c.is_alphabetic()).count();
        assert_eq!(letters, 60 + 60 + 250);
    }
}
