//! The order of joins, and which side of each is gathered.
//!
//! Inner joins that follow each other are one graph (`graph`): relations, columns that are equal, conditions. Of all orders the one that costs
//! least by estimates (`search`) is taken, unless the written one costs little more. Estimates (`estimate`, `selectivity`) are of the
//! statistics of files: rows, bounds, distinct values.

mod estimate;
mod graph;
mod search;
mod selectivity;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use arrow_schema::Schema;
use datafusion_common::config::ConfigOptions;
use datafusion_common::{JoinSide, JoinType, NullEquality, Result, internal_datafusion_err};
use datafusion_physical_expr::expressions::Column;
use datafusion_physical_expr::projection::ProjectionExpr;
use datafusion_physical_expr::utils::collect_columns;
use datafusion_physical_expr_common::physical_expr::PhysicalExpr;
use datafusion_physical_plan::ExecutionPlan;
use datafusion_physical_plan::execution_plan::replace_children_if_necessary;
use datafusion_physical_plan::joins::utils::{ColumnIndex, JoinFilter};
use datafusion_physical_plan::joins::{HashJoinExec, PartitionMode};
use datafusion_physical_plan::projection::ProjectionExec;
use datafusion_session::PhysicalOptimizerRule;

use self::estimate::Estimate;
use self::graph::{Joined, address, is_join, placed};
use self::search::{Graph, Set, Tree, cost};
use crate::config::orders_joins;

/// How many times what another order costs the written one must cost to be left.
const WORTH: f64 = 1.2;

/// Joins in the order that costs least. Its place is behind the rule that chooses kinds of joins, before those that replace them.
#[derive(Debug)]
pub struct JoinOrder;

impl PhysicalOptimizerRule for JoinOrder {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        if !orders_joins(config) {
            return Ok(plan);
        }
        let threshold = config.optimizer.hash_join_single_partition_threshold_rows;
        #[allow(clippy::cast_precision_loss, reason = "an estimate")]
        Ordering { collected: threshold as f64 }.ordered(&plan)
    }

    fn name(&self) -> &'static str {
        "join_order"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The rows that a plan is expected to give, as orders of joins are weighed by; none if statistics don't tell.
pub fn expected_rows(plan: &dyn ExecutionPlan) -> Option<f64> {
    Estimate::of(plan).map(|estimate| estimate.rows)
}

/// The rows that hash joins of a plan are expected to give, as far as statistics tell: of those below a join before that of the join.
pub(crate) fn estimates(plan: &Arc<dyn ExecutionPlan>) -> Vec<Option<f64>> {
    let (mut known, mut estimates) = (HashMap::new(), Vec::new());
    estimate(plan, &mut known);
    in_turn(plan, &known, &mut estimates);
    estimates
}

fn estimate(plan: &Arc<dyn ExecutionPlan>, known: &mut HashMap<usize, f64>) {
    if let Some(joined) = Joined::of(plan.as_ref()) {
        known.extend(joined.rows());
        joined.relations.iter().for_each(|relation| estimate(relation, known));
        return;
    }
    if let Some(join) = plan.downcast_ref::<HashJoinExec>()
        && let Some(estimate) = Estimate::of(join)
    {
        known.insert(address(join), estimate.rows);
    }
    plan.children().into_iter().for_each(|child| estimate(child, known));
}

fn in_turn(plan: &Arc<dyn ExecutionPlan>, known: &HashMap<usize, f64>, estimates: &mut Vec<Option<f64>>) {
    plan.children().into_iter().for_each(|child| in_turn(child, known, estimates));
    if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
        estimates.push(known.get(&address(join)).copied());
    }
}

/// How joins are built.
struct Ordering {
    /// Rows of a side up to which the engine gathers it whole.
    collected: f64,
}

impl Ordering {
    fn ordered(&self, plan: &Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
        if let Some(plan) = of_few_columns(plan)? {
            return self.ordered(&plan);
        }
        if let Some(joined) = Joined::of(plan.as_ref()) {
            let relations =
                joined.relations.iter().map(|relation| self.ordered(relation)).collect::<Result<Vec<_>>>()?;
            let graph = joined.graph();
            let best = graph.best().filter(|best| graph.cost(best) * WORTH < graph.cost(&joined.tree));
            let same =
                best.is_none() && relations.iter().zip(&joined.relations).all(|(new, old)| Arc::ptr_eq(new, old));
            if same {
                return Ok(Arc::clone(plan));
            }
            let tree = best.unwrap_or_else(|| joined.tree.clone());
            return Building { ordering: self, joined: &joined, relations: &relations, graph: &graph }
                .plan(&tree, plan);
        }
        let children = plan.children().into_iter().map(|child| self.ordered(child)).collect::<Result<Vec<_>>>()?;
        let plan = replace_children_if_necessary(Arc::clone(plan), children)?;
        match plan.downcast_ref::<HashJoinExec>() {
            Some(join) => Ok(self.sides(join)?.unwrap_or(plan)),
            None => Ok(plan),
        }
    }

    /// A join whose sides are better the other way round.
    fn sides(&self, join: &HashJoinExec) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        if *join.join_type() == JoinType::Inner || !join.join_type().supports_swap() || join.null_aware {
            return Ok(None);
        }
        let (left, right) = (Estimate::of(join.left().as_ref()), Estimate::of(join.right().as_ref()));
        let (Some(left), Some(right), Some(out)) = (left, right, Estimate::of(join)) else { return Ok(None) };
        if cost(right.rows, left.rows, out.rows) * WORTH >= cost(left.rows, right.rows, out.rows) {
            return Ok(None);
        }
        join.swap_inputs(self.mode(right.rows)).map(Some)
    }

    fn mode(&self, gathered: f64) -> PartitionMode {
        if gathered <= self.collected { PartitionMode::CollectLeft } else { PartitionMode::Partitioned }
    }
}

/// A projection of joins that has all columns it does not read left out below it, if there are some.
fn of_few_columns(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some(projection) = plan.downcast_ref::<ProjectionExec>().filter(|_| !is_join(plan.as_ref())) else {
        return Ok(None);
    };
    let (input, schema) = (projection.input(), projection.input().schema());
    let read = projection.expr().iter().flat_map(|expr| collect_columns(&expr.expr));
    let read: BTreeSet<usize> = read.map(|column| column.index()).collect();
    if !is_join(input.as_ref()) || read.len() == schema.fields().len() {
        return Ok(None);
    }
    let column = |at: &usize| {
        let name = schema.field(*at).name().clone();
        (Arc::new(Column::new(&name, *at)) as Arc<dyn PhysicalExpr>, name)
    };
    let few = ProjectionExec::try_new(read.iter().map(column).collect::<Vec<_>>(), Arc::clone(input))?;
    let read: Vec<usize> = read.into_iter().collect();
    let over = |expr: &ProjectionExpr| {
        Ok((placed(&expr.expr, |column| read.binary_search(&column).ok())?, expr.alias.clone()))
    };
    let exprs = projection.expr().iter().map(over).collect::<Result<Vec<_>>>()?;
    Ok(Some(Arc::new(ProjectionExec::try_new(exprs, Arc::new(few))?)))
}

/// A plan that is being built.
struct Building<'a> {
    ordering: &'a Ordering,
    joined: &'a Joined,
    /// Relations, with joins within them in order.
    relations: &'a [Arc<dyn ExecutionPlan>],
    graph: &'a Graph,
}

/// A plan, and where its columns are among those of all relations.
struct Part {
    plan: Arc<dyn ExecutionPlan>,
    columns: Vec<usize>,
}

impl Part {
    fn place(&self, column: usize) -> Option<usize> {
        self.columns.iter().position(|known| *known == column)
    }
}

impl Building<'_> {
    /// Joins in the order of a tree, with the columns of the plan that they stand for.
    fn plan(&self, tree: &Tree, instead_of: &Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
        let output = &self.joined.output;
        let part = self.part(tree, &output.iter().copied().collect())?;
        let schema = instead_of.schema();
        let named = output.iter().zip(schema.fields()).map(|(column, field)| (*column, field.name().clone()));
        projected(&part, named.collect())
    }

    fn part(&self, tree: &Tree, needed: &BTreeSet<usize>) -> Result<Part> {
        let (left, right) = match tree {
            Tree::Leaf(relation) => return self.leaf(*relation),
            Tree::Join(left, right) => (left, right),
        };
        let (one, other) = (left.relations(), right.relations());
        let inside = |relations: Set, of: Set| relations & !of == 0;
        let both = one | other;
        let keys: Vec<_> = self.joined.classes.iter().flat_map(|class| equalities(class, one, other)).collect();
        let conditions = self.joined.conditions.iter().filter(|(relations, _)| {
            inside(*relations, both) && !inside(*relations, one) && !inside(*relations, other)
        });
        let conditions: Vec<&Arc<dyn PhysicalExpr>> = conditions.map(|(_, condition)| condition).collect();

        let mut columns = needed.clone();
        let read = |expr: &Arc<dyn PhysicalExpr>| collect_columns(expr).into_iter().map(|column| column.index());
        columns.extend(keys.iter().flat_map(|(one, other)| read(one).chain(read(other))));
        columns.extend(conditions.iter().flat_map(|condition| read(condition)));
        let (left, right) = (self.part(left, &columns)?, self.part(right, &columns)?);

        let on = keys.iter().map(|(one, other)| {
            Ok((placed(one, |column| left.place(column))?, placed(other, |column| right.place(column))?))
        });
        let on = on.collect::<Result<Vec<_>>>()?;
        let filter = condition(&conditions, &left, &right)?;
        let mode = self.ordering.mode(self.graph.rows(one));
        let join = HashJoinExec::try_new(
            Arc::clone(&left.plan),
            Arc::clone(&right.plan),
            on,
            filter,
            &JoinType::Inner,
            None,
            mode,
            NullEquality::NullEqualsNothing,
            false,
        )?;
        let columns = left.columns.iter().chain(&right.columns).copied().collect();
        let part = Part { plan: Arc::new(join), columns };
        // What no one above reads ends here.
        let kept: Vec<usize> = part.columns.iter().copied().filter(|column| needed.contains(column)).collect();
        if kept.len() == part.columns.len() {
            return Ok(part);
        }
        let schema = part.plan.schema();
        let name = |column: &usize| {
            let field = part.place(*column).map(|place| schema.field(place).name().clone());
            field.map(|name| (*column, name)).ok_or_else(|| internal_datafusion_err!("a join lost column {column}"))
        };
        let plan = projected(&part, kept.iter().map(name).collect::<Result<_>>()?)?;
        Ok(Part { plan, columns: kept })
    }

    fn leaf(&self, relation: usize) -> Result<Part> {
        let plan = self.relations.get(relation).zip(self.joined.starts.get(relation));
        let (plan, start) = plan.ok_or_else(|| internal_datafusion_err!("a join has no relation {relation}"))?;
        let columns = (*start..start + plan.schema().fields().len()).collect();
        Ok(Part { plan: Arc::clone(plan), columns })
    }
}

/// What a join of two sets of relations makes equal of a class. Members of several relations of a set are equal by then; if all are
/// of one relation they have not met: each of them is compared.
fn equalities(
    class: &[(usize, Arc<dyn PhysicalExpr>)],
    one: Set,
    other: Set,
) -> Vec<(Arc<dyn PhysicalExpr>, Arc<dyn PhysicalExpr>)> {
    let of = |set: Set| {
        let members: Vec<_> = class.iter().filter(|(relation, _)| set >> relation & 1 == 1).collect();
        let alone = members.first().is_some_and(|first| members.iter().all(|member| member.0 == first.0));
        let count = if alone { members.len() } else { 1 };
        members.into_iter().take(count).map(|(_, expr)| Arc::clone(expr)).collect::<Vec<_>>()
    };
    let (ones, others) = (of(one), of(other));
    let (Some(first), Some(second)) = (ones.first(), others.first()) else { return Vec::new() };
    let left = ones.iter().map(|expr| (Arc::clone(expr), Arc::clone(second)));
    let right = others.iter().skip(1).map(|expr| (Arc::clone(first), Arc::clone(expr)));
    left.chain(right).collect()
}

/// Columns of a part, with names.
fn projected(part: &Part, columns: Vec<(usize, String)>) -> Result<Arc<dyn ExecutionPlan>> {
    let schema = part.plan.schema();
    let column = |(column, name): (usize, String)| {
        let place = part.place(column).ok_or_else(|| internal_datafusion_err!("a join lost column {column}"))?;
        let field = schema.field(place);
        Ok((Arc::new(Column::new(field.name(), place)) as Arc<dyn PhysicalExpr>, name))
    };
    let exprs = columns.into_iter().map(column).collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(ProjectionExec::try_new(exprs, Arc::clone(&part.plan))?))
}

/// What rows of two sides are held against.
fn condition(conditions: &[&Arc<dyn PhysicalExpr>], left: &Part, right: &Part) -> Result<Option<JoinFilter>> {
    let Some(all) = conditions
        .iter()
        .map(|condition| Arc::clone(condition))
        .reduce(|one, other| datafusion_physical_expr::conjunction([one, other]))
    else {
        return Ok(None);
    };
    let columns: BTreeSet<usize> = collect_columns(&all).into_iter().map(|column| column.index()).collect();
    let columns: Vec<usize> = columns.into_iter().collect();
    let (left_schema, right_schema) = (left.plan.schema(), right.plan.schema());
    let index = |column: &usize| {
        let side = |part: &Part, side| part.place(*column).map(|index| ColumnIndex { index, side });
        let index = side(left, JoinSide::Left).or_else(|| side(right, JoinSide::Right));
        index.ok_or_else(|| internal_datafusion_err!("a join lost column {column}"))
    };
    let indices = columns.iter().map(index).collect::<Result<Vec<_>>>()?;
    let field = |index: &ColumnIndex| match index.side {
        JoinSide::Right => right_schema.field(index.index).clone(),
        _ => left_schema.field(index.index).clone(),
    };
    let schema = Schema::new(indices.iter().map(field).collect::<Vec<_>>());
    let expr = placed(&all, |column| columns.binary_search(&column).ok())?;
    Ok(Some(JoinFilter::new(expr, indices, Arc::new(schema))))
}
