//! Numbers for people.

/// A count with commas: `1,234,567`.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A size in binary units: `1.5 MiB`.
#[allow(clippy::cast_precision_loss)] // One decimal is shown.
pub(crate) fn bytes(number: u64) -> String {
    if number < 1024 {
        return format!("{number} B");
    }
    let mut size = number as f64;
    let mut unit = "B";
    for larger in ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"] {
        if size < 1023.95 {
            break;
        }
        size /= 1024.0;
        unit = larger;
    }
    format!("{size:.1} {unit}")
}

/// A time span: `4.2 s`, `3 min 20 s`, `2 h 5 min`.
pub(crate) fn seconds(span: std::time::Duration) -> String {
    let whole = span.as_secs();
    match whole {
        0..60 => format!("{:.1} s", span.as_secs_f64()),
        60..3600 => format!("{} min {} s", whole / 60, whole % 60),
        _ => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!((count(0).as_str(), count(999).as_str(), count(1_234_567).as_str()), ("0", "999", "1,234,567"));
        assert_eq!(
            (bytes(1023).as_str(), bytes(1536).as_str(), bytes(1 << 20).as_str()),
            ("1023 B", "1.5 KiB", "1.0 MiB")
        );
        assert_eq!(bytes(u64::MAX), "16.0 EiB");
        assert_eq!(seconds(Duration::from_millis(4240)), "4.2 s");
        assert_eq!(
            (seconds(Duration::from_secs(200)).as_str(), seconds(Duration::from_secs(7500)).as_str()),
            ("3 min 20 s", "2 h 5 min")
        );
    }
}
