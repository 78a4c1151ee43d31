//! Columns of text, aligned.

use super::width;

/// Rows under a heading. Numbers, that is columns declared so, are aligned right.
#[derive(Debug)]
pub(crate) struct Table {
    heading: Vec<&'static str>,
    is_number: Vec<bool>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these columns; a `#` before a name marks a column of numbers.
    pub(crate) fn new(columns: &[&'static str]) -> Self {
        Self {
            heading: columns.iter().map(|name| name.trim_start_matches('#')).collect(),
            is_number: columns.iter().map(|name| name.starts_with('#')).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row; its cells are made plain.
    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.iter().map(|cell| width::plain(cell)).collect());
    }

    /// Whether there are no rows.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The text, each line indented by so many spaces.
    pub(crate) fn render(&self, indent: usize) -> String {
        let heading: Vec<String> = self.heading.iter().map(|name| (*name).to_owned()).collect();
        let lines: Vec<&Vec<String>> = std::iter::once(&heading).chain(&self.rows).collect();
        let widths: Vec<usize> = (0..heading.len())
            .map(|column| {
                lines.iter().filter_map(|line| line.get(column)).map(|cell| width::of(cell)).max().unwrap_or(0)
            })
            .collect();
        let mut out = String::new();
        for line in lines {
            let mut text = " ".repeat(indent);
            for ((cell, columns), is_number) in line.iter().zip(&widths).zip(&self.is_number) {
                let padding = " ".repeat(columns.saturating_sub(width::of(cell)));
                let parts = if *is_number { [padding.as_str(), cell] } else { [cell, padding.as_str()] };
                text.extend(parts);
                text.push_str("  ");
            }
            out.push_str(text.trim_end());
            out.push('\n');
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_over_scripts() {
        let mut table = Table::new(&["name", "#docs", "note"]);
        table.row(["北京".into(), "7".into(), "wide".into()]);
        table.row(["a".into(), "1,000".into(), "narrow\nbroken".into()]);
        assert_eq!(table.render(1), " name   docs  note\n 北京      7  wide\n a     1,000  narrow broken\n");
    }
}
