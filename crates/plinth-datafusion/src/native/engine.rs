//! The engine's aggregate functions over own groups.

use std::fmt;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray, UInt32Array, new_null_array};
use arrow_schema::DataType;
use arrow_select::take::take;
use datafusion_common::{DataFusionError, Result};
use datafusion_expr::{EmitTo, GroupsAccumulator};
use datafusion_physical_expr::GroupsAccumulatorAdapter;
use datafusion_physical_expr::aggregate::AggregateFunctionExpr;
use plinth_exec::aggregate::{Aggregate, Frozen, Input, Merged, States, StatesRead};
use plinth_exec::{ExecError, Result as ExecResult};

/// An aggregate function of the engine: its states lie in an accumulator of the engine, by the number of the group.
pub(super) struct EngineAggregate {
    function: Arc<AggregateFunctionExpr>,
    /// Of its arguments.
    types: Vec<DataType>,
    accumulator: Box<dyn GroupsAccumulator>,
    /// The results of all groups, once they were asked for.
    evaluated: Option<ArrayRef>,
    /// Their states, once they are passed on.
    states: Option<Vec<ArrayRef>>,
    /// Groups the accumulator has heard of.
    known: usize,
    scratch: Vec<usize>,
}

impl fmt::Debug for EngineAggregate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EngineAggregate").field("function", &self.function).finish_non_exhaustive()
    }
}

impl EngineAggregate {
    /// A function, given arguments of some types.
    pub(super) fn new(function: &Arc<AggregateFunctionExpr>, types: Vec<DataType>) -> Result<Self> {
        let accumulator = if function.groups_accumulator_supported() {
            function.create_groups_accumulator()?
        } else {
            let function = Arc::clone(function);
            Box::new(GroupsAccumulatorAdapter::new(move || function.create_accumulator()))
        };
        let function = Arc::clone(function);
        Ok(Self { function, types, accumulator, evaluated: None, states: None, known: 0, scratch: Vec::new() })
    }

    /// Has the accumulator hear of groups whose rows never came.
    fn know(&mut self, groups: usize) -> Result<()> {
        if self.known < groups {
            // A row that does not count: of a batch without rows it would be concluded that each group has some.
            let row: Vec<ArrayRef> = self.types.iter().map(|data_type| new_null_array(data_type, 1)).collect();
            let none = BooleanArray::from(vec![false]);
            self.accumulator.update_batch(&row, &[groups - 1], Some(&none), groups)?;
            self.known = groups;
        }
        Ok(())
    }

    fn widen(&mut self, groups: &[u32]) {
        self.scratch.clear();
        self.scratch.extend(groups.iter().map(|&group| group as usize));
    }
}

/// The engine's error among ours.
fn wrapped(error: DataFusionError) -> ExecError {
    ExecError::source(error)
}

/// Some rows of an array.
fn some(array: &ArrayRef, rows: &[u32]) -> ExecResult<ArrayRef> {
    let all = rows.len() == array.len() && rows.iter().enumerate().all(|(at, &row)| at == row as usize);
    if all { Ok(Arc::clone(array)) } else { Ok(take(array, &UInt32Array::from(rows.to_vec()), None)?) }
}

impl Aggregate for EngineAggregate {
    fn words(&self) -> usize {
        0
    }

    fn update(&mut self, _: &mut States<'_>, input: &Input<'_>) -> ExecResult<()> {
        let arguments = input.arguments.iter().map(|argument| argument.array()).collect::<ExecResult<Vec<_>>>()?;
        self.widen(input.groups);
        let filter = input.filter.map(|filter| BooleanArray::new(filter.clone(), None));
        let updated = self.accumulator.update_batch(&arguments, &self.scratch, filter.as_ref(), input.total);
        self.known = self.known.max(input.total);
        updated.map_err(wrapped)
    }

    fn freeze(&mut self, groups: usize) -> ExecResult<Frozen> {
        self.know(groups).map_err(wrapped)?;
        Ok(Box::new(self.accumulator.state(EmitTo::All).map_err(wrapped)?))
    }

    fn merge(&mut self, _: &mut States<'_>, from: &Merged<'_>) -> ExecResult<()> {
        let states: &Vec<ArrayRef> =
            from.frozen.downcast_ref().ok_or_else(|| ExecError::internal("states of another aggregate"))?;
        let states = states.iter().map(|state| some(state, from.sources)).collect::<ExecResult<Vec<_>>>()?;
        self.widen(from.targets);
        self.known = self.known.max(from.total);
        self.accumulator.merge_batch(&states, &self.scratch, from.total).map_err(wrapped)
    }

    fn values(&mut self, states: &StatesRead<'_>, groups: &[u32]) -> ExecResult<ArrayRef> {
        let evaluated = match &self.evaluated {
            Some(evaluated) => evaluated,
            None => {
                self.know(states.groups()).map_err(wrapped)?;
                self.evaluated.insert(self.accumulator.evaluate(EmitTo::All).map_err(wrapped)?)
            }
        };
        some(evaluated, groups)
    }

    fn partial(&mut self, states: &StatesRead<'_>, groups: &[u32]) -> ExecResult<Vec<ArrayRef>> {
        let all = match &self.states {
            Some(all) => all,
            None => {
                self.know(states.groups()).map_err(wrapped)?;
                self.states.insert(self.accumulator.state(EmitTo::All).map_err(wrapped)?)
            }
        };
        all.iter().map(|state| some(state, groups)).collect()
    }

    fn uncounted(&self) -> u64 {
        self.accumulator.size() as u64
    }

    fn fresh(&self) -> ExecResult<Box<dyn Aggregate>> {
        Ok(Box::new(Self::new(&self.function, self.types.clone()).map_err(wrapped)?))
    }
}
