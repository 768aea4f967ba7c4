// Package servedkinds watches kinds that the API server may not serve: their CustomResourceDefinition may be installed after
// the operator has started, and removed while it runs. No restart is needed, and watches of other kinds are not touched.
//
// A [Watch] is a source for the builder of a controller. It keeps the context and the queue that the controller starts it
// with. Whenever the kind is served, it makes the indexes, adds its handlers to the informer of the manager's cache, and
// waits for their initial events. Then [Watch.Acquire] permits reads of the cache. When the kind is no longer served, reads
// are refused, and the informer is removed as soon as the reads that were permitted have ended. Both changes enqueue the
// requests that the watch names.
//
// # What has to be right
//
//   - A cached read of a kind that is not served starts an informer, which retries for ever and logs an error each time, and
//     the read blocks for as long. So no read may overlap the removal of the informer.
//   - A removed informer is removed for everybody, also for handlers that nobody can add again. So only [Kinds] removes
//     informers: there is one per manager, and one informer for all its watches of a kind and form. A kind that is watched
//     here must not be watched in another way in the same manager.
//   - A stopped source of controller-runtime leaves its handlers at the informer. So a Watch adds and removes them itself.
//
// # How it is found out whether a kind is served
//
// Discovery decides: the list of resources of the group and version, which every account may read. Neither the RESTMapper
// nor the CustomResourceDefinition could say it: controller-runtime's RESTMapper does not forget a kind that is gone, and a
// definition is established shortly before its kind is served.
//
// The list is read every minute. Where the operator may list and watch CustomResourceDefinitions, an event of a definition
// of the same group triggers a read at once and some more in the next seconds, because discovery lags. The UID of the
// definition shows that a kind was removed and made again in between. Only metadata is read. If the permission is missing,
// only the minute counts, which is also so for kinds of aggregated API servers.
//
// A kind is not served while its definition is being deleted: discovery does not list the verb create any more, and the
// API server would refuse every write.
package servedkinds
