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
        ("Rust's", vec!["rust"]),
        ("don't Rust’s 'single's' o's", vec!["don", "t", "rust", "single", "o"]),
        ("naïve Straße ÉCOLE", vec!["naive", "strasse", "ecole"]),
        ("camelCase HTTPServer2", vec!["camelcase", "httpserver2"]),
        ("ada@example.org 1.2.3-rc4", vec!["ada", "example", "org", "1", "2", "3", "rc4"]),
        ("ＦＵＬＬ　ｗｉｄｔｈ", vec!["full", "width"]),
        ("foo_bar-baz", vec!["foo", "bar", "baz"]),
        (">>> \"\" ---", vec![]),
        ("https://example.com/a?b=1", vec!["https", "example", "com", "a", "b", "1"]),
        ("😀👍🏽ok 1️⃣ 🇩🇪🇫🇷 👩‍🚀", vec!["😀", "👍", "ok", "1", "🇩🇪", "🇫🇷", "👩", "🚀"]),
        ("", vec![]),
        ("x", vec!["x"]),
        ("Ωμέγα мир", vec!["ωμεγα", "мир"]),
        ("co\u{ad}operate می\u{200c}خواهم", vec!["cooperate", "میخواهم"]),
        ("nai\u{308}ve", vec!["naive"]),
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
    assert_eq!(terms("standard", "か\u{3099}く ｶﾞｸ"), ["がく", "ガク"]);
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
    assert_eq!(terms("fr", "l'homme qu’il"), ["homm", "il"]);
    assert_eq!(terms("it", "dell'acqua"), terms("it", "acqua"));
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
    assert_eq!(terms("zh", "Привет café 2024年"), ["привет", "cafe", "2024", "年"]);
    assert_eq!(terms("zh", "대학교"), ["대학", "학교"]);
}

/// Whether a query finds a document by every one of its words.
fn finds(analyzer: &str, query: &str, document: &str) -> bool {
    let held = document_terms(analyzer, document);
    let asked = Analyzer::by_name(analyzer).unwrap().terms(query);
    let mut words: Vec<usize> = asked.iter().map(|term| term.offset).collect();
    words.dedup();
    !words.is_empty()
        && words.iter().all(|word| asked.iter().any(|term| term.offset == *word && held.contains(&term.text)))
}

const OF_WORDS: &str = "standard en ru de fr es it pt nl sv da no fi hu ro tr el ar ta zh";

#[test]
fn every_analyzer_of_words_finds_what_was_written() {
    let long_token = "0123456789".repeat(30);
    for text in [
        "76.132",
        "C++",
        "C#",
        "Rust's",
        "naïve",
        "Straße",
        "北京大学",
        "выпуск приложения",
        "🦀",
        "👍🏽",
        "🇩🇪",
        "ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFGHIJKLMNOPQRSTUVWXYZ",
        "достопримечательность",
        "достопримечательностями",
        "中华人民共和国国务院办公厅北京市",
        "iPhone手机",
        "ＦＵＬＬ",
        "https://example.org/a-b?q=1",
        "ada@example.org",
        "v1.2.3",
        "snake_case",
        "camelCase",
        "foo-bar",
        "可口可乐Coca-Cola",
        "ﬁne",
        "m²",
        "6½",
        "İstanbul",
        "IŞIK",
        "Ὀδυσσεύς",
        "مُحَمَّد",
        "ภาษาไทย",
        "한국어",
        "カタカナ",
        &long_token,
    ] {
        for analyzer in OF_WORDS.split(' ').chain(["exact"]) {
            assert!(finds(analyzer, text, text), "{analyzer} {text}");
            if analyzer != "exact" {
                assert!(finds(analyzer, text, &format!("x ({text}), y")), "{analyzer} {text} in a sentence");
            }
        }
    }
}

#[test]
fn every_analyzer_of_words_finds_other_spellings() {
    for (query, document) in [
        ("RUST", "Rust's"),
        ("Rust's", "rust"),
        ("cpp c++", "CPP (C++)"),
        ("c++", "C++11"),
        ("c", "C++ and C#"),
        ("full", "ＦＵＬＬ"),
        ("ﬁne", "fine"),
        ("na\u{ef}ve", "nai\u{308}ve"),
        ("👍", "👍🏽"),
        ("👍🏿", "👍"),
        ("132", "76.132"),
        ("76,132", "76.132"),
        ("example", "https://www.example.org/"),
        ("bar", "foo-bar foo_bar"),
        ("北京", "北京大学"),
        ("大学", "北京大学"),
        ("手机", "iPhone手机"),
        ("ПРИЛОЖЕНИЯ", "приложения"),
        ("замок", "за\u{301}мок"),
        ("москва", "москва\u{301}"),
    ] {
        for analyzer in OF_WORDS.split(' ') {
            assert!(finds(analyzer, query, document), "{analyzer}: {query} in {document}");
        }
    }
    for (query, document) in
        [("c++", "C"), ("c#", "C++"), ("c++", "C#"), ("🦀", "🦞"), ("camel", "camelCase"), ("🇩🇪", "🇫🇷")]
    {
        for analyzer in OF_WORDS.split(' ') {
            assert!(!finds(analyzer, query, document), "{analyzer}: {query} in {document}");
        }
    }
}

#[test]
fn accents_may_be_left_out_where_the_language_does_not_live_by_them() {
    for (analyzers, query, document) in [
        ("standard en zh de fr it pt nl es ru el", "naive", "naïve"),
        ("standard en zh de fr it pt nl es ru el", "cafe", "café"),
        ("standard en ru zh", "Strasse", "Straße"),
        ("de", "Strassen", "Straße"),
        ("de", "STRASSE", "Straße"),
        ("sv fi", "cafe", "café"),
        ("sv fi", "ångström", "Ångström"),
        ("da no", "smørrebrød", "SMØRREBRØD"),
        ("fr", "eleve", "élevé"),
        ("fr", "coeur", "cœur"),
        ("fr", "francais", "français"),
        ("es", "cancion", "canción"),
        ("pt", "coracao", "coração"),
        ("ro", "și", "şi"),
        ("ro", "stiinta", "știință"),
        ("ru", "елка", "ёлка"),
        ("ru", "выпуски приложений", "выпуск приложения"),
        ("el standard", "ΑΘΗΝΑ", "Αθήνα"),
        ("el standard", "ΟΔΟΣ", "οδός"),
        ("tr", "ışık", "IŞIK"),
        ("ar standard", "محمد", "مُحَمَّد"),
        ("standard en", "łodz", "Łódź"),
    ] {
        for analyzer in analyzers.split(' ') {
            assert!(finds(analyzer, query, document), "{analyzer}: {query} in {document}");
        }
    }
    for (analyzer, query, document) in [
        ("sv", "for", "för"),
        ("es", "ano", "año"),
        ("tr", "sik", "şık"),
        ("fi", "nain", "näin"),
        ("hu", "kor", "kör"),
        ("da", "ol", "øl"),
        ("standard", "мои", "мой"),
        ("exact", "naive", "naïve"),
        ("exact", "NAÏVE", "naïve"),
        ("exact", "nai\u{308}ve", "na\u{ef}ve"),
    ] {
        assert!(!finds(analyzer, query, document), "{analyzer}: {query} in {document}");
    }
}
