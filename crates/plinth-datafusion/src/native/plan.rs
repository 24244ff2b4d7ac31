//! Which aggregates of the engine are ours, and how they are computed.

use std::sync::Arc;

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_buffer::BooleanBuffer;
use arrow_schema::{DataType, FieldRef, Schema};
use datafusion_common::Result;
use datafusion_physical_expr::aggregate::AggregateFunctionExpr;
use datafusion_physical_expr::expressions::{CastExpr, Literal};
use datafusion_physical_expr_common::physical_expr::PhysicalExpr;
use datafusion_physical_plan::aggregates::{AggregateExec, AggregateMode};
use plinth_exec::aggregate::{Aggregate, Count, CountDistinct, DecimalMean, Extreme, Mean, Reading, Sum, Which};
use plinth_exec::domain::Domain;
use plinth_exec::domains::Domains;
use plinth_exec::grouping::{Chunk, Grouping};
use plinth_exec::key::{Bounds, Keys, Meaning};
use plinth_exec::numbers::Numbers;
use plinth_exec::vector::Vector;
use plinth_io::MemoryBudget;

use super::determined::determined;
use super::engine::EngineAggregate;
use super::input::{Input, Rows};
use crate::error::from_exec;
use crate::evaluated::{Evaluated, Memos};

/// Bytes that all threads' tables of addresses take at most for a group that is expected.
const BYTES: u64 = 64;

/// Of the memory, what such tables may take.
const ROOM: u64 = 16;

/// How an aggregate is computed.
#[derive(Clone, Debug)]
enum Kind {
    CountRows,
    CountValues,
    CountDistinct {
        of: DataType,
        item: FieldRef,
    },
    Sum {
        of: DataType,
        result: DataType,
        each_has_some: bool,
    },
    Mean {
        of: DataType,
    },
    DecimalMean {
        of: DataType,
        sum: DataType,
        result: DataType,
    },
    Extreme {
        which: Which,
        of: DataType,
    },
    /// Of text: by codes where one dictionary codes all rows, else in the engine's accumulator.
    ExtremeText {
        which: Which,
        engine: Arc<AggregateFunctionExpr>,
    },
    Engine(Arc<AggregateFunctionExpr>),
}

/// An aggregate.
#[derive(Clone, Debug)]
struct Measure {
    kind: Kind,
    arguments: Vec<Evaluated>,
    /// Of the arguments.
    types: Vec<DataType>,
    filter: Option<Evaluated>,
    /// The measure that adds up the same values, of which it makes a mean.
    sum: Option<usize>,
}

/// What is computed of an input's rows.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    keys: Vec<Evaluated>,
    key_types: Vec<DataType>,
    /// Which keys others determine.
    determined: Vec<bool>,
    measures: Vec<Measure>,
}

impl Plan {
    /// A final aggregate over a partial one, if they can be computed here. Else why not.
    pub(super) fn of(last: &AggregateExec, partial: &AggregateExec) -> Result<Result<Self, &'static str>> {
        if !matches!(last.mode(), AggregateMode::Final | AggregateMode::FinalPartitioned)
            || *partial.mode() != AggregateMode::Partial
        {
            return Ok(Err("not a partial and a final aggregate"));
        }
        if last.limit_options().is_some() || partial.limit_options().is_some() {
            return Ok(Err("a limit within the aggregate"));
        }
        Self::over(partial)
    }

    /// What an aggregate computes of its input's rows, if that can be done here. Else why not.
    pub(super) fn over(partial: &AggregateExec) -> Result<Result<Self, &'static str>> {
        let groups = partial.group_expr();
        if groups.has_grouping_set() || !(groups.is_single() || groups.is_true_no_grouping()) {
            return Ok(Err("grouping sets"));
        }
        let schema = partial.input().schema();
        let exprs: Vec<_> = groups.expr().iter().map(|(expr, _)| Arc::clone(expr)).collect();
        let determined = determined(&exprs, partial.input())?;
        let mut plan = Self { keys: Vec::new(), key_types: Vec::new(), determined, measures: Vec::new() };
        for (expr, _) in groups.expr() {
            let data_type = expr.data_type(&schema)?;
            if !Meaning::is_known(&data_type) {
                return Ok(Err("a key of nested or interval type"));
            }
            plan.keys.push(Evaluated::new(expr, &schema)?);
            plan.key_types.push(data_type);
        }
        for (function, filter) in partial.aggr_expr().iter().zip(partial.filter_expr()) {
            if !function.order_bys().is_empty() {
                return Ok(Err("an aggregate in an order"));
            }
            let keyed = !plan.keys.is_empty();
            plan.measures.push(Measure::of(function, filter.as_ref(), &schema, keyed)?);
        }
        plan.share_sums();
        let distinct = plan.measures.iter().any(|measure| matches!(measure.kind, Kind::CountDistinct { .. }));
        // The engine adds up whole arrays where there is one group.
        if plan.keys.is_empty() && !distinct {
            return Ok(Err("one group"));
        }
        Ok(Ok(plan))
    }

    /// Has means take the sums and counts of sums of the same column.
    fn share_sums(&mut self) {
        let column = |measure: &Measure| match (measure.arguments.as_slice(), &measure.filter) {
            ([Evaluated::Column(column)], None) => Some(*column),
            _ => None,
        };
        for at in 0..self.measures.len() {
            let (Kind::Mean { of } | Kind::DecimalMean { of, .. }) = &self.measures[at].kind else { continue };
            let Some(of_mean) = column(&self.measures[at]) else { continue };
            let is_sum = |measure: &Measure| {
                matches!(&measure.kind, Kind::Sum { of: added, .. } if added == of) && column(measure) == Some(of_mean)
            };
            if let Some(sum) = self.measures.iter().position(is_sum) {
                self.measures[at].sum = Some(sum);
                if let Kind::Sum { each_has_some, .. } = &mut self.measures[sum].kind {
                    // Then it counts.
                    *each_has_some = false;
                }
            }
        }
    }

    /// Which keys others determine.
    pub(super) fn determined(&self) -> &[bool] {
        &self.determined
    }

    /// Its keys, whose numbers are expected in some ranges. Groups carry beside those that tell them apart, of the ones that others determine, those
    /// that take a look-up or many bits, and all of them where the key would not fit a word.
    fn keys(&self, meanings: Vec<Meaning>, ranges: &[Bounds], budget: &Arc<MemoryBudget>) -> Keys {
        let is_large = |meaning: &Meaning| match meaning {
            Meaning::Numbers(numbers, _) => matches!(numbers, Numbers::Wide | Numbers::Float64),
            Meaning::Codes(_) => false,
            Meaning::Domain(_) => true,
        };
        let keys = |all: bool, meanings: Vec<Meaning>| {
            let each = self.determined.iter().zip(&meanings);
            let carried: Vec<_> = each.map(|(determined, meaning)| *determined && (all || is_large(meaning))).collect();
            Keys::carrying(meanings, &carried, budget).expecting(ranges)
        };
        let some = keys(false, meanings.clone());
        if some.fit_a_word() { some } else { keys(true, meanings) }
    }

    /// The only key that tells groups apart, and the column of the input that it is.
    pub(super) fn only_key(&self) -> Option<(usize, usize)> {
        let mut keys = self.keys.iter().zip(&self.determined).enumerate().filter(|(_, (_, determined))| !**determined);
        match (keys.next(), keys.next()) {
            (Some((at, (Evaluated::Column(column), _))), None) => Some((at, *column)),
            _ => None,
        }
    }

    /// The column that is its only key, if nothing else is computed.
    pub(super) fn sole_key(&self) -> Option<usize> {
        match (self.keys.as_slice(), self.measures.as_slice()) {
            ([Evaluated::Column(column)], []) => Some(*column),
            _ => None,
        }
    }

    /// What the numbers of keys and of distinct values mean, for all threads of a query: as they were in queries before, of domains that are kept.
    pub(super) fn meanings(
        &self,
        input: &Input,
        budget: &Arc<MemoryBudget>,
        domains: Option<&Domains>,
    ) -> Result<Meanings> {
        let meaning = |expr: &Evaluated, data_type: &DataType| {
            if let Evaluated::Column(column) = expr {
                if let Some(dictionary) = input.sole_dictionary(*column)? {
                    return Ok(Meaning::Codes(dictionary));
                }
                if let Some(domains) = domains
                    && let (distinct, _) = input.distinct(&[Some(*column)])
                    && let Some(Some(distinct)) = distinct.first()
                    && let Some(name) = input.coded_column(*column)?
                    && let Some(domain) = domains.of(&name, data_type, *distinct)
                {
                    return Ok(Meaning::Domain(domain));
                }
            }
            Meaning::of(data_type, budget)
                .ok_or_else(|| datafusion_common::internal_datafusion_err!("values of {data_type} are no keys"))
        };
        let keys = self.keys.iter().zip(&self.key_types).map(|(expr, data_type)| meaning(expr, data_type));
        let measures = self.measures.iter().map(|measure| match (&measure.kind, measure.arguments.first()) {
            (Kind::CountDistinct { of, .. }, Some(argument)) => {
                let meaning = meaning(argument, of)?;
                let range = range(argument, &meaning, input)?;
                Ok(Some((meaning, range)))
            }
            (Kind::ExtremeText { .. }, Some(Evaluated::Column(column))) => {
                Ok(input.sole_dictionary(*column)?.map(|dictionary| (Meaning::Codes(dictionary), None)))
            }
            _ => Ok(None),
        });
        let keys = keys.collect::<Result<Vec<_>>>()?;
        let column = |expr: &Evaluated| if let Evaluated::Column(column) = expr { Some(*column) } else { None };
        let (distinct, rows) = input.distinct(&self.keys.iter().map(column).collect::<Vec<_>>());
        let ranges = self.keys.iter().zip(&keys).zip(&distinct).map(|((expr, meaning), distinct)| match meaning {
            Meaning::Domain(_) => Ok(Some(distinct.map_or(Domain::RANGE, Domain::range_of))),
            _ => range(expr, meaning, input),
        });
        let ranges = ranges.collect::<Result<Vec<_>>>()?;
        // Those that others determine make no groups.
        let each = distinct.into_iter().zip(&self.determined).filter(|(_, determined)| !**determined);
        let groups = each.map(|(of, _)| of).try_fold(1_usize, |groups, of| Some(groups.saturating_mul(of?)));
        let groups = groups.zip(rows).map_or(0, |(groups, rows)| groups.min(rows));
        let keys = self.keys(keys, &ranges, budget);
        let keys = keys.expecting_groups(of_thread(groups, input.partitions(), budget));
        Ok(Meanings { keys, measures: measures.collect::<Result<_>>()? })
    }

    /// No groups yet.
    pub(super) fn grouping(&self, meanings: &Meanings, budget: &Arc<MemoryBudget>) -> Result<Grouping> {
        let each = self.measures.iter().zip(&meanings.measures);
        let aggregates = each.map(|(measure, meaning)| measure.aggregate(meaning.as_ref(), budget));
        let aggregates = aggregates.collect::<Result<Vec<_>>>()?;
        Grouping::new(meanings.keys.clone(), aggregates, budget).map_err(from_exec)
    }

    /// Rows as a grouping takes them.
    pub(super) fn chunk(&self, (rows, columns): &Rows, memos: &Memos) -> Result<Chunk> {
        let evaluate = |expr: &Evaluated| expr.evaluate(columns, *rows, memos);
        let arguments = |measure: &Measure| measure.arguments.iter().map(evaluate).collect::<Result<Vec<_>>>();
        let filter = |measure: &Measure| measure.filter.as_ref().map(|filter| passing(&evaluate(filter)?)).transpose();
        Ok(Chunk {
            rows: *rows,
            keys: self.keys.iter().map(evaluate).collect::<Result<_>>()?,
            arguments: self.measures.iter().map(arguments).collect::<Result<_>>()?,
            filters: self.measures.iter().map(filter).collect::<Result<_>>()?,
        })
    }
}

/// Of so many groups those that a thread is to have room for from the start: twice its share, for threads may meet the same. None if that is much of the
/// memory.
fn of_thread(groups: usize, threads: usize, budget: &MemoryBudget) -> usize {
    let each = groups.saturating_mul(2) / threads.max(1);
    if (groups as u64).saturating_mul(BYTES) < budget.limit() / ROOM { each } else { 0 }
}

/// What the numbers of keys and of the values of some aggregates mean.
#[derive(Clone, Debug)]
pub(super) struct Meanings {
    keys: Keys,
    /// And the range these numbers are expected in.
    measures: Vec<Option<(Meaning, Bounds)>>,
}

impl Meanings {
    /// The same for few groups, whose numbers of a key lie within a range.
    pub(super) fn of_few(&self, key: usize, (least, greatest): (i64, i64)) -> Self {
        Self { keys: self.keys.expecting_few(key, least, greatest), measures: self.measures.clone() }
    }
}

/// The numbers that a key column is expected to have.
pub(super) fn range(expr: &Evaluated, meaning: &Meaning, input: &Input) -> Result<Bounds> {
    match (expr, meaning) {
        (_, Meaning::Domain(_)) => Ok(Some(Domain::RANGE)),
        (_, Meaning::Codes(dictionary)) => {
            Ok(i64::try_from(dictionary.len()).ok().and_then(|len| Some((0, len.checked_sub(1)?))))
        }
        (Evaluated::Column(column), Meaning::Numbers(Numbers::Signed(_), _)) => {
            let bounds = input.integers(*column)?;
            Ok(bounds.and_then(|(min, max)| Some((i64::try_from(min).ok()?, i64::try_from(max).ok()?))))
        }
        _ => Ok(None),
    }
}

impl Measure {
    fn of(
        function: &Arc<AggregateFunctionExpr>,
        filter: Option<&Arc<dyn PhysicalExpr>>,
        schema: &Schema,
        keyed: bool,
    ) -> Result<Self> {
        let mut arguments = function.expressions();
        let kind = Kind::of(function, &mut arguments, schema, keyed && filter.is_none())?;
        let types = arguments.iter().map(|argument| argument.data_type(schema)).collect::<Result<_>>()?;
        let evaluated = |expr: &Arc<dyn PhysicalExpr>| Evaluated::new(expr, schema);
        Ok(Self {
            kind,
            types,
            arguments: arguments.iter().map(evaluated).collect::<Result<_>>()?,
            filter: filter.map(evaluated).transpose()?,
            sum: None,
        })
    }

    fn aggregate(&self, meaning: Option<&(Meaning, Bounds)>, budget: &Arc<MemoryBudget>) -> Result<Box<dyn Aggregate>> {
        let own: Option<Box<dyn Aggregate>> = match &self.kind {
            Kind::CountRows => Some(Box::new(Count::rows())),
            Kind::CountValues => Some(Box::new(Count::values())),
            Kind::CountDistinct { item, .. } => meaning.map(|(meaning, range)| {
                Box::new(CountDistinct::new(meaning.clone(), *range, Arc::clone(item), budget)) as _
            }),
            Kind::Sum { of, result, each_has_some } => {
                Sum::new(of, result, *each_has_some).map(|sum| Box::new(sum) as _)
            }
            Kind::Mean { of } => Mean::new(of).map(|mean| Box::new(mean) as _),
            Kind::DecimalMean { of, sum, result } => DecimalMean::new(of, sum, result).map(|mean| Box::new(mean) as _),
            Kind::Extreme { which, of } => {
                let extreme = Meaning::of(of, budget).and_then(|meaning| Extreme::new(*which, meaning));
                extreme.map(|extreme| Box::new(extreme) as _)
            }
            Kind::ExtremeText { which, engine } => {
                let extreme = meaning.and_then(|(meaning, _)| Extreme::new(*which, meaning.clone()));
                Some(match extreme {
                    Some(extreme) => Box::new(extreme),
                    None => Box::new(EngineAggregate::new(engine, self.types.clone())?),
                })
            }
            Kind::Engine(function) => Some(Box::new(EngineAggregate::new(function, self.types.clone())?)),
        };
        let own =
            own.ok_or_else(|| datafusion_common::internal_datafusion_err!("{:?} can't be computed", self.kind))?;
        Ok(match self.sum {
            Some(sum) => Box::new(Reading::new(sum, own)),
            None => own,
        })
    }
}

impl Kind {
    /// How a function is computed, of every row of a group or of some; takes casts and constants off its arguments where it needs none.
    fn of(
        function: &Arc<AggregateFunctionExpr>,
        arguments: &mut Vec<Arc<dyn PhysicalExpr>>,
        schema: &Schema,
        every_row: bool,
    ) -> Result<Self> {
        let engine = Self::Engine(Arc::clone(function));
        let [argument] = arguments.as_slice() else { return Ok(engine) };
        let of = argument.data_type(schema)?;
        let result = function.field().data_type().clone();
        let name = function.fun().name();
        let each_has_some = every_row && !argument.nullable(schema)?;
        if function.is_distinct() {
            let state = function.state_fields()?;
            let item = match (state.as_slice(), name) {
                ([field], "count") => match field.data_type() {
                    DataType::List(item) if *item.data_type() == of && Meaning::is_known(&of) => Arc::clone(item),
                    _ => return Ok(engine),
                },
                _ => return Ok(engine),
            };
            return Ok(Self::CountDistinct { of, item });
        }
        // What was cast from an integer may be added as that.
        let narrow = argument.downcast_ref::<CastExpr>().map(|cast| Arc::clone(cast.expr()));
        let narrow = match narrow {
            Some(expr) => Some((expr.data_type(schema)?, expr)).filter(|(data_type, _)| data_type.is_integer()),
            None => None,
        };
        Ok(match name {
            "count" => match argument.downcast_ref::<Literal>() {
                Some(literal) if !literal.value().is_null() => {
                    arguments.clear();
                    Self::CountRows
                }
                _ => Self::CountValues,
            },
            "sum" => match narrow {
                Some((of, expr)) if Sum::new(&of, &result, each_has_some).is_some() => {
                    *arguments = vec![expr];
                    Self::Sum { of, result, each_has_some }
                }
                _ if Sum::new(&of, &result, each_has_some).is_some() => Self::Sum { of, result, each_has_some },
                _ => engine,
            },
            "avg" if result == DataType::Float64 => match narrow {
                Some((of, expr)) if of != DataType::Float64 && Mean::new(&of).is_some() => {
                    *arguments = vec![expr];
                    Self::Mean { of }
                }
                _ if of == DataType::Float64 => Self::Mean { of },
                _ => engine,
            },
            "avg" => match function.state_fields()?.get(1).map(|sum| sum.data_type().clone()) {
                Some(sum) if DecimalMean::new(&of, &sum, &result).is_some() => Self::DecimalMean { of, sum, result },
                _ => engine,
            },
            "min" | "max" => {
                let which = if name == "min" { Which::Least } else { Which::Greatest };
                match Numbers::of(&of) {
                    Some(Numbers::Bool | Numbers::Signed(_) | Numbers::Unsigned(_)) => Self::Extreme { which, of },
                    None if of.is_string() => Self::ExtremeText { which, engine: Arc::clone(function) },
                    _ => engine,
                }
            }
            _ => engine,
        })
    }
}

/// The rows for which a condition is true.
fn passing(condition: &Vector) -> Result<BooleanBuffer> {
    let array = condition.array().map_err(from_exec)?;
    let condition = array
        .as_boolean_opt()
        .ok_or_else(|| datafusion_common::internal_datafusion_err!("a FILTER that is no condition"))?;
    Ok(match condition.nulls() {
        Some(nulls) => condition.values() & nulls.inner(),
        None => condition.values().clone(),
    })
}
