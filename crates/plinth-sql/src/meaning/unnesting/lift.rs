//! A plan that depends on the row around it, for all such rows at once: its columns, and the keys behind them.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{
    Column, ExprSchema, NullEquality, Result, ScalarValue, TableReference, internal_err, plan_err,
};
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::functions_window::row_number::row_number_udwf;
use datafusion::logical_expr::builder::unnest_with_options;
use datafusion::logical_expr::expr::{Sort as SortExpr, WindowFunction};
use datafusion::logical_expr::utils::{conjunction, split_conjunction};
use datafusion::logical_expr::{
    Aggregate, BinaryExpr, Distinct, DistinctOn, Expr, ExprFunctionExt, ExprSchemable, FetchType, Filter, Join,
    JoinType, Limit, LogicalPlan, LogicalPlanBuilder, Operator, Projection, SkipType, Union, Window,
    WindowFunctionDefinition, lit, when,
};

use super::super::marks::{columns_of, depends};
use super::same;

/// A plan whose last columns are the keys, in the order of what they are equal to.
pub(super) struct Lifted {
    pub(super) plan: LogicalPlan,
    pub(super) keys: Vec<Column>,
}

/// What plans are lifted with.
pub(super) struct Lift<'a> {
    around: &'a LogicalPlan,
    outer: &'a [Column],
    names: &'a mut usize,
    domain: bool,
}

impl<'a> Lift<'a> {
    pub(super) fn new(around: &'a LogicalPlan, outer: &'a [Column], names: &'a mut usize) -> Self {
        Self { around, outer, names, domain: false }
    }

    /// Whether a plan was joined with the keys of the rows around, of which NULL may be one.
    pub(super) fn has_domain(&self) -> bool {
        self.domain
    }

    /// A plan that depends on the row around it, or does not.
    pub(super) fn plan(&mut self, plan: &LogicalPlan) -> Result<Lifted> {
        if !depends(plan) {
            return self.beside_domain(plan);
        }
        match plan {
            LogicalPlan::Filter(filter) => self.filter(filter),
            LogicalPlan::Projection(columns) => {
                let input = self.plan(&columns.input)?;
                let values = columns.expr.iter().zip(plan.schema().iter());
                let values = values.map(|(value, (relation, field))| {
                    Ok(named(input.inner(value.clone().unalias(), self.outer)?, relation, field.name()))
                });
                let values = values.collect::<Result<_>>()?;
                input.projected(values)
            }
            LogicalPlan::SubqueryAlias(alias) => {
                let input = self.plan(&alias.input)?;
                let values = alias.input.schema().columns().into_iter().zip(plan.schema().iter());
                let values =
                    values.map(|(column, (relation, field))| named(Expr::Column(column), relation, field.name()));
                input.projected(values.collect())
            }
            LogicalPlan::Aggregate(groups) => self.groups(groups),
            // Rows have no order but for a limit.
            LogicalPlan::Sort(sort) if sort.fetch.is_none() => self.plan(&sort.input),
            LogicalPlan::Limit(limit) => self.limit(limit),
            LogicalPlan::Distinct(Distinct::All(input)) => {
                let Lifted { plan, keys } = self.plan(input)?;
                Ok(Lifted { plan: LogicalPlanBuilder::from(plan).distinct()?.build()?, keys })
            }
            LogicalPlan::Distinct(Distinct::On(first)) => self.first(first),
            LogicalPlan::Window(window) => self.window(window),
            LogicalPlan::Union(union) => self.union(union),
            LogicalPlan::Join(join) => self.join(join),
            LogicalPlan::Unnest(lists) => {
                let Lifted { plan: input, keys } = self.plan(&lists.input)?;
                let rows = unnest_with_options(input, lists.exec_columns.clone(), lists.options.clone())?;
                Lifted { plan: rows, keys }.projected(columns_of(plan))
            }
            LogicalPlan::RecursiveQuery(query) => plan_err!(
                "a subquery that depends on the row around it with the recursive query {}: not supported; write a join",
                query.name
            ),
            other => plan_err!(
                "a subquery that depends on the row around it with {}: not supported; write a join",
                other.display()
            ),
        }
    }

    fn name(&mut self) -> String {
        *self.names += 1;
        format!("__key_{}", self.names)
    }

    /// The distinct keys of the rows around.
    fn domain(&mut self) -> Result<Lifted> {
        self.domain = true;
        let volatile = self.around.exists(|node| {
            let mut volatile = false;
            node.apply_expressions(|expr| {
                volatile |= expr.is_volatile();
                Ok(TreeNodeRecursion::Continue)
            })?;
            Ok(volatile)
        });
        if volatile? {
            return plan_err!(
                "a subquery that depends on rows made by chance or a sequence: not supported; keep these with CREATE TEMP TABLE ... AS"
            );
        }
        let keys: Vec<Column> = self.outer.iter().map(|_| Column::new_unqualified(self.name())).collect();
        let values = self.outer.iter().zip(&keys).map(|(outer, key)| Expr::Column(outer.clone()).alias(&key.name));
        let plan = LogicalPlanBuilder::from(self.around.clone()).project(values.collect::<Vec<_>>())?.distinct()?;
        Ok(Lifted { plan: plan.build()?, keys })
    }

    /// Each row of a plan with each key.
    fn beside_domain(&mut self, plan: &LogicalPlan) -> Result<Lifted> {
        let domain = self.domain()?;
        let plan = LogicalPlanBuilder::from(plan.clone()).cross_join(domain.plan)?.build()?;
        Ok(Lifted { plan, keys: domain.keys })
    }

    /// A filter; the first above rows that do not depend may have the keys among their columns.
    fn filter(&mut self, filter: &Filter) -> Result<Lifted> {
        let mut terms: Vec<Expr> = split_conjunction(&filter.predicate).into_iter().cloned().collect();
        let own = match depends(&filter.input) {
            true => None,
            false => self.own_keys(&mut terms, &filter.input)?,
        };
        let input = match own {
            Some(own) => own,
            None => self.plan(&filter.input)?,
        };
        let terms = terms.into_iter().map(|term| input.inner(term, self.outer)).collect::<Result<Vec<_>>>()?;
        let Some(predicate) = conjunction(terms) else { return Ok(input) };
        let plan = LogicalPlanBuilder::from(input.plan).filter(predicate)?.build()?;
        Ok(Lifted { plan, keys: input.keys })
    }

    /// Rows with the keys that conditions compare them with, if they do so with all; of NULL none holds.
    fn own_keys(&mut self, terms: &mut [Expr], input: &LogicalPlan) -> Result<Option<Lifted>> {
        let mut found = Vec::with_capacity(self.outer.len());
        for outer in self.outer {
            let equal = |term: &Expr| match term {
                Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) => match (left.as_ref(), right.as_ref())
                {
                    (Expr::OuterReferenceColumn(_, column), own) | (own, Expr::OuterReferenceColumn(_, column)) => {
                        (column == outer && !own.contains_outer() && !own.is_volatile()).then(|| own.clone())
                    }
                    _ => None,
                },
                _ => None,
            };
            let Some((at, own)) = terms.iter().enumerate().find_map(|(at, term)| Some((at, equal(term)?))) else {
                return Ok(None);
            };
            // Zeros are equal, and not the same.
            let to = self.around.schema().field_from_column(outer)?.data_type();
            if own.get_type(input.schema())? != *to || to.is_floating() || to.is_nested() {
                return Ok(None);
            }
            found.push((at, own));
        }
        let keys: Vec<Column> = found.iter().map(|_| Column::new_unqualified(self.name())).collect();
        let mut columns = columns_of(input);
        columns.extend(found.iter().zip(&keys).map(|((_, own), key)| own.clone().alias(&key.name)));
        for ((at, _), key) in found.iter().zip(&keys) {
            if let Some(term) = terms.get_mut(*at) {
                *term = Expr::Column(key.clone()).is_not_null();
            }
        }
        let plan = LogicalPlanBuilder::from(input.clone()).project(columns)?.build()?;
        Ok(Some(Lifted { plan, keys }))
    }

    fn groups(&mut self, groups: &Aggregate) -> Result<Lifted> {
        if groups.group_expr.iter().any(|group| matches!(group, Expr::GroupingSet(_))) {
            return plan_err!(
                "GROUPING SETS, ROLLUP or CUBE in a subquery that depends on the row around it: not supported; write a join"
            );
        }
        let of_around = |value: &&Expr| value.contains_outer() && value.column_refs().is_empty();
        if let Some(value) = groups.aggr_expr.iter().find(of_around) {
            return plan_err!(
                "{value}: an aggregate of the row around is one of the query around in SQL: not supported within a subquery; compute it beside that"
            );
        }
        let input = self.plan(&groups.input)?;
        let (by, mut values) =
            (input.all_inner(&groups.group_expr, self.outer)?, input.all_inner(&groups.aggr_expr, self.outer)?);
        let defaults = values.iter().map(|value| of_no_rows(value, &input)).collect::<Result<Vec<_>>>()?;
        // What is named twice the engine has once.
        let mut by_all = input.key_columns();
        let mut places = Vec::with_capacity(by.len() + values.len());
        for group in by {
            places.push(by_all.iter().position(|other| *other == group).unwrap_or(by_all.len()));
            if places.last() == Some(&by_all.len()) {
                by_all.push(group);
            }
        }
        places.extend(by_all.len()..by_all.len() + values.len());
        let rows = self.name();
        values.push(count(lit(1_i64)).alias(&rows));
        let grouped = Aggregate::try_new(Arc::new(input.plan), by_all, values)?;
        let columns = grouped.schema.columns();
        let plan = LogicalPlan::Aggregate(grouped);
        let own = places.iter().filter_map(|at| columns.get(*at)).zip(groups.schema.iter());
        if !groups.group_expr.is_empty() {
            let own =
                own.map(|(column, (relation, field))| named(Expr::Column(column.clone()), relation, field.name()));
            return Lifted { plan, keys: input.keys }.projected(own.collect());
        }
        // Of all rows, of which there may be none for a key.
        let domain = self.domain()?;
        let on = domain.keys.iter().zip(&input.keys);
        let on = on.map(|(key, own)| same(Expr::Column(key.clone()), Expr::Column(own.clone())));
        let on: Vec<Expr> = on.collect();
        let joined = LogicalPlanBuilder::from(domain.plan).join_on(plan, JoinType::Left, on)?.build()?;
        let none = Expr::Column(Column::new_unqualified(rows)).is_null();
        let own = own.zip(defaults).map(|((column, (relation, field)), default)| {
            let value = Expr::Column(column.clone());
            let value = match default.is_null() {
                true => value,
                false => when(none.clone(), lit(default)).otherwise(value)?,
            };
            Ok(named(value, relation, field.name()))
        });
        let own = own.collect::<Result<_>>()?;
        Lifted { plan: joined, keys: domain.keys }.projected(own)
    }

    /// So many rows of each key.
    fn limit(&mut self, limit: &Limit) -> Result<Lifted> {
        // The order may stand below columns that are computed of its rows.
        let below = |input: &Arc<LogicalPlan>| LogicalPlan::Limit(Limit { input: Arc::clone(input), ..limit.clone() });
        match limit.input.as_ref() {
            LogicalPlan::Projection(columns) => {
                let input = Arc::new(below(&columns.input));
                let schema = Arc::clone(&columns.schema);
                let columns = Projection::try_new_with_schema(columns.expr.clone(), input, schema)?;
                return self.plan(&LogicalPlan::Projection(columns));
            }
            LogicalPlan::SubqueryAlias(alias) => {
                let aliased = LogicalPlanBuilder::from(below(&alias.input)).alias(alias.alias.clone())?.build()?;
                return self.plan(&aliased);
            }
            _ => {}
        }
        let (SkipType::Literal(skip), FetchType::Literal(fetch)) = (limit.get_skip_type()?, limit.get_fetch_type()?)
        else {
            return plan_err!(
                "LIMIT of a value in a subquery that depends on the row around it: not supported; write a number"
            );
        };
        let (input, by) = match limit.input.as_ref() {
            LogicalPlan::Sort(sort) if sort.fetch.is_none() => (self.plan(&sort.input)?, sort.expr.as_slice()),
            input => (self.plan(input)?, [].as_slice()),
        };
        let by = by.iter().map(|by| Ok(SortExpr { expr: input.inner(by.expr.clone(), self.outer)?, ..by.clone() }));
        let by = by.collect::<Result<Vec<_>>>()?;
        let keys = input.key_columns();
        let number = WindowFunction::new(WindowFunctionDefinition::WindowUDF(row_number_udwf()), Vec::new());
        let number = Expr::from(number).partition_by(keys).order_by(by).build()?;
        let number_of = Expr::Column(Column::new_unqualified(number.schema_name().to_string()));
        let skip = u64::try_from(skip).unwrap_or(u64::MAX);
        let mut fits = vec![number_of.clone().gt(lit(skip))];
        if let Some(fetch) = fetch {
            fits.push(number_of.lt_eq(lit(skip.saturating_add(u64::try_from(fetch).unwrap_or(u64::MAX)))));
        }
        let columns = columns_of(&input.plan);
        let plan = LogicalPlanBuilder::from(input.plan).window([number])?;
        let plan = plan.filter(conjunction(fits).unwrap_or_else(|| lit(true)))?.project(columns)?.build()?;
        Ok(Lifted { plan, keys: input.keys })
    }

    fn first(&mut self, first: &DistinctOn) -> Result<Lifted> {
        let input = self.plan(&first.input)?;
        let keys = input.key_columns();
        let on = keys.iter().cloned().chain(input.all_inner(&first.on_expr, self.outer)?).collect();
        let selected = input.all_inner(&first.select_expr, self.outer)?.into_iter().zip(first.schema.iter());
        let selected = selected.map(|(value, (relation, field))| named(value.unalias(), relation, field.name()));
        let selected = selected.chain(keys.iter().cloned()).collect();
        let sorted = match &first.sort_expr {
            None => None,
            Some(by) => {
                let by =
                    by.iter().map(|by| Ok(SortExpr { expr: input.inner(by.expr.clone(), self.outer)?, ..by.clone() }));
                let keys = keys.iter().map(|key| Ok(key.clone().sort(true, true)));
                Some(keys.chain(by).collect::<Result<Vec<_>>>()?)
            }
        };
        let plan = DistinctOn::try_new(on, selected, sorted, Arc::new(input.plan))?;
        Ok(Lifted { plan: LogicalPlan::Distinct(Distinct::On(plan)), keys: input.keys })
    }

    fn window(&mut self, window: &Window) -> Result<Lifted> {
        let input = self.plan(&window.input)?;
        let keys = input.key_columns();
        let values = window.window_expr.iter().map(|value| {
            let value = input.inner(value.clone(), self.outer)?;
            value
                .transform_up(|expr| match expr {
                    Expr::WindowFunction(mut function) => {
                        function.params.partition_by.extend(keys.iter().cloned());
                        Ok(Transformed::yes(Expr::WindowFunction(function)))
                    }
                    other => Ok(Transformed::no(other)),
                })
                .data()
        });
        let values = values.collect::<Result<Vec<_>>>()?;
        let width = window.input.schema().fields().len();
        let behind = input.plan.schema().fields().len();
        let plan = LogicalPlan::Window(Window::try_new(values, Arc::new(input.plan))?);
        let columns = plan.schema().columns();
        let computed = columns.get(behind..).unwrap_or_default();
        let own = columns.iter().take(width).chain(computed).zip(window.schema.iter());
        let own = own.map(|(column, (relation, field))| named(Expr::Column(column.clone()), relation, field.name()));
        let own = own.collect();
        Lifted { plan, keys: input.keys }.projected(own)
    }

    fn union(&mut self, union: &Union) -> Result<Lifted> {
        let mut keys: Option<Vec<Column>> = None;
        let mut inputs = Vec::with_capacity(union.inputs.len());
        for input in &union.inputs {
            let lifted = self.plan(input)?;
            let keys = keys.get_or_insert_with(|| lifted.keys.clone());
            let own = lifted.plan.schema().columns().into_iter().zip(union.schema.iter());
            let own = own.map(|(column, (_, field))| Expr::Column(column).alias(field.name()));
            let of_keys = lifted.keys.iter().zip(keys.iter());
            let of_keys = of_keys.map(|(own, key)| named(Expr::Column(own.clone()), None, &key.name));
            let columns: Vec<Expr> = own.chain(of_keys).collect();
            inputs.push(Arc::new(LogicalPlanBuilder::from(lifted.plan).project(columns)?.build()?));
        }
        let plan = LogicalPlan::Union(Union::try_new_with_loose_types(inputs)?);
        let own = plan.schema().columns().into_iter().zip(union.schema.iter());
        let own = own.map(|(column, (relation, field))| named(Expr::Column(column), relation, field.name())).collect();
        Lifted { plan, keys: keys.unwrap_or_default() }.projected(own)
    }

    fn join(&mut self, join: &Join) -> Result<Lifted> {
        use JoinType::{Full, Inner, Left, LeftAnti, LeftMark, LeftSemi, Right, RightAnti, RightMark, RightSemi};
        let (left, right) = (depends(&join.left), depends(&join.right));
        // A side whose rows are kept has the keys.
        let (left, right) = match join.join_type {
            Inner => (left || !right, right),
            Left | LeftSemi | LeftAnti | LeftMark => (true, right),
            Right | RightSemi | RightAnti | RightMark => (left, true),
            Full => (true, true),
        };
        let mut side = |plan: &Arc<LogicalPlan>, lifted: bool| match lifted {
            true => self.plan(plan),
            false => Ok(Lifted { plan: plan.as_ref().clone(), keys: Vec::new() }),
        };
        let (left, right) = (side(&join.left, left)?, side(&join.right, right)?);
        let keys = match join.join_type {
            Right | RightSemi | RightAnti | RightMark => right.keys.clone(),
            _ if left.keys.is_empty() => right.keys.clone(),
            _ => left.keys.clone(),
        };
        let both = Lifted { plan: LogicalPlan::default(), keys };
        let mut terms = Vec::new();
        for term in join.filter.iter().flat_map(split_conjunction) {
            terms.push(both.inner(term.clone(), self.outer)?);
        }
        // The keys of one side are not to be asked of the other: an equality of them is one more condition.
        for (of_left, of_right) in &join.on {
            let (of_left, of_right) =
                (both.inner(of_left.clone(), self.outer)?, both.inner(of_right.clone(), self.outer)?);
            terms.push(match join.null_equality {
                NullEquality::NullEqualsNothing => of_left.eq(of_right),
                NullEquality::NullEqualsNull => same(of_left, of_right),
            });
        }
        for (of_left, of_right) in left.keys.iter().zip(&right.keys) {
            terms.push(same(Expr::Column(of_left.clone()), Expr::Column(of_right.clone())));
        }
        if join.null_aware {
            return internal_err!("NOT IN was made a join before subqueries were");
        }
        let columns: Vec<Expr> = join.schema.columns().into_iter().map(Expr::Column).collect();
        let (left_keys, right_keys) = (left.keys, right.keys);
        let plan = match conjunction(terms) {
            None => LogicalPlanBuilder::from(left.plan).cross_join(right.plan)?.build()?,
            Some(on) => LogicalPlanBuilder::from(left.plan).join_on(right.plan, join.join_type, [on])?.build()?,
        };
        let keys = both.keys;
        if join.join_type != Full {
            return Lifted { plan, keys }.projected(columns);
        }
        // The row of one side alone has the keys of that side.
        let names: Vec<Column> = keys.iter().map(|_| Column::new_unqualified(self.name())).collect();
        let of_both = left_keys.into_iter().zip(right_keys).zip(&names).map(|((of_left, of_right), name)| {
            let (of_left, of_right) = (Expr::Column(of_left), Expr::Column(of_right));
            Ok(when(of_left.clone().is_null(), of_right).otherwise(of_left)?.alias(&name.name))
        });
        let columns = columns.into_iter().map(Ok).chain(of_both).collect::<Result<Vec<_>>>()?;
        Ok(Lifted { plan: LogicalPlanBuilder::from(plan).project(columns)?.build()?, keys: names })
    }
}

impl Lifted {
    /// An expression with the keys in the places of what it names of the row around.
    fn inner(&self, expr: Expr, outer: &[Column]) -> Result<Expr> {
        expr.transform_up(|expr| match &expr {
            Expr::OuterReferenceColumn(_, column) => {
                match outer.iter().position(|known| known == column).and_then(|at| self.keys.get(at)) {
                    Some(key) => Ok(Transformed::yes(Expr::Column(key.clone()))),
                    None => internal_err!("{column}: is no key of its subquery"),
                }
            }
            _ => Ok(Transformed::no(expr)),
        })
        .data()
    }

    /// The same of several.
    fn all_inner(&self, exprs: &[Expr], outer: &[Column]) -> Result<Vec<Expr>> {
        exprs.iter().map(|expr| self.inner(expr.clone(), outer)).collect()
    }

    fn key_columns(&self) -> Vec<Expr> {
        self.keys.iter().cloned().map(Expr::Column).collect()
    }

    /// The same rows with other columns, and the keys.
    fn projected(self, mut columns: Vec<Expr>) -> Result<Self> {
        columns.extend(self.key_columns());
        Ok(Self { plan: LogicalPlanBuilder::from(self.plan).project(columns)?.build()?, keys: self.keys })
    }
}

/// What an aggregate is of no rows.
fn of_no_rows(value: &Expr, input: &Lifted) -> Result<ScalarValue> {
    match value {
        Expr::AggregateFunction(function) => function.func.default_value(&value.get_type(input.plan.schema())?),
        Expr::Alias(alias) => of_no_rows(&alias.expr, input),
        other => internal_err!("{other}: is no aggregate"),
    }
}

/// A value under the name that a column has.
fn named(value: Expr, relation: Option<&TableReference>, name: &str) -> Expr {
    match &value {
        Expr::Column(column) if column.relation.as_ref() == relation && column.name == name => value,
        _ => value.alias_qualified(relation.cloned(), name),
    }
}
