//! Lines of a file, each at most so long: a file without line ends takes no more memory than that.

use std::io::{self, BufRead};

/// A line read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum LineRead {
    /// In the buffer, without its end.
    Whole,
    /// Longer than allowed; the buffer holds its beginning, the rest was passed over.
    TooLong,
    /// There are no more lines.
    End,
}

/// Reads a line into the buffer, whose contents are replaced.
///
/// # Errors
/// Those of the reader.
pub(crate) fn read_line(reader: &mut impl BufRead, buffer: &mut Vec<u8>, max_bytes: usize) -> io::Result<LineRead> {
    buffer.clear();
    let mut is_too_long = false;
    let mut has_read = false;
    loop {
        let available = match reader.fill_buf() {
            Ok(available) => available,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if available.is_empty() {
            return Ok(match (has_read, is_too_long) {
                (false, _) => LineRead::End,
                (true, true) => LineRead::TooLong,
                (true, false) => LineRead::Whole,
            });
        }
        has_read = true;
        let end = available.iter().position(|byte| *byte == b'\n');
        let part = &available[..end.unwrap_or(available.len())];
        let room = max_bytes - buffer.len();
        is_too_long |= part.len() > room;
        buffer.extend_from_slice(&part[..part.len().min(room)]);
        let used = end.map_or(available.len(), |end| end + 1);
        reader.consume(used);
        if end.is_some() {
            return Ok(if is_too_long { LineRead::TooLong } else { LineRead::Whole });
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;

    #[test]
    fn long_lines_are_passed_over_and_the_last_needs_no_end() {
        for capacity in [1, 2, 3, 100] {
            let mut reader = io::BufReader::with_capacity(capacity, &b"ab\n\nabcdef\r\nabcd\nx"[..]);
            let mut buffer = Vec::new();
            let mut lines = Vec::new();
            loop {
                let read = read_line(&mut reader, &mut buffer, 4).unwrap();
                if read == LineRead::End {
                    break;
                }
                lines.push((read, String::from_utf8(buffer.clone()).unwrap()));
            }
            let whole = |text: &str| (LineRead::Whole, text.to_owned());
            let expected = vec![whole("ab"), whole(""), (LineRead::TooLong, "abcd".into()), whole("abcd"), whole("x")];
            assert_eq!(lines, expected);
        }
    }
}
