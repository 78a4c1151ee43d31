//! The settings in effect as a TOML file that explains itself, for `--print-config`.

use std::fmt::Write as _;

use toml::{Table, Value};

use super::{Embedder, Key, NAMED_TABLES, Settings, TABLES, is_table, variable};

/// A file that, read again, gives the same settings.
pub(crate) fn print(settings: &Settings) -> String {
    let tree = Table::try_from(settings).unwrap_or_default();
    let mut out = String::new();
    comment(&mut out, Settings::ABOUT);
    table(&mut out, "", Settings::KEYS, &tree);
    for (name, about, keys) in TABLES {
        out.push('\n');
        comment(&mut out, about);
        let _ = writeln!(out, "[{name}]");
        if let Some(Value::Table(inner)) = tree.get(*name) {
            table(&mut out, name, keys, inner);
        }
    }
    out.push('\n');
    comment(&mut out, Embedder::ABOUT);
    if let Some(Value::Table(named)) = tree.get(NAMED_TABLES) {
        for (name, inner) in named.iter().filter_map(|(name, inner)| Some((name, inner.as_table()?))) {
            let _ = writeln!(out, "[{NAMED_TABLES}.{name}]");
            table(&mut out, &format!("{NAMED_TABLES}.{name}"), Embedder::KEYS, inner);
            out.push('\n');
        }
    }
    out
}

fn table(out: &mut String, name: &str, keys: &[Key], values: &Table) {
    for (key, lines) in keys.iter().filter(|(key, _)| !(name.is_empty() && is_table(key))) {
        let path = if name.is_empty() { (*key).to_owned() } else { format!("{name}.{key}") };
        out.push('\n');
        comment(out, lines);
        let _ = writeln!(out, "# {}", variable(&path));
        if let Some(value) = values.get(*key) {
            let _ = writeln!(out, "{key} = {}", value);
        }
    }
}

fn comment(out: &mut String, lines: &[&str]) {
    for line in lines {
        let _ = writeln!(out, "# {}", line.trim());
    }
}
