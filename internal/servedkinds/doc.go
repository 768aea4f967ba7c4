// Package servedkinds watches kinds that the API server may not serve: their CustomResourceDefinition may be installed after the operator
// has started, and removed while it runs. No restart is needed, and watches of other kinds are not affected.
//
// A [Watch] is a source for the builder of a controller. It keeps the context and the queue with which the controller starts it. Whenever
// the API server serves the kind, the watch adds its indexes and handlers to the informer of the manager's cache, and waits for the initial
// events. Then [Watch.Acquire] permits reads from the cache. When the kind is no longer served, reads are refused, and the informer is
// removed as soon as the permitted reads have ended. Both changes enqueue the requests that the watch names.
//
// # What has to be right
//
//   - If a kind is not served, a read from the cache starts an informer. This informer retries for ever and logs an error each time, and
//     the read blocks. So no read may overlap the removal of the informer.
//   - If an informer is removed, all its handlers are lost, also the handlers of other watches, and nobody can add them again. So only
//     [Kinds] removes informers. There is one Kinds per manager, and one informer for all watches of a kind and form (typed, unstructured,
//     or metadata). A kind that is watched here must not be watched in another way in the same manager.
//   - If a source of controller-runtime is stopped, its handlers stay at the informer. So a Watch adds and removes its handlers itself.
//
// # How it is found out whether a kind is served
//
// Discovery decides: the list of resources of the group and version, which every account may read. Neither the RESTMapper nor the
// CustomResourceDefinition could: controller-runtime's RESTMapper does not forget a kind that is gone, and a definition is established
// shortly before its kind is served.
//
// The list is read every minute. If the operator is allowed to list and watch CustomResourceDefinitions, an event of a definition of the
// same group triggers a read at once, and some more in the next seconds, because discovery is behind. The UID of the definition shows
// whether a definition was deleted and created again in between. Only metadata is read. Without the permission, and for kinds of aggregated
// API servers, the list is read only every minute.
//
// While its definition is being deleted, a kind counts as not served: discovery does not list the verb create any more, and the API server
// would refuse every write.
package servedkinds
