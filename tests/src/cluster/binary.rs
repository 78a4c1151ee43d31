//! The binary under test: built once in each test process, in the profile that the test itself was built in.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Where the `antiphon` binary is. The first call builds it; the others wait for that.
///
/// ANTIPHON_TEST_BINARY names another one, such as that of an earlier release; nothing is built then.
pub fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| match std::env::var_os("ANTIPHON_TEST_BINARY") {
        Some(given) => given.into(),
        None => build(),
    })
}

fn build() -> PathBuf {
    // Tests are in <target>/<profile>/deps.
    let test = std::env::current_exe().unwrap();
    let profile_dir = test.parent().and_then(Path::parent).unwrap();
    let target_dir = profile_dir.parent().unwrap();
    let profile = match profile_dir.file_name().and_then(|name| name.to_str()).unwrap() {
        "debug" => "dev",
        name => name,
    };
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut build = Command::new(cargo);
    build.current_dir(workspace).args(["build", "--quiet", "--package", "antiphon", "--profile", profile]);
    let built = build.arg("--target-dir").arg(target_dir).output().unwrap();
    assert!(built.status.success(), "the binary cannot be built:\n{}", String::from_utf8_lossy(&built.stderr));
    let binary = profile_dir.join("antiphon").with_extension(std::env::consts::EXE_EXTENSION);
    assert!(binary.is_file(), "{} was not built", binary.display());
    binary
}
