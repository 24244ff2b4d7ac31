//! CREATE MACRO: expressions and queries with parameters, for the session.

use std::collections::HashMap;
use std::ops::ControlFlow;

use datafusion::common::{Result, plan_err};
use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, MacroArg, MacroDefinition, ObjectName,
    Query, TableFactor, VisitMut, VisitorMut,
};

use super::lambdas::Lambdas;
use super::simple_name;
use crate::names::normal;

/// Most calls of macros in a statement: one that calls itself has no end.
pub(super) const MOST_CALLS: usize = 10_000;

/// The macros of a session by their names. Several of a name differ in the number of their parameters.
#[derive(Clone, Debug, Default)]
pub(crate) struct Macros {
    known: HashMap<String, Vec<Macro>>,
}

#[derive(Clone, Debug)]
struct Macro {
    parameters: Vec<MacroArg>,
    definition: MacroDefinition,
}

impl Macros {
    pub(super) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Adds one.
    ///
    /// # Errors
    /// If its name has several parts or is taken.
    pub(crate) fn create(
        &mut self,
        name: &ObjectName,
        or_replace: bool,
        parameters: Vec<MacroArg>,
        definition: MacroDefinition,
    ) -> Result<()> {
        let Some(simple) = simple_name(name) else {
            return plan_err!("CREATE MACRO {name}: a macro is of the session and in no schema");
        };
        let macros = self.known.entry(simple).or_default();
        let same = |other: &Macro| other.parameters.len() == parameters.len();
        match macros.iter().position(same) {
            Some(at) if or_replace => {
                macros.remove(at);
            }
            Some(_) => return plan_err!("CREATE MACRO {name}: already exists; CREATE OR REPLACE MACRO replaces it"),
            None => {}
        }
        macros.push(Macro { parameters, definition });
        Ok(())
    }

    /// Takes all of a name away; whether there were any.
    pub(crate) fn remove(&mut self, name: &ObjectName) -> bool {
        simple_name(name).is_some_and(|name| self.known.remove(&name).is_some())
    }

    /// What a call means.
    pub(super) fn expression(&self, function: &Function) -> Result<Option<Expr>> {
        let Some((name, macros)) = self.named(&function.name) else { return Ok(None) };
        let FunctionArguments::List(list) = &function.args else { return Ok(None) };
        let Some((parameters, definition)) = chosen(macros, &list.args)? else {
            return plan_err!("{name}: the macro takes other arguments than {}", function.args);
        };
        let MacroDefinition::Expr(expr) = definition else {
            return plan_err!("{name}: is a macro of a table; write FROM {function}");
        };
        if function.over.is_some() || function.filter.is_some() || list.duplicate_treatment.is_some() {
            return plan_err!("{name}: a macro takes no DISTINCT, FILTER or OVER");
        }
        let (mut expr, mut fill) = (expr.clone(), Fill::of(&parameters));
        let _ = expr.visit(&mut fill);
        fill.end()?;
        Ok(Some(Expr::Nested(Box::new(expr))))
    }

    /// What a table with arguments means.
    pub(super) fn table(&self, table: &TableFactor) -> Result<Option<Box<Query>>> {
        let TableFactor::Table { name, args: Some(args), .. } = table else { return Ok(None) };
        let Some((simple, macros)) = self.named(name) else { return Ok(None) };
        let Some((parameters, definition)) = chosen(macros, &args.args)? else {
            return plan_err!("{simple}: the macro takes other arguments");
        };
        let MacroDefinition::Table(query) = definition else {
            return plan_err!("{simple}: is a macro of values; write SELECT {simple}(...)");
        };
        let (mut query, mut fill) = (query.clone(), Fill::of(&parameters));
        let _ = query.visit(&mut fill);
        fill.end()?;
        Ok(Some(query))
    }

    fn named(&self, name: &ObjectName) -> Option<(String, &Vec<Macro>)> {
        if self.is_empty() {
            return None;
        }
        let name = simple_name(name)?;
        self.known.get(&name).map(|macros| (name, macros))
    }
}

/// The macro that takes these arguments, with their values.
#[allow(clippy::type_complexity, reason = "a pair, used twice")]
fn chosen<'a>(macros: &'a [Macro], args: &[FunctionArg]) -> Result<Option<(Vec<(Ident, Expr)>, &'a MacroDefinition)>> {
    for Macro { parameters, definition } in macros {
        let mut values: Vec<Option<Expr>> = vec![None; parameters.len()];
        let mut fits = true;
        for (at, arg) in args.iter().enumerate() {
            let (place, value) = match arg {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => (Some(at), value),
                FunctionArg::Named { name, arg: FunctionArgExpr::Expr(value), .. } => {
                    (parameters.iter().position(|parameter| normal(&parameter.name) == normal(name)), value)
                }
                other => return plan_err!("{other}: a macro takes values"),
            };
            match place.and_then(|place| values.get_mut(place)) {
                Some(free @ None) => *free = Some(value.clone()),
                _ => fits = false,
            }
        }
        let filled = parameters.iter().zip(values).map(|(parameter, value)| {
            Some((parameter.name.clone(), value.or_else(|| parameter.default_expr.clone())?))
        });
        if fits && let Some(values) = filled.collect() {
            return Ok(Some((values, definition)));
        }
    }
    Ok(None)
}

/// Puts values in the places of parameters.
struct Fill<'a> {
    values: &'a [(Ident, Expr)],
    lambdas: Lambdas,
    /// A value of which a lambda of the macro would make something else, and the name that it has, too.
    taken: Option<(Expr, String)>,
}

impl<'a> Fill<'a> {
    fn of(values: &'a [(Ident, Expr)]) -> Self {
        Self { values, lambdas: Lambdas::default(), taken: None }
    }

    fn end(self) -> Result<()> {
        match self.taken {
            Some((value, name)) => plan_err!(
                "{value}: the macro has a lambda whose parameter is {name}, too; give the value another name in a subquery"
            ),
            None => Ok(()),
        }
    }
}

impl VisitorMut for Fill<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        self.lambdas.enter(expr);
        ControlFlow::Continue(())
    }

    // What is put in has no places any more: parts are visited before the whole.
    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        self.lambdas.leave(expr);
        if let Expr::Identifier(name) = expr
            && !self.lambdas.has(&normal(name))
            && let Some((_, value)) = self.values.iter().find(|(parameter, _)| normal(parameter) == normal(name))
        {
            if let Some(name) = self.lambdas.taken(value) {
                self.taken = Some((value.clone(), name));
            }
            *expr = match value {
                Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Value(_) | Expr::Nested(_) => value.clone(),
                other => Expr::Nested(Box::new(other.clone())),
            };
        }
        ControlFlow::Continue(())
    }
}
