//! EXECUTE: a statement that PREPARE has named, and the values that it is run with.

use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{self, Expr, UnaryOperator, Value, ValueWithSpan};

use super::query::{cast, last};
use crate::kept_plan::KeptPlan;
use crate::prepared::Keeping;
use crate::{Params, Session};

/// Digits of numbers with a point that are doubles as they are written: with more they are calls of a function by then.
const DIGITS: usize = 15;

/// An EXECUTE of a statement that is kept here.
pub(crate) struct Execution {
    name: String,
    /// The PREPARE.
    prepare: ast::Statement,
    plan: Arc<KeptPlan>,
    values: Vec<Expr>,
}

impl Session {
    /// What an EXECUTE runs; none for other statements, and for one that is not kept here.
    pub(crate) fn execution(&self, execute: &Statement) -> Option<Execution> {
        let Statement::Statement(execute) = execute else { return None };
        let ast::Statement::Execute { name: Some(name), parameters, .. } = execute.as_ref() else { return None };
        let (prepare, plan) = {
            let known = self.prepared();
            let prepared = known.get(&last(name).ok()?.value)?;
            (prepared.statement.clone(), Arc::clone(&prepared.plan))
        };
        Some(Execution { name: name.to_string(), prepare, plan, values: parameters.clone() })
    }
}

impl Execution {
    /// The statement with its values.
    ///
    /// # Errors
    /// If they are not as many as it has places for.
    pub(crate) fn statement(&self) -> Result<Statement> {
        self.with(&self.values)
    }

    /// A query with places for the values that are written out, and these: its plan serves others. None if it is no query, takes other values,
    /// or has some with places of the EXECUTE's own, which would be taken for the query's.
    pub(crate) fn apart(&self) -> Option<(Statement, Params)> {
        let ast::Statement::Prepare { statement, .. } = &self.prepare else { return None };
        if !matches!(statement.as_ref(), ast::Statement::Query(_)) || self.values.iter().any(has_place) {
            return None;
        }
        let literals =
            self.values.iter().enumerate().filter_map(|(at, value)| Some(((at + 1).to_string(), literal(value)?)));
        Some((self.with(&self.places()).ok()?, Params::as_written(literals).keeping(&self.plan)))
    }

    /// Where the plan of the statement with its values is kept.
    pub(crate) fn keeping(&self) -> Keeping {
        Keeping { kept: Arc::clone(&self.plan), written: self.values.clone() }
    }

    /// Where the plan with places for those that are written out is kept.
    pub(crate) fn keeping_apart(&self) -> Keeping {
        Keeping { kept: Arc::clone(&self.plan), written: self.places() }
    }

    /// The values, with places for those that are written out.
    fn places(&self) -> Vec<Expr> {
        let place = |(at, value): (usize, &Expr)| match literal(value) {
            Some(_) => Expr::value(Value::Placeholder(format!("${}", at + 1))),
            None => value.clone(),
        };
        self.values.iter().enumerate().map(place).collect()
    }

    fn with(&self, values: &[Expr]) -> Result<Statement> {
        let name = &self.name;
        let ast::Statement::Prepare { data_types, statement, .. } = &self.prepare else {
            return exec_err!("EXECUTE {name}: no statement was prepared by this name");
        };
        if !data_types.is_empty() && data_types.len() != values.len() {
            return exec_err!(
                "Prepared statement '{name}' expects {} parameters, but {} provided",
                data_types.len(),
                values.len()
            );
        }
        let value = |place: &str| {
            let at = place.strip_prefix('$')?.parse::<usize>().ok()?.checked_sub(1)?;
            let value = Expr::Nested(Box::new(values.get(at)?.clone()));
            Some(match data_types.get(at) {
                Some(data_type) => cast(value, data_type.clone()),
                None => value,
            })
        };
        let (mut known, mut statement) = (0, statement.clone());
        let replaced = ast::visit_expressions_mut(&mut statement, |expr| {
            let Expr::Value(ValueWithSpan { value: Value::Placeholder(place), .. }) = expr else {
                return ControlFlow::Continue(());
            };
            known = known.max(place.strip_prefix('$').and_then(|at| at.parse::<usize>().ok()).unwrap_or(0));
            match value(place) {
                Some(value) => {
                    *expr = value;
                    ControlFlow::Continue(())
                }
                None => ControlFlow::Break(place.clone()),
            }
        });
        match replaced {
            ControlFlow::Continue(()) if values.len() > known && data_types.is_empty() => {
                exec_err!("EXECUTE {name}: takes {known} values, not {}", values.len())
            }
            ControlFlow::Continue(()) => Ok(Statement::Statement(statement)),
            ControlFlow::Break(place) => exec_err!("EXECUTE {name}: no value for {place}"),
        }
    }
}

fn has_place(value: &Expr) -> bool {
    let found = ast::visit_expressions(value, |expr| match expr {
        Expr::Value(ValueWithSpan { value: Value::Placeholder(_), .. }) => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    });
    found.is_break()
}

/// The value of an expression that is one written out, as the planner would have it.
fn literal(expr: &Expr) -> Option<ScalarValue> {
    match expr {
        Expr::Nested(inner) => literal(inner),
        Expr::Value(ValueWithSpan { value, .. }) => match value {
            Value::Number(digits, false) => number("", digits),
            Value::SingleQuotedString(text) => Some(ScalarValue::Utf8(Some(text.clone()))),
            Value::Boolean(value) => Some(ScalarValue::Boolean(Some(*value))),
            _ => None,
        },
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match expr.as_ref() {
            Expr::Value(ValueWithSpan { value: Value::Number(digits, false), .. }) => number("-", digits),
            _ => None,
        },
        _ => None,
    }
}

fn number(sign: &str, digits: &str) -> Option<ScalarValue> {
    let text = format!("{sign}{digits}");
    if digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return Some(ScalarValue::Int64(Some(text.parse().ok()?)));
    }
    let plain = digits.len() <= DIGITS && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    Some(ScalarValue::Float64(Some(plain.then(|| text.parse().ok())??)))
}
