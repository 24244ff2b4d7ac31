//! `range` and `generate_series` in FROM, of time stamps in microseconds: the engine's know nanoseconds alone.

use std::sync::Arc;

use arrow_schema::{DataType, TimeUnit};
use datafusion::catalog::{TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{Column, Result};
use datafusion::datasource::{ViewTable, provider_as_source};
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{Expr, LogicalPlanBuilder, cast};

/// Has both take such time stamps.
pub(crate) fn register(state: &mut SessionState) {
    for name in ["range", "generate_series"] {
        let Some(engine) = state.table_functions().get(name).map(|table| Arc::clone(table.function())) else {
            continue;
        };
        state.register_udtf(name, Arc::new(Series { name, engine }));
    }
}

#[derive(Debug)]
struct Series {
    name: &'static str,
    engine: Arc<dyn TableFunctionImpl>,
}

impl TableFunctionImpl for Series {
    fn call_with_args(&self, args: TableFunctionArgs<'_, '_>) -> Result<Arc<dyn TableProvider>> {
        let mut coarse = None;
        let mut exprs = Vec::with_capacity(args.exprs().len());
        for expr in args.exprs() {
            exprs.push(match expr {
                Expr::Literal(value, metadata) => match value.data_type() {
                    DataType::Timestamp(unit, zone) if unit != TimeUnit::Nanosecond => {
                        let fine = value.cast_to(&DataType::Timestamp(TimeUnit::Nanosecond, zone))?;
                        coarse.get_or_insert(value.data_type());
                        Expr::Literal(fine, metadata.clone())
                    }
                    _ => expr.clone(),
                },
                _ => expr.clone(),
            });
        }
        let rows = self.engine.call_with_args(TableFunctionArgs::new(&exprs, args.session()))?;
        let Some(coarse) = coarse else { return Ok(rows) };
        let names: Vec<String> = rows.schema().fields().iter().map(|field| field.name().clone()).collect();
        let columns = names.iter().map(|name| cast(Expr::Column(Column::from_name(name)), coarse.clone()).alias(name));
        let plan = LogicalPlanBuilder::scan(self.name, provider_as_source(rows), None)?.project(columns)?.build()?;
        Ok(Arc::new(ViewTable::new(plan, None)))
    }
}
