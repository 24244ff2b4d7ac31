//! Profiles as people and programs read them.

mod chart;
mod flame;
mod html;
mod json;
mod text;
mod trace;
