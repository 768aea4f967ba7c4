package ownedresources

import (
	"errors"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/compare"
	"github.com/opblocks/opblocks/internal/record"
)

// verb is what is done next to a live object.
type verb string

const (
	doNothing    verb = "do nothing: it is as desired"
	doRemove     verb = "delete it: a former owner has left it"
	doCollect    verb = "delete it in place of the garbage collector: a former owner controls it"
	doBind       verb = "take the owner reference off, and mark it"
	doApply      verb = "apply it"
	doExpand     verb = "replace it by one with larger volumes"
	doRefuse     verb = "recreate it, or report that a field cannot be dropped"
	doReturn     verb = "return the error"
	doNotDecided verb = "" // the stages that follow decide
)

// plan is what is done next to a live object, and why.
type plan struct {
	verb        verb
	paths       string               // the fields that differ, for logs and events
	differences []compare.Difference // the same, with their values
	adopts      types.UID            // the former owner of an object that is adopted
	needs       []fact               // what has to be known before the plan is executed
	err         error                // for doReturn, and the reason for doRemove, doCollect and doRefuse
	isOurs      bool                 // for doReturn: other children may be built from the live object
}

// fact is what a stage cannot know from the object and its memory. It takes a request to learn it, or it changes with time.
type fact string

const (
	ownerIsAlive  fact = "whether the owner is as the API server has it"
	formerIsGone  fact = "whether the former owner that the mark names is gone"
	paceOfWrites  fact = "whether a write has to wait, because another writer undoes it again and again"
	restIsApplied fact = "whether volumes can grow"
)

// state is what is known of one desired and one live object.
type state struct {
	*desired
	live      client.Object
	rewritten []compare.Difference // the rewritten differences of our last write, in the memory of this process
	known     map[fact]bool
	gone      bool   // formerIsGone
	paced     string // the paths that paceOfWrites is about
	delay     error  // paceOfWrites: a [*WaitingError] while a write has to wait
}

// stage decides a part of the plan for a live object. It sends no request and changes nothing.
type stage func(s *state, p plan) plan

// stages are all stages, in the order in which they decide. A stage can replace what earlier ones have planned.
var stages = []stage{leaveOthers, bind, compareLive, holdBack, slowDown, checkDesired, expand}

// decide returns what to do next. It is pure.
func decide(stages []stage, s *state) (p plan) {
	for _, stage := range stages {
		if p = stage(s, p); p.verb == doReturn || p.verb == doRemove || p.verb == doCollect {
			return p
		}
	}
	return p
}

// missing returns the first fact that the plan needs and that is not known.
func (s *state) missing(p plan) (fact, bool) {
	i := slices.IndexFunc(p.needs, func(f fact) bool { return !s.known[f] || f == paceOfWrites && s.paced != p.paths })
	if i < 0 || p.verb == doReturn {
		return "", false
	}
	return p.needs[i], true
}

// leaveOthers leaves objects alone that are not ours.
func leaveOthers(s *state, p plan) plan {
	err := s.owner.mayWrite(s.desired, s.live)
	if orphan, ok := errors.AsType[orphanError](err); ok {
		return plan{verb: doCollect, err: orphan}
	}
	former, ok := errors.AsType[formerError](err)
	switch {
	case err == nil:
		return p
	case !ok:
		return plan{verb: doReturn, err: err}
	case !s.known[formerIsGone]:
		return plan{verb: doRemove, needs: []fact{formerIsGone}, err: former}
	case !s.gone && former.mark.Owner == s.owner.objectName(): // the cache is behind: our owner is gone, and the owner of the mark has its name now
		return plan{verb: doReturn, err: apierrors.NewConflict(schema.GroupResource{Resource: s.owner.reference.Kind}, s.owner.reference.Name,
			errors.New("it was deleted and created anew, and the cache does not show that yet"))}
	case !s.gone:
		return plan{verb: doReturn, err: s.owner.markedByAnother(s.kind, s.live, former.mark)}
	case !former.adopt:
		return plan{verb: doRemove, err: former}
	}
	p.adopts = former.mark.UID
	adopted := *s.desired
	adopted.former = p.adopts
	if err := s.owner.mayWrite(&adopted, s.live); err != nil {
		return plan{verb: doReturn, err: err}
	}
	return p
}

// bind gives an object the owner reference or the mark. An apply cannot take a reference off that another field manager has
// written too.
func bind(s *state, p plan) plan {
	if s.changesBinding(s.live) {
		p.needs = append(p.needs, ownerIsAlive)
	}
	if s.binding != byReference && refersTo(s.live, s.owner.reference.UID) {
		p.verb, p.paths = doBind, "metadata.ownerReferences"
	}
	return p
}

// compareLive applies an object that was sent in another way, or that does not cover what is desired. Package compare decides
// which fields are compared. An object whose fields were not taken back after the last apply is applied again, although
// nothing differs.
func compareLive(s *state, p plan) plan {
	if p.verb != doNotDecided {
		return p
	}
	last := record.LastAppliedOf(s.live)
	same := last.Hash == string(s.sum[:]) && s.live.GetAnnotations()[record.Set] == s.owner.set && record.OrderOf(s.live) == s.order &&
		s.isBound(s.live) && !isReclaimable(s.desired, s.live)
	covered := same && s.kind.comparer.Covers(s.object, s.live)
	if !covered {
		p.differences = s.kind.comparer.Differences(s.object, s.live)
		covered = same && (containsAll(s.rewritten, p.differences) || last.Rewritten != "" && last.Rewritten == fingerprint(p.differences))
	}
	for _, path := range s.lacks(s.live) {
		covered, p.differences = false, append(p.differences, compare.Difference{Path: path})
	}
	if !covered {
		p.verb, p.paths = doApply, s.pathsOf(p.differences)
		return p
	}
	p.verb = doNothing
	if err := silentRefusal(s.desired, s.live); err != nil {
		p.verb, p.err = doRefuse, err
	}
	return p
}

// lacks returns the paths of what the options of a child add to a live object.
func (d *desired) lacks(live client.Object) (paths []string) {
	paths = d.lacksGenerated(live)
	if d.lacksRunFinalizer(live) {
		paths = append(paths, "metadata.finalizers")
	}
	return paths
}

// pathsOf returns the fields that differ. If another set has written the object, that is what differs.
func (s *state) pathsOf(differences []compare.Difference) string {
	set := s.live.GetAnnotations()[record.Set]
	switch {
	case set == s.owner.set:
		return pathsOf(differences)
	case set != "" && !s.owner.isSet(set):
		return "metadata.annotations[" + record.Set + "], by another step that builds the same object"
	}
	return "metadata.annotations[" + record.Set + "]"
}

// containsAll reports whether there are differences, and all of them are known.
func containsAll(known, differences []compare.Difference) bool {
	return len(known) > 0 && !slices.ContainsFunc(differences, func(d compare.Difference) bool { return !slices.Contains(known, d) })
}

// holdBack keeps an object from being changed before others are ready. It is still repaired.
func holdBack(s *state, p plan) plan {
	if p.verb == doApply && s.desired.hold != "" && record.LastAppliedOf(s.live).Hash != string(s.sum[:]) {
		return plan{verb: doReturn, err: s.held("is not changed"), isOurs: true}
	}
	return p
}

// slowDown delays a write that another writer undoes again and again.
func slowDown(s *state, p plan) plan {
	if p.verb != doApply && p.verb != doBind {
		return p
	}
	if s.paced == p.paths && s.delay != nil {
		return plan{verb: doReturn, err: s.delay}
	}
	p.needs = append(p.needs, paceOfWrites)
	return p
}

// checkDesired refuses values that the API server would accept, and should not get.
func checkDesired(s *state, p plan) plan {
	if _, unknown := s.missing(p); p.verb != doApply || unknown {
		return p
	}
	if err := s.checkValues(); err != nil {
		return plan{verb: doReturn, err: err}
	}
	return p
}

// expand replaces a StatefulSet whose claim templates have to grow.
func expand(s *state, p plan) plan {
	if _, unknown := s.missing(p); p.verb != doApply || unknown || !s.options.expandVolumes || s.known[restIsApplied] {
		return p
	}
	switch grown, err := s.growth(s.live); {
	case err != nil:
		return plan{verb: doReturn, err: err}
	case len(grown) > 0:
		p.verb = doExpand
	}
	return p
}
