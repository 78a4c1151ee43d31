#![allow(clippy::unwrap_used)]

use std::num::NonZeroU32;

use antiphon_proto::error::ErrorKind;

use super::*;

fn entry(name: &str, secret: &TokenSecret, scopes: &[&str]) -> TokenEntry {
    TokenEntry {
        name: name.to_owned(),
        sha256: secret.sha256(),
        scopes: scopes.iter().map(|scope| (*scope).to_owned()).collect(),
        expires: None,
        max_calls_per_s: None,
        max_concurrent_calls: None,
        max_message_bytes: None,
    }
}

fn read(text: &str, former: Option<&Tokens>) -> Tokens {
    Tokens::read(Path::new("tokens.toml"), &[text.as_bytes().to_vec()], former).unwrap()
}

fn kind<T>(outcome: Result<T, antiphon_proto::error::ApiError>) -> Option<ErrorKind> {
    outcome.err().map(|error| error.kind())
}

#[test]
fn scopes_are_of_one_right_and_of_names_or_their_beginnings() {
    let covers = |scope: &str, name: &str| scope.parse::<Scope>().unwrap().covers(name);
    assert!(covers("read:docs", "docs") && !covers("read:docs", "docs-1") && !covers("read:docs", "doc"));
    assert!(covers("write:docs-*", "docs-1") && covers("write:docs-*", "docs-") && !covers("write:docs-*", "docs"));
    assert!(covers("admin:*", "anything") && covers("admin:*", ""));
    for scope in ["read:docs", "write:docs-*", "admin:*"] {
        assert_eq!(scope.parse::<Scope>().unwrap().to_string(), scope);
    }
    for wrong in
        ["", "read", "read:", ":docs", "all:docs", "read:a*b", "read:*a", "read:Docs", "read:a b", "Read:a", "read:**"]
    {
        assert!(wrong.parse::<Scope>().is_err(), "{wrong:?}");
    }
}

#[test]
fn a_token_is_found_by_what_is_sent_and_allows_just_its_scopes() {
    let (mine, other) = (TokenSecret::random().unwrap(), TokenSecret::random().unwrap());
    assert_ne!(mine.reveal(), other.reveal());
    let text = with_token("", entry("mine", &mine, &["read:docs-*", "write:docs-1"])).unwrap();
    let text = with_token(&text, entry("other", &other, &["admin:*"])).unwrap();
    assert!(!text.contains(mine.reveal()) && !text.contains(other.reveal()));
    let tokens = read(&text, None);
    let token = tokens.find(mine.reveal().as_bytes()).unwrap();
    assert_eq!(token.name(), "mine");
    assert_eq!(kind(token.allows(Right::Read, "docs-2")), None);
    assert_eq!(kind(token.allows(Right::Write, "docs-1")), None);
    assert_eq!(kind(token.allows(Right::Write, "docs-2")), Some(ErrorKind::TokenScope));
    assert_eq!(kind(token.allows(Right::Admin, "docs-1")), Some(ErrorKind::TokenScope));
    assert_eq!(kind(token.allows(Right::Read, "secrets")), Some(ErrorKind::TokenScope));
    assert!(token.knows("docs-1") && !token.knows("secrets") && !token.knows_all());
    assert!(tokens.find(other.reveal().as_bytes()).unwrap().knows_all());
    let admin = tokens.find(other.reveal().as_bytes()).unwrap();
    assert_eq!(kind(admin.allows(Right::Read, "docs-1")), Some(ErrorKind::TokenScope), "no right holds another");
    for wrong in ["", "antiphon_", &mine.sha256(), &mine.reveal()[1..], &format!("{}x", mine.reveal())] {
        assert!(tokens.find(wrong.as_bytes()).is_none(), "{wrong:?}");
    }
}

#[test]
fn a_token_is_good_until_it_expires() {
    let secret = TokenSecret::random().unwrap();
    let expiring = |at: &str| {
        let with_expiry = TokenEntry { expires: Some(at.parse().unwrap()), ..entry("a", &secret, &["read:*"]) };
        with_token("", with_expiry).map(|text| read(&text, None))
    };
    let outcome = |tokens: &Tokens| kind(tokens.find(secret.reveal().as_bytes()).unwrap().allows(Right::Read, "docs"));
    assert_eq!(outcome(&expiring("2999-01-01T00:00:00+08:00").unwrap()), None);
    assert_eq!(outcome(&expiring("2020-01-01T00:00:00Z").unwrap()), Some(ErrorKind::TokenInvalid));
    assert!(expiring("2999-01-01").is_err() && expiring("2999-01-01T00:00:00").is_err(), "a time without its offset");
}

#[test]
fn limits_hold_and_go_on_counting_when_the_file_changes() {
    let (secret, other) = (TokenSecret::random().unwrap(), TokenSecret::random().unwrap());
    let limited = TokenEntry {
        max_calls_per_s: NonZeroU32::new(3),
        max_concurrent_calls: NonZeroU32::new(2),
        max_message_bytes: Some(10),
        ..entry("limited", &secret, &["read:*"])
    };
    let text = with_token("", limited).unwrap();
    let tokens = read(&text, None);
    let token = tokens.find(secret.reveal().as_bytes()).unwrap();
    assert_eq!(kind(token.check_size(|| 10)), None);
    assert_eq!(kind(token.check_size(|| 11)), Some(ErrorKind::TooLarge));
    let held = (token.begin().unwrap(), token.begin().unwrap());
    let text = with_token(&text, entry("other", &other, &["read:*"])).unwrap();
    let changed = read(&text, Some(&tokens));
    let token = changed.find(secret.reveal().as_bytes()).unwrap();
    assert_eq!(kind(token.begin()), Some(ErrorKind::Overloaded), "two are under way");
    drop(held);
    assert_eq!(kind(token.begin()), None, "the third of this second");
    assert_eq!(kind(token.begin()), Some(ErrorKind::Overloaded), "three began within a second");
    let status = token.begin().unwrap_err().to_status();
    let retry = tonic_retry(&status);
    assert!(retry > std::time::Duration::ZERO && retry <= std::time::Duration::from_secs(1), "{retry:?}");
}

fn tonic_retry(status: &tonic::Status) -> std::time::Duration {
    use tonic_types::StatusExt as _;
    status.get_error_details().retry_info().unwrap().retry_delay.unwrap()
}

#[test]
fn what_is_wrong_with_a_file_is_said_without_its_hashes() {
    let secret = TokenSecret::random().unwrap();
    let hash = secret.sha256();
    let good = with_token("", entry("a", &secret, &["read:*"])).unwrap();
    let files = [
        good.replace("[[tokens]]", "[[token]]"),
        good.replace("scopes", "scope"),
        good.replace("read:*", "peek:*"),
        good.replace("[\"read:*\"]", "[]"),
        good.replace(&hash, &hash[1..]),
        good.replace(&hash, &format!("{}Ω{}", &hash[..31], &hash[33..])),
        good.replace("\"a\"", "\"a b\""),
        format!("{good}max_calls_per_s = 0\n"),
        format!("{good}\n{good}"),
        format!("{good}\n{}", good.replace("\"a\"", "\"b\"")),
        good.replace("sha256 = \"", "sha256 = "),
        "\u{0}".to_owned(),
    ];
    for text in files {
        let error = Tokens::read(Path::new("tokens.toml"), &[text.clone().into_bytes()], None).unwrap_err().to_string();
        assert!(error.starts_with("tokens.toml: ") && !error.contains(&hash[8..40]), "{error}\n{text}");
    }
    assert!(Tokens::read(Path::new("t"), &[vec![0xff]], None).is_err());
    assert!(read("", None).find(secret.reveal().as_bytes()).is_none());
}
