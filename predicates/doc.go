// Package predicates selects the events that trigger a reconcile. Its functions return predicates of controller-runtime,
// for builder.WithPredicates and for predicate.And, predicate.Or and predicate.Not.
//
//	builder.WithPredicates(predicate.And(
//		predicates.Label("target").EqualsFold(target),
//		predicate.Or(predicates.GenerationChanged(), predicates.Label("target").Changed())))
//
// There are two kinds of predicates. Filters pass the events of objects that match: [Metadata.Equals] and [Metadata.Exists] of
// [Label] and [Annotation], [Namespaces], [Shard], and [Matching] for any function. Change predicates pass updates that change something:
// [GenerationChanged], [SpecChanged], [FieldChanged], [Metadata.Changed], [ConditionChanged],
// [DeletionStarted] and [PauseChanged]. [NotPaused] is both.
//
//	          filters                                changes
//	Create    the object matches                     always
//	Update    the old or the new object matches      the field is changed
//	Delete    the last known state matches           always
//	Generic   the object matches                     always
//
// DeletionStarted, NotPaused, Namespaces and Shard differ from this table: see their documentation.
//
// Facts to know:
//   - A filter passes an update if the old object matches, so that the controller can clean up for an object that stops
//     matching. The object that the reconciler then reads may not match, so the reconciler must check again. It must do so
//     anyway: other watches, and the RequeueAfter of earlier reconciles, also trigger reconciles, and no predicate of this
//     watch can drop them.
//   - Several predicates of one watch are combined by predicate.And. predicate.And of a filter and [GenerationChanged] drops
//     changes of labels, because they do not change the generation. predicate.And of two filters passes an update whose old
//     object matches one of them and whose new object matches the other.
//   - predicate.Not of a filter drops the update with which an object starts or stops matching. To select the objects that
//     do not match, negate the function that you pass to [Matching]. predicate.Not of a change predicate drops creations
//     and deletions.
//   - Filters pass resyncs (updates from an object to itself). Change predicates drop them.
//   - Writing the status is an update. A controller without a change predicate triggers one more reconcile by its own
//     write.
//   - If an object was deleted and created again while a watch was interrupted, the cache reports this as one update.
//     Every change predicate passes it.
//   - A deletion that happened while a watch was interrupted is reported with the last known state, which may not be the
//     final one (DeleteStateUnknown). Filters pass such a deletion even if that state does not match. [Namespaces] and
//     [Shard] drop it if the state does not match, because the namespace and the shard of an object never change.
//   - [Shard] divides objects among operators only together with a check of [ShardOf] in the reconciler: events of children
//     trigger a reconcile of their owner in every operator.
//   - WithEventFilter of the builder applies to all watches of a controller, also to watches of owned objects, which
//     have other labels and annotations. Use builder.WithPredicates for each watch instead.
//
// An event without an object is dropped. Functions that are passed to predicates must not change the object: it belongs to
// the cache, and other goroutines read it. All predicates are safe for concurrent use.
package predicates
