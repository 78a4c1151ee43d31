//! The names of analyzers, known to whoever validates a schema. What they do is the node's.

/// Every analyzer of this release. Empty means `standard`.
pub const NAMES: &[&str] = &[
    "standard", "en", "ru", "de", "fr", "es", "it", "pt", "nl", "sv", "da", "no", "fi", "hu", "ro", "tr", "el", "ar",
    "ta", "zh", "exact",
];

/// Whether a schema may name an analyzer so.
pub fn is_known(name: &str) -> bool {
    name.is_empty() || NAMES.contains(&name)
}
