//! The binary as a person meets it where no server is needed: help, settings, faults, exit codes.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::process::{Command, Output};

fn antiphon(arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_antiphon"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("ANTIPHON_")) {
        command.env_remove(name);
    }
    command.args(arguments).envs(variables.iter().copied()).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn help_has_examples() {
    let output = antiphon(&["--help"], &[]);
    assert!(output.status.success());
    for words in ["antiphon demo", "EXIT CODES", "ANTIPHON_LIMITS_MAX_PAGE_SIZE"] {
        assert!(stdout(&output).contains(words), "{words}");
    }
}

#[test]
fn the_version_names_commit_and_features() {
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(stdout(&antiphon(&["-V"], &[])), format!("antiphon {version}\n"));
    let long = stdout(&antiphon(&["--version"], &[]));
    let mut lines = long.lines();
    assert_eq!(lines.next(), Some(format!("antiphon {version}").as_str()));
    let rest: Vec<&str> = lines.collect();
    assert_eq!(rest.last(), Some(&"features bert"), "{long}");
    for commit in rest.iter().filter_map(|line| line.strip_prefix("commit ")) {
        assert!(commit.trim_end_matches('+').chars().all(|c| c.is_ascii_hexdigit()), "{long}");
    }
}

#[test]
fn completions_know_the_commands_and_their_flags() {
    for (shell, words) in [
        ("bash", "antiphon__subcmd__collection__subcmd__create"),
        ("zsh", "#compdef antiphon"),
        ("fish", "expansion-search"),
    ] {
        let output = antiphon(&["completions", shell], &[]);
        assert!(output.status.success() && stdout(&output).contains(words), "{shell}");
        assert!(stdout(&output).contains("print-config"), "{shell}");
    }
    let mut bash = Command::new("bash");
    let script = stdout(&antiphon(&["completions", "bash"], &[]));
    assert!(bash.args(["-n", "-c", &script]).status().unwrap().success());
    assert_eq!(antiphon(&["completions", "csh"], &[]).status.code(), Some(2));
}

#[test]
fn there_is_a_man_page_for_each_command() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("share/man1");
    let output = antiphon(&["man", "--dir", pages.to_str().unwrap()], &[]);
    assert!(output.status.success(), "{}", stderr(&output));
    for (page, words) in [
        ("antiphon.1", "EXIT CODES"),
        ("antiphon-serve.1", "print\\-config"),
        ("antiphon-collection-create.1", "bfloat16"),
    ] {
        let text = std::fs::read_to_string(pages.join(page)).unwrap();
        assert!(text.starts_with(".ie") && text.contains(words), "{page}:\n{text}");
    }
    assert!(stdout(&antiphon(&["man"], &[])).contains(".TH antiphon 1"));
    // A file where the folder should be.
    let taken = folder.path().join("taken");
    std::fs::write(&taken, "").unwrap();
    let output = antiphon(&["man", "--dir", taken.to_str().unwrap()], &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("can't write man pages"), "{}", stderr(&output));
}

#[test]
fn the_server_can_be_named_behind_a_subcommand() {
    for command in [&["collection", "list"][..], &["alias", "list"], &["status"]] {
        let arguments = [command, &["--address", "127.0.0.1:1"]].concat();
        let output = antiphon(&arguments, &[]);
        assert_eq!(output.status.code(), Some(1), "{command:?}");
        assert!(stderr(&output).contains("no server answers at 127.0.0.1:1"), "{}", stderr(&output));
    }
}

#[test]
fn print_config_shows_where_each_setting_can_come_from() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("antiphon.toml");
    std::fs::write(&file, "[limits]\nmax_page_size = 20\nsearch_queue = 7\n").unwrap();
    let arguments = ["serve", "--listen", "127.0.0.1:9", "--print-config", "--data", "/srv/antiphon"];
    let variables = [("ANTIPHON_CONFIG", file.to_str().unwrap()), ("ANTIPHON_LIMITS_MAX_PAGE_SIZE", "30")];
    let output = antiphon(&arguments, &variables);
    assert!(output.status.success(), "{}", stderr(&output));
    for line in [
        "max_page_size = 30",
        "search_queue = 7",
        "listen = \"127.0.0.1:9\"",
        "store = \"file:///srv/antiphon\"",
        "# ANTIPHON_SEALING_SEAL_ROWS",
    ] {
        assert!(stdout(&output).lines().any(|found| found == line), "{line} in\n{}", stdout(&output));
    }
}

#[test]
fn all_faults_of_the_settings_are_told_at_once() {
    let output = antiphon(
        &["coordinator", "--set", "limits.max_page_size=0", "--set", "sealing.colour=red", "--listen", "here"],
        &[("ANTIPHON_VIEWS_MAX_VIEWS", "x")],
    );
    assert_eq!(output.status.code(), Some(1));
    let words = stderr(&output);
    assert!(words.contains("6 faults"), "{words}");
    for key in ["limits.max_page_size", "sealing.colour", "listen", "views.max_views", "store", "nodes"] {
        assert!(words.contains(&format!("\n  {key}: ")), "{key} in {words}");
    }
}

#[test]
fn a_server_that_is_not_there_is_told_in_one_line() {
    for arguments in [
        &["status"][..],
        &["search", "-c", "a", "words"],
        &["get", "-c", "a", "key"],
        &["collection", "list"],
        &["import", "-c", "a", "/dev/null"],
    ] {
        let output = antiphon(arguments, &[("ANTIPHON_ADDRESS", "http://127.0.0.1:1")]);
        assert_eq!(output.status.code(), Some(1));
        let words = stderr(&output);
        assert_eq!(words.lines().count(), 1, "{words}");
        assert!(words.starts_with("antiphon: no server answers at http://127.0.0.1:1: "), "{words}");
        assert!(words.contains("antiphon serve"), "{words}");
    }
}

#[test]
fn addresses_that_cannot_be_one_are_told() {
    for address in ["ftp://a:1", "http://", "http://a b"] {
        let output = antiphon(&["status", "--address", address], &[]);
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains(&format!("the address `{address}`")), "{}", stderr(&output));
    }
}

#[test]
fn a_command_line_that_makes_no_sense_exits_with_2() {
    for arguments in [
        &["search", "-c", "a"][..],
        &["search", "-c", "a", "words", "--page", "2", "--skip", "3"],
        &["search", "-c", "a", "words", "--fusion", "rrf"],
        &["collection", "create", "a", "--vector", "body"],
        &["import", "-c", "a", "--batch", "0", "f"],
        &[],
    ] {
        assert_eq!(antiphon(arguments, &[]).status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn the_demo_leaves_a_folder_alone_that_is_in_use() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("x"), "x").unwrap();
    let output = antiphon(&["demo", "--data", folder.path().to_str().unwrap()], &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("is not empty"), "{}", stderr(&output));
}
