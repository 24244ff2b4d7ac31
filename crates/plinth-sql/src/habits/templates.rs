//! SQL with places for expressions: `$1`, `$2`.

use std::ops::ControlFlow;

use datafusion::common::{Result, internal_datafusion_err};
use datafusion::sql::sqlparser::ast::{Expr, Query, Value, ValueWithSpan, VisitMut, VisitorMut};
use datafusion::sql::sqlparser::parser::Parser;

use crate::meaning::PlinthDialect;

/// An expression with others in its places.
pub(super) fn expression(template: &str, args: &[Expr]) -> Result<Expr> {
    let parsed = Parser::new(&PlinthDialect).try_with_sql(template).and_then(|mut parser| parser.parse_expr());
    let mut expr = parsed.map_err(|error| internal_datafusion_err!("{template}: {error}"))?;
    let _ = expr.visit(&mut Fill { args });
    Ok(expr)
}

/// A query without places.
pub(super) fn query(text: &str) -> Result<Box<Query>> {
    let parsed = Parser::new(&PlinthDialect).try_with_sql(text).and_then(|mut parser| parser.parse_query());
    parsed.map_err(|error| internal_datafusion_err!("{text}: {error}"))
}

struct Fill<'a> {
    args: &'a [Expr],
}

impl VisitorMut for Fill<'_> {
    type Break = ();

    // What is put in has been visited then, so that a parameter of the user stays one.
    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Value(ValueWithSpan { value: Value::Placeholder(place), .. }) = expr
            && let Some(at) = place.strip_prefix('$').and_then(|at| at.parse::<usize>().ok())
            && let Some(arg) = at.checked_sub(1).and_then(|at| self.args.get(at))
        {
            // Its text is read by people alone, where it needs its parentheses.
            let alone = matches!(
                arg,
                Expr::Identifier(_)
                    | Expr::CompoundIdentifier(_)
                    | Expr::Value(_)
                    | Expr::Function(_)
                    | Expr::Nested(_)
            );
            *expr = if alone { arg.clone() } else { Expr::Nested(Box::new(arg.clone())) };
        }
        ControlFlow::Continue(())
    }
}
