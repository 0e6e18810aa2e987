//! Lines that change, on a terminal: the row that fills in, the visit under way, what hangs.

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use runner::Tick;
use units::Nanos;

use super::text;
use super::time::TimeLeft;

#[derive(Debug)]
pub struct Live {
    lines: MultiProgress,
    row: ProgressBar,
    status: ProgressBar,
    waiting: Option<ProgressBar>,
}

impl Live {
    pub fn new() -> Self {
        let lines = MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
        let row = add(&lines);
        let status = add(&lines);
        Self { lines, row, status, waiting: None }
    }

    /// A line that stays, above those that change.
    pub fn print(&self, line: &str) {
        // A terminal that is gone is nothing that anybody could be told.
        let _ = self.lines.println(line);
    }

    pub fn row(&self, row: &str) {
        self.row.set_message(row.to_owned());
    }

    pub fn status(&self, status: &str) {
        self.status.set_message(status.to_owned());
    }

    pub fn tick(&mut self, tick: &Tick<'_>, time: &TimeLeft, left: Option<Nanos>) {
        self.status(&text::status(tick, time, left));
        match text::waiting(&tick.waiting) {
            Some(line) => {
                let bar = self.waiting.get_or_insert_with(|| add(&self.lines));
                bar.set_message(line);
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

/// A line cut to the terminal's width.
fn add(lines: &MultiProgress) -> ProgressBar {
    let style = ProgressStyle::with_template("{wide_msg}")
        .unwrap_or_else(|_| ProgressStyle::default_spinner());
    lines.add(ProgressBar::new_spinner().with_style(style))
}
