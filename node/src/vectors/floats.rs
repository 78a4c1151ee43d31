//! Bytes of a mapped file seen as float32 rows, without a copy: the second and last place in this folder with `unsafe`.
//!
//! Not for integers, which are read one by one. Invariant: only whole, aligned floats of a little-endian host.

/// The float32 numbers that `bytes` hold in little-endian order, or `None` where the address or the length does not
/// fit, or the host's byte order is another.
pub(crate) fn as_floats(bytes: &[u8]) -> Option<&[f32]> {
    if cfg!(target_endian = "big") {
        return None;
    }
    // SAFETY: every bit pattern is a valid f32, and `align_to` keeps to whole and aligned elements.
    let (head, floats, tail) = unsafe { bytes.align_to::<f32>() };
    (head.is_empty() && tail.is_empty()).then_some(floats)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mapped::Blob;

    #[test]
    #[cfg(target_endian = "little")]
    fn only_whole_and_aligned_floats_pass() {
        let bytes: Vec<u8> = [1.5f32, -2.0].iter().flat_map(|value| value.to_le_bytes()).collect();
        let blob = Blob::from_bytes(&bytes);
        assert_eq!(as_floats(&blob), Some(&[1.5f32, -2.0][..]));
        assert_eq!(as_floats(&blob[4..]), Some(&[-2.0f32][..]));
        assert!(as_floats(&blob[1..5]).is_none());
        assert!(as_floats(&blob[..7]).is_none());
        assert_eq!(as_floats(&blob[..0]).map(<[f32]>::len), Some(0));
    }
}
