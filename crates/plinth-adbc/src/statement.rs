//! Statements: a text with values for its places, or data for a table.

use std::sync::{Arc, Mutex};

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef};
use datafusion::common::ScalarValue;
use plinth_core::sync::lock;
use plinth_sql::{Params, Statement as Parsed, parse};

use crate::bound::{Bound, Values, nulls};
use crate::connection::{Link, is_query};
use crate::error::{Failure, Result};
use crate::ingest::Ingest;
use crate::options::{Options, Value, missing};
use crate::places::number_places;
use crate::run::{Answer, Begun, Stop};
use crate::tables::changed;

const INCREMENTAL: &str = "adbc.statement.exec.incremental";
const PROGRESS: &str = "adbc.statement.exec.progress";

/// What `AdbcStatement` leads to.
#[derive(Debug)]
pub(crate) struct Statement {
    link: Arc<Link>,
    state: Mutex<State>,
    /// What stops the last run.
    stop: Mutex<Option<Arc<Stop>>>,
}

#[derive(Debug, Default)]
struct State {
    text: Option<String>,
    prepared: bool,
    bound: Option<Bound>,
    ingest: Ingest,
}

impl State {
    /// The statements of the text, each with the number of its places.
    fn parsed(&self) -> Result<Vec<(Parsed, usize)>> {
        let text = self.text.as_deref();
        let text =
            text.ok_or_else(|| Failure::state("the statement has no text: call AdbcStatementSetSqlQuery before"))?;
        let statements = parse(text)?;
        if statements.is_empty() {
            return Err(Failure::argument("the text has no statement"));
        }
        Ok(statements
            .into_iter()
            .map(|mut one| {
                let places = number_places(&mut one);
                (one, places)
            })
            .collect())
    }

    /// The last statement.
    fn last(&self) -> Result<(Parsed, usize)> {
        self.parsed()?.pop().ok_or_else(|| Failure::argument("the text has no statement"))
    }
}

fn fits(places: usize, columns: usize) -> Result<()> {
    if places > 0 && places != columns {
        return Err(Failure::argument(format!(
            "the statement has {places} places for values, and {columns} were bound"
        )));
    }
    Ok(())
}

impl Options for Statement {
    fn set(&self, key: &str, value: &Value) -> Result<()> {
        let mut state = lock(&self.state);
        match key {
            // Nothing is handed over in parts.
            INCREMENTAL if !value.switch(key)? => Ok(()),
            INCREMENTAL => Err(Failure::not_implemented(format!("{key}: a query gives its rows once"))),
            _ => {
                if state.ingest.set(key, value)? {
                    state.text = None;
                }
                Ok(())
            }
        }
    }

    fn get(&self, key: &str) -> Result<Value> {
        match key {
            INCREMENTAL => Ok(false.into()),
            PROGRESS => match self.link.engine.session.progress() {
                Some(done) => Ok(Value::Double(done.of_rows.map_or(0.0, |all| part_of(done.rows, all)))),
                None => Err(missing("statement", key)),
            },
            _ => lock(&self.state).ingest.get(key).ok_or_else(|| missing("statement", key)),
        }
    }
}

/// How much of all is done, from 0 to 1.
#[allow(clippy::cast_precision_loss, reason = "a share that is shown")]
fn part_of(done: u64, all: u64) -> f64 {
    if all == 0 { 1.0 } else { (done as f64 / all as f64).min(1.0) }
}

impl Statement {
    pub(crate) fn new(link: Arc<Link>) -> Self {
        Self { link, state: Mutex::default(), stop: Mutex::default() }
    }

    pub(crate) fn set_text(&self, text: String) {
        let mut state = lock(&self.state);
        *state = State { text: Some(text), bound: state.bound.take(), ..State::default() };
    }

    pub(crate) fn bind(&self, bound: Bound) {
        lock(&self.state).bound = Some(bound);
    }

    /// Tells whether the text is SQL. Names and types are looked up when it runs: tables may come and go.
    pub(crate) fn prepare(&self) -> Result<()> {
        let mut state = lock(&self.state);
        state.parsed()?;
        state.prepared = true;
        Ok(())
    }

    /// Stops what runs.
    pub(crate) fn cancel(&self) {
        if let Some(stop) = lock(&self.stop).as_ref() {
            stop.ask();
        }
    }

    fn stop(&self) -> Arc<Stop> {
        let stop = self.link.stop();
        *lock(&self.stop) = Some(Arc::clone(&stop));
        stop
    }

    /// Types of the places; null where nothing says which.
    pub(crate) fn parameters(&self) -> Result<SchemaRef> {
        let state = lock(&self.state);
        if !state.prepared {
            return Err(Failure::state("the statement is not prepared: call AdbcStatementPrepare before"));
        }
        let (statement, places) = state.last()?;
        let engine = &self.link.engine;
        let known = crate::run::wait(&engine.handle, &self.stop(), async {
            Ok(engine.session.parameter_types(statement).await?)
        })?;
        let numbered = |at: usize| {
            let name = at.to_string();
            let data_type = known.get(&name).cloned().flatten();
            Field::new(name, data_type.unwrap_or(DataType::Null), true)
        };
        let mut fields: Vec<_> = (1..=places).map(numbered).collect();
        for (name, data_type) in &known {
            if !fields.iter().any(|field| field.name() == name) {
                fields.push(Field::new(name, data_type.clone().unwrap_or(DataType::Null), true));
            }
        }
        Ok(Arc::new(Schema::new(fields)))
    }

    /// The columns of a query that is not run.
    pub(crate) fn schema(&self) -> Result<SchemaRef> {
        let state = lock(&self.state);
        let (statement, places) = state.last()?;
        if !is_query(&statement) {
            return Ok(Arc::new(Schema::empty()));
        }
        let params = match &state.bound {
            Some(bound) => nulls(&bound.schema())?,
            None => Params::of_values((1..=places).map(|at| (at.to_string(), ScalarValue::Null))),
        };
        Ok(self.link.begin(statement, &params, &self.stop())?.schema())
    }

    /// Runs the statement: a query as its rows are asked for, any other to its end.
    pub(crate) fn execute(&self) -> Result<Answer> {
        let mut state = lock(&self.state);
        let stop = self.stop();
        if state.ingest.is_asked() {
            let bound = state.bound.take();
            let bound = bound.ok_or_else(|| Failure::state("no data is bound: call AdbcStatementBindStream before"))?;
            return state.ingest.run(&self.link, bound, &stop);
        }
        let mut statements = state.parsed()?;
        let Some((last, places)) = statements.pop() else { return Err(Failure::argument("no statement")) };
        let none = Params::of_values([]);
        for (statement, _) in statements {
            let begun = self.link.begin(statement, &none, &stop)?;
            let mut rows = self.link.engine.rows(begun, &stop)?;
            while rows.next()?.is_some() {}
        }
        let Some(bound) = state.bound.take() else {
            fits(places, 0)?;
            let begun = self.link.begin(last, &none, &stop)?;
            return self.answer(begun, &stop);
        };
        fits(places, bound.schema().fields().len())?;
        if is_query(&last) {
            return self.query_each(last, bound, stop);
        }
        let own = bound.is_many() && self.link.begin_many(&last, &stop)?;
        let done = self.change_each(&last, bound, &stop);
        if own {
            self.link.end(if done.is_ok() { "COMMIT" } else { "ROLLBACK" })?;
        }
        done
    }

    fn answer(&self, begun: Begun, stop: &Arc<Stop>) -> Result<Answer> {
        match begun {
            Begun::Done(schema, batches) => match changed(&batches) {
                // A count of rows, and no row.
                Some(rows) => Ok(Answer::of(Arc::new(Schema::empty()), Vec::new(), Some(rows))),
                None => Ok(Answer::of(schema, batches, None)),
            },
            begun @ Begun::Query(_) => {
                let schema = begun.schema();
                let mut rows = self.link.engine.rows(begun, stop)?;
                Ok(Answer { schema, next: Box::new(move || rows.next()), changed: None })
            }
        }
    }

    /// A statement once for each row of values.
    fn change_each(&self, statement: &Parsed, bound: Bound, stop: &Stop) -> Result<Answer> {
        let (mut values, mut rows) = (Values::new(bound), 0_u64);
        while let Some(params) = values.next()? {
            if let Begun::Done(_, answer) = self.link.begin(statement.clone(), &params, stop)? {
                rows += changed(&answer).unwrap_or_default();
            }
        }
        Ok(Answer::of(Arc::new(Schema::empty()), Vec::new(), Some(rows)))
    }

    /// The rows of a query for each row of values, one after the other.
    fn query_each(&self, statement: Parsed, bound: Bound, stop: Arc<Stop>) -> Result<Answer> {
        let types = bound.schema();
        let mut values = Values::new(bound);
        let link = Arc::clone(&self.link);
        let begin =
            move |params: &Params| link.begin(statement.clone(), params, &stop).map(|begun| (begun, Arc::clone(&stop)));
        let Some(first) = values.next()? else {
            let schema = begin(&nulls(&types)?)?.0.schema();
            return Ok(Answer::of(schema, Vec::new(), None));
        };
        let engine = Arc::clone(&self.link.engine);
        let (begun, stop) = begin(&first)?;
        // One value may be NULL where another is not.
        let fields =
            begun.schema().fields().iter().map(|field| field.as_ref().clone().with_nullable(true)).collect::<Fields>();
        let schema = Arc::new(Schema::new(fields));
        let (mut rows, expected) = (engine.rows(begun, &stop)?, Arc::clone(&schema));
        let next = move || loop {
            if let Some(batch) = rows.next()? {
                let batch = RecordBatch::try_new(Arc::clone(&expected), batch.columns().to_vec());
                return batch.map(Some).map_err(|_| {
                    Failure::data("one row of values leads to columns of other types than another: bind them apart")
                });
            }
            let Some(params) = values.next()? else { return Ok(None) };
            let (begun, stop) = begin(&params)?;
            rows = engine.rows(begun, &stop)?;
        };
        Ok(Answer { schema, next: Box::new(next), changed: None })
    }
}
