//! Aliases: further names of collections, in the catalog beside them.
//!
//! A name means at most one collection, whether it is the collection's own or an alias. Each change is one version of
//! the catalog, so an alias that moves means the old collection or the new one, never both and never neither.

use antiphon_proto::error::{ApiError, ErrorKind};
use antiphon_proto::store::{AliasEntry, Catalog};
use antiphon_proto::v1::Alias;

use crate::collections::{Collections, find, not_found, store_error, taken, update_error};

/// Most aliases: the catalog is one object.
const MAX_ALIASES: usize = 10_000;

impl Collections {
    /// Makes an alias mean a collection.
    ///
    /// # Errors
    /// COLLECTION_EXISTS where the name is a collection's; COLLECTION_NOT_FOUND; TOO_LARGE; STORE_UNAVAILABLE.
    pub async fn set_alias(&self, name: &str, collection: &str) -> Result<Alias, ApiError> {
        let outcome = self.store.update(|catalog| with_alias(catalog, name, collection));
        let done = outcome.await.map_err(update_error)?;
        let found = find(&done.catalog, name).ok_or_else(|| not_found(name))?;
        Ok(Alias { name: name.to_owned(), collection: found.name.clone() })
    }

    /// Takes an alias away.
    ///
    /// # Errors
    /// COLLECTION_NOT_FOUND; STORE_UNAVAILABLE.
    pub async fn delete_alias(&self, name: &str) -> Result<(), ApiError> {
        let outcome = self.store.update(|catalog| {
            let mut next = catalog.clone();
            next.aliases.retain(|alias| alias.name != name);
            if next.aliases.len() == catalog.aliases.len() {
                let words = match find(catalog, name) {
                    Some(_) => format!("{name:?} is a collection and no alias"),
                    None => format!("there is no alias named {name:?}"),
                };
                return Err(ApiError::new(ErrorKind::CollectionNotFound, words));
            }
            Ok(next)
        });
        outcome.await.map(drop).map_err(update_error)
    }

    /// The aliases of a collection, or all where none is named, in order of name.
    ///
    /// # Errors
    /// COLLECTION_NOT_FOUND; STORE_UNAVAILABLE.
    pub async fn list_aliases(&self, collection: &str) -> Result<Vec<Alias>, ApiError> {
        let newest = self.store.refresh().await.map_err(store_error)?;
        let catalog = &newest.catalog;
        let only = match collection {
            "" => None,
            name => Some(find(catalog, name).ok_or_else(|| not_found(name))?.uid.as_str()),
        };
        let entries = catalog.aliases.iter().filter(|alias| only.is_none_or(|uid| alias.collection_uid == uid));
        let mut aliases: Vec<Alias> = entries
            .filter_map(|alias| {
                let found = find(catalog, &alias.name)?;
                Some(Alias { name: alias.name.clone(), collection: found.name.clone() })
            })
            .collect();
        aliases.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(aliases)
    }
}

/// The catalog in which an alias means a collection.
fn with_alias(catalog: &Catalog, name: &str, collection: &str) -> Result<Catalog, ApiError> {
    let uid = find(catalog, collection).ok_or_else(|| not_found(collection))?.uid.clone();
    let mut next = catalog.clone();
    match next.aliases.iter_mut().find(|alias| alias.name == name) {
        Some(alias) => alias.collection_uid = uid,
        None if find(catalog, name).is_some() => return Err(taken(catalog, name)),
        None if catalog.aliases.len() >= MAX_ALIASES => {
            return Err(ApiError::new(
                ErrorKind::TooLarge,
                format!("there are {MAX_ALIASES} aliases, which is the most"),
            ));
        }
        None => next.aliases.push(AliasEntry { name: name.to_owned(), collection_uid: uid }),
    }
    Ok(next)
}
