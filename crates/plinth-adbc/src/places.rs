//! The places for values in statements that are written `?`.

use std::ops::ControlFlow;

use datafusion::sql::parser::CopyToSource;
use datafusion::sql::sqlparser::ast::{Value, ValueWithSpan, VisitMut, VisitorMut};
use plinth_sql::Statement;

/// Visits a statement, whatever it is within.
pub fn visit(statement: &mut Statement, visitor: &mut impl VisitorMut<Break = ()>) {
    let _: ControlFlow<()> = match statement {
        Statement::Statement(statement) => statement.visit(visitor),
        Statement::Explain(explain) => {
            visit(&mut explain.statement, visitor);
            ControlFlow::Continue(())
        }
        Statement::CopyTo(copy) => match &mut copy.source {
            CopyToSource::Query(query) => query.visit(visitor),
            CopyToSource::Relation(_) => ControlFlow::Continue(()),
        },
        _ => ControlFlow::Continue(()),
    };
}

/// Numbers the places that are written `?`, in the order of the text: how many there are.
pub fn number_places(statement: &mut Statement) -> usize {
    struct Places(Vec<(u64, u64)>);
    impl VisitorMut for Places {
        type Break = ();

        fn pre_visit_value(&mut self, value: &mut ValueWithSpan) -> ControlFlow<()> {
            if matches!(&value.value, Value::Placeholder(place) if place == "?") {
                self.0.push((value.span.start.line, value.span.start.column));
            }
            ControlFlow::Continue(())
        }
    }
    struct Numbered(Vec<(u64, u64)>);
    impl VisitorMut for Numbered {
        type Break = ();

        fn pre_visit_value(&mut self, value: &mut ValueWithSpan) -> ControlFlow<()> {
            if let Value::Placeholder(place) = &mut value.value
                && place == "?"
                && let Ok(at) = self.0.binary_search(&(value.span.start.line, value.span.start.column))
            {
                *place = format!("${}", at + 1);
            }
            ControlFlow::Continue(())
        }
    }
    // Parts of a statement are visited in another order than they are written in.
    let mut places = Places(Vec::new());
    visit(statement, &mut places);
    places.0.sort_unstable();
    let count = places.0.len();
    if count > 0 {
        visit(statement, &mut Numbered(places.0));
    }
    count
}
