//! Whether rows are sorted, told from parts of them.

use plinth_encoding::expr::Scalar;
use plinth_encoding::summary::Order;

use crate::meta::{Zone, less};

/// Rows that are sorted: how they follow each other, and the first and the last value, if there is one.
#[derive(Clone, Debug)]
pub(crate) struct SortedRun {
    pub(crate) order: Order,
    ends: Option<(Scalar, Scalar)>,
}

impl SortedRun {
    /// Of no rows.
    pub(crate) fn empty() -> Self {
        Self { order: Order::ALL, ends: None }
    }

    /// Rows in an order whose values have these bounds, if there are values. None if they are not sorted.
    pub(crate) fn of(order: Order, zone: Option<&Zone>, has_values: bool) -> Option<Self> {
        if !order.is_sorted() {
            return None;
        }
        let ends = match zone {
            None if has_values => return None,
            None => None,
            Some(zone) if order.ascends => Some((zone.bounds.min.clone(), zone.bounds.max.clone())),
            Some(zone) => Some((zone.bounds.max.clone(), zone.bounds.min.clone())),
        };
        Some(Self { order, ends })
    }

    /// These rows, and others behind them.
    pub(crate) fn then(self, next: Self) -> Option<Self> {
        let (first, last, second, end) = match (self.ends, next.ends) {
            (None, ends) | (ends, None) => return Some(Self { order: self.order.and(next.order), ends }),
            (Some((first, last)), Some((second, end))) => (first, last, second, end),
        };
        let (rises, falls) = (less(&last, &second), less(&second, &last));
        let between = Order { ascends: !falls, descends: !rises, differs: rises || falls };
        let order = self.order.and(next.order).and(between);
        order.is_sorted().then_some(Self { order, ends: Some((first, end)) })
    }
}
