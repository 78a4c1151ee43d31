//! CollectionService.

use antiphon_access::Caller;
use antiphon_access::tokens::Right;
use antiphon_proto::deadline::Deadline;
use antiphon_proto::error::{ApiError, ErrorKind};
use antiphon_proto::v1::collection_service_server::CollectionService;
use antiphon_proto::v1::{
    Collection, CreateCollectionRequest, CreateCollectionResponse, DeleteAliasRequest, DeleteAliasResponse,
    DeleteCollectionRequest, DeleteCollectionResponse, GetCollectionRequest, GetCollectionResponse, ListAliasesRequest,
    ListAliasesResponse, ListCollectionsRequest, ListCollectionsResponse, SetAliasRequest, SetAliasResponse,
    UpdateCollectionRequest, UpdateCollectionResponse,
};
use futures::future::try_join_all;
use tonic::{Request, Response, Status};

use super::{Service, admit};
use crate::collections::Resolved;
use crate::coordinator::within;
use crate::validate::{check_alias, check_collection};

impl Service {
    async fn with_counts(&self, collection: &Resolved, deadline: Deadline) -> Result<Collection, ApiError> {
        let mut counted = collection.collection.clone();
        for shard in self.0.describe_shards(collection, true, deadline).await? {
            counted.num_docs += shard.num_docs;
            counted.num_deleted += shard.num_deleted;
            counted.num_segments += shard.num_segments;
            counted.size_bytes += shard.size_bytes;
        }
        Ok(counted)
    }
}

#[tonic::async_trait]
impl CollectionService for Service {
    async fn create_collection(
        &self,
        request: Request<CreateCollectionRequest>,
    ) -> Result<Response<CreateCollectionResponse>, Status> {
        let name = request.get_ref().collection.as_ref().map_or("", |collection| collection.name.as_str());
        admit(&request, Right::Admin, name)?;
        let deadline = self.0.deadline(&request);
        let collection = request.into_inner().collection.unwrap_or_default();
        let collection = check_collection(collection, &self.0.config.embedders)?;
        let created = within(deadline, self.0.collections.create(collection)).await?;
        Ok(Response::new(CreateCollectionResponse { collection: Some(created) }))
    }

    async fn get_collection(
        &self,
        request: Request<GetCollectionRequest>,
    ) -> Result<Response<GetCollectionResponse>, Status> {
        let caller = Caller::of(&request)?;
        let name = &request.get_ref().name;
        if !caller.knows(name) {
            caller.may(Right::Read, name)?;
        }
        let deadline = self.0.deadline(&request);
        let name = request.into_inner().name;
        let work = async {
            let found = self.0.collections.find_newest(&name).await?;
            self.with_counts(&found, deadline).await
        };
        Ok(Response::new(GetCollectionResponse { collection: Some(within(deadline, work).await?) }))
    }

    async fn list_collections(
        &self,
        request: Request<ListCollectionsRequest>,
    ) -> Result<Response<ListCollectionsResponse>, Status> {
        let caller = Caller::of(&request)?;
        let deadline = self.0.deadline(&request);
        let work = async {
            let all = self.0.collections.list().await?;
            let known = all.iter().filter(|found| caller.knows(&found.collection.name));
            let counted = known.map(|found| async {
                match self.with_counts(found, deadline).await {
                    // Deleted between the two looks.
                    Err(error) if error.kind() == ErrorKind::CollectionNotFound => Ok(None),
                    outcome => outcome.map(Some),
                }
            });
            try_join_all(counted).await
        };
        let collections = within(deadline, work).await?.into_iter().flatten().collect();
        Ok(Response::new(ListCollectionsResponse { collections }))
    }

    async fn update_collection(
        &self,
        request: Request<UpdateCollectionRequest>,
    ) -> Result<Response<UpdateCollectionResponse>, Status> {
        let name = request.get_ref().collection.as_ref().map_or("", |collection| collection.name.as_str());
        admit(&request, Right::Admin, name)?;
        let deadline = self.0.deadline(&request);
        let wanted = request.into_inner().collection.unwrap_or_default();
        let work = async {
            let updated = self.0.collections.update(&wanted, &self.0.config.embedders).await?;
            // Every shard takes the new schema up now, so that what is acknowledged is served.
            self.0.describe_shards(&updated, false, deadline).await?;
            Ok(updated.collection.clone())
        };
        Ok(Response::new(UpdateCollectionResponse { collection: Some(within(deadline, work).await?) }))
    }

    async fn delete_collection(
        &self,
        request: Request<DeleteCollectionRequest>,
    ) -> Result<Response<DeleteCollectionResponse>, Status> {
        admit(&request, Right::Admin, &request.get_ref().name)?;
        let deadline = self.0.deadline(&request);
        within(deadline, self.0.collections.delete(&request.into_inner().name)).await?;
        Ok(Response::new(DeleteCollectionResponse {}))
    }

    async fn set_alias(&self, request: Request<SetAliasRequest>) -> Result<Response<SetAliasResponse>, Status> {
        // What the name comes to mean can be read and written by whoever may use the name.
        admit(&request, Right::Admin, &request.get_ref().name)?;
        admit(&request, Right::Admin, &request.get_ref().collection)?;
        let deadline = self.0.deadline(&request);
        let SetAliasRequest { name, collection } = request.into_inner();
        check_alias(&name)?;
        let alias = within(deadline, self.0.collections.set_alias(&name, &collection)).await?;
        Ok(Response::new(SetAliasResponse { alias: Some(alias) }))
    }

    async fn delete_alias(
        &self,
        request: Request<DeleteAliasRequest>,
    ) -> Result<Response<DeleteAliasResponse>, Status> {
        admit(&request, Right::Admin, &request.get_ref().name)?;
        let deadline = self.0.deadline(&request);
        within(deadline, self.0.collections.delete_alias(&request.into_inner().name)).await?;
        Ok(Response::new(DeleteAliasResponse {}))
    }

    async fn list_aliases(
        &self,
        request: Request<ListAliasesRequest>,
    ) -> Result<Response<ListAliasesResponse>, Status> {
        let caller = Caller::of(&request)?;
        let deadline = self.0.deadline(&request);
        let collection = request.into_inner().collection;
        let mut aliases = within(deadline, self.0.collections.list_aliases(&collection)).await?;
        aliases.retain(|alias| caller.knows(&alias.name));
        Ok(Response::new(ListAliasesResponse { aliases }))
    }
}
