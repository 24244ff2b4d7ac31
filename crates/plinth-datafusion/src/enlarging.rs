//! Functions that make much of little: `repeat('x', 2000000000)`, `range(0, 1000000000)`.
//!
//! What an operator gathers it asks the pool for; what a function returns was there before anybody could be asked. Functions whose
//! result may be much larger than what they are given are wrapped here: how large it can become is known from their arguments,
//! row by row, and is held against the budget before the function is called. The operator `||` is one of them.

mod concatenation;
mod steps;

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Int8Type, Int16Type, Int32Type, Int64Type, IntervalMonthDayNanoType, TimestampNanosecondType,
    UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, FieldRef, TimeUnit};
use arrow_select::concat::concat;
use datafusion_common::config::ConfigOptions;
use datafusion_common::{DataFusionError, ExprSchema, Result, ScalarValue};
use datafusion_expr::interval_arithmetic::Interval;
use datafusion_expr::preimage::PreimageResult;
use datafusion_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion_expr::{
    ColumnarValue, Documentation, Expr, ExpressionPlacement, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, StructFieldMapping,
};
use datafusion_physical_expr::expressions::Literal;
use datafusion_physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use plinth_io::MemoryBudget;

pub use concatenation::bounded_concatenation;
pub(crate) use concatenation::{concatenation, is_concatenation};

/// How large a result may become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Growth {
    /// The first argument, as often as the second says.
    Times,
    /// As many characters as the second argument says.
    Padded,
    /// As many elements as the second argument says.
    Resized,
    /// The numbers or points in time from the first argument to the second, by the third.
    Range,
    /// The first argument with its parts replaced by the third; not more, and mostly far less.
    Replaced,
    /// All arguments in a row.
    Joined,
    /// The elements of the first argument as text, with the second between them.
    Written,
}

impl Growth {
    fn of(function: &str) -> Option<Self> {
        match function {
            "repeat" | "array_repeat" => Some(Self::Times),
            "lpad" | "rpad" => Some(Self::Padded),
            "array_resize" => Some(Self::Resized),
            "range" | "generate_series" => Some(Self::Range),
            "replace" | "regexp_replace" => Some(Self::Replaced),
            "||" | "concat" | "concat_ws" | "overlay" | "array_append" | "array_prepend" | "array_concat"
            | "make_array" => Some(Self::Joined),
            "array_to_string" => Some(Self::Written),
            _ => None,
        }
    }

    /// Whether the result can be far smaller than the bound.
    fn is_loose(self) -> bool {
        self == Self::Replaced
    }

    /// The argument that says how much comes out.
    fn count(self) -> Option<usize> {
        match self {
            Self::Times | Self::Padded | Self::Resized => Some(1),
            Self::Range | Self::Replaced | Self::Joined | Self::Written => None,
        }
    }
}

/// Bytes that are made without being asked about.
const SMALL: u64 = 1 << 20;
/// How often a value is repeated, and such, without its being much.
const FEW: i128 = 256;
/// Rows of a batch where a function may make much of each.
const FEW_ROWS: usize = 256;
/// Values of which a batch of any length may be made.
const SHORT: usize = 4 << 10;

/// Those of a session's functions whose result may be far larger than what they are given, held to a budget.
pub fn bounded_functions<'a>(
    functions: impl IntoIterator<Item = &'a Arc<ScalarUDF>>,
    budget: &Arc<MemoryBudget>,
) -> Vec<ScalarUDF> {
    let bounded = |function: &Arc<ScalarUDF>| {
        let growth = Growth::of(function.name())?;
        Some(Bounded { inner: Arc::clone(function), growth, budget: Arc::clone(budget) }.into())
    };
    functions.into_iter().filter_map(bounded).collect()
}

/// As [`enlarges`], of an expression alone.
fn most_rows(expr: &dyn PhysicalExpr, bytes: usize) -> Option<usize> {
    if let Some(literal) = expr.downcast_ref::<Literal>() {
        let size = literal.value().size();
        return (size > SHORT).then(|| (bytes / size).max(1));
    }
    let function = expr.downcast_ref::<ScalarFunctionExpr>()?;
    let growth = Growth::of(function.fun().name())?;
    let short = |count: &Arc<dyn PhysicalExpr>| {
        let literal = count.downcast_ref::<Literal>()?;
        Some(literal.value().to_array().ok().and_then(|array| number(&array, 0)).is_none_or(|n| n <= FEW))
    };
    let few = match growth.count() {
        Some(at) => !function.args().get(at).and_then(short).unwrap_or(false),
        None => growth == Growth::Range,
    };
    few.then_some(FEW_ROWS)
}

/// How many rows at most a batch should have that an expression is evaluated over, if it or one within it makes much of each
/// row: as many as have so many bytes, where that is known.
pub fn enlarges(expr: &dyn PhysicalExpr, bytes: usize) -> Option<usize> {
    let within = expr.children().into_iter().filter_map(|child| enlarges(child.as_ref(), bytes)).min();
    most_rows(expr, bytes).into_iter().chain(within).min()
}

/// A function whose result is held against a budget before it is made.
#[derive(Debug)]
struct Bounded {
    inner: Arc<ScalarUDF>,
    growth: Growth,
    budget: Arc<MemoryBudget>,
}

impl PartialEq for Bounded {
    fn eq(&self, other: &Self) -> bool {
        self.inner == other.inner
    }
}

impl Eq for Bounded {}

impl Hash for Bounded {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.inner.hash(state);
    }
}

/// An argument, which may be the same for all rows.
struct Argument {
    array: ArrayRef,
    scalar: bool,
}

impl Argument {
    fn new(value: &ColumnarValue) -> Result<Self> {
        Ok(match value {
            ColumnarValue::Array(array) => Self { array: Arc::clone(array), scalar: false },
            ColumnarValue::Scalar(scalar) => Self { array: scalar.to_array()?, scalar: true },
        })
    }

    fn at(&self, row: usize) -> usize {
        if self.scalar { 0 } else { row }
    }

    fn bytes(&self, row: usize) -> u64 {
        bytes(&self.array, self.at(row))
    }

    /// A number that is not negative.
    fn count(&self, row: usize) -> u64 {
        number(&self.array, self.at(row)).map_or(0, |n| u64::try_from(n.max(0)).unwrap_or(u64::MAX))
    }
}

/// Bytes of a value.
fn bytes(array: &ArrayRef, row: usize) -> u64 {
    if array.is_null(row) {
        return 0;
    }
    let unsigned = |n: i64| u64::try_from(n).unwrap_or(0);
    let of_view = |view: u128| u64::try_from(view & u128::from(u32::MAX)).unwrap_or(0);
    match array.data_type() {
        DataType::Utf8 => unsigned(i64::from(array.as_string::<i32>().value_length(row))),
        DataType::LargeUtf8 => unsigned(array.as_string::<i64>().value_length(row)),
        DataType::Binary => unsigned(i64::from(array.as_binary::<i32>().value_length(row))),
        DataType::LargeBinary => unsigned(array.as_binary::<i64>().value_length(row)),
        DataType::Utf8View => array.as_string_view().views().get(row).map_or(0, |&view| of_view(view)),
        DataType::BinaryView => array.as_binary_view().views().get(row).map_or(0, |&view| of_view(view)),
        DataType::List(_) => {
            let lists = array.as_list::<i32>();
            unsigned(i64::from(lists.value_length(row))).saturating_mul(width(lists.values()))
        }
        DataType::LargeList(_) => {
            let lists = array.as_list::<i64>();
            unsigned(lists.value_length(row)).saturating_mul(width(lists.values()))
        }
        _ => width(array),
    }
}

/// Elements of a list, those of lists within it too.
fn elements(array: &ArrayRef, row: usize) -> u64 {
    if array.is_null(row) {
        return 0;
    }
    let values = match array.data_type() {
        DataType::List(_) => array.as_list::<i32>().value(row),
        DataType::LargeList(_) => array.as_list::<i64>().value(row),
        DataType::FixedSizeList(..) => array.as_fixed_size_list().value(row),
        _ => return 1,
    };
    match values.data_type() {
        DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..) => {
            (0..values.len()).map(|row| elements(&values, row)).fold(0, u64::saturating_add)
        }
        _ => values.len() as u64,
    }
}

/// Bytes of a value on average.
fn width(array: &ArrayRef) -> u64 {
    let average = || array.get_array_memory_size() / array.len().max(1);
    array.data_type().primitive_width().unwrap_or_else(average) as u64
}

/// A whole number.
fn number(array: &ArrayRef, row: usize) -> Option<i128> {
    if array.is_null(row) {
        return None;
    }
    Some(match array.data_type() {
        DataType::Int8 => array.as_primitive::<Int8Type>().value(row).into(),
        DataType::Int16 => array.as_primitive::<Int16Type>().value(row).into(),
        DataType::Int32 => array.as_primitive::<Int32Type>().value(row).into(),
        DataType::Int64 => array.as_primitive::<Int64Type>().value(row).into(),
        DataType::UInt8 => array.as_primitive::<UInt8Type>().value(row).into(),
        DataType::UInt16 => array.as_primitive::<UInt16Type>().value(row).into(),
        DataType::UInt32 => array.as_primitive::<UInt32Type>().value(row).into(),
        DataType::UInt64 => array.as_primitive::<UInt64Type>().value(row).into(),
        DataType::Date32 => i128::from(array.as_primitive::<Date32Type>().value(row)) * DAY,
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            array.as_primitive::<TimestampNanosecondType>().value(row).into()
        }
        // The shortest months there are.
        DataType::Interval(_) => {
            let step = array.as_primitive_opt::<IntervalMonthDayNanoType>()?.value(row);
            (i128::from(step.months) * 28 + i128::from(step.days)) * DAY + i128::from(step.nanoseconds)
        }
        _ => return None,
    })
}

/// Nanoseconds.
const DAY: i128 = 86_400_000_000_000;

impl Bounded {
    /// The most bytes that the function may make of a row.
    fn bound(&self, args: &[Argument], row: usize) -> u64 {
        let bytes = |at: usize| args.get(at).map_or(0, |arg| arg.bytes(row));
        let count = |at: usize| args.get(at).map_or(0, |arg| arg.count(row));
        match self.growth {
            Growth::Times => bytes(0).saturating_mul(count(1)),
            Growth::Padded => {
                let wide = |arg: &Argument| match arg.array.as_string_view_opt() {
                    Some(text) => !text.is_ascii(),
                    None => arg.array.as_string_opt::<i32>().is_none_or(|text| !text.is_ascii()),
                };
                let wide = args.get(2).is_some_and(wide)
                    || args.first().is_some_and(|text| !text.scalar && count(1) > bytes(0) && wide(text));
                count(1).saturating_mul(if wide { 4 } else { 1 })
            }
            Growth::Resized => {
                let width = args.first().map_or(8, |lists| match lists.array.data_type() {
                    DataType::List(_) => width(lists.array.as_list::<i32>().values()),
                    DataType::LargeList(_) => width(lists.array.as_list::<i64>().values()),
                    _ => 8,
                });
                let each = args.get(2).map_or(width, |value| value.bytes(row).max(width));
                bytes(0).saturating_add(count(1).saturating_mul(each))
            }
            Growth::Range => {
                let number = |at: usize| args.get(at).and_then(|arg| number(&arg.array, arg.at(row)));
                let (start, stop) = if args.len() < 2 { (Some(0), number(0)) } else { (number(0), number(1)) };
                let step = if args.len() < 3 { Some(1) } else { number(2) };
                let (Some(start), Some(stop), Some(step)) = (start, stop, step) else { return 0 };
                // Without a step, or away from the end, there is nothing or an error.
                let steps = (stop - start).checked_div(step).unwrap_or(-1);
                u64::try_from(steps + 1).unwrap_or(0).saturating_mul(8)
            }
            Growth::Replaced => {
                let (text, part, new) = (bytes(0), bytes(1), bytes(2));
                let regexp = self.inner.name() == "regexp_replace";
                let part = if regexp { 1 } else { part.max(1) };
                let once = regexp && args.len() < 4;
                let most = if once { 1 } else { text / part + 1 };
                text.saturating_add(most.saturating_mul(new))
            }
            Growth::Joined => (0..args.len()).map(bytes).fold(0, u64::saturating_add),
            Growth::Written => {
                let elements = args.first().map_or(0, |lists| elements(&lists.array, lists.at(row)));
                // A number of eight bytes has twenty digits.
                let each = bytes(1).max(bytes(2)).saturating_add(20);
                bytes(0).saturating_add(elements.saturating_mul(each))
            }
        }
    }

    /// Whether all that can come out of a batch is small, as far as that is seen at once.
    fn is_small(&self, args: &[Argument], rows: usize) -> bool {
        if self.growth != Growth::Joined {
            return false;
        }
        let most = |arg: &Argument| {
            let bytes = arg.array.get_array_memory_size() as u64;
            if arg.scalar { bytes.saturating_mul(rows as u64) } else { bytes }
        };
        args.iter().map(most).fold(0, u64::saturating_add) <= SMALL
    }

    fn ask(&self, bytes: u64) -> Result<()> {
        let checked = self.budget.check(self.inner.name(), bytes);
        checked.map_err(|error| DataFusionError::ResourcesExhausted(error.to_string()))
    }

    fn invoke(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        if self.growth == Growth::Range
            && let Some(lists) = steps::between(self.inner.name(), &args)?
        {
            return Ok(lists);
        }
        self.inner.inner().invoke_with_args(args)
    }

    /// Calls the function for some rows at a time, as many as may be made of.
    fn invoke_in_pieces(&self, args: &ScalarFunctionArgs, bounds: &[u64]) -> Result<ColumnarValue> {
        let (mut pieces, mut made, mut from) = (Vec::new(), 0_u64, 0);
        while from < bounds.len() {
            let most = self.budget.left().saturating_sub(made) / 2;
            let mut bound = 0_u64;
            let fits = |bytes: &&u64| {
                bound = bound.saturating_add(**bytes);
                bound <= most
            };
            let len = bounds.iter().skip(from).take_while(fits).count().max(1);
            let bound = bounds.iter().skip(from).take(len).copied().fold(made, u64::saturating_add);
            self.ask(bound)?;
            let slice = |arg: &ColumnarValue| match arg {
                ColumnarValue::Array(array) => ColumnarValue::Array(array.slice(from, len)),
                scalar @ ColumnarValue::Scalar(_) => scalar.clone(),
            };
            let piece = ScalarFunctionArgs {
                args: args.args.iter().map(slice).collect(),
                arg_fields: args.arg_fields.clone(),
                number_rows: len,
                return_field: Arc::clone(&args.return_field),
                config_options: Arc::clone(&args.config_options),
            };
            let piece = self.inner.inner().invoke_with_args(piece)?.into_array(len)?;
            made = made.saturating_add(piece.get_array_memory_size() as u64);
            pieces.push(piece);
            from += len;
        }
        self.ask(made)?;
        let pieces: Vec<&dyn Array> = pieces.iter().map(AsRef::as_ref).collect();
        Ok(ColumnarValue::Array(concat(&pieces)?))
    }
}

#[warn(clippy::missing_trait_methods)] // All that is known of the function stays known.
impl ScalarUDFImpl for Bounded {
    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arguments = args.args.iter().map(Argument::new).collect::<Result<Vec<_>>>()?;
        let one = arguments.iter().all(|arg| arg.scalar);
        let rows = if one { args.number_rows.min(1) } else { args.number_rows };
        if self.is_small(&arguments, rows) {
            return self.inner.inner().invoke_with_args(args);
        }
        let bounds: Vec<u64> = (0..rows).map(|row| self.bound(&arguments, row)).collect();
        let bound = bounds.iter().copied().fold(0, u64::saturating_add);
        if bound <= SMALL {
            return self.invoke(args);
        }
        drop(arguments);
        if self.growth.is_loose() && !one && self.budget.check(self.inner.name(), bound).is_err() {
            return self.invoke_in_pieces(&args, &bounds);
        }
        self.ask(bound)?;
        // For threads that ask meanwhile: none of it is there yet. Once it is, it is seen.
        let held = self.budget.reserve(self.inner.name(), bound);
        let _held = held.map_err(|error| DataFusionError::ResourcesExhausted(error.to_string()))?;
        self.invoke(args)
    }

    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn display_name(&self, args: &[Expr]) -> Result<String> {
        #[expect(deprecated)]
        self.inner.inner().display_name(args)
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        self.inner.inner().schema_name(args)
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        self.inner.inner().return_type(arg_types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        self.inner.inner().return_field_from_args(args)
    }

    fn is_nullable(&self, args: &[Expr], schema: &dyn ExprSchema) -> bool {
        #[expect(deprecated)]
        self.inner.inner().is_nullable(args, schema)
    }

    fn is_strict(&self) -> bool {
        self.inner.inner().is_strict()
    }

    fn with_updated_config(&self, config: &ConfigOptions) -> Option<ScalarUDF> {
        let inner = Arc::new(self.inner.inner().with_updated_config(config)?);
        Some(Self { inner, growth: self.growth, budget: Arc::clone(&self.budget) }.into())
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        self.inner.inner().simplify(args, info)
    }

    fn preimage(&self, args: &[Expr], literal: &Expr, info: &SimplifyContext) -> Result<PreimageResult> {
        self.inner.inner().preimage(args, literal, info)
    }

    fn conditional_arguments<'a>(&self, args: &'a [Expr]) -> Option<(Vec<&'a Expr>, Vec<&'a Expr>)> {
        self.inner.inner().conditional_arguments(args)
    }

    fn short_circuits(&self) -> bool {
        self.inner.inner().short_circuits()
    }

    fn evaluate_bounds(&self, input: &[&Interval]) -> Result<Interval> {
        self.inner.inner().evaluate_bounds(input)
    }

    fn propagate_constraints(&self, interval: &Interval, inputs: &[&Interval]) -> Result<Option<Vec<Interval>>> {
        self.inner.inner().propagate_constraints(interval, inputs)
    }

    fn struct_field_mapping(&self, literals: &[Option<ScalarValue>]) -> Option<StructFieldMapping> {
        self.inner.inner().struct_field_mapping(literals)
    }

    fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties> {
        self.inner.inner().output_ordering(inputs)
    }

    fn preserves_lex_ordering(&self, inputs: &[ExprProperties]) -> Result<bool> {
        self.inner.inner().preserves_lex_ordering(inputs)
    }

    fn strictly_order_preserving(&self, inputs: &[ExprProperties]) -> Result<bool> {
        self.inner.inner().strictly_order_preserving(inputs)
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.inner().coerce_types(arg_types)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }

    fn placement(&self, args: &[ExpressionPlacement]) -> ExpressionPlacement {
        self.inner.inner().placement(args)
    }
}
