//! Key columns that others determine: groups are told apart without them.
//!
//! A column that has no value twice, and no null, determines all others of its file; a column that an inner join has equal to it
//! determines it. What files say of distinct values is believed, as in answers from metadata.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use datafusion_common::{JoinSide, JoinType, Result};
use datafusion_datasource::PartitionedFile;
use datafusion_datasource::file_groups::FileGroup;
use datafusion_datasource::source::DataSourceExec;
use datafusion_physical_expr::expressions::Column;
use datafusion_physical_expr::utils::collect_columns;
use datafusion_physical_expr_common::physical_expr::{PhysicalExpr, is_volatile};
use datafusion_physical_plan::ExecutionPlan;
use datafusion_physical_plan::coop::CooperativeExec;
use datafusion_physical_plan::filter::FilterExec;
use datafusion_physical_plan::joins::HashJoinExec;
use datafusion_physical_plan::joins::utils::{ColumnIndex, build_join_schema};
use datafusion_physical_plan::projection::ProjectionExec;
use datafusion_physical_plan::repartition::RepartitionExec;

use super::join::JoinExec;
use crate::source::PlinthSource;

/// A column of a relation, both by number.
type Origin = (usize, usize);

/// What is known of a plan's columns.
#[derive(Default)]
struct Facts<'a> {
    /// Scans of files.
    relations: Vec<(&'a PlinthSource, Vec<PartitionedFile>)>,
    /// Columns that are equal in all rows.
    equal: Vec<(Origin, Origin)>,
    /// Whether a column has no value twice, once that was asked.
    unique: HashMap<Origin, bool>,
}

/// Which of some keys over a plan's rows the others determine; text first, for that takes most time to tell apart.
///
/// # Errors
/// If statistics can't be read.
pub(super) fn determined(keys: &[Arc<dyn PhysicalExpr>], input: &Arc<dyn ExecutionPlan>) -> Result<Vec<bool>> {
    let mut determined = vec![false; keys.len()];
    if keys.len() < 2 {
        return Ok(determined);
    }
    let mut facts = Facts::default();
    let columns = facts.columns(input);
    if facts.relations.is_empty() {
        return Ok(determined);
    }
    // What each key is computed of; nothing if that is not known.
    let of_key = |key: &Arc<dyn PhysicalExpr>| -> Option<Vec<Origin>> {
        let known = collect_columns(key).iter().map(|column| columns.get(column.index()).copied().flatten()).collect();
        if is_volatile(key) { None } else { known }
    };
    let sources: Vec<Option<Vec<Origin>>> = keys.iter().map(of_key).collect();
    let schema = input.schema();
    let mut order: Vec<usize> = (0..keys.len()).rev().collect();
    let types = keys.iter().map(|key| key.data_type(&schema)).collect::<Result<Vec<_>>>()?;
    order.sort_by_key(|&key| !types.get(key).is_some_and(|data_type| data_type.is_string() || data_type.is_binary()));
    for key in order {
        let Some(Some(wanted)) = sources.get(key) else { continue };
        let is_other = |other: usize| other != key && !determined.get(other).copied().unwrap_or_default();
        // A column that is a key is known; one that a key is computed of is not.
        let known = (0..keys.len()).filter(|other| is_other(*other)).filter_map(|other| {
            keys.get(other)?.downcast_ref::<Column>()?;
            sources.get(other)?.as_ref()?.first().copied()
        });
        let found = facts.determine(known.collect(), wanted)?;
        if let Some(of_key) = determined.get_mut(key) {
            *of_key = found;
        }
    }
    Ok(determined)
}

impl<'a> Facts<'a> {
    /// Where the columns of a plan come from.
    fn columns(&mut self, plan: &'a Arc<dyn ExecutionPlan>) -> Vec<Option<Origin>> {
        let none = || vec![None; plan.schema().fields().len()];
        if plan.is::<CooperativeExec>() || plan.is::<RepartitionExec>() {
            return plan.children().first().map_or_else(none, |input| self.columns(input));
        }
        if let Some(filter) = plan.downcast_ref::<FilterExec>() {
            let below = self.columns(filter.input());
            return match filter.projection().as_ref() {
                Some(projection) => projection.iter().map(|at| below.get(*at).copied().flatten()).collect(),
                None => below,
            };
        }
        if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
            let below = self.columns(projection.input());
            return projection.expr().iter().map(|expr| of_column(&expr.expr, &below)).collect();
        }
        if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
            return self.of_join(join);
        }
        if let Some(join) = plan.downcast_ref::<JoinExec>() {
            return self.of_join(join.engine());
        }
        let scan = plan.downcast_ref::<DataSourceExec>().and_then(DataSourceExec::downcast_to_file_source);
        let Some((config, source)) = scan else { return none() };
        let parts = config.file_groups.iter().flat_map(FileGroup::iter).cloned().collect();
        self.relations.push((source, parts));
        (0..plan.schema().fields().len()).map(|column| Some((self.relations.len() - 1, column))).collect()
    }

    fn of_join(&mut self, join: &'a HashJoinExec) -> Vec<Option<Origin>> {
        let (left, right) = (self.columns(join.left()), self.columns(join.right()));
        // In rows without a partner the columns of the other side are null, all of them.
        if *join.join_type() == JoinType::Inner {
            let pairs = join.on().iter().map(|(one, other)| of_column(one, &left).zip(of_column(other, &right)));
            self.equal.extend(pairs.flatten());
        }
        let (_, columns) = build_join_schema(&join.left().schema(), &join.right().schema(), join.join_type());
        let origin = |column: &ColumnIndex| match column.side {
            JoinSide::Left => left.get(column.index).copied().flatten(),
            JoinSide::Right => right.get(column.index).copied().flatten(),
            JoinSide::None => None,
        };
        match &join.projection {
            Some(projection) => projection.iter().map(|at| columns.get(*at).and_then(origin)).collect(),
            None => columns.iter().map(origin).collect(),
        }
    }

    /// Whether columns that are known determine some others.
    fn determine(&mut self, mut known: BTreeSet<Origin>, wanted: &[Origin]) -> Result<bool> {
        let mut relations = BTreeSet::new();
        loop {
            let is_known = |origin: &Origin| relations.contains(&origin.0) || known.contains(origin);
            if wanted.iter().all(is_known) {
                return Ok(true);
            }
            let each = self.equal.iter().flat_map(|&(one, other)| [(one, other), (other, one)]);
            let more: Vec<Origin> =
                each.filter(|(from, to)| is_known(from) && !is_known(to)).map(|(_, to)| to).collect();
            let mut grown = !more.is_empty();
            known.extend(more);
            for origin in &known {
                if !relations.contains(&origin.0) && self.is_unique(*origin)? {
                    grown |= relations.insert(origin.0);
                }
            }
            if !grown {
                return Ok(false);
            }
        }
    }

    fn is_unique(&mut self, origin: Origin) -> Result<bool> {
        if let Some(unique) = self.unique.get(&origin) {
            return Ok(*unique);
        }
        let unique = match self.relations.get(origin.0) {
            Some((source, parts)) => source.is_unique(parts, origin.1)?,
            None => false,
        };
        self.unique.insert(origin, unique);
        Ok(unique)
    }
}

/// Where an expression comes from that is a column.
fn of_column(expr: &Arc<dyn PhysicalExpr>, columns: &[Option<Origin>]) -> Option<Origin> {
    columns.get(expr.downcast_ref::<Column>()?.index()).copied().flatten()
}
