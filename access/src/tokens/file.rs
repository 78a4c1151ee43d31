//! The file of tokens, as TOML.

use std::collections::{HashMap, HashSet};
use std::num::NonZeroU32;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::scope::Scope;
use super::token::{Token, TokenSpec};

/// Most tokens of a file.
const MAX_TOKENS: usize = 10_000;
/// Most scopes of a token.
const MAX_SCOPES: usize = 1_000;
/// Most bytes of a name.
const MAX_NAME_BYTES: usize = 64;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    tokens: Vec<TokenEntry>,
}

/// A token as the file has it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenEntry {
    /// Who bears it, 1 to 64 visible ASCII characters.
    pub name: String,
    /// SHA-256 of the token in hexadecimal digits.
    pub sha256: String,
    /// What it allows, as `read:docs`, `write:logs-*`.
    pub scopes: Vec<String>,
    /// When it is no longer taken, with its offset.
    pub expires: Option<toml::value::Datetime>,
    /// Most calls that begin in a second.
    pub max_calls_per_s: Option<NonZeroU32>,
    /// Most calls under way.
    pub max_concurrent_calls: Option<NonZeroU32>,
    /// Most bytes of a request, or of one message of an import.
    pub max_message_bytes: Option<u64>,
}

/// A file of tokens with one more at its end, checked as a whole.
///
/// # Errors
/// What is wrong, and with which token.
pub fn with_token(text: &str, entry: TokenEntry) -> Result<String, String> {
    let more = toml::to_string(&File { tokens: vec![entry] }).map_err(|error| error.to_string())?;
    let gap = match text {
        "" => "",
        text if text.ends_with('\n') => "\n",
        _ => "\n\n",
    };
    let whole = format!("{text}{gap}{more}");
    parse(whole.as_bytes()).map(|_| whole)
}

/// Tokens by hash.
///
/// # Errors
/// What is wrong, and with which token; never a hash.
pub(super) fn parse(bytes: &[u8]) -> Result<HashMap<[u8; 32], Arc<Token>>, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "is not UTF-8".to_owned())?;
    // Of toml's words only the first line and where it is: the others quote the file.
    let file: File = toml::from_str(text).map_err(|error| {
        let line = error.span().map_or(0, |span| text[..span.start.min(text.len())].matches('\n').count() + 1);
        format!("line {line}: {}", error.message())
    })?;
    if file.tokens.len() > MAX_TOKENS {
        return Err(format!("has {} tokens, at most {MAX_TOKENS} can be", file.tokens.len()));
    }
    let (mut tokens, mut names) = (HashMap::new(), HashSet::new());
    for (index, entry) in file.tokens.into_iter().enumerate() {
        let name = entry.name.clone();
        let spec = spec(entry).map_err(|why| format!("token {index} ({name:?}): {why}"))?;
        if !names.insert(name.clone()) {
            return Err(format!("token {index} ({name:?}): another has this name"));
        }
        if tokens.insert(spec.hash, Arc::new(Token::new(spec))).is_some() {
            return Err(format!("token {index} ({name:?}): another has this hash"));
        }
    }
    Ok(tokens)
}

fn spec(entry: TokenEntry) -> Result<TokenSpec, String> {
    let is_name =
        (1..=MAX_NAME_BYTES).contains(&entry.name.len()) && entry.name.bytes().all(|byte| byte.is_ascii_graphic());
    if !is_name {
        return Err(format!("its name must have 1 to {MAX_NAME_BYTES} visible ASCII characters"));
    }
    if !(1..=MAX_SCOPES).contains(&entry.scopes.len()) {
        return Err(format!("must have 1 to {MAX_SCOPES} scopes"));
    }
    let scopes = entry.scopes.iter().map(|scope| scope.parse()).collect::<Result<Vec<Scope>, String>>()?;
    Ok(TokenSpec {
        name: entry.name,
        hash: hash(&entry.sha256).ok_or("sha256 must be 64 hexadecimal digits, as `antiphon token` prints them")?,
        scopes,
        expires: entry.expires.map(|at| expiry(&at)).transpose()?,
        max_calls_per_s: entry.max_calls_per_s,
        max_concurrent_calls: entry.max_concurrent_calls,
        max_message_bytes: entry.max_message_bytes,
    })
}

fn hash(digits: &str) -> Option<[u8; 32]> {
    let digits = digits.as_bytes();
    if digits.len() != 64 {
        return None;
    }
    let mut hash = [0; 32];
    for (byte, pair) in hash.iter_mut().zip(digits.chunks_exact(2)) {
        let digit = |digit: u8| char::from(digit).to_digit(16);
        *byte = u8::try_from(digit(pair[0])? * 16 + digit(pair[1])?).ok()?;
    }
    Some(hash)
}

/// Seconds since 1970.
fn expiry(at: &toml::value::Datetime) -> Result<u64, String> {
    let moment = OffsetDateTime::parse(&at.to_string(), &Rfc3339)
        .map_err(|_| format!("expires = {at} must be a date and time with its offset, as 2027-01-31T00:00:00Z"))?;
    Ok(u64::try_from(moment.unix_timestamp()).unwrap_or(0))
}
