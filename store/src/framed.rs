//! Messages as framed objects: read whole or refused, and created with certainty about whose object it is.

use bytes::Bytes;
use prost::Message;

use crate::error::StoreError;
use crate::frame::{self, Frame, Kind, MAX_BODY_BYTES, Nonce};
use crate::object::{Created, Store};
use crate::retry::retrying;

/// What became of [`create`].
#[derive(Debug)]
pub(crate) enum Outcome<M> {
    /// The object is there, and it is this call's.
    Created,
    /// The object that is there is another's, or that of an earlier call.
    Taken(M),
}

/// Creates an object at exactly `path`, if there is none.
///
/// A create that was not answered is tried again until the store's patience ends; that the object exists then is no answer
/// yet, for it may be ours: the nonce in its header tells.
///
/// # Errors
/// After `Unavailable` the outcome is unknown, and the object may still appear later.
pub(crate) async fn create<M: Message + Default>(
    store: &Store,
    path: &str,
    kind: Kind,
    message: &M,
) -> Result<Outcome<M>, StoreError> {
    let body = message.encode_to_vec();
    if body.len() as u64 > MAX_BODY_BYTES {
        return Err(StoreError::invalid(path, format!("{} bytes are more than {MAX_BODY_BYTES}", body.len())));
    }
    let nonce: Nonce = rand::random();
    let bytes = frame::encode(kind, kind.version(), path, nonce, &body);
    drop(body);
    retrying!(store.limits.patience, create_once(store, path, kind, nonce, &bytes))
}

async fn create_once<M: Message + Default>(
    store: &Store,
    path: &str,
    kind: Kind,
    nonce: Nonce,
    bytes: &Bytes,
) -> Result<Outcome<M>, StoreError> {
    match store.create_if_absent(path, bytes.clone()).await? {
        Created::Yes => Ok(Outcome::Created),
        Created::AlreadyExists => match read_frame(store, path, kind).await? {
            Some(found) if found.nonce == nonce => Ok(Outcome::Created),
            Some(found) => Ok(Outcome::Taken(message_of(path, found)?)),
            None => Err(StoreError::Unavailable {
                path: path.to_owned(),
                reason: "the object that was in the way is gone".to_owned(),
                source: None,
            }),
        },
    }
}

/// Reads an object; nothing if there is none.
///
/// # Errors
/// `Corrupt` if its bytes are not those written, or those of a newer version of Antiphon.
pub(crate) async fn read<M: Message + Default>(store: &Store, path: &str, kind: Kind) -> Result<Option<M>, StoreError> {
    match read_frame(store, path, kind).await? {
        Some(frame) => message_of(path, frame).map(Some),
        None => Ok(None),
    }
}

async fn read_frame(store: &Store, path: &str, kind: Kind) -> Result<Option<Frame>, StoreError> {
    match store.get(path).await? {
        Some(bytes) => {
            frame::decode(kind, kind.version(), path, bytes).map(Some).map_err(|fault| StoreError::corrupt(path, fault))
        }
        None => Ok(None),
    }
}

fn message_of<M: Message + Default>(path: &str, frame: Frame) -> Result<M, StoreError> {
    M::decode(frame.body).map_err(|fault| StoreError::corrupt(path, fault))
}
