//! The clock that everything is timed with.

use std::time::Instant;

/// What one reading of the clock costs in nanoseconds: the least of several averages.
///
/// A call that is timed alone has about one reading inside its time; a block of calls has one
/// reading for all of them. No figure is corrected by it; [`crate::empty`] says what it makes of ratios.
pub fn reading_cost() -> f64 {
    const READINGS: u32 = 2000;
    (0..10)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..READINGS {
                std::hint::black_box(Instant::now());
            }
            start.elapsed().as_nanos() as f64 / f64::from(READINGS)
        })
        .fold(f64::INFINITY, f64::min)
}

/// Nanoseconds since `start`.
pub fn nanoseconds_since(start: Instant) -> f64 {
    start.elapsed().as_nanos() as f64
}
