//! Where settings come from: flags over environment over file over defaults, key by key.
//!
//! Every fault of every layer is found before any is reported; where a value came from is remembered, so that a fault
//! can name it.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use toml::{Table, Value};

use super::{Embedder, NAMED_TABLES, Role, Settings, check, is_table, paths, variable};
use crate::args::{LoggingArgs, ServerArgs};
use crate::failure::Failure;

/// A setting that can't be, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Dotted path of the key, or a file.
    pub(super) key: String,
    /// What is wrong, without the key.
    pub(super) words: String,
}

/// Where values came from, by dotted path.
pub(super) type Origins = BTreeMap<String, String>;

/// The settings of a role, checked as a whole.
///
/// # Errors
/// A failure that lists every fault, a line each.
pub(crate) fn load(role: Role, args: &ServerArgs, logging: &LoggingArgs) -> Result<Settings, Failure> {
    load_with(role, args, logging, &|name| std::env::var(name).ok()).map_err(|faults| {
        let heading = match faults.len() {
            1 => "the settings have a fault:".to_owned(),
            number => format!("the settings have {number} faults:"),
        };
        let lines = faults.iter().map(|fault| format!("\n  {}: {}", fault.key, fault.words));
        Failure::new(heading + &lines.collect::<String>())
    })
}

/// The same, with the environment as a function.
pub(super) fn load_with(
    role: Role,
    args: &ServerArgs,
    logging: &LoggingArgs,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<Settings, Vec<Fault>> {
    let mut layers = Layers { tree: defaults(), origins: Origins::new(), faults: Vec::new() };
    let defaults = layers.tree.clone();
    if let Some(path) = &args.config {
        layers.add_file(path);
    }
    for path in paths() {
        let name = variable(&path);
        if let Some(text) = environment(&name) {
            layers.set_text(&defaults, &path, &text, &name);
        }
    }
    layers.name_embedders(args, environment);
    for path in layers.named_paths() {
        let name = variable(&path);
        if let Some(text) = environment(&name) {
            layers.set_text(&defaults, &path, &text, &name);
        }
    }
    for pair in &args.set {
        match pair.split_once('=') {
            Some((path, text)) => layers.set_text(&defaults, path.trim(), text.trim(), "--set"),
            None => layers.fault("--set", format!("`{pair}` is not of the form KEY=VALUE")),
        }
    }
    for (path, flag, value) in flags(args, logging) {
        layers.set(path, value, flag);
    }
    let Layers { tree, origins, mut faults } = layers;
    match Settings::deserialize(tree) {
        Ok(mut settings) => {
            check::fill_in(&mut settings, role, &mut faults);
            check::check(&settings, role, &origins, &mut faults);
            if faults.is_empty() { Ok(settings) } else { Err(faults) }
        }
        Err(error) => {
            // Each key was tried on its own, so this is not expected; it is still no reason to panic.
            faults.push(Fault { key: "settings".to_owned(), words: one_line(&error) });
            Err(faults)
        }
    }
}

struct Layers {
    tree: Table,
    origins: Origins,
    faults: Vec<Fault>,
}

impl Layers {
    fn fault(&mut self, key: &str, words: String) {
        self.faults.push(Fault { key: key.to_owned(), words });
    }

    fn add_file(&mut self, path: &Path) {
        let name = path.display().to_string();
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) => return self.fault(&name, format!("can't be read: {error}")),
        };
        let table: Table = match text.parse() {
            Ok(table) => table,
            Err(error) => return self.fault(&name, format!("is not TOML: {}", one_line(&error))),
        };
        for (key, value) in table {
            match value {
                Value::Table(named) if key == NAMED_TABLES => {
                    for (embedder, value) in named {
                        let path = format!("{NAMED_TABLES}.{embedder}");
                        let Value::Table(inner) = value else {
                            self.fault(&path, format!("is no table (from {name})"));
                            continue;
                        };
                        self.name_embedder(&embedder);
                        for (inner_key, value) in inner {
                            self.set(&format!("{path}.{inner_key}"), value, &name);
                        }
                    }
                }
                Value::Table(inner) if is_table(&key) => {
                    for (inner_key, value) in inner {
                        self.set(&format!("{key}.{inner_key}"), value, &name);
                    }
                }
                value => self.set(&key, value, &name),
            }
        }
    }

    /// Makes a table for an embedder, so that one without any key is not overlooked.
    fn name_embedder(&mut self, embedder: &str) {
        if let Some(Value::Table(named)) = self.tree.get_mut(NAMED_TABLES) {
            named.entry(embedder).or_insert_with(|| Value::Table(Table::new()));
        }
    }

    /// Tables for the embedders that the environment and `--set` name.
    fn name_embedders(&mut self, args: &ServerArgs, environment: &dyn Fn(&str) -> Option<String>) {
        let listed = environment(&variable(NAMED_TABLES)).unwrap_or_default();
        let set = args.set.iter().filter_map(|pair| Some(named(pair.split_once('=')?.0.trim())?.0));
        let listed = listed.split(',').map(str::trim).filter(|name| !name.is_empty());
        for name in listed.chain(set) {
            self.name_embedder(name);
        }
    }

    /// The dotted paths of the embedders' keys.
    fn named_paths(&self) -> Vec<String> {
        let Some(Value::Table(named)) = self.tree.get(NAMED_TABLES) else { return Vec::new() };
        let of = |name| Embedder::KEYS.iter().map(move |(key, _)| format!("{NAMED_TABLES}.{name}.{key}"));
        named.keys().flat_map(of).collect()
    }

    /// Sets a key from text, read as the type of its default.
    fn set_text(&mut self, defaults: &Table, path: &str, text: &str, origin: &str) {
        let of_embedder = named(path).and_then(|(_, key)| Table::try_from(Embedder::default()).ok()?.remove(key));
        let value = match of_embedder.as_ref().or_else(|| get(defaults, path)) {
            Some(Value::Integer(_)) => text.parse().map(Value::Integer).map_err(|_| "a whole number"),
            Some(Value::Float(_)) => text.parse().map(Value::Float).map_err(|_| "a number"),
            Some(Value::Boolean(_)) => text.parse().map(Value::Boolean).map_err(|_| "true or false"),
            Some(Value::Array(_)) => {
                let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
                Ok(Value::Array(parts.map(|part| Value::String(part.to_owned())).collect()))
            }
            Some(_) | None => Ok(Value::String(text.to_owned())),
        };
        match value {
            Ok(value) => self.set(path, value, origin),
            Err(wanted) => self.fault(path, format!("`{text}` from {origin} is not {wanted}")),
        }
    }

    /// Sets a key if it exists and takes the value. Tried alone, so that one fault does not hide the next.
    fn set(&mut self, path: &str, value: Value, origin: &str) {
        let alone = match path.split_once('.') {
            Some(_) if named(path).is_some() => {
                let (name, key) = named(path).unwrap_or_default();
                one(NAMED_TABLES, Value::Table(one(name, Value::Table(one(key, value.clone())))))
            }
            Some((table, key)) => Table::from_iter([(table.to_owned(), Value::Table(one(key, value.clone())))]),
            None => one(path, value.clone()),
        };
        if let Err(error) = Settings::deserialize(alone) {
            return self.fault(path, format!("{} (from {origin})", one_line(&error)));
        }
        match path.split_once('.') {
            Some(_) if named(path).is_some() => {
                let (name, key) = named(path).unwrap_or_default();
                self.name_embedder(name);
                if let Some(Value::Table(tables)) = self.tree.get_mut(NAMED_TABLES)
                    && let Some(Value::Table(inner)) = tables.get_mut(name)
                {
                    inner.insert(key.to_owned(), value);
                }
            }
            Some((table, key)) => {
                if let Some(Value::Table(inner)) = self.tree.get_mut(table) {
                    inner.insert(key.to_owned(), value);
                }
            }
            None => {
                self.tree.insert(path.to_owned(), value);
            }
        }
        self.origins.insert(path.to_owned(), origin.to_owned());
    }
}

/// The name and the key of an embedder's path.
fn named(path: &str) -> Option<(&str, &str)> {
    path.strip_prefix(NAMED_TABLES)?.strip_prefix('.')?.rsplit_once('.')
}

fn one(key: &str, value: Value) -> Table {
    Table::from_iter([(key.to_owned(), value)])
}

fn defaults() -> Table {
    // Plain structs of strings, numbers and lists always serialize; an empty tree would show in the tests at once.
    Table::try_from(Settings::default()).unwrap_or_default()
}

fn get<'a>(tree: &'a Table, path: &str) -> Option<&'a Value> {
    match path.split_once('.') {
        Some((table, key)) => tree.get(table)?.get(key),
        None => tree.get(path),
    }
}

fn flags<'a>(args: &ServerArgs, logging: &LoggingArgs) -> impl Iterator<Item = (&'a str, &'a str, Value)> {
    let path = |path: &Option<std::path::PathBuf>| path.as_ref().map(|path| path.to_string_lossy().into_owned().into());
    let text = |text: &Option<String>| text.clone().map(Value::String);
    let list = |list: &Vec<String>| Value::Array(list.iter().cloned().map(Value::String).collect());
    let format = logging.format.and_then(|format| Value::try_from(format).ok());
    [
        ("data", "--data", path(&args.data)),
        ("store", "--store", text(&args.store)),
        ("cache_dir", "--cache-dir", path(&args.cache_dir)),
        ("listen", "--listen", text(&args.listen)),
        ("id", "--id", text(&args.id)),
        ("nodes", "--node", args.nodes.as_ref().map(list)),
        ("cluster.gossip_listen", "--gossip-listen", text(&args.gossip_listen)),
        ("cluster.seeds", "--seed", args.seeds.as_ref().map(list)),
        ("logging.filter", "--log", text(&logging.filter)),
        ("logging.format", "--log-format", format),
    ]
    .into_iter()
    .filter_map(|(path, flag, value)| Some((path, flag, value?)))
}

fn one_line(error: &dyn std::fmt::Display) -> String {
    error.to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
#[path = "layers_tests.rs"]
mod tests;
