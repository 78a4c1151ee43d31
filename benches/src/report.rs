//! What a benchmark prints: notes on the way, a Markdown table at the end, the same as JSON.

use std::io::Write;
use std::path::Path;

use serde::Serialize;

use crate::Outcome;

/// Others that use so much of a machine make times mean little: a thread that computes all the time is given less of a
/// shared core than one that often waits.
const BUSY_CORES: f64 = 0.15;

/// One line of the table.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Figure {
    /// What was measured, with its unit.
    pub figure: String,
    /// The product's.
    pub ours: String,
    /// The raw libraries'.
    pub raw: String,
    /// Ours by raw.
    pub ratio: String,
    /// What is wanted.
    pub target: String,
    /// Whether it was reached.
    pub met: Option<bool>,
}

/// Figures of one run.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// In order.
    pub figures: Vec<Figure>,
}

impl Report {
    /// Adds a figure without comparison.
    pub fn add(&mut self, figure: &str, ours: String) {
        self.figures.push(Figure { figure: figure.into(), ours, ..Figure::default() });
    }

    /// Adds a figure with a target.
    pub fn add_target(&mut self, figure: &str, ours: String, target: &str, met: bool) {
        let (figure, target) = (figure.into(), target.into());
        self.figures.push(Figure { figure, ours, target, met: Some(met), ..Figure::default() });
    }

    /// Adds a comparison.
    pub fn compare(&mut self, figure: &str, ours: String, raw: String, ratio: f64) {
        let (figure, ratio) = (figure.into(), format!("{ratio:.2}"));
        self.figures.push(Figure { figure, ours, raw, ratio, ..Figure::default() });
    }

    /// Adds a comparison with a target.
    pub fn compare_target(&mut self, figure: &str, ours: String, raw: String, ratio: String, target: &str, met: bool) {
        let (figure, target) = (figure.into(), target.into());
        self.figures.push(Figure { figure, ours, raw, ratio, target, met: Some(met) });
    }

    /// Withdraws the verdict on the last figure, a matter of time, where other processes used so much of the machine
    /// meanwhile that it says nothing.
    pub fn unless_busy(&mut self, others_cores: f64) {
        if let Some(figure) = self.figures.last_mut()
            && others_cores > BUSY_CORES
        {
            figure.met = None;
            figure.target.push_str(&format!(" (no verdict: others used {others_cores:.2} cores)"));
        }
    }

    /// The table.
    pub fn markdown(&self) -> String {
        let mut text = String::from("| figure | ours | raw | ratio | target | met |\n|---|---|---|---|---|---|\n");
        for figure in &self.figures {
            let met = match figure.met {
                None => "",
                Some(true) => "yes",
                Some(false) => "**no**",
            };
            let Figure { figure, ours, raw, ratio, target, .. } = figure;
            text.push_str(&format!("| {figure} | {ours} | {raw} | {ratio} | {target} | {met} |\n"));
        }
        text
    }
}

/// A table of any columns.
pub fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let mut text = format!("| {} |\n|{}\n", head.join(" | "), "---|".repeat(head.len()));
    for row in rows {
        text.push_str(&format!("| {} |\n", row.join(" | ")));
    }
    text
}

/// Prints a table, and writes it as JSON: an object a row.
///
/// # Errors
/// Where the file can't be written.
pub fn tell_table(head: &[&str], rows: &[Vec<String>], json: &Path) -> Outcome<()> {
    print(&table(head, rows));
    let rows: Vec<_> = rows
        .iter()
        .map(|row| head.iter().zip(row).map(|(name, value)| ((*name).to_owned(), value.as_str().into())).collect())
        .map(serde_json::Value::Object)
        .collect();
    write_json(json, &rows.into())
}

/// Prints to standard output.
pub fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    // Whoever closed standard output does not want to know.
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

/// Says on standard error how far the run is.
pub fn note(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "# {text}");
}

/// Writes a file of JSON.
///
/// # Errors
/// Where it can't be written.
pub fn write_json(path: &Path, value: &serde_json::Value) -> Outcome<()> {
    let mut text = serde_json::to_string_pretty(value)?;
    text.push('\n');
    Ok(std::fs::write(path, text)?)
}

/// Bytes in mebibytes.
pub fn mib(bytes: u64) -> String {
    format!("{:.0} MiB", bytes as f64 / f64::from(1 << 20))
}
