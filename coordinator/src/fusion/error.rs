//! Why lists cannot be fused as asked. Only weights can be wrong: no list is ever refused.

/// What is wrong with the weights of a fusion. A weight is honoured or refused, never ignored.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum FusionError {
    /// The method takes scores as they are.
    #[error("this fusion method takes no weights")]
    WeightsRefused,
    /// There is not one weight for each list.
    #[error("{given} weights for {lists} lists: give one for each list, or none")]
    WeightCount {
        /// How many weights were given.
        given: usize,
        /// How many lists are fused.
        lists: usize,
    },
    /// A weight is infinite or not a number.
    #[error("weight {index} (from 0) is not a finite number")]
    WeightNotFinite {
        /// Which one, from 0.
        index: usize,
    },
    /// A weight is below 0.
    #[error("weight {index} (from 0) is below 0")]
    WeightNegative {
        /// Which one, from 0.
        index: usize,
    },
    /// No list would count.
    #[error("all weights are 0")]
    WeightsAllZero,
    /// The weights' sum is beyond the largest number.
    #[error("the sum of the weights is not a finite number")]
    WeightsTooLarge,
}
