package servedkinds

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// kind has what all watches of one kind share, if they watch it in the same form (typed, unstructured, or metadata): one informer of the
// manager's cache. The lock of [Kinds] guards it. Only the goroutine of [Kinds.Start] changes phase and the fields below it.
type kind struct {
	gvk     schema.GroupVersionKind
	object  client.Object // an empty object; its Go type is the form in which the cache holds the objects
	watches []*Watch      // the watches that their controllers have started
	readers int           // the number of reads that were permitted and have not ended

	phase    phase
	shown    observation // what discovery showed when the informer was started
	informer cache.Informer
	failing  bool // the last attempt to start the informer has failed
	leftover bool // the cache still has an informer that could not be removed
}

// phase is the state of a kind's informer.
type phase int

const (
	idle     phase = iota // the kind has no informer
	running               // the informer has been started
	draining              // the kind is not served any more: the informer is removed when no read is left
)

// action says what has to be done with the informer of a kind.
type action int

const (
	nothing action = iota
	start
	stop
)

// decide returns what has to be done with the informer of a kind. shown is what discovery showed when the informer was started, and now is
// what it shows now.
func decide(p phase, shown, now observation) action {
	switch p {
	case idle:
		if now.served() {
			return start
		}
	case running:
		replaced := shown.definition != "" && now.definitionKnown && now.definition != shown.definition
		if !now.served() || replaced || now.resource != shown.resource || now.namespaced != shown.namespaced {
			return stop
		}
	}
	return nothing
}

// merge returns o. If o has no UID of a definition, merge adds the UID that now has: the definitions may have been listed later than the
// kind.
func (o observation) merge(now observation) observation {
	if o.definition == "" {
		o.definition, o.definitionKnown = now.definition, now.definitionKnown
	}
	return o
}
