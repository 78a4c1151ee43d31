//! How much each list counts.
//!
//! One weight for each list, or none at all, which means that all count the same.

use super::FusionError;

/// Checks the weights of `lists` lists. No weights are fine.
///
/// # Errors
/// Those about weights: another count, not finite, below 0, all 0, or a sum that is not finite.
pub(super) fn check(weights: &[f64], lists: usize) -> Result<(), FusionError> {
    if weights.is_empty() {
        return Ok(());
    }
    if weights.len() != lists {
        return Err(FusionError::WeightCount { given: weights.len(), lists });
    }
    if let Some(index) = weights.iter().position(|weight| !weight.is_finite()) {
        return Err(FusionError::WeightNotFinite { index });
    }
    if let Some(index) = weights.iter().position(|weight| *weight < 0.0) {
        return Err(FusionError::WeightNegative { index });
    }
    match weights.iter().sum::<f64>() {
        0.0 => Err(FusionError::WeightsAllZero),
        sum if sum.is_finite() => Ok(()),
        _ => Err(FusionError::WeightsTooLarge),
    }
}

/// The weights as they are; 1 for each list where none are given.
pub(super) fn as_given(weights: &[f64], lists: usize) -> Vec<f64> {
    if weights.is_empty() { vec![1.0; lists] } else { weights.to_vec() }
}

/// The weights divided by their sum, so that they add up to 1.
pub(super) fn sum_to_one(weights: &[f64], lists: usize) -> Vec<f64> {
    let weights = as_given(weights, lists);
    let sum: f64 = weights.iter().sum();
    weights.into_iter().map(|weight| weight / sum).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fault_is_named() {
        assert_eq!(check(&[], 2), Ok(()));
        assert_eq!(check(&[0.0, 3.0], 2), Ok(()));
        assert_eq!(check(&[1.0], 2), Err(FusionError::WeightCount { given: 1, lists: 2 }));
        assert_eq!(check(&[1.0, f64::NAN], 2), Err(FusionError::WeightNotFinite { index: 1 }));
        assert_eq!(check(&[f64::INFINITY, 1.0], 2), Err(FusionError::WeightNotFinite { index: 0 }));
        assert_eq!(check(&[1.0, -1.0], 2), Err(FusionError::WeightNegative { index: 1 }));
        assert_eq!(check(&[0.0, -0.0], 2), Err(FusionError::WeightsAllZero));
        assert_eq!(check(&[f64::MAX, f64::MAX], 2), Err(FusionError::WeightsTooLarge));
    }

    #[test]
    fn the_smallest_weights_still_sum_to_one() {
        assert_eq!(sum_to_one(&[5e-324, 0.0], 2), [1.0, 0.0]);
        assert_eq!(sum_to_one(&[], 4), [0.25; 4]);
    }
}
