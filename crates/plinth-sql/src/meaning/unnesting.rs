//! Subqueries that depend on the row around them, answered for all rows at once.
//!
//! What a subquery needs of the row around it are its keys. The answer is a plan with the keys as columns more of each row, which the rows
//! around are joined with; [`lift`] makes it. This is the way of Neumann and Kemper, Unnesting Arbitrary Queries (BTW 2015).
//!
//! The engine takes the conditions on the row around out of a subquery, past all that is above them. Where that is right, a subquery is
//! plain, and left to it. It is not right past an outer join that fills the side of the condition up with NULL, past windows, limits and
//! unions, which would be those of all rows around, and past groups of all rows that HAVING keeps or drops.

mod lift;
mod plain;
mod single;

use std::collections::BTreeSet;

use datafusion::common::{Column, Result, plan_err};
use datafusion::functions_aggregate::expr_fn::{count, first_value};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, Operator, binary_expr, lit};

use super::marks::depends;
pub(super) use plain::{Kind, has_one_row_at_most, is_one_row, is_plain};
pub(super) use single::function as single_function;

/// A subquery for all rows around it.
pub(super) struct Answer {
    /// The columns of the subquery, and the keys.
    pub(super) plan: LogicalPlan,
    /// What of the row around a key is equal to.
    pub(super) keys: Vec<(Column, Column)>,
    /// Whether NULL is a key as others are.
    pub(super) null_is_key: bool,
}

impl Answer {
    /// A subquery that depends on rows of `around`. Names of columns are made with numbers above `names`.
    ///
    /// # Errors
    /// If it depends on other rows, too, or has a node of which there is no form for many keys.
    pub(super) fn of(subquery: &LogicalPlan, around: &LogicalPlan, names: &mut usize) -> Result<Self> {
        let mut outer = BTreeSet::new();
        for expr in subquery.all_out_ref_exprs() {
            let Expr::OuterReferenceColumn(_, column) = expr else { continue };
            if !around.schema().has_column(&column) {
                return plan_err!(
                    "{column}: a subquery depends on rows beyond the query next to it, which is not supported; write a join"
                );
            }
            outer.insert(column);
        }
        let outer: Vec<Column> = outer.into_iter().collect();
        let mut lift = lift::Lift::new(around, &outer, names);
        let lifted = lift.plan(subquery)?;
        let null_is_key = lift.has_domain();
        Ok(Self { plan: lifted.plan, keys: outer.into_iter().zip(lifted.keys).collect(), null_is_key })
    }

    /// What rows around and their answers have in common, the keys being of a relation if one is given.
    pub(super) fn conditions(&self, relation: Option<&str>) -> Vec<Expr> {
        let key = |column: &Column| match relation {
            Some(relation) => Expr::Column(Column::new(Some(relation), column.name.clone())),
            None => Expr::Column(column.clone()),
        };
        let conditions = self.keys.iter().map(|(outer, column)| match self.null_is_key {
            true => same(Expr::Column(outer.clone()), key(column)),
            false => Expr::Column(outer.clone()).eq(key(column)),
        });
        conditions.collect()
    }

    /// The one value of each key, under a name: an error of several when a row around asks for it.
    pub(super) fn value(self, is_one: bool, name: &str) -> Result<(Self, Expr)> {
        let value = Expr::Column(Column::from(self.plan.schema().qualified_field(0)));
        let keys: Vec<Expr> = self.keys.iter().map(|(_, key)| Expr::Column(key.clone())).collect();
        let named = Expr::Column(Column::new_unqualified(name));
        if is_one {
            let columns = std::iter::once(value.alias(name)).chain(keys);
            let plan = LogicalPlanBuilder::from(self.plan.clone()).project(columns)?.build()?;
            return Ok((Self { plan, ..self }, named));
        }
        let rows = format!("{name}_rows");
        let groups = [first_value(value, Vec::new()).alias(name), count(lit(1_i64)).alias(&rows)];
        let plan = LogicalPlanBuilder::from(self.plan.clone()).aggregate(keys, groups)?.build()?;
        let checked = single::checked(named, Expr::Column(Column::new_unqualified(rows)));
        Ok((Self { plan, ..self }, checked))
    }
}

/// Whether values are equal, or both NULL.
fn same(left: Expr, right: Expr) -> Expr {
    binary_expr(left, Operator::IsNotDistinctFrom, right)
}
