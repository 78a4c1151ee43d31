//! IEEE 754 binary16 to binary32.

/// The same number; every binary16 is one of binary32's.
pub(super) fn to_f32(half: u16) -> f32 {
    let sign = u32::from(half >> 15) << 31;
    let exponent = u32::from(half >> 10 & 0x1F);
    let fraction = u32::from(half & 0x3FF);
    match (exponent, fraction) {
        // Zero and subnormals: fraction × 2^-24.
        (0, _) => {
            let size = f32::from(half & 0x3FF) / 16_777_216.0;
            f32::from_bits(size.to_bits() | sign)
        }
        (0x1F, _) => f32::from_bits(sign | 0x7F80_0000 | fraction << 13),
        // The bias of the exponent is 15 here and 127 there.
        _ => f32::from_bits(sign | (exponent + 112) << 23 | fraction << 13),
    }
}

#[cfg(test)]
mod tests {
    use super::to_f32;

    #[test]
    fn known_numbers() {
        for (half, number) in [
            (0x0000, 0.0),
            (0x3C00, 1.0),
            (0xC000, -2.0),
            (0x3555, 0.333_251_95),
            (0x7BFF, 65504.0),
            (0x0400, 6.103_515_6e-5),
            (0x0001, 5.960_464_5e-8),
            (0x83FF, -6.097_555e-5),
        ] {
            assert_eq!(to_f32(half).to_bits(), f32::to_bits(number), "{half:#x}");
        }
        assert!(to_f32(0x8000).is_sign_negative() && to_f32(0x7C00).is_infinite() && to_f32(0x7E00).is_nan());
    }

    #[test]
    fn order_is_kept() {
        assert!((0..0x7C00).all(|half| to_f32(half) < to_f32(half + 1)));
    }
}
