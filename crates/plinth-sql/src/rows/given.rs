//! The rows of an INSERT whose query has VALUES within.
//!
//! The engine gives all VALUES of an INSERT the types of the table's columns, and asks as many values of their rows: of
//! `SELECT x * 10 FROM (VALUES (1.5)) v(x)` an INT column would get 20. Such a query is planned by itself.

use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::datasource::empty::EmptyTable;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, SubqueryAlias};
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{self, Insert, Query, SelectItem, SetExpr, Visit, Visitor};

use super::Scratch;
use super::query::{alone, quoted, select};
use crate::Session;

/// A query that was planned, and the table that stands for it.
pub(crate) struct Given {
    plan: LogicalPlan,
    scratch: Scratch,
}

impl Session {
    /// The same of a statement, which may be another.
    pub(crate) async fn given_to(&self, statement: &mut Statement) -> Result<Option<Given>> {
        let Statement::Statement(inner) = statement else { return Ok(None) };
        let ast::Statement::Insert(insert) = inner.as_mut() else { return Ok(None) };
        self.given(insert).await
    }

    /// Takes the query out of an INSERT that has VALUES within.
    pub(super) async fn given(&self, insert: &mut Insert) -> Result<Option<Given>> {
        let Some(source) = insert.source.as_mut().filter(|source| has_values_within(source)) else { return Ok(None) };
        let query = std::mem::replace(source.as_mut(), select(Vec::new(), Vec::new(), None)?);
        let statement = Statement::Statement(Box::new(ast::Statement::Query(Box::new(query))));
        let plan = self.context.state().statement_to_plan(statement).await?;
        let columns = plan.schema().columns().into_iter().enumerate();
        let exprs: Vec<_> = columns.map(|(at, column)| Expr::Column(column).alias(format!("c{at}"))).collect();
        let plan = LogicalPlanBuilder::from(plan).project(exprs)?.build()?;
        let columns = Arc::new(plan.schema().as_arrow().clone());
        let scratch = self.scratch(Arc::new(EmptyTable::new(columns)))?;
        let from = alone(scratch.as_table(&quoted("given"))?);
        **source = select(vec![SelectItem::Wildcard(Default::default())], vec![from], None)?;
        Ok(Some(Given { plan, scratch }))
    }
}

impl Given {
    /// Puts the query where the table stands for it.
    pub(crate) fn put(&self, plan: LogicalPlan) -> Result<LogicalPlan> {
        let put = plan.transform_up(|node| match node {
            LogicalPlan::TableScan(scan) if scan.table_name.table() == self.scratch.name => {
                let given = SubqueryAlias::try_new(Arc::new(self.plan.clone()), scan.table_name)?;
                Ok(Transformed::yes(LogicalPlan::SubqueryAlias(given)))
            }
            other => Ok(Transformed::no(other)),
        });
        put.data()
    }
}

/// Whether there are VALUES in a query, but for those that it is by itself.
pub(super) fn has_values_within(query: &Query) -> bool {
    struct Count(usize);
    impl Visitor for Count {
        type Break = ();

        fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
            self.0 += values_of(&query.body);
            ControlFlow::Continue(())
        }
    }
    let mut count = Count(0);
    let _ = query.visit(&mut count);
    let is_values = matches!(query.body.as_ref(), SetExpr::Values(_));
    let plain = query.with.is_none() && query.order_by.is_none() && query.limit_clause.is_none();
    count.0 > usize::from(is_values && plain)
}

/// How many VALUES the arms of a query are.
fn values_of(body: &SetExpr) -> usize {
    match body {
        SetExpr::Values(_) => 1,
        SetExpr::SetOperation { left, right, .. } => values_of(left) + values_of(right),
        // A query of its own is visited.
        _ => 0,
    }
}
