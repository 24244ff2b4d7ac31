//! Inner joins as a graph: what is joined, by which columns, under which conditions.

use std::sync::Arc;

use datafusion_common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion_common::{JoinSide, JoinType, NullEquality, Result, internal_datafusion_err};
use datafusion_physical_expr::expressions::Column;
use datafusion_physical_expr::projection::ProjectionExpr;
use datafusion_physical_expr::utils::collect_columns;
use datafusion_physical_expr_common::physical_expr::PhysicalExpr;
use datafusion_physical_plan::ExecutionPlan;
use datafusion_physical_plan::joins::HashJoinExec;
use datafusion_physical_plan::joins::utils::ColumnIndex;
use datafusion_physical_plan::projection::{ProjectionExec, all_columns};

use super::estimate::Estimate;
use super::search::{Condition, Graph, MOST, Member, Relation, Set, Tree, members};
use super::selectivity::{Known, selectivity};

/// Inner joins, with the columns of all relations side by side: expressions name them by their place there.
pub(super) struct Joined {
    pub(super) relations: Vec<Arc<dyn ExecutionPlan>>,
    /// Where the columns of each relation begin.
    pub(super) starts: Vec<usize>,
    /// Expressions that are equal in all rows, by class; each of one relation.
    pub(super) classes: Vec<Vec<(usize, Arc<dyn PhysicalExpr>)>>,
    pub(super) conditions: Vec<(Set, Arc<dyn PhysicalExpr>)>,
    /// The order in which they are written.
    pub(super) tree: Tree,
    /// The columns that come out.
    pub(super) output: Vec<usize>,
    /// Of each join its address and what is joined by then.
    joins: Vec<(usize, Set)>,
    estimates: Vec<Estimate>,
}

/// A join whose sides can be others.
fn reorderable(plan: &dyn ExecutionPlan) -> Option<&HashJoinExec> {
    let join = plan.downcast_ref::<HashJoinExec>()?;
    let plain = *join.join_type() == JoinType::Inner
        && join.null_equality() == NullEquality::NullEqualsNothing
        && !join.null_aware
        && join.fetch().is_none()
        && !join.on().is_empty();
    plain.then_some(join)
}

/// What a join of a plan is told apart by, as long as the plan is there.
pub(super) fn address(join: &HashJoinExec) -> usize {
    std::ptr::from_ref(join).addr()
}

/// Whether a plan is such a join, or columns of one.
pub(super) fn is_join(plan: &dyn ExecutionPlan) -> bool {
    match plan.downcast_ref::<ProjectionExec>() {
        Some(projection) => all_columns(projection.expr()) && is_join(projection.input().as_ref()),
        None => reorderable(plan).is_some(),
    }
}

impl Joined {
    /// The joins of a plan; none if it is none, or the rows of a relation aren't known.
    pub(super) fn of(plan: &dyn ExecutionPlan) -> Option<Self> {
        if !is_join(plan) {
            return None;
        }
        let mut joined = Self {
            relations: Vec::new(),
            starts: Vec::new(),
            classes: Vec::new(),
            conditions: Vec::new(),
            tree: Tree::Leaf(0),
            output: Vec::new(),
            joins: Vec::new(),
            estimates: Vec::new(),
        };
        (joined.tree, joined.output) = joined.flatten(plan)?;
        Some(joined)
    }

    /// Takes a plan's relations in; its tree, and where its columns are.
    fn flatten(&mut self, plan: &dyn ExecutionPlan) -> Option<(Tree, Vec<usize>)> {
        if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
            let (tree, columns) = self.flatten_child(projection.input())?;
            let column = |expr: &ProjectionExpr| columns.get(expr.expr.downcast_ref::<Column>()?.index()).copied();
            let columns: Option<Vec<usize>> = projection.expr().iter().map(column).collect();
            return Some((tree, columns?));
        }
        let join = reorderable(plan)?;
        let (left, left_columns) = self.flatten_child(join.left())?;
        let (right, right_columns) = self.flatten_child(join.right())?;
        for (one, other) in join.on() {
            let one = placed(one, |at| left_columns.get(at).copied()).ok()?;
            let other = placed(other, |at| right_columns.get(at).copied()).ok()?;
            self.equal(one, other)?;
        }
        if let Some(filter) = join.filter() {
            let column = |index: &ColumnIndex| match index.side {
                JoinSide::Left => left_columns.get(index.index).copied(),
                JoinSide::Right => right_columns.get(index.index).copied(),
                JoinSide::None => None,
            };
            let columns: Option<Vec<usize>> = filter.column_indices().iter().map(column).collect();
            let columns = columns?;
            let condition = placed(filter.expression(), |at| columns.get(at).copied()).ok()?;
            let mut relations = self.relations_of(&condition);
            if relations.count_ones() < 2 {
                // It is held against rows of this join at the latest.
                relations = left.relations() | right.relations();
            }
            self.conditions.push((relations, condition));
        }
        let mut columns = left_columns;
        columns.extend(right_columns);
        if let Some(projection) = &join.projection {
            let chosen: Option<Vec<usize>> = projection.iter().map(|at| columns.get(*at).copied()).collect();
            columns = chosen?;
        }
        self.joins.push((address(join), left.relations() | right.relations()));
        Some((Tree::Join(Box::new(left), Box::new(right)), columns))
    }

    /// The rows that each of its joins is expected to give, by the join's address.
    pub(super) fn rows(&self) -> impl Iterator<Item = (usize, f64)> {
        let graph = self.graph();
        self.joins.iter().map(move |(join, relations)| (*join, graph.rows(*relations).max(1.0)))
    }

    fn flatten_child(&mut self, plan: &Arc<dyn ExecutionPlan>) -> Option<(Tree, Vec<usize>)> {
        if is_join(plan.as_ref()) {
            return self.flatten(plan.as_ref());
        }
        let (relation, start) = (self.relations.len(), self.width());
        if relation >= MOST {
            return None;
        }
        self.estimates.push(Estimate::of(plan.as_ref())?);
        self.relations.push(Arc::clone(plan));
        self.starts.push(start);
        Some((Tree::Leaf(relation), (start..self.width()).collect()))
    }

    /// Columns of all relations.
    fn width(&self) -> usize {
        let last = self.starts.last().zip(self.relations.last());
        last.map_or(0, |(start, relation)| start + relation.schema().fields().len())
    }

    /// The relation that a column is of.
    pub(super) fn relation_of(&self, column: usize) -> usize {
        self.starts.partition_point(|start| *start <= column).saturating_sub(1)
    }

    /// The relations that an expression reads.
    pub(super) fn relations_of(&self, expr: &Arc<dyn PhysicalExpr>) -> Set {
        collect_columns(expr).iter().fold(0, |set, column| set | 1 << self.relation_of(column.index()))
    }

    /// Notes that two expressions are equal. None if one of them is not of one relation.
    fn equal(&mut self, one: Arc<dyn PhysicalExpr>, other: Arc<dyn PhysicalExpr>) -> Option<()> {
        let alone = |set: Set| set.is_power_of_two().then(|| set.trailing_zeros() as usize);
        let pair = [(alone(self.relations_of(&one))?, one), (alone(self.relations_of(&other))?, other)];
        let mut class: Vec<(usize, Arc<dyn PhysicalExpr>)> = Vec::new();
        let has = |class: &[(usize, Arc<dyn PhysicalExpr>)], expr: &Arc<dyn PhysicalExpr>| {
            class.iter().any(|(_, member)| member.as_ref() == expr.as_ref())
        };
        // Classes that have one of them become one with it.
        for known in std::mem::take(&mut self.classes) {
            if pair.iter().any(|(_, expr)| has(&known, expr)) {
                class.extend(known);
            } else {
                self.classes.push(known);
            }
        }
        for (relation, expr) in pair {
            if !has(&class, &expr) {
                class.push((relation, expr));
            }
        }
        self.classes.push(class);
        Some(())
    }

    /// What is known of a column among those of all relations, with no more values than its relation has rows.
    fn known(&self, column: usize) -> Known {
        let relation = self.relation_of(column);
        let Some((estimate, start)) = self.estimates.get(relation).zip(self.starts.get(relation)) else {
            return Known::default();
        };
        let mut known = estimate.column(column - start);
        known.distinct = known.distinct.map(|distinct| distinct.min(estimate.rows));
        known
    }

    /// What an order is searched for by.
    pub(super) fn graph(&self) -> Graph {
        let relation = |estimate: &Estimate| Relation { rows: estimate.rows.max(1.0), all: estimate.all.max(1.0) };
        let member = |(relation, expr): &(usize, Arc<dyn PhysicalExpr>)| {
            let all = self.estimates.get(*relation).map_or(1.0, |estimate| estimate.all);
            let start = self.starts.get(*relation).copied().unwrap_or_default();
            let known = expr
                .downcast_ref::<Column>()
                .and_then(|column| self.estimates.get(*relation)?.column(column.index() - start).distinct);
            Member { relation: *relation, distinct: known.unwrap_or(all).max(1.0) }
        };
        let condition = |(relations, expr): &(Set, Arc<dyn PhysicalExpr>)| Condition {
            relations: *relations,
            selectivity: selectivity(expr, &|column| self.known(column)),
        };
        Graph {
            relations: self.estimates.iter().map(relation).collect(),
            classes: self.classes.iter().map(|class| class.iter().map(member).collect()).collect(),
            conditions: self.conditions.iter().map(condition).collect(),
        }
    }

    /// What is known of the rows that come out.
    pub(super) fn estimate(&self) -> Estimate {
        let all = self.tree.relations();
        let rows = self.graph().rows(all).max(1.0);
        let column = |column: &usize| {
            let relation = self.relation_of(*column);
            let found = self.estimates.get(relation).zip(self.starts.get(relation));
            found.map(|(estimate, start)| estimate.column(column - start)).unwrap_or_default()
        };
        // Rows that a relation's own filters left out are missing here, too.
        let share: f64 = members(all)
            .filter_map(|at| self.estimates.get(at))
            .map(|estimate| (estimate.rows / estimate.all.max(1.0)).clamp(1e-9, 1.0))
            .product();
        Estimate { rows, all: rows / share, columns: self.output.iter().map(column).collect() }
    }
}

/// An expression over other columns: the place of each of its own.
pub(super) fn placed(
    expr: &Arc<dyn PhysicalExpr>,
    place: impl Fn(usize) -> Option<usize>,
) -> Result<Arc<dyn PhysicalExpr>> {
    let expr = Arc::clone(expr).transform(|expr| match expr.downcast_ref::<Column>() {
        Some(column) => {
            let place = place(column.index());
            let place = place.ok_or_else(|| internal_datafusion_err!("a join has no column {column}"))?;
            Ok(Transformed::yes(Arc::new(Column::new(column.name(), place)) as Arc<dyn PhysicalExpr>))
        }
        None => Ok(Transformed::no(expr)),
    });
    expr.data()
}
