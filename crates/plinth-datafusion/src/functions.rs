//! Functions of SQL that the engine does not bring along.

mod bytes;
mod counts;
mod dates;
mod exact;
mod haversine;
mod json;
mod now;
mod simple;
mod sums;
mod text;
mod truncated;
mod types;

use datafusion_expr::{AggregateUDF, ScalarUDF};

pub use bytes::{bytes_of_texts, unescaped_bytes};
#[doc(hidden)]
pub use haversine::{Coordinate, distances};
pub use json::{JsonMember, json_members};
pub use text::{like_pattern, text_slice};
pub use types::sql_type_name;

/// Functions of values, to be registered with a session: `haversine`, and those that users of DuckDB and PostgreSQL know.
pub fn scalar_functions() -> Vec<ScalarUDF> {
    let mut functions = vec![haversine::Haversine::default().into(), types::TypeOf::default().into()];
    functions.push(sums::function());
    functions.push(now::Now::new(None).into());
    functions.push(truncated::Truncated::new().into());
    functions.push(text_slice().as_ref().clone());
    functions.extend(text::functions());
    functions.extend(bytes::functions());
    functions.extend(json::functions());
    functions.extend(dates::functions());
    functions
}

/// `sum_exact`, `avg_exact`, `mode` and `histogram`, to be registered with a session.
pub fn aggregate_functions() -> Vec<AggregateUDF> {
    vec![
        exact::ExactAggregate::sum().into(),
        exact::ExactAggregate::average().into(),
        counts::Counting::mode().into(),
        counts::Counting::histogram().into(),
    ]
}
