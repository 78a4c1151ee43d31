//! The demo as a person runs it: a server of its own, three languages, two pages each, and nothing left running.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::net::TcpStream;
use std::process::Command;

#[test]
fn the_demo_finds_its_answers_and_stops_its_server() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let output = Command::new(env!("CARGO_BIN_EXE_antiphon"))
        .args(["demo", "--data"])
        .arg(&data)
        .output()
        .expect("the binary runs");
    let told = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{told}\n{errors}");
    assert!(told.contains("Imported 720 paragraphs"), "{told}");
    assert_eq!(told.matches("\nPage 2 of at most 19").count(), 6, "{told}");
    // Each answer of the first question is the best match in its own language.
    for key in ["*en-p60", "*ru-p60", "*zh-p60"] {
        let is_first = told.lines().any(|line| line.trim_start().starts_with(&format!("1  {key}")));
        assert!(is_first, "{key} is not first in\n{told}");
    }
    assert!(told.contains("grpcurl -plaintext") && told.contains(&data.display().to_string()), "{told}");
    assert!(std::fs::read_dir(&data).unwrap().next().is_some(), "the data stay");
    let address = told.split("http://").nth(1).and_then(|rest| rest.split(';').next()).unwrap();
    assert!(TcpStream::connect(address).is_err(), "a server still listens on {address}");
}
