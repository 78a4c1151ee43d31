//! What encoders make of vectors and queries.

use super::encoder::{Encoder, power_of_two_below_inverse};
use super::*;
use crate::graph::code::Code;
use crate::vectors::{Extent, Metric, norm};

const METRICS: [Metric; 3] = [Metric::Cosine, Metric::Dot, Metric::Euclidean];

fn params(metric: Metric, element: ElementType) -> GraphParams {
    GraphParams { dims: 2, metric, element, connectivity: 16, expansion_add: 128 }
}

fn encoder(params: GraphParams, vectors: &[&[f32]]) -> Encoder {
    Encoder::for_extent(params, Extent::of(params.metric, vectors.iter().map(|vector| (*vector, norm(vector)))))
}

fn floats(code: Code) -> Vec<f32> {
    match code {
        Code::Floats(floats) => floats,
        other => panic!("{other:?}"),
    }
}

fn bytes(code: Code) -> Vec<i8> {
    match code {
        Code::Bytes(bytes) => bytes,
        other => panic!("{other:?}"),
    }
}

#[test]
fn scales_are_powers_of_two() {
    for (value, expected) in [(1.0, 0.5), (0.99, 1.0), (3.0, 0.25), (0.0, 1.0), (1e19, 2f32.powi(-64))] {
        assert_eq!(power_of_two_below_inverse(value), expected, "{value}");
    }
    assert!(power_of_two_below_inverse(3.8e-23).is_normal());
}

#[test]
fn what_leaves_is_finite_and_exact_in_the_element_type() {
    for element in [ElementType::Float32, ElementType::Float16, ElementType::BFloat16] {
        for metric in METRICS {
            for length in [2e-19f32, 1.0, 7e4, 8e18] {
                let encoder = encoder(params(metric, element), &[&[length, 0.0]]);
                for vector in [[length, 0.0], [length * 0.6, length * -0.8]] {
                    for encoded in [encoder.encode_vector(&vector), encoder.encode_query(&vector)].map(floats) {
                        assert_eq!(encoded.len(), 2);
                        assert!(encoded.iter().all(|&x| element.round(x).to_bits() == x.to_bits()));
                        let range = if metric == Metric::Dot { 0.49..16.1 } else { 0.49..1.01 };
                        assert!(range.contains(&norm(&encoded)), "{metric:?} {element:?} {encoded:?}");
                    }
                }
                let far = floats(encoder.encode_query(&[9e18, 0.0]));
                assert!(far.iter().all(|x| x.is_finite()));
            }
        }
    }
}

#[test]
fn rounding_keeps_unit_vectors_at_unit_length() {
    for element in [ElementType::Float16, ElementType::BFloat16] {
        let encoder = encoder(GraphParams { dims: 64, ..params(Metric::Cosine, element) }, &[]);
        for seed in 1..50u32 {
            let vector: Vec<f32> =
                (0..64u32).map(|at| ((seed * 7_919 + at * 104_729) % 1_009) as f32 - 504.5).collect();
            let length = norm(&vector);
            let encoded = floats(encoder.encode_vector(&vector));
            assert!((norm(&encoded) - 1.0).abs() < 1e-5, "{}", norm(&encoded));
            for (value, held) in vector.iter().zip(&encoded) {
                let exact = value / length;
                assert!((exact - held).abs() <= exact.abs() / 16.0, "{exact} {held}");
            }
        }
    }
}

#[test]
fn the_greatest_element_of_all_is_127() {
    for length in [2e-19f32, 1.0, 8e18] {
        let (long, short) = ([length, 0.0], [length * 0.06, length * -0.08]);
        for metric in METRICS {
            let encoder = encoder(params(metric, ElementType::Int8), &[&long, &short]);
            assert_eq!(bytes(encoder.encode_vector(&long)), [127, 0], "{metric:?}");
            let expected = if metric == Metric::Cosine { [76, -102] } else { [8, -10] };
            assert_eq!(bytes(encoder.encode_vector(&short)), expected, "{metric:?}");
            assert!(Encoder::with_scale(params(metric, ElementType::Int8), encoder.scale()).is_some());
        }
    }
}

#[test]
fn whole_numbers_keep_a_querys_direction_where_it_counts() {
    let vectors: [&[f32]; 2] = [&[0.6, -0.8], &[0.8, 0.6]];
    let cosine = encoder(params(Metric::Cosine, ElementType::Int8), &vectors);
    assert_eq!(bytes(cosine.encode_query(&[0.3, -0.4])), bytes(cosine.encode_vector(&[0.6, -0.8])));
    assert_eq!(bytes(cosine.encode_query(&[7.0, 0.0])), [127, 0]);
    let dot = encoder(params(Metric::Dot, ElementType::Int8), &vectors);
    assert_eq!(bytes(dot.encode_query(&[100.0, -50.0])), [127, -64]);
    assert_eq!(bytes(dot.encode_query(&[0.0, 0.0])), [0, 0]);
    let euclidean = encoder(params(Metric::Euclidean, ElementType::Int8), &vectors);
    assert_eq!(bytes(euclidean.encode_query(&[9e18, -0.4])), [127, -64]);
}

#[test]
fn a_bit_says_whether_an_element_is_above_zero() {
    let params = GraphParams { dims: 9, ..params(Metric::Hamming, ElementType::Bit) };
    let encoder = encoder(params, &[]);
    let vector = [0.5, 0.0, -1.0, -0.0, 1e-30, 3.0, -2.0, 0.0, 7.0];
    for code in [encoder.encode_vector(&vector), encoder.encode_query(&vector)] {
        let Code::Bits(bits) = code else { panic!("{code:?}") };
        assert_eq!(bits.iter().map(|byte| byte.0).collect::<Vec<_>>(), [0b0011_0001, 1]);
    }
}
