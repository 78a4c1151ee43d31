//! Who makes a call, as the services see it.

use std::sync::{Arc, OnceLock};

use antiphon_proto::error::{ApiError, ErrorKind};
use prost::Message;
use tonic::Request;

use crate::tokens::{Right, Token};

/// What a call came to: the first right that it asked for, and over which collection.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) right: Right,
    pub(crate) collection: String,
}

/// Who makes a call. [`AccessLayer`](crate::AccessLayer) puts it into every request's extensions.
#[derive(Debug, Clone)]
pub struct Caller {
    /// None: whoever reaches the server may do everything.
    token: Option<Arc<Token>>,
    asked: Arc<OnceLock<Asked>>,
}

impl Caller {
    pub(crate) fn new(token: Option<Arc<Token>>) -> Self {
        Self { token, asked: Arc::default() }
    }

    /// The caller of a request.
    ///
    /// # Errors
    /// INTERNAL where nobody looked who it is: a service without the layer lets nobody in.
    pub fn of<T>(request: &Request<T>) -> Result<Self, ApiError> {
        let found = request.extensions().get::<Self>().cloned();
        found.ok_or_else(|| ApiError::new(ErrorKind::Internal, "nobody looked who calls"))
    }

    /// The name that its token gives it.
    pub fn name(&self) -> Option<&str> {
        self.token.as_deref().map(Token::name)
    }

    pub(crate) fn asked(&self) -> Option<&Asked> {
        self.asked.get()
    }

    /// Whether it may do something to a collection, by the name that it asks for.
    ///
    /// # Errors
    /// TOKEN_SCOPE, whether there is such a collection or not; TOKEN_INVALID where its token has expired meanwhile.
    pub fn may(&self, right: Right, collection: &str) -> Result<(), ApiError> {
        self.asked.get_or_init(|| Asked { right, collection: collection.to_owned() });
        self.token.as_ref().map_or(Ok(()), |token| token.allows(right, collection))
    }

    /// Whether it may know of a collection: has any right to it.
    pub fn knows(&self, collection: &str) -> bool {
        self.token.as_ref().is_none_or(|token| token.knows(collection))
    }

    /// Whether it may know of all collections, and so of the cluster.
    ///
    /// # Errors
    /// TOKEN_SCOPE.
    pub fn may_know_all(&self) -> Result<(), ApiError> {
        match &self.token {
            Some(token) if !token.knows_all() => {
                let words = format!("the token of {:?} has no scope over all collections, as read:*", token.name());
                Err(ApiError::new(ErrorKind::TokenScope, words))
            }
            _ => Ok(()),
        }
    }

    /// Whether it may send so large a message.
    ///
    /// # Errors
    /// TOO_LARGE.
    pub fn check_size(&self, message: &impl Message) -> Result<(), ApiError> {
        self.token.as_ref().map_or(Ok(()), |token| token.check_size(|| message.encoded_len()))
    }
}
