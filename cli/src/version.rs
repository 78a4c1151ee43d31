//! What this binary is: its version, the commit it was built from, its features.

/// For `--version`: after the version a line for the commit, where it is known, and one for what was compiled in.
pub(crate) fn long() -> String {
    let mut words = env!("CARGO_PKG_VERSION").to_owned();
    if !COMMIT.is_empty() {
        words.push_str(&format!("\ncommit {COMMIT}"));
    }
    let features: &[&str] = if cfg!(feature = "bert") { &["bert"] } else { &[] };
    let features = if features.is_empty() { "none".to_owned() } else { features.join(", ") };
    words.push_str(&format!("\nfeatures {features}"));
    words
}

/// Twelve digits of the commit, and a `+` where files were changed; empty where the build could not tell.
const COMMIT: &str = env!("ANTIPHON_BUILD_COMMIT");
