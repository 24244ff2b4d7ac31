//! Expressions that the engine evaluates otherwise than SQL has it.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DFSchema, Result, plan_err};
use datafusion::config::ConfigOptions;
use datafusion::functions_aggregate::first_last::first_value_udaf;
use datafusion::logical_expr::expr::{AggregateFunction, Cast, NullTreatment, TryCast};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan};
use datafusion::optimizer::AnalyzerRule;
use plinth_datafusion::sql_type_name;

use super::{lists, nearest, once};

/// Casts round, BETWEEN looks at its operand once, `any_value` heeds its order, IN lists keep their nulls.
#[derive(Debug)]
pub(super) struct Expressions;

impl AnalyzerRule for Expressions {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(mend_node).data()
    }

    fn name(&self) -> &'static str {
        "meaning_of_expressions"
    }
}

fn mend_node(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let (names, schema) = (NamePreserver::new(&node), merge_schema(&node.inputs()));
    node.map_expressions(|expr| {
        let name = names.save(&expr);
        let mended = expr.transform_up(|expr| mend(expr, &schema))?.transform_data(lists::kept_apart)?;
        Ok(if mended.transformed { mended.update_data(|expr| name.restore(expr)) } else { mended })
    })
}

/// The engine casts any value to a list that has it alone.
fn check_list(expr: &Expr, schema: &DFSchema, to: &DataType) -> Result<()> {
    if !is_list(to) {
        return Ok(());
    }
    let from = expr.get_type(schema)?;
    if is_list(&from) || from.is_null() {
        return Ok(());
    }
    let (from, to) = (sql_type_name(&from), sql_type_name(to));
    plan_err!("{expr}: {from} can't become {to}; write [value, ...], or string_to_array(text, ',') for text")
}

fn is_list(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::List(_)
            | DataType::LargeList(_)
            | DataType::FixedSizeList(..)
            | DataType::ListView(_)
            | DataType::LargeListView(_)
    )
}

fn mend(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    match expr {
        Expr::Cast(Cast { expr, field }) => {
            check_list(&expr, schema, field.data_type())?;
            let rounded = nearest::rounded(*expr, schema, field.data_type())?;
            Ok(rounded.update_data(|expr| Expr::Cast(Cast { expr: Box::new(expr), field })))
        }
        Expr::TryCast(TryCast { expr, field }) => {
            check_list(&expr, schema, field.data_type())?;
            let rounded = nearest::rounded(*expr, schema, field.data_type())?;
            Ok(rounded.update_data(|expr| Expr::TryCast(TryCast { expr: Box::new(expr), field })))
        }
        // The engine writes its operand down twice.
        Expr::Between(between) if between.expr.is_volatile() => Ok(Transformed::yes(once::between(between))),
        Expr::AggregateFunction(AggregateFunction { func, mut params })
            if func.name() == "any_value" && !params.order_by.is_empty() =>
        {
            params.null_treatment = Some(NullTreatment::IgnoreNulls);
            let func = first_value_udaf();
            Ok(Transformed::yes(Expr::AggregateFunction(AggregateFunction { func, params })))
        }
        other => Ok(Transformed::no(other)),
    }
}
