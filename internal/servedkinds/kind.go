package servedkinds

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// kind is what the watches of one kind and form of object share: one informer of the manager's cache. The lock of [Kinds]
// guards it; only the goroutine of [Kinds.Start] changes phase, shown and what follows.
type kind struct {
	gvk     schema.GroupVersionKind
	object  client.Object // empty; its type is the form in which the cache holds the objects
	watches []*Watch      // the watches that a controller has started
	readers int           // reads that are permitted and have not ended

	phase    phase
	shown    observation // the observation for which the informer was started
	informer cache.Informer
	failing  bool // the last start has failed
	leftover bool // an informer that could not be removed is still in the cache
}

// phase is the state of a kind's informer.
type phase int

const (
	idle     phase = iota // no informer
	running               // the informer has been started
	draining              // the kind is gone: the informer is removed when no read is left
)

// action is what has to be done about a kind.
type action int

const (
	nothing action = iota
	start
	stop
)

// decide returns what an observation of the kind requires. shown is the observation for which the informer was started.
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

// merge returns the observation. If it has no definition, merge adds the definition of now: definitions may be listed
// later than the kind.
func (o observation) merge(now observation) observation {
	if o.definition == "" {
		o.definition, o.definitionKnown = now.definition, now.definitionKnown
	}
	return o
}
