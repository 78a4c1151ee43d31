//! How far the vectors of a field reach, in one segment.
//!
//! Not for scores. Invariant: both numbers are finite, for vectors that passed validation.

use crate::vectors::Metric;

/// What the encoder of a graph has to know of all vectors before the first.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Extent {
    /// The greatest length of a vector; 0 where there is none.
    pub max_norm: f32,
    /// The greatest absolute value of an element, under [`Metric::Cosine`] of the normalised vectors. Only graphs of
    /// [`crate::vectors::ElementType::Int8`] need it.
    pub max_element: f32,
}

impl Extent {
    /// The extent of vectors that come with their norms.
    pub fn of<'a>(metric: Metric, vectors: impl IntoIterator<Item = (&'a [f32], f32)>) -> Self {
        vectors.into_iter().fold(Self::default(), |extent, (vector, norm)| {
            let greatest = vector.iter().fold(0.0f32, |max, value| max.max(value.abs()));
            let element = if metric == Metric::Cosine && norm > 0.0 { greatest / norm } else { greatest };
            Self { max_norm: extent.max_norm.max(norm), max_element: extent.max_element.max(element) }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_those_of_unit_vectors_under_the_cosine() {
        let vectors = [(&[3.0f32, -4.0][..], 5.0f32), (&[0.0, 0.5], 0.5)];
        assert_eq!(Extent::of(Metric::Cosine, vectors), Extent { max_norm: 5.0, max_element: 1.0 });
        assert_eq!(Extent::of(Metric::Dot, vectors), Extent { max_norm: 5.0, max_element: 4.0 });
        assert_eq!(Extent::of(Metric::Euclidean, []), Extent::default());
    }
}
