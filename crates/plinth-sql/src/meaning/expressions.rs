//! Expressions that the engine evaluates otherwise than SQL has it.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DFSchema, Result, ScalarValue, plan_err};
use datafusion::config::ConfigOptions;
use datafusion::functions::expr_fn::{regexp_replace, replace};
use datafusion::functions_aggregate::first_last::first_value_udaf;
use datafusion::logical_expr::expr::{AggregateFunction, Cast, NullTreatment, ScalarFunction, TryCast};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator, cast, lit, when};
use datafusion::optimizer::AnalyzerRule;
use plinth_datafusion::sql_type_name;

use crate::numbers;

use super::{
    as_text, bytes, finer, guards, intervals, lists, maybe, narrower, nearest, nested, once, values, zeros, zones,
};

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
    let is_sort = matches!(node, LogicalPlan::Sort(_));
    node.map_expressions(|expr| {
        if is_sort {
            let mended = expr.transform_up(|expr| mend(expr, &schema))?.transform_data(lists::kept_apart)?;
            return mended.transform_data(|expr| Ok(intervals::sorted(expr, &schema)));
        }
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

/// The part of `date_part(part, interval)`.
fn part_of_interval(part: &ScalarFunction, schema: &DFSchema) -> Option<String> {
    let [Expr::Literal(name, _), interval] = part.args.as_slice() else { return None };
    let of_interval = matches!(interval.get_type(schema), Ok(DataType::Interval(_)));
    let name = name.try_as_str().flatten().filter(|_| part.name() == "date_part" && of_interval)?;
    Some(name.to_ascii_lowercase())
}

/// Microseconds of an interval beyond whole minutes, of which so many are a unit: the engine counts whole seconds.
fn fraction(mut part: ScalarFunction, unit: i64) -> Result<Transformed<Expr>> {
    if let Some(name) = part.args.first_mut() {
        *name = lit("epoch");
    }
    let micros = values::rounded(vec![Expr::ScalarFunction(part) * lit(1e6), lit(0_i64)]);
    let beyond = cast(micros, DataType::Int64) % lit(60_000_000_i64);
    Ok(Transformed::yes(cast(beyond / lit(unit), DataType::Int32)))
}

/// Seconds of an interval: the engine takes twelve months for 360 days, a year has 365 and a quarter.
fn whole_years(epoch: ScalarFunction) -> Result<Transformed<Expr>> {
    const MISSING: f64 = 5.25 * 86_400.0;
    let mut years = epoch.clone();
    if let Some(part) = years.args.first_mut() {
        *part = lit("year");
    }
    let years = cast(Expr::ScalarFunction(years), DataType::Float64);
    Ok(Transformed::yes(Expr::ScalarFunction(epoch) + years * lit(MISSING)))
}

/// Whether a cast makes text of a point in time: the engine has a T between its day and its hour.
fn is_stamp_as_text(stamp: &Expr, to: &DataType, schema: &DFSchema) -> bool {
    to.is_string() && matches!(stamp.get_type(schema), Ok(DataType::Timestamp(..)))
}

/// What the engine writes of a point in time, as DuckDB and PostgreSQL write it: `2024-01-31 10:30:00`, and `+00` or `+05:30` behind it where
/// it has a zone.
fn stamp_as_text(text: Expr, stamp: &Expr, schema: &DFSchema) -> Result<Expr> {
    let spaced = replace(text, lit("T"), lit(" "));
    Ok(match stamp.get_type(schema)? {
        DataType::Timestamp(_, None) => spaced,
        _ => regexp_replace(replace(spaced, lit("Z"), lit("+00:00")), lit("([+-][0-9]{2}):00$"), lit("$1"), None),
    })
}

/// `flatten` of lists of lists: the engine answers any other list as it is.
fn flattened(flat: ScalarFunction, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let [lists] = flat.args.as_slice() else { return Ok(Transformed::no(Expr::ScalarFunction(flat))) };
    match lists.get_type(schema)? {
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => match item.data_type() {
            inner if is_list(inner) => Ok(Transformed::no(Expr::ScalarFunction(flat))),
            DataType::Null => {
                let empty = lit(ScalarValue::List(ScalarValue::new_list(&[], &DataType::Null, true)));
                Ok(Transformed::yes(when(lists.clone().is_not_null(), empty).end()?))
            }
            other => plan_err!("flatten: takes a list of lists, not one of {}", sql_type_name(other)),
        },
        _ => Ok(Transformed::no(Expr::ScalarFunction(flat))),
    }
}

/// Whether an expression is `round(float, places)` of the engine.
fn rounds_floats(round: &ScalarFunction, schema: &DFSchema) -> bool {
    let [value, _] = round.args.as_slice() else { return false };
    let of_floats = matches!(value.get_type(schema), Ok(DataType::Float32 | DataType::Float64));
    round.name() == "round" && of_floats && !values::is_own(&Expr::ScalarFunction(round.clone()))
}

/// Whether a regular expression is one that the engine takes for IS NOT NULL.
fn is_any_text(pattern: &Expr) -> bool {
    matches!(pattern, Expr::Literal(value, _) if value.try_as_str().flatten() == Some(".*"))
}

/// True of any text, and NULL of none.
fn any_text(of: Expr) -> Expr {
    of.is_not_null().or(lit(ScalarValue::Boolean(None)))
}

fn mend(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    match expr {
        // Of its digits, not of the decimal that they are: that would round twice.
        Expr::Cast(Cast { expr, field })
            if field.data_type().is_floating() && numbers::nearest_double(&expr).is_some() =>
        {
            let expr = Box::new(numbers::nearest_double(&expr).unwrap_or(*expr));
            Ok(Transformed::yes(Expr::Cast(Cast { expr, field })))
        }
        Expr::ScalarSubquery(subquery) => Ok(match maybe::nullable(&subquery)? {
            Some(nullable) => Transformed::yes(Expr::ScalarSubquery(nullable)),
            None => Transformed::no(Expr::ScalarSubquery(subquery)),
        }),
        Expr::Cast(Cast { expr, field }) if is_stamp_as_text(&expr, field.data_type(), schema) => {
            let (to, stamp) = (field.data_type().clone(), expr.as_ref().clone());
            let text = stamp_as_text(Expr::Cast(Cast { expr, field }), &stamp, schema)?;
            Ok(Transformed::yes(cast(text, to)))
        }
        Expr::TryCast(TryCast { expr, field }) if is_stamp_as_text(&expr, field.data_type(), schema) => {
            // Each has a text.
            let cast_of = Expr::Cast(Cast { expr, field });
            mend(cast_of, schema)
        }
        Expr::Cast(of) if as_text::is_of_nested(&of.expr, of.field.data_type(), schema) => Ok(as_text::shown(of)),
        // Each has a text.
        Expr::TryCast(TryCast { expr, field }) if as_text::is_of_nested(&expr, field.data_type(), schema) => {
            Ok(as_text::shown(Cast { expr, field }))
        }
        // What the clock shows in its zone, where the engine has that of UTC.
        Expr::Cast(Cast { expr, field }) if zones::loses_zone(&expr, field.data_type(), schema) => {
            let expr = Box::new(zones::local(*expr));
            Ok(Transformed::yes(Expr::Cast(Cast { expr, field })))
        }
        Expr::TryCast(TryCast { expr, field }) if zones::loses_zone(&expr, field.data_type(), schema) => {
            let expr = Box::new(zones::local(*expr));
            Ok(Transformed::yes(Expr::TryCast(TryCast { expr, field })))
        }
        Expr::Cast(Cast { expr, field }) => {
            check_list(&expr, schema, field.data_type())?;
            let to = field.data_type();
            let mended = nearest::rounded(*expr, schema, to, true)?
                .transform_data(|expr| bytes::of_texts(expr, schema, to, true))?;
            Ok(mended.update_data(|expr| Expr::Cast(Cast { expr: Box::new(expr), field })))
        }
        Expr::TryCast(TryCast { expr, field }) => {
            check_list(&expr, schema, field.data_type())?;
            let to = field.data_type();
            let mended = nearest::rounded(*expr, schema, to, false)?
                .transform_data(|expr| bytes::of_texts(expr, schema, to, false))?;
            Ok(mended.update_data(|expr| Expr::TryCast(TryCast { expr: Box::new(expr), field })))
        }
        Expr::ScalarFunction(part) if part.name() == "date_part" => match part_of_interval(&part, schema).as_deref() {
            Some("epoch") => whole_years(part),
            Some("microsecond" | "microseconds" | "us") => fraction(part, 1),
            Some("millisecond" | "milliseconds" | "ms") => fraction(part, 1000),
            _ => Ok(Transformed::no(Expr::ScalarFunction(part))),
        },
        Expr::ScalarFunction(call) if call.name() == zones::AT_ZONE => {
            Ok(Transformed::yes(zones::clock(call, schema)?))
        }
        Expr::ScalarFunction(flat) if flat.name() == "flatten" => flattened(flat, schema),
        Expr::ScalarFunction(round) if rounds_floats(&round, schema) => {
            Ok(Transformed::yes(values::rounded(round.args)))
        }
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::RegexMatch | Operator::RegexIMatch, right })
            if is_any_text(&right) =>
        {
            Ok(Transformed::yes(any_text(*left)))
        }
        Expr::ScalarFunction(mut like) if like.name() == "regexp_like" && like.args.get(1).is_some_and(is_any_text) => {
            Ok(Transformed::yes(any_text(like.args.swap_remove(0))))
        }
        Expr::WindowFunction(window) => zeros::partitioned(window, schema),
        Expr::Case(case) if case.expr.is_some() => zeros::found(case, schema),
        Expr::Case(case) => guards::kept(case, schema),
        Expr::ScalarFunction(nullif) if nullif.name() == "nullif" => zeros::nullif(nullif, schema),
        // The engine writes its operand down twice.
        Expr::Between(between) if between.expr.is_volatile() => Ok(Transformed::yes(once::between(between))),
        Expr::AggregateFunction(AggregateFunction { func, mut params })
            if func.name() == "any_value" && !params.order_by.is_empty() =>
        {
            params.null_treatment = Some(NullTreatment::IgnoreNulls);
            let func = first_value_udaf();
            Ok(Transformed::yes(Expr::AggregateFunction(AggregateFunction { func, params })))
        }
        other => intervals::compared(other, schema)?
            .transform_data(|expr| Ok(nested::compared(expr, schema)))?
            .transform_data(|expr| finer::compared(expr, schema))?
            .transform_data(|expr| narrower::compared(expr, schema)),
    }
}
