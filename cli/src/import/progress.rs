//! How far an import is: a bar on a terminal, else a line every few seconds.
//!
//! Counts acknowledged documents; the share done and the time left go by the bytes of the files read for them.

use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::output::{count, note, seconds};

const LINE_EVERY: Duration = Duration::from_secs(5);

/// Progress, shown in one of three ways.
#[derive(Debug)]
pub(crate) struct Progress {
    started: Instant,
    total_bytes: Option<u64>,
    num_docs: u64,
    num_bytes: u64,
    show: Show,
}

#[derive(Debug)]
enum Show {
    Nothing,
    Bar(ProgressBar),
    Lines { last: Instant },
}

impl Progress {
    /// Progress for a person, or for a log where stderr is no terminal.
    pub(crate) fn new(total_bytes: Option<u64>) -> Self {
        let show = if std::io::stderr().is_terminal() {
            let template = match total_bytes {
                Some(_) => "{bar:30} {percent:>3}%  {msg}",
                None => "{spinner}  {msg}",
            };
            let bar = total_bytes.map_or_else(ProgressBar::new_spinner, ProgressBar::new);
            bar.set_style(ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar.enable_steady_tick(Duration::from_millis(200));
            Show::Bar(bar)
        } else {
            Show::Lines { last: Instant::now() }
        };
        Self { started: Instant::now(), total_bytes, num_docs: 0, num_bytes: 0, show }
    }

    /// Shows nothing but what is said.
    pub(crate) fn silent() -> Self {
        Self { started: Instant::now(), total_bytes: None, num_docs: 0, num_bytes: 0, show: Show::Nothing }
    }

    /// So many more documents were acknowledged, the last of them at this byte.
    pub(crate) fn acknowledged(&mut self, num_docs: u64, bytes_read: u64) {
        self.num_docs += num_docs;
        self.num_bytes = self.num_bytes.max(bytes_read);
        let words = self.words();
        match &mut self.show {
            Show::Nothing => {}
            Show::Bar(bar) => {
                bar.set_position(self.num_bytes);
                bar.set_message(words);
            }
            Show::Lines { last } => {
                if last.elapsed() >= LINE_EVERY {
                    *last = Instant::now();
                    note(&words);
                }
            }
        }
    }

    /// Says a line, past the bar.
    pub(crate) fn say(&self, line: &str) {
        match &self.show {
            Show::Bar(bar) => bar.suspend(|| note(line)),
            Show::Nothing | Show::Lines { .. } => note(line),
        }
    }

    /// Takes the bar away.
    pub(crate) fn finish(&self) {
        if let Show::Bar(bar) = &self.show {
            bar.finish_and_clear();
        }
    }

    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)] // For people.
    fn words(&self) -> String {
        let span = self.started.elapsed().as_secs_f64().max(0.001);
        let rate = (self.num_docs as f64 / span) as u64;
        let mut words = format!("{} documents, {}/s", count(self.num_docs), count(rate));
        if let Some(total) = self.total_bytes.filter(|total| *total > 0 && self.num_bytes > 0) {
            let share = (self.num_bytes as f64 / total as f64).min(1.0);
            if !matches!(self.show, Show::Bar(_)) {
                words.push_str(&format!(", {:.0}% read", share * 100.0));
            }
            let left = Duration::try_from_secs_f64(span * (1.0 - share) / share).unwrap_or_default();
            words.push_str(&format!(", {} left", seconds(left)));
        }
        words
    }
}
