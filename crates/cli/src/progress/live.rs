//! Lines that change, on a terminal: the grid as it fills in, the visit under way with its course,
//! what hangs.

use std::collections::VecDeque;

use console::Term;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use runner::Tick;
use units::Nanos;

use super::grid::Open;
use super::text;
use super::time::TimeLeft;

/// Ticks whose rates are drawn: two seconds.
const COURSE: usize = 20;
/// Lines of the terminal that the grid leaves to what was said before, the visit, and what hangs.
const OTHER_LINES: usize = 8;

#[derive(Debug)]
pub struct Live {
    lines: MultiProgress,
    grid: Vec<ProgressBar>,
    status: ProgressBar,
    waiting: Option<ProgressBar>,
    /// Requests per second at the last ticks of the visit.
    course: VecDeque<f64>,
}

impl Live {
    pub fn new() -> Self {
        let lines = MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
        let status = lines.add(line());
        let course = VecDeque::with_capacity(COURSE);
        Self { lines, grid: Vec::new(), status, waiting: None, course }
    }

    /// A line that stays, above those that change.
    pub fn print(&self, line: &str) {
        // A terminal that is gone is nothing that anybody could be told.
        let _ = self.lines.println(line);
    }

    /// The rows that are open, as many around the cell's as the terminal has room for.
    pub fn grid(&mut self, open: &Open) {
        let room = usize::from(Term::stderr().size().0).saturating_sub(OTHER_LINES).max(1);
        let first = window(open, room);
        let shown = open.lines.get(first..).unwrap_or_default();
        let shown = shown.get(..room).unwrap_or(shown);
        for bar in self.grid.drain(shown.len().min(self.grid.len())..) {
            bar.finish_and_clear();
            self.lines.remove(&bar);
        }
        while self.grid.len() < shown.len() {
            self.grid.push(self.lines.insert_before(&self.status, line()));
        }
        for (bar, text) in self.grid.iter().zip(shown) {
            if bar.message() != *text {
                bar.set_message(text.clone());
            }
        }
    }

    /// A visit begins.
    pub fn visit(&mut self, cell: &str) {
        self.course.clear();
        self.status(cell);
    }

    pub fn status(&self, status: &str) {
        self.status.set_message(status.to_owned());
    }

    pub fn tick(&mut self, tick: &Tick<'_>, time: &TimeLeft, left: Option<Nanos>) {
        if self.course.len() == COURSE {
            self.course.pop_front();
        }
        self.course.push_back(tick.iops);
        let course = text::sparkline(self.course.iter().copied()) + "  ";
        self.status(&text::status(tick, time, left, &course));
        match text::waiting(&tick.waiting) {
            Some(text) => {
                let bar = self.waiting.get_or_insert_with(|| self.lines.add(line()));
                bar.set_message(text);
            }
            None => {
                if let Some(bar) = self.waiting.take() {
                    bar.finish_and_clear();
                    self.lines.remove(&bar);
                }
            }
        }
    }

    pub fn clear(&self) {
        let _ = self.lines.clear();
        self.lines.set_draw_target(ProgressDrawTarget::hidden());
    }
}

/// First of at most `room` lines, so that the cell's is among them.
fn window(open: &Open, room: usize) -> usize {
    let last = open.lines.len().saturating_sub(room);
    open.at.saturating_sub(room / 2).min(last)
}

/// A line cut to the terminal's width.
fn line() -> ProgressBar {
    let style = ProgressStyle::with_template("{wide_msg}")
        .unwrap_or_else(|_| ProgressStyle::default_spinner());
    ProgressBar::new_spinner().with_style(style)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_keeps_the_cell_in_sight() {
        let open = |lines: usize, at| Open { lines: vec![String::new(); lines], at };
        assert_eq!(window(&open(5, 4), 10), 0, "all of it");
        assert_eq!(window(&open(30, 0), 10), 0);
        assert_eq!(window(&open(30, 15), 10), 10);
        assert_eq!(window(&open(30, 29), 10), 20);
        assert_eq!(window(&open(0, 0), 1), 0);
        for at in 0..30 {
            let first = window(&open(30, at), 7);
            assert!((first..first + 7).contains(&at), "{at}: {first}");
        }
    }
}
