//! What this binary is: its version, the commit it was built from, its features.

use std::sync::LazyLock;

/// Twelve digits of the commit, and a `+` where files were changed; empty where the build could not tell.
const COMMIT: &str = env!("ANTIPHON_BUILD_COMMIT");

/// For `--version`: after the version a line for the commit, where it is known, and one for what was compiled in.
pub(crate) static LONG: LazyLock<String> = LazyLock::new(|| {
    let commit = if COMMIT.is_empty() { String::new() } else { format!("\ncommit {COMMIT}") };
    let features = if cfg!(feature = "bert") { "bert" } else { "none" };
    format!("{}{commit}\nfeatures {features}", env!("CARGO_PKG_VERSION"))
});
