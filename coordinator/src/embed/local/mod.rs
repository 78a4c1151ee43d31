//! Models in a local folder, run in this process. Nothing is ever downloaded.

#[cfg(feature = "bert")]
mod bert;
mod folder;
#[cfg(test)]
mod golden;
mod pool;
mod runner;
mod static_model;
mod tokens;
mod weights;

#[cfg(feature = "bert")]
pub(super) use bert::Bert;
pub(super) use runner::Local;
pub(super) use static_model::StaticModel;
