//! Functions of SQL that the engine does not bring along.

mod exact;
mod haversine;

use datafusion_expr::{AggregateUDF, ScalarUDF};

#[doc(hidden)]
pub use haversine::{Coordinate, distances};

/// `haversine`, to be registered with a session.
pub fn scalar_functions() -> Vec<ScalarUDF> {
    vec![haversine::Haversine::default().into()]
}

/// `sum_exact` and `avg_exact`, to be registered with a session.
pub fn aggregate_functions() -> Vec<AggregateUDF> {
    vec![exact::ExactAggregate::sum().into(), exact::ExactAggregate::average().into()]
}
