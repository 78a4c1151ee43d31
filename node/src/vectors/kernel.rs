//! The one kernel that every score is computed by: inner product, squared distance, squared length and differing signs of
//! float32 rows.
//!
//! Not for the graph, whose own arithmetic only chooses candidates. Invariant: the result depends on nothing but the
//! two rows. One summation order (32 accumulators, the tail padded with zeros, a fixed reduction tree) and no fused
//! multiply-add, so SSE2, AVX2, AVX-512 and other processors give the same bits, and so do all replicas.

const LANES: usize = 32;

/// The inner product of two rows of equal length. Elements beyond the shorter row are left out.
pub fn dot(a: &[f32], b: &[f32]) -> f32 {
    dispatch(Kernel::Dot, a, b)
}

/// The squared Euclidean distance of two rows of equal length. Elements beyond the shorter row are left out.
pub fn squared_distance(a: &[f32], b: &[f32]) -> f32 {
    dispatch(Kernel::SquaredDistance, a, b)
}

/// The squared Euclidean length of a row.
pub fn squared_norm(a: &[f32]) -> f32 {
    dot(a, a)
}

/// The number of places at which one of two rows of equal length is above zero and the other is not. Elements beyond the
/// shorter row are left out.
pub fn differing_signs(a: &[f32], b: &[f32]) -> u32 {
    debug_assert_eq!(a.len(), b.len(), "rows of one field have one length");
    a.iter().zip(b).map(|(&x, &y)| u32::from((x > 0.0) != (y > 0.0))).sum()
}

/// Asks for a row to be brought from memory, without waiting for it. Changes no result.
pub(super) fn prefetch(row: &[f32]) {
    #[cfg(target_arch = "x86_64")]
    for line in row.chunks(CACHE_LINE_FLOATS) {
        // SAFETY: a prefetch is a hint about an address; it reads nothing and cannot fault, and SSE is part of x86-64.
        unsafe { std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(line.as_ptr().cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = row;
}

#[cfg(target_arch = "x86_64")]
const CACHE_LINE_FLOATS: usize = 16;

#[derive(Debug, Clone, Copy)]
enum Kernel {
    Dot,
    SquaredDistance,
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn dispatch(kernel: Kernel, a: &[f32], b: &[f32]) -> f32 {
    // The macro caches what it finds: this costs a load and a branch.
    if std::is_x86_feature_detected!("avx512f") {
        // SAFETY: the processor was just found to have AVX-512F.
        unsafe { x86::run_avx512(kernel, a, b) }
    } else if std::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor was just found to have AVX2.
        unsafe { x86::run_avx2(kernel, a, b) }
    } else {
        run(kernel, a, b)
    }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn dispatch(kernel: Kernel, a: &[f32], b: &[f32]) -> f32 {
    run(kernel, a, b)
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Kernel, run};

    #[target_feature(enable = "avx2")]
    pub(super) fn run_avx2(kernel: Kernel, a: &[f32], b: &[f32]) -> f32 {
        run(kernel, a, b)
    }

    #[target_feature(enable = "avx512f")]
    pub(super) fn run_avx512(kernel: Kernel, a: &[f32], b: &[f32]) -> f32 {
        run(kernel, a, b)
    }
}

#[inline(always)]
fn run(kernel: Kernel, a: &[f32], b: &[f32]) -> f32 {
    match kernel {
        Kernel::Dot => sum(a, b, |x, y| x * y),
        Kernel::SquaredDistance => sum(a, b, |x, y| (x - y) * (x - y)),
    }
}

/// Sums `term` over the elements. Inlined into each caller, so that it is compiled for the caller's instruction set;
/// the compiler may not reorder or fuse float operations, so each compilation computes the same.
#[inline(always)]
fn sum(a: &[f32], b: &[f32], term: impl Fn(f32, f32) -> f32) -> f32 {
    debug_assert_eq!(a.len(), b.len(), "rows of one field have one length");
    let len = a.len().min(b.len());
    let (a_chunks, a_tail) = a[..len].as_chunks::<LANES>();
    let (b_chunks, b_tail) = b[..len].as_chunks::<LANES>();
    let mut lanes = [0.0f32; LANES];
    for (a, b) in a_chunks.iter().zip(b_chunks) {
        for lane in 0..LANES {
            lanes[lane] += term(a[lane], b[lane]);
        }
    }
    if !a_tail.is_empty() {
        let (mut a, mut b) = ([0.0f32; LANES], [0.0f32; LANES]);
        a[..a_tail.len()].copy_from_slice(a_tail);
        b[..b_tail.len()].copy_from_slice(b_tail);
        for lane in 0..LANES {
            lanes[lane] += term(a[lane], b[lane]);
        }
    }
    let [sum] = halve(halve::<2, 4>(halve::<4, 8>(halve::<8, 16>(halve::<16, LANES>(lanes)))));
    sum
}

/// Adds the upper half of the lanes to the lower. Of fixed size, so that the sums stay in registers.
#[inline(always)]
fn halve<const HALF: usize, const WHOLE: usize>(lanes: [f32; WHOLE]) -> [f32; HALF] {
    std::array::from_fn(|lane| lanes[lane] + lanes[lane + HALF])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The definition, without any loop that a compiler might vectorise differently.
    fn model(a: &[f32], b: &[f32], term: impl Fn(f32, f32) -> f32) -> f32 {
        let mut lanes = vec![0.0f32; 32];
        let padded = a.len().next_multiple_of(32);
        for at in 0..padded {
            let (x, y) = (a.get(at).copied().unwrap_or(0.0), b.get(at).copied().unwrap_or(0.0));
            lanes[at % 32] += std::hint::black_box(term(x, y));
        }
        while lanes.len() > 1 {
            let upper = lanes.split_off(lanes.len() / 2);
            for (low, high) in lanes.iter_mut().zip(upper) {
                *low += std::hint::black_box(high);
            }
        }
        lanes[0]
    }

    fn variants(kernel: Kernel, a: &[f32], b: &[f32]) -> Vec<f32> {
        let mut results = vec![run(kernel, a, b), dispatch(kernel, a, b)];
        #[cfg(target_arch = "x86_64")]
        {
            if std::is_x86_feature_detected!("avx2") {
                // SAFETY: the feature was just detected.
                results.push(unsafe { x86::run_avx2(kernel, a, b) });
            }
            if std::is_x86_feature_detected!("avx512f") {
                // SAFETY: the feature was just detected.
                results.push(unsafe { x86::run_avx512(kernel, a, b) });
            }
        }
        results
    }

    fn rows() -> impl Strategy<Value = (Vec<f32>, Vec<f32>)> {
        (0usize..300, any::<u64>()).prop_map(|(len, seed)| {
            let mut state = seed;
            let mut next = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let unit = (state >> 40) as f32 / (1u64 << 24) as f32 - 0.5;
                unit * 10f32.powi(((state >> 32) & 7) as i32 - 4)
            };
            ((0..len).map(|_| next()).collect(), (0..len).map(|_| next()).collect())
        })
    }

    proptest! {
        #[test]
        fn every_variant_gives_the_same_bits((a, b) in rows()) {
            for result in variants(Kernel::Dot, &a, &b) {
                prop_assert_eq!(result.to_bits(), model(&a, &b, |x, y| x * y).to_bits());
            }
            for result in variants(Kernel::SquaredDistance, &a, &b) {
                prop_assert_eq!(result.to_bits(), model(&a, &b, |x, y| (x - y) * (x - y)).to_bits());
            }
        }

        #[test]
        fn results_agree_with_double_precision((a, b) in rows()) {
            let pairs = || a.iter().zip(&b).map(|(&x, &y)| (f64::from(x), f64::from(y)));
            let magnitude: f64 = pairs().map(|(x, y)| (x * y).abs()).sum();
            let exact: f64 = pairs().map(|(x, y)| x * y).sum();
            prop_assert!((f64::from(dot(&a, &b)) - exact).abs() <= 1e-6 * magnitude + 1e-30);
            let exact: f64 = pairs().map(|(x, y)| (x - y) * (x - y)).sum();
            prop_assert!((f64::from(squared_distance(&a, &b)) - exact).abs() <= 1e-6 * exact + 1e-30);
        }
    }

    #[test]
    fn zero_of_either_sign_is_not_above_zero() {
        assert_eq!(differing_signs(&[1.0, -1.0, 0.0, -0.0, 2.0], &[0.0, 0.0, 1.0, -3.0, 1e-30]), 2);
    }

    #[test]
    fn empty_rows_sum_to_zero() {
        assert_eq!(dot(&[], &[]).to_bits(), 0.0f32.to_bits());
        assert_eq!(squared_norm(&[3.0, 4.0]), 25.0);
    }
}
