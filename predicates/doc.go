// Package predicates says which events matter to a controller. Each block is a predicate of controller-runtime: it goes into
// builder.WithPredicates, and into predicate.And, Or and Not.
//
//	builder.WithPredicates(predicate.And(
//		predicates.Label("target", target, predicates.FoldCase()),
//		predicate.Or(predicates.GenerationChanged(), predicates.LabelChanged("target"))))
//
// There are two kinds. Filters pass events of objects that match: [Label], [HasLabel], [HasAnnotation], [Namespaces], [Shard],
// and [Matching] for any function. Changes pass updates that change something: [GenerationChanged], [SpecChanged],
// [FieldChanged], [LabelChanged], [AnnotationChanged], [ConditionChanged], [DeletionStarted], [PauseChanged]; [NotPaused]
// is both.
//
//	          filters                      changes
//	Create    the object matches           always
//	Update    old or new matches           it is changed
//	Delete    the last state matches       always
//	Generic   the object matches           always
//
// The facts:
//   - A filter passes an update when the old object matches, or an object that leaves would keep what was made for it.
//     So the object that a pass then reads may not match: the reconciler has to look again. It has to anyway, since other
//     watches, and delays that were asked for before, bring passes that no predicate sees.
//   - Several predicates of one watch are And. And of a filter and of GenerationChanged drops relabelling, which changes no
//     generation. And of two filters passes an update whose old object matches one and whose new object the other.
//   - predicate.Not of a filter drops the update by which an object comes or leaves: to select what does not match, negate
//     the function of [Matching]. Not of a change drops creations and deletions.
//   - A filter passes resyncs (updates from an object to itself), a change does not.
//   - Writing the status is an update. A controller without a change filter wakes itself by its own write, once.
//   - After an interrupted watch, an object that was deleted and created anew comes as an update: every change passes it.
//   - A deletion that was missed comes with the last known state, which is not the final one (DeleteStateUnknown): filters
//     pass it, but for those of what never changes, [Namespaces] and [Shard].
//   - WithEventFilter of the builder is for all watches of a controller, also those of what it owns, whose labels and
//     annotations are others: use WithPredicates of each watch.
//
// An event without an object is dropped, quietly. The functions given to predicates must not change objects: they are in the
// cache, and other goroutines read them.
package predicates
