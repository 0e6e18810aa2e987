//! Text for terminals: foreign text made harmless, numbers at three digits, dates.

use std::fmt::Write;
use std::sync::OnceLock;

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

/// Widest line of a table, and of text, where nobody says otherwise.
const WIDTH_MAX: usize = 100;
/// Narrower columns of text would be a letter under a letter.
const TEXT_MIN: usize = 12;
/// Narrower terminals break lines themselves.
const WIDTH_MIN: usize = 40;

/// The terminal is one for the whole program, and every table and text goes there.
static WIDTH: OnceLock<usize> = OnceLock::new();

/// Has all tables and texts fit lines of so many characters, but of 100 at most. The first call
/// counts; without one it is 100.
pub fn fit_lines_of(columns: u16) {
    let _ = WIDTH.set(usize::from(columns).clamp(WIDTH_MIN, WIDTH_MAX));
}

/// Widest line of a table, and of text.
pub(crate) fn width() -> usize {
    WIDTH.get().copied().unwrap_or(WIDTH_MAX)
}

/// Lines of at most [`width`], the first after `lead`, the others as far in.
pub fn wrapped(lead: &str, text: &str) -> String {
    let indent = lead.chars().count();
    let mut out = String::new();
    for (k, line) in folded(text, width().saturating_sub(indent).max(1)).iter().enumerate() {
        // Writing to a string cannot fail.
        let _ = if k == 0 {
            writeln!(out, "{lead}{line}")
        } else {
            writeln!(out, "{:indent$}{line}", "")
        };
    }
    out
}

/// Text in lines of at most `width` characters, broken at spaces where there are any.
fn folded(text: &str, width: usize) -> Vec<String> {
    if text.chars().count() <= width {
        return vec![text.to_owned()];
    }
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut used = 0;
    for word in text.split(' ') {
        let mut word: Vec<char> = word.chars().collect();
        if used > 0 && used + 1 + word.len() > width {
            lines.push(std::mem::take(&mut line));
            used = 0;
        } else if used > 0 {
            line.push(' ');
            used += 1;
        }
        // Longer than a line: a path, or names in a row.
        while word.len() > width {
            let parts = word.iter().take(width).rposition(|c| "/+_-,".contains(*c));
            let rest = word.split_off(parts.map_or(width, |at| at + 1));
            lines.push(word.into_iter().collect());
            word = rest;
        }
        used += word.len();
        line.extend(word);
    }
    lines.push(line);
    lines
}

/// Rows of cells as text, columns aligned, two spaces between them, no space at a line's end.
///
/// Where lines are longer than there is room, text is folded in its column; columns that still have
/// no room stand below, after those of text at the left once more. Nothing is left out.
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
    fn widths(&self) -> Vec<usize> {
        let mut widths = vec![0; self.left.len()];
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = cell.chars().count().max(*width);
            }
        }
        widths
    }

    /// Whether no line is longer than there is room, and no text has to be folded.
    pub(crate) fn fits(&self) -> bool {
        line_of(&self.widths()) <= width()
    }

    /// Whether all columns stand beside each other once texts are folded.
    pub(crate) fn fits_folded(&self) -> bool {
        line_of(&self.narrowed(width())) <= width()
    }

    /// Widths of the columns, those of text as small as there is need.
    fn narrowed(&self, room: usize) -> Vec<usize> {
        let mut widths = self.widths();
        while line_of(&widths) > room {
            let texts = widths.iter_mut().zip(&self.left);
            let texts = texts.filter(|(width, left)| **left && **width > TEXT_MIN);
            let Some((widest, _)) = texts.max_by_key(|(width, _)| **width) else { break };
            *widest -= 1;
        }
        widths
    }

    /// The lines, each with its end; as long as they are where no terminal is to be fitted.
    pub fn print(&self) -> String {
        self.in_lines_of(WIDTH.get().copied().unwrap_or(usize::MAX))
    }

    /// The same, folded for files and pipes, too.
    pub(crate) fn print_folded(&self) -> String {
        self.in_lines_of(width())
    }

    fn in_lines_of(&self, room: usize) -> String {
        let widths = self.narrowed(room);
        // What a line is about.
        let about = self.left.iter().take_while(|left| **left).count();
        let mut out = String::new();
        let mut from = about;
        loop {
            let mut block: Vec<usize> = (0..about).collect();
            let mut used = line_of(&widths[..about]);
            while from < widths.len() {
                used += 2 + widths[from];
                if used > room && block.len() > about {
                    break;
                }
                block.push(from);
                from += 1;
            }
            self.rows.iter().for_each(|row| self.print_row(row, &block, &widths, &mut out));
            if from >= widths.len() {
                return out;
            }
            out.push('\n');
        }
    }

    /// Some columns of a row: as many lines as the longest text in them takes.
    fn print_row(&self, row: &[String], columns: &[usize], widths: &[usize], out: &mut String) {
        let cells: Vec<Vec<String>> =
            columns.iter().map(|&k| folded(&row[k], widths[k].max(1))).collect();
        for at in 0..cells.iter().map(Vec::len).max().unwrap_or(0) {
            let mut line = String::new();
            for (lines, &k) in cells.iter().zip(columns) {
                let (cell, width) = (lines.get(at).map_or("", String::as_str), widths[k]);
                // Writing to a string cannot fail.
                let _ = if self.left[k] {
                    write!(line, "{cell:<width$}  ")
                } else {
                    write!(line, "{cell:>width$}  ")
                };
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
    }
}

/// Length of a line of columns so wide.
fn line_of(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1)
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
        assert!(lines.lines().all(|line| line.len() <= WIDTH_MAX), "{lines}");
        assert_eq!(lines.lines().count(), 5);
        let letters = lines.chars().filter(|c| c.is_alphabetic()).count();
        assert_eq!(letters, 60 + 60 + 250);
    }

    #[test]
    fn tables_are_no_wider_than_there_is_room() {
        let mut table = Columns::new(vec![true, false, false, false]);
        table.row(["what", "A", "B", "A / B"].map(str::to_owned).into());
        let what = "commits/s by 16 sessions beside reads and a checkpoint";
        table.row(
            [what, "78.9 K [78.3, 79.5]", "6.09 K [6.00, 6.19]", "x13.0"].map(str::to_owned).into(),
        );
        assert_eq!(table.in_lines_of(200).lines().count(), 2);
        for room in [80, 60, 40, 36] {
            let text = table.in_lines_of(room);
            assert!(text.lines().all(|line| line.chars().count() <= room), "{room}:\n{text}");
            for cell in ["checkpoint", "78.9 K [78.3, 79.5]", "6.09 K [6.00, 6.19]", "x13.0"] {
                assert!(text.contains(cell), "{cell} at {room}:\n{text}");
            }
        }
        // Text is folded first; then columns stand below, named once more.
        assert_eq!(table.in_lines_of(80).matches("what").count(), 1);
        assert_eq!(table.in_lines_of(40).matches("what").count(), 2);
    }
}
