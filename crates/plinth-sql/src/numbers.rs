//! Numbers with a decimal point, exactly as they are written.
//!
//! The engine makes a double of each, and a DECIMAL that one is put into or compared with gets what is left of it: 12345678901234567.89
//! loses its last digits, and 1.005 rounds to 1.00. Here a number beside values of type DECIMAL is one itself; in all other
//! places it stays the double that it was. A double keeps 15 digits. A number with more is written as a call of a function
//! before the statement is planned, so that its text is not lost, and is a decimal wherever it stands, but beside doubles, as a
//! divisor or a dividend, or where it has no room.

mod floats;
mod room;
mod rows;
mod zeros;

use std::ops::ControlFlow;
use std::sync::Arc;

use arrow_array::types::{Decimal128Type, Decimal256Type, DecimalType};
use arrow_array::{Array, Decimal256Array, StringArray};
use arrow_schema::{DataType, Field, FieldRef};
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result, ScalarValue, exec_datafusion_err, plan_err};
use datafusion::logical_expr::expr::{Alias, Between, BinaryExpr, Case, Cast, InList, ScalarFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, LogicalPlan, Operator, Projection, ReturnFieldArgs, ScalarFunctionArgs,
    ScalarUDFImpl, Signature, Volatility, lit,
};
use datafusion::optimizer::AnalyzerRule;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{self, VisitMut, VisitorMut};

/// The function that a long number is a call of.
const NUMBER: &str = "plinth_number";

/// Digits that a double keeps.
const KEPT: usize = 15;

/// Functions that give one of their arguments, or all.
const CHOOSE: [&str; 7] = ["coalesce", "nvl", "ifnull", "nullif", "greatest", "least", "make_array"];

/// Writes the numbers of a statement that a double would not keep as calls.
pub(crate) fn keep_digits(statement: &mut Statement) {
    match statement {
        // Its values are no expressions to the engine.
        Statement::Statement(inner) if matches!(inner.as_ref(), ast::Statement::Execute { .. }) => {}
        Statement::Statement(inner) => {
            let _ = inner.visit(&mut Calls);
        }
        Statement::Explain(explain) => keep_digits(&mut explain.statement),
        Statement::CopyTo(copy) => {
            if let datafusion::sql::parser::CopyToSource::Query(query) = &mut copy.source {
                let _ = query.visit(&mut Calls);
            }
        }
        _ => {}
    }
}

/// Makes calls of numbers.
struct Calls;

impl VisitorMut for Calls {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut ast::Expr) -> ControlFlow<()> {
        if let ast::Expr::UnaryOp { op: ast::UnaryOperator::Minus, expr: inner } = expr {
            if let Some(text) = number_of(inner)
                && text.parse::<u64>().is_ok()
                && format!("-{text}").parse::<i64>().is_err()
            {
                **inner = call(&text);
            }
        } else if let Some(text) = number_of(expr)
            && is_long(&text)
        {
            *expr = call(&text);
        }
        ControlFlow::Continue(())
    }
}

/// The text of a number, if an expression is one.
fn number_of(expr: &ast::Expr) -> Option<String> {
    match expr {
        ast::Expr::Value(ast::ValueWithSpan { value: ast::Value::Number(text, false), .. }) => {
            Some(text.replace('_', ""))
        }
        _ => None,
    }
}

/// Whether the engine would lose digits of a number. One with an exponent is a double.
fn is_long(text: &str) -> bool {
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let digits = text.bytes().filter(u8::is_ascii_digit).skip_while(|digit| *digit == b'0').count();
    plain && digits > KEPT && text.parse::<u64>().is_err()
}

/// Whether a number has no places behind a point.
fn is_whole(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A whole number as a decimal that has room for what is done to it, as HUGEINT has.
fn whole(text: &str) -> Result<ScalarValue> {
    match decimal(text) {
        Some(ScalarValue::Decimal128(value, _, scale)) => {
            Ok(ScalarValue::Decimal128(value, Decimal128Type::MAX_PRECISION, scale))
        }
        Some(value) => Ok(value),
        None => plan_err!(
            "{text}: a whole number of more than {} digits; write it with an exponent, as 1e80, for a DOUBLE",
            Decimal256Type::MAX_PRECISION
        ),
    }
}

/// A fraction that stands by itself as a decimal, if it has room in one.
fn alone(text: &str) -> Option<ScalarValue> {
    decimal(text).filter(|value| matches!(value, ScalarValue::Decimal128(..)))
}

fn call(text: &str) -> ast::Expr {
    let value = ast::Expr::Value(ast::Value::SingleQuotedString(text.to_owned()).into());
    let argument = ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(value));
    let args = ast::FunctionArgumentList { duplicate_treatment: None, args: vec![argument], clauses: Vec::new() };
    ast::Expr::Function(ast::Function {
        name: ast::ObjectName::from(vec![ast::Ident::new(NUMBER)]),
        uses_odbc_syntax: false,
        parameters: ast::FunctionArguments::None,
        args: ast::FunctionArguments::List(args),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

/// A number by its text.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Number {
    signature: Signature,
}

impl Default for Number {
    fn default() -> Self {
        Self { signature: Signature::exact(vec![DataType::Utf8], Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for Number {
    fn name(&self) -> &str {
        NUMBER
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        // As the engine calls a number.
        let double = args.first().and_then(text_of).and_then(|text| text.parse::<f64>().ok());
        Ok(double.map_or_else(|| NUMBER.to_owned(), |double| lit(double).schema_name().to_string()))
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    /// A number keeps all its digits, unless it is a fraction of more than a decimal has.
    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let of = match args.scalar_arguments {
            [Some(ScalarValue::Utf8(Some(text)))] if is_whole(text) => whole(text)?.data_type(),
            [Some(ScalarValue::Utf8(Some(text)))] => alone(text).map_or(DataType::Float64, |value| value.data_type()),
            _ => DataType::Float64,
        };
        Ok(Arc::new(Field::new(NUMBER, of, false)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let text = match args.args.first() {
            Some(ColumnarValue::Scalar(ScalarValue::Utf8(Some(text)))) => text,
            _ => return Err(exec_datafusion_err!("{NUMBER}: takes the text of a number")),
        };
        if is_whole(text) {
            return Ok(ColumnarValue::Scalar(whole(text)?));
        }
        if let Some(value) = alone(text) {
            return Ok(ColumnarValue::Scalar(value));
        }
        let double = text.parse::<f64>().map_err(|_| exec_datafusion_err!("{NUMBER}: {text:?} is no number"))?;
        Ok(ColumnarValue::Scalar(ScalarValue::from(double)))
    }
}

/// Makes decimals of the numbers that stand beside decimals.
#[derive(Debug)]
pub(crate) struct ExactNumbers;

pub(crate) use floats::DecimalsBesideFloats;
pub(crate) use room::Room;
pub(crate) use zeros::BothZeros;

impl AnalyzerRule for ExactNumbers {
    fn name(&self) -> &str {
        "exact_numbers"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let mut any = false;
        plan.apply_with_subqueries(|node| {
            node.apply_expressions(|expr| {
                any = any || expr.exists(|expr| Ok(text_of_number(expr).is_some()))?;
                Ok(if any { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
            })
        })?;
        if any { Ok(plan.transform_up_with_subqueries(with_exact_numbers)?.data) } else { Ok(plan) }
    }
}

fn with_exact_numbers(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let plan = match plan {
        LogicalPlan::Values(values) => rows::of_values(values)?.data,
        LogicalPlan::Union(union) => return rows::of_union(union),
        other => other,
    };
    let mut schema = merge_schema(&plan.inputs());
    if let LogicalPlan::TableScan(scan) = &plan {
        schema.merge(&DFSchema::try_from_qualified_schema(scan.table_name.clone(), &scan.source.schema())?);
    }
    let names = NamePreserver::new(&plan);
    let below = match &plan {
        LogicalPlan::Projection(Projection { input, .. }) => match input.as_ref() {
            LogicalPlan::Projection(below) => Some(Arc::new(below.clone())),
            _ => None,
        },
        _ => None,
    };
    let scope = Scope { schema: &schema, below };
    let rewritten = plan.map_expressions(|expr| {
        let name = names.save(&expr);
        let rewritten = expr.transform_up(|expr| scope.rewrite(expr))?;
        Ok(rewritten.update_data(|expr| name.restore(expr)))
    })?;
    rewritten.map_data(LogicalPlan::recompute_schema)
}

/// What the columns of expressions are.
struct Scope<'a> {
    schema: &'a DFSchema,
    /// A projection that they are of.
    below: Option<Arc<Projection>>,
}

impl Scope<'_> {
    fn type_of(&self, expr: &Expr) -> DataType {
        expr.get_type(self.schema).unwrap_or(DataType::Null)
    }

    /// An expression one of whose parts is a decimal that the others adapt to.
    fn rewrite(&self, expr: Expr) -> Result<Transformed<Expr>> {
        let rewritten = match &expr {
            Expr::Cast(Cast { expr: inner, field }) if field.data_type().is_decimal() => {
                let constant = self.constant(inner);
                let inner = constant.as_ref().unwrap_or(inner);
                self.all([inner]).map(|exact| {
                    let [inner] = exact;
                    Expr::Cast(Cast { expr: Box::new(inner), field: Arc::clone(field) })
                })
            }
            Expr::BinaryExpr(BinaryExpr { left, op, right }) if compares(*op) => {
                let sides = self.comparable(left, right).map(|sides| binary(sides, *op));
                sides.or_else(|| double(left, *op, right))
            }
            // A quotient of numbers that are written is no decimal.
            Expr::BinaryExpr(BinaryExpr { left, op: op @ Operator::Divide, right }) => double(left, *op, right),
            Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_exact(*op) => {
                let sides =
                    if self.fits(left, *op, right) { self.beside([left.as_ref(), right.as_ref()]) } else { None };
                sides.map(|sides| binary(sides, *op)).or_else(|| double(left, *op, right))
            }
            Expr::Between(Between { expr: value, negated, low, high }) => {
                self.beside([value.as_ref(), low.as_ref(), high.as_ref()]).map(|exact| {
                    let [value, low, high] = exact.map(Box::new);
                    Expr::Between(Between::new(value, *negated, low, high))
                })
            }
            Expr::InList(InList { expr: value, list, negated }) => {
                self.beside_all(std::iter::once(value.as_ref()).chain(list)).map(|mut exact| {
                    let value = Box::new(exact.remove(0));
                    Expr::InList(InList { expr: value, list: exact, negated: *negated })
                })
            }
            Expr::Case(case) => self.beside_all(results(case)).map(|exact| with_results(case, exact)),
            Expr::ScalarFunction(function) if CHOOSE.contains(&function.name()) => {
                let args = self.beside_all(function.args.iter());
                args.map(|args| Expr::ScalarFunction(ScalarFunction { func: Arc::clone(&function.func), args }))
            }
            _ => None,
        };
        Ok(rewritten.map_or_else(|| Transformed::no(expr), Transformed::yes))
    }

    /// A decimal and a number as values of one type that has room for both.
    fn comparable(&self, left: &Expr, right: &Expr) -> Option<[Expr; 2]> {
        let is_decimal = |expr: &Expr| self.type_of(expr).is_decimal();
        let Some(sides) = self.beside([left, right]) else {
            // A number too large for a decimal.
            let far = |one: &Expr, other: &Expr| is_decimal(one) && text_of_number(other).is_some();
            return (far(left, right) || far(right, left))
                .then(|| [left, right].map(|side| cast(side.clone(), DataType::Float64)));
        };
        let of = |expr: &Expr| match self.type_of(expr) {
            DataType::Decimal128(precision, scale) => Some((i16::from(precision), i16::from(scale))),
            _ => None,
        };
        let [Some((p1, s1)), Some((p2, s2))] = [of(&sides[0]), of(&sides[1])] else { return Some(sides) };
        let scale = s1.max(s2);
        let precision = scale + (p1 - s1).max(p2 - s2);
        if precision <= i16::from(Decimal128Type::MAX_PRECISION) {
            return Some(sides);
        }
        let wide = DataType::Decimal256(u8::try_from(precision).ok()?, i8::try_from(scale).ok()?);
        Some(sides.map(|side| cast(side, wide.clone())))
    }

    /// What a column is in the projection below, if that is the same for all rows.
    fn constant(&self, expr: &Expr) -> Option<Expr> {
        let (Expr::Column(column), Some(below)) = (expr, &self.below) else { return None };
        let value = below.expr.get(below.schema.maybe_index_of_column(column)?)?.clone().unalias();
        let constant =
            !value.exists(|expr| Ok(matches!(expr, Expr::Column(_) | Expr::OuterReferenceColumn(..)))).ok()?;
        (constant && !value.is_volatile()).then_some(value)
    }

    /// Whether the result of an operation on decimals has room.
    fn fits(&self, left: &Expr, op: Operator, right: &Expr) -> bool {
        let of = |expr: &Expr| match self.exact(expr).as_ref().map(|expr| self.type_of(expr)) {
            Some(DataType::Decimal128(precision, scale)) => Some((i16::from(precision), i16::from(scale))),
            Some(other) if other.is_integer() => Some((20, 0)),
            _ => None,
        };
        let (Some((p1, s1)), Some((p2, s2))) = (of(left), of(right)) else { return false };
        let most = i16::from(Decimal128Type::MAX_PRECISION);
        match op {
            Operator::Multiply => p1 + p2 < most,
            _ => s1.max(s2) + (p1 - s1).max(p2 - s2) < most,
        }
    }

    /// Whether what stands beside an expression is to be exact: a decimal, or a number of which a double would not keep the digits.
    fn decides(&self, expr: &Expr) -> bool {
        let is_long = |expr: &Expr| matches!(expr, Expr::ScalarFunction(function) if function.name() == NUMBER);
        // Whole numbers as doubles keep 53 bits.
        let is_wide = |expr: &Expr| match expr {
            Expr::Literal(ScalarValue::Int64(Some(value)), _) => value.unsigned_abs() > 1 << 53,
            Expr::Literal(ScalarValue::UInt64(Some(value)), _) => *value > 1 << 53,
            _ => false,
        };
        self.type_of(expr).is_decimal() || is_long(expr) || is_wide(expr)
    }

    /// Expressions of which one is a decimal, made exact if all can be and one is to.
    fn beside<const N: usize>(&self, exprs: [&Expr; N]) -> Option<[Expr; N]> {
        exprs.iter().any(|expr| self.decides(expr)).then(|| self.all(exprs)).flatten()
    }

    fn beside_all<'e>(&self, exprs: impl Iterator<Item = &'e Expr> + Clone) -> Option<Vec<Expr>> {
        let decimal = exprs.clone().any(|expr| self.decides(expr));
        let numbers = decimal && exprs.clone().any(has_number);
        if numbers { exprs.map(|expr| self.exact(expr)).collect() } else { None }
    }

    fn all<const N: usize>(&self, exprs: [&Expr; N]) -> Option<[Expr; N]> {
        if !exprs.iter().any(|expr| has_number(expr)) {
            return None;
        }
        let exact: Option<Vec<Expr>> = exprs.into_iter().map(|expr| self.exact(expr)).collect();
        exact?.try_into().ok()
    }

    /// An expression with decimals in the place of its numbers; none if it is a double nevertheless.
    fn exact(&self, expr: &Expr) -> Option<Expr> {
        if let Some(text) = text_of_number(expr) {
            return decimal(&text).map(|value| Expr::Literal(value, None));
        }
        if !has_number(expr) {
            let known = self.type_of(expr);
            let exact = known.is_decimal() || known.is_integer() || known.is_null();
            return exact.then(|| expr.clone());
        }
        match expr {
            Expr::Alias(Alias { expr, .. }) => self.exact(expr),
            Expr::Negative(inner) => Some(Expr::Negative(Box::new(self.exact(inner)?))),
            Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_exact(*op) => {
                let (left, right) = (Box::new(self.exact(left)?), Box::new(self.exact(right)?));
                self.fits(&left, *op, &right).then_some(Expr::BinaryExpr(BinaryExpr { left, op: *op, right }))
            }
            Expr::Case(case) => {
                let exact: Option<Vec<Expr>> = results(case).map(|expr| self.exact(expr)).collect();
                Some(with_results(case, exact?))
            }
            // What it is of is no part of it.
            other => self.type_of(other).is_decimal().then(|| other.clone()),
        }
    }
}

fn binary([left, right]: [Expr; 2], op: Operator) -> Expr {
    Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right)))
}

/// An operation on numbers that are written, of which a double would not keep the digits, by doubles: a quotient, and whatever
/// has no room in decimals. Whole numbers have it.
fn double(left: &Expr, op: Operator, right: &Expr) -> Option<Expr> {
    let as_double = |expr: &Expr| match expr {
        Expr::ScalarFunction(_) => {
            let text = text_of_number(expr).filter(|text| op == Operator::Divide || !is_whole(text))?;
            text.parse::<f64>().ok().map(lit)
        }
        _ => None,
    };
    let sides = (as_double(left), as_double(right));
    if sides.0.is_none() && sides.1.is_none() {
        return None;
    }
    Some(binary([sides.0.unwrap_or_else(|| left.clone()), sides.1.unwrap_or_else(|| right.clone())], op))
}

/// A number that keeps its text, as the double that is nearest to it.
pub(crate) fn nearest_double(expr: &Expr) -> Option<Expr> {
    match expr {
        Expr::ScalarFunction(function) if function.name() == NUMBER => {
            text_of_number(expr).filter(|text| !is_whole(text))?.parse::<f64>().ok().map(lit)
        }
        _ => None,
    }
}

fn cast(expr: Expr, to: DataType) -> Expr {
    Expr::Cast(Cast::new(Box::new(expr), to))
}

fn compares(op: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom)
}

/// Whether decimals lose nothing in an operation.
fn is_exact(op: Operator) -> bool {
    matches!(op, Operator::Plus | Operator::Minus | Operator::Multiply | Operator::Modulo)
}

fn results(case: &Case) -> impl Iterator<Item = &Expr> + Clone {
    case.when_then_expr.iter().map(|(_, then)| then.as_ref()).chain(case.else_expr.as_deref())
}

fn with_results(case: &Case, results: Vec<Expr>) -> Expr {
    let mut case = case.clone();
    let places = case.when_then_expr.iter_mut().map(|(_, then)| then).chain(&mut case.else_expr);
    places.zip(results).for_each(|(place, result)| **place = result);
    Expr::Case(case)
}

/// Whether a number decides what an expression is.
fn has_number(expr: &Expr) -> bool {
    match expr {
        Expr::Alias(Alias { expr, .. }) | Expr::Negative(expr) => has_number(expr),
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_exact(*op) => has_number(left) || has_number(right),
        Expr::Case(case) => results(case).any(has_number),
        other => text_of_number(other).is_some(),
    }
}

/// The text of a double, or of a call that keeps one.
fn text_of_number(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Literal(ScalarValue::Float64(Some(value)), _) if value.is_finite() => Some(value.to_string()),
        Expr::ScalarFunction(function) if function.name() == NUMBER => function.args.first().and_then(text_of),
        _ => None,
    }
}

fn text_of(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Literal(ScalarValue::Utf8(Some(text)), _) => Some(text.clone()),
        _ => None,
    }
}

/// The decimal that a text is, with no more digits than it has; none if there are too many for one.
fn decimal(text: &str) -> Option<ScalarValue> {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let digits = whole.trim_start_matches('0').len() + fraction.len();
    let (precision, scale) = (u8::try_from(digits.max(1)).ok()?, i8::try_from(fraction.len()).ok()?);
    if precision > Decimal256Type::MAX_PRECISION {
        return None;
    }
    if precision <= Decimal128Type::MAX_PRECISION {
        let joined = format!("{}{whole}{fraction}", if unsigned == text { "" } else { "-" });
        return Some(ScalarValue::Decimal128(Some(joined.parse().ok()?), precision, scale));
    }
    let text = StringArray::from(vec![text]);
    let options = CastOptions { safe: false, ..CastOptions::default() };
    let value = cast_with_options(&text, &DataType::Decimal256(precision, scale), &options).ok()?;
    let value = value.as_any().downcast_ref::<Decimal256Array>()?.value(0);
    Some(ScalarValue::Decimal256(Some(value), precision, scale))
}
