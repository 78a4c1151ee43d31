//! What each analyzer makes of texts that have gone wrong elsewhere.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use super::{Analyzer, MAX_TERM_BYTES};

fn terms(analyzer: &str, text: &str) -> Vec<String> {
    Analyzer::by_name(analyzer).unwrap().terms(text).into_iter().map(|term| term.text).collect()
}

fn document_terms(analyzer: &str, text: &str) -> Vec<String> {
    Analyzer::by_name(analyzer).unwrap().document_terms(text).into_iter().map(|term| term.text).collect()
}

#[test]
fn names_are_those_of_the_contract() {
    let names = "standard en ru de fr es it pt nl sv da no fi hu ro tr el ar ta zh exact";
    for name in names.split(' ') {
        assert_eq!(Analyzer::by_name(name).unwrap().name(), name);
    }
    assert_eq!(Analyzer::by_name("").unwrap().name(), "standard");
    assert!(Analyzer::by_name("klingon").is_none());
    assert!(Analyzer::by_name("EN").is_none());
}

#[test]
fn words_are_runs_of_letters_and_digits() {
    for (text, expected) in [
        ("76.132", vec!["76", "132"]),
        ("C++", vec!["c"]),
        ("Rust's", vec!["rust", "s"]),
        ("naïve Straße ÉCOLE", vec!["naïve", "straße", "école"]),
        ("foo_bar-baz", vec!["foo", "bar", "baz"]),
        (">>> \"\" ---", vec![]),
        ("https://example.com/a?b=1", vec!["https", "example", "com", "a", "b", "1"]),
        ("😀👍🏽 ok", vec!["ok"]),
        ("", vec![]),
        ("x", vec!["x"]),
        ("Ωμέγα мир", vec!["ωμέγα", "мир"]),
        ("co\u{ad}operate می\u{200c}خواهم", vec!["cooperate", "میخواهم"]),
        ("nai\u{308}ve", vec!["nai\u{308}ve"]),
        ("हिन्दी தமிழ்", vec!["हिन्दी", "தமிழ்"]),
    ] {
        assert_eq!(terms("standard", text), expected, "{text:?}");
        assert_eq!(document_terms("standard", text), expected, "{text:?}");
    }
}

#[test]
fn a_word_is_the_same_among_ascii_and_other_words() {
    let alone = terms("standard", "Rust's 76.132 foo_bar");
    let among = terms("standard", "é Rust's 76.132 foo_bar 京");
    assert_eq!(among[1..among.len() - 1], alone);
}

#[test]
fn cjk_runs_give_pairs_and_documents_single_ideographs_too() {
    assert_eq!(terms("standard", "北京大学"), ["北京", "京大", "大学"]);
    assert_eq!(document_terms("standard", "北京大学"), ["北", "北京", "京", "京大", "大", "大学", "学"]);
    assert_eq!(terms("standard", "猫"), ["猫"]);
    assert_eq!(document_terms("standard", "猫が好き"), ["猫", "猫が", "が好", "好", "好き"]);
    assert_eq!(terms("standard", "대학교에서"), ["대학", "학교", "교에", "에서"]);
    assert_eq!(terms("standard", "iPhone手机、第3章"), ["iphone", "手机", "第", "3", "章"]);
    assert_eq!(terms("standard", "か\u{3099}く"), ["か\u{3099}く"]);
    assert_eq!(terms("standard", "カ"), ["カ"]);
}

#[test]
fn thai_is_cut_by_dictionary() {
    let words = terms("standard", "ภาษาไทยง่ายนิดเดียว");
    assert!(words.len() > 2 && words.contains(&"ภาษา".to_owned()), "{words:?}");
}

#[test]
fn query_terms_are_terms_of_a_document_that_holds_the_words() {
    for analyzer in ["standard", "en", "ru", "de", "tr", "zh", "exact"] {
        for text in ["北京大学 Rust's 76.132", "Straße naïve", "running ёлка IĞDIR", "猫", "ภาษาไทย"]
        {
            let held = document_terms(analyzer, text);
            assert!(terms(analyzer, text).iter().all(|term| held.contains(term)), "{analyzer} {text:?}");
        }
    }
}

#[test]
fn offsets_are_where_the_words_begin() {
    let found = Analyzer::by_name("standard").unwrap().terms("a  Été 北京 x");
    let offsets: Vec<usize> = found.iter().map(|term| term.offset).collect();
    assert_eq!(offsets, [0, 3, 9, 16]);
}

#[test]
fn long_terms_are_cut_not_dropped() {
    let long = "Ж".repeat(1_000);
    for analyzer in ["standard", "ru", "en", "exact", "zh"] {
        let found = terms(analyzer, &long);
        assert!(!found.is_empty(), "{analyzer}");
        assert!(found.iter().all(|term| term.len() <= MAX_TERM_BYTES), "{analyzer}");
        assert_eq!(found, document_terms(analyzer, &long), "{analyzer}");
    }
    assert_eq!(terms("standard", &"x".repeat(300)), ["x".repeat(255)]);
    assert_eq!(terms("standard", &long), ["ж".repeat(127)]);
    assert_eq!(terms("standard", &"a".repeat(41)), ["a".repeat(41)]);
}

#[test]
fn languages_stem_and_fold() {
    assert_eq!(terms("en", "Running dogs"), ["run", "dog"]);
    assert_eq!(terms("ru", "Ёлка ёлки"), terms("ru", "елка Елки"));
    assert_eq!(terms("ru", "книги"), terms("ru", "книга"));
    assert_eq!(terms("de", "Häuser"), terms("de", "häusern"));
    assert_eq!(terms("fr", "l'homme"), ["l", "homm"]);
    assert_eq!(terms("tr", "IŞIK"), terms("tr", "ışık"));
    assert_eq!(terms("tr", "İstanbul"), terms("tr", "istanbul"));
}

#[test]
fn exact_is_the_value_itself() {
    assert_eq!(terms("exact", "New York, NY"), ["New York, NY"]);
    assert_eq!(terms("exact", ""), Vec::<String>::new());
}

#[test]
fn jieba_gives_words_without_punctuation() {
    let words = terms("zh", "我来到北京清华大学，Hello World！");
    for word in ["北京", "清华", "大学", "清华大学", "hello", "world"] {
        assert!(words.contains(&word.to_owned()), "{word} in {words:?}");
    }
    assert!(words.iter().all(|word| word.chars().any(char::is_alphanumeric)));
    assert_eq!(terms("zh", "，。！ "), Vec::<String>::new());
    assert_eq!(terms("zh", "Привет café 2024年"), ["привет", "café", "2024", "年"]);
    assert_eq!(terms("zh", "대학교"), ["대학", "학교"]);
}
