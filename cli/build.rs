//! Tells the program which commit it is built from: `GIT_COMMIT` where that is set, else what git says of this checkout, else
//! nothing.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=GIT_COMMIT");
    let named = std::env::var("GIT_COMMIT").ok().filter(|name| !name.trim().is_empty());
    let commit = named.or_else(commit_of_checkout).unwrap_or_default();
    println!("cargo::rustc-env=ANTIPHON_BUILD_COMMIT={}", commit.trim());
}

/// The commit that is checked out, with a `+` where files that git knows are changed.
fn commit_of_checkout() -> Option<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent()?.canonicalize().ok()?;
    // Sources unpacked somewhere below another repository are not of its commits.
    let top = Path::new(git(&["rev-parse", "--show-toplevel"])?.trim()).canonicalize().ok()?;
    if top != root {
        return None;
    }
    // What changes whenever another commit is checked out or made.
    for name in ["HEAD", "logs/HEAD"] {
        let path = git(&["rev-parse", "--path-format=absolute", "--git-path", name])?;
        if Path::new(path.trim()).exists() {
            println!("cargo::rerun-if-changed={}", path.trim());
        }
    }
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let is_changed = !git(&["status", "--porcelain", "--untracked-files=no"])?.trim().is_empty();
    Some(format!("{}{}", commit.trim(), if is_changed { "+" } else { "" }))
}

/// What git prints, or `None` where there is no git or it fails.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).current_dir(env!("CARGO_MANIFEST_DIR")).output().ok()?;
    output.status.success().then(|| String::from_utf8(output.stdout).ok()).flatten()
}
