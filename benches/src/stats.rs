//! Order statistics of durations.

use std::time::Duration;

use serde::Serialize;

/// What a set of latencies comes to, in milliseconds.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Latencies {
    /// How many.
    pub count: usize,
    /// Arithmetic mean.
    pub mean_ms: f64,
    /// Half are at most so long.
    pub p50_ms: f64,
    /// 90 % are.
    pub p90_ms: f64,
    /// 99 % are.
    pub p99_ms: f64,
    /// The longest.
    pub max_ms: f64,
}

impl Latencies {
    /// Sums up.
    pub fn of(durations: &[Duration]) -> Self {
        let mut ms: Vec<f64> = durations.iter().map(|duration| duration.as_secs_f64() * 1e3).collect();
        ms.sort_by(f64::total_cmp);
        Self {
            count: ms.len(),
            mean_ms: ms.iter().sum::<f64>() / ms.len().max(1) as f64,
            p50_ms: quantile(&ms, 0.5),
            p90_ms: quantile(&ms, 0.9),
            p99_ms: quantile(&ms, 0.99),
            max_ms: quantile(&ms, 1.0),
        }
    }
}

/// The smallest value that at least this share of the sorted values does not exceed; 0 of none.
pub fn quantile(sorted: &[f64], share: f64) -> f64 {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1).min(sorted.len().saturating_sub(1))).copied().unwrap_or(0.0)
}

/// The median of unsorted values; 0 of none.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    quantile(&sorted, 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_of_the_nearest_rank() {
        let values: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!((quantile(&values, 0.5), quantile(&values, 0.99), quantile(&values, 1.0)), (50.0, 99.0, 100.0));
        assert_eq!((quantile(&[], 0.5), quantile(&[7.0], 0.01), median(&[3.0, 1.0, 2.0])), (0.0, 7.0, 2.0));
    }
}
