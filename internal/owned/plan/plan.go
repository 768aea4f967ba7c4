package plan

import (
	"errors"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/compare"
	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/feature"
	"github.com/opblocks/opblocks/internal/record"
)

// Verb is what is done next to a live object.
type Verb string

// The verbs.
const (
	DoNothing  Verb = "do nothing: it is as desired"
	DoRemove   Verb = "delete it: a former owner has left it"
	DoCollect  Verb = "delete it in place of the garbage collector: a former owner controls it"
	DoBind     Verb = "take the owner reference off, and mark it"
	DoTakeBack Verb = "replace the owner reference to a former owner"
	DoApply    Verb = "apply it"
	DoExpand   Verb = "replace it by one with larger volumes"
	DoRefuse   Verb = "recreate it, or report that a field cannot be dropped"
	DoReturn   Verb = "return the error"
	notDecided Verb = "" // the stages that follow decide
)

// Plan is what is done next to a live object, and why.
type Plan struct {
	Verb        Verb
	Paths       string               // the fields that differ, for logs and events
	Differences []compare.Difference // the same fields, with their values
	Adopts      types.UID            // the former owner of an object that is adopted
	Needs       []Fact               // what has to be known before the plan is executed
	Err         error                // the error of DoReturn; the reason for DoRemove, DoCollect and DoRefuse
	IsOurs      bool                 // for DoReturn: other children may be built from the live object
}

// Fact is what a stage cannot know from the object and its memory. It takes a request to learn it, or it changes with time.
type Fact string

// The facts.
const (
	OwnerIsAlive Fact = "whether the owner is as the API server has it"
	FormerIsGone Fact = "whether the former owner that the mark names is gone"
	BuiltByOne   Fact = "whether no other step builds the object too"
	PaceOfWrites Fact = "whether a write has to wait, because another writer undoes it again and again"
)

// State is what is known of one desired and one live object.
type State struct {
	*owned.Desired
	Live      client.Object
	Rewritten []compare.Difference // the rewritten differences of our last write, in the memory of this process
	Known     map[Fact]bool
	Gone      bool   // FormerIsGone
	Paced     string // the paths of the write for which PaceOfWrites was found out
	Delay     error  // PaceOfWrites: a [*owned.WaitingError] while a write has to wait
	Expanded  bool   // DoExpand is done, so the rest of the object is applied
}

// Stage decides a part of the plan for a live object. It sends no request and changes nothing.
type Stage func(s *State, p Plan) Plan

// Stages are all stages, in the order in which they decide. A stage can replace what earlier ones have planned.
var Stages = []Stage{leaveOthers, bind, CompareLive, requireOneBuilder, holdBack, slowDown, checkDesired, expand}

// Decide returns what to do next. It is pure.
func Decide(stages []Stage, s *State) (p Plan) {
	for _, stage := range stages {
		if p = stage(s, p); p.Verb == DoReturn || p.Verb == DoRemove || p.Verb == DoCollect {
			return p
		}
	}
	return p
}

// Missing returns the first fact that the plan needs and that is not known.
func (s *State) Missing(p Plan) (Fact, bool) {
	i := slices.IndexFunc(p.Needs, func(f Fact) bool { return !s.Known[f] || f == PaceOfWrites && s.Paced != p.Paths })
	if i < 0 || p.Verb == DoReturn {
		return "", false
	}
	return p.Needs[i], true
}

// leaveOthers leaves objects alone that are not ours.
func leaveOthers(s *State, p Plan) Plan {
	err := s.Owner.MayWrite(s.Desired, s.Live)
	if orphan, ok := errors.AsType[owned.OrphanError](err); ok {
		if orphan.Restored {
			return Plan{Verb: DoTakeBack, Paths: "metadata.ownerReferences", Adopts: orphan.Former, Needs: []Fact{OwnerIsAlive, BuiltByOne}}
		}
		return Plan{Verb: DoCollect, Err: orphan}
	}
	former, ok := errors.AsType[owned.FormerError](err)
	switch {
	case err == nil:
		return p
	case !ok:
		return Plan{Verb: DoReturn, Err: err}
	case !s.Known[FormerIsGone]: // nothing is deleted until the fact is known
		return Plan{Verb: DoRemove, Needs: []Fact{FormerIsGone}, Err: former}
	case !s.Gone && former.Mark.Owner == s.Owner.ObjectName(): // the cache is behind: our owner is gone, and the owner of the mark has its name now
		return Plan{Verb: DoReturn, Err: apierrors.NewConflict(schema.GroupResource{Resource: s.Owner.Reference.Kind}, s.Owner.Reference.Name,
			errors.New("it was deleted and created anew, and the cache does not show that yet"))}
	case !s.Gone:
		return Plan{Verb: DoReturn, Err: s.Owner.MarkedByAnother(s.Kind, s.Live, former.Mark)}
	case !former.Adopt:
		return Plan{Verb: DoRemove, Err: former}
	}
	p.Adopts = former.Mark.UID
	adopted := *s.Desired
	adopted.Former = p.Adopts
	if err := s.Owner.MayWrite(&adopted, s.Live); err != nil {
		return Plan{Verb: DoReturn, Err: err}
	}
	return p
}

// bind plans to take the owner reference off an object that is to have a mark. An apply cannot take off a reference that another field
// manager has written too. If the owner reference or the mark of the object is about to change, the plan needs the fact OwnerIsAlive.
func bind(s *State, p Plan) Plan {
	if p.Verb == DoTakeBack {
		return p
	}
	isRestored := s.Options.AdoptRestored && metav1.GetControllerOfNoCopy(s.Live) == nil && !s.Owner.IsMarkedBy(s.Live, s.Kind.GVK.GroupKind())
	if s.ChangesBinding(s.Live) || isRestored {
		p.Needs = append(p.Needs, OwnerIsAlive)
	}
	if s.Binding != owned.ByReference && owned.RefersTo(s.Live, s.Owner.Reference.UID) {
		p.Verb, p.Paths = DoBind, "metadata.ownerReferences"
	}
	return p
}

// CompareLive plans an apply if the hash, the set, the order or the binding of the live object differs from the desired one, or
// if the live object does not cover what is desired. Package compare decides which fields are compared. It also plans an
// apply if fields have to be reclaimed, although nothing differs.
func CompareLive(s *State, p Plan) Plan {
	if p.Verb != notDecided {
		return p
	}
	last := record.LastAppliedOf(s.Live)
	same := last.Hash == string(s.Sum[:]) && s.Live.GetAnnotations()[record.Set] == s.Owner.Set && record.OrderOf(s.Live) == s.Order &&
		s.IsBound(s.Live) && !IsReclaimable(s.Desired, s.Live)
	covered := same && s.Kind.Comparer.Covers(s.Object, s.Live)
	if !covered {
		p.Differences = s.Kind.Comparer.Differences(s.Object, s.Live)
		covered = same && (ContainsAll(s.Rewritten, p.Differences) || last.Rewritten != "" && last.Rewritten == owned.Fingerprint(p.Differences))
	}
	for _, path := range lacks(s.Desired, s.Live) {
		covered, p.Differences = false, append(p.Differences, compare.Difference{Path: path})
	}
	if !covered {
		p.Verb, p.Paths = DoApply, s.pathsOf(p.Differences)
		return p
	}
	p.Verb = DoNothing
	if err := SilentRefusal(s.Desired, s.Live); err != nil {
		p.Verb, p.Err = DoRefuse, err
	}
	return p
}

// requireOneBuilder adds the fact BuiltByOne to the needs of a write: two steps that build the same object would undo each other's writes.
func requireOneBuilder(_ *State, p Plan) Plan {
	if p.Verb == DoApply || p.Verb == DoBind || p.Verb == DoRefuse {
		p.Needs = append(p.Needs, BuiltByOne)
	}
	return p
}

// lacks returns the paths of the fields that the options of a child ask for, and that the live object does not have.
func lacks(d *owned.Desired, live client.Object) (paths []string) {
	paths = feature.LacksGenerated(d, live)
	if feature.LacksRunFinalizer(d, live) {
		paths = append(paths, "metadata.finalizers")
	}
	return paths
}

// pathsOf returns the fields that differ. If the live object does not name this set, it returns the annotation that names the set instead.
func (s *State) pathsOf(differences []compare.Difference) string {
	set := s.Live.GetAnnotations()[record.Set]
	switch {
	case set == s.Owner.Set:
		return pathsOf(differences)
	case set != "" && !s.Owner.IsSet(set):
		return "metadata.annotations[" + record.Set + "], by another step that builds the same object"
	}
	return "metadata.annotations[" + record.Set + "]"
}

// ContainsAll reports whether known contains all of the differences. If known is empty, it reports false.
func ContainsAll(known, differences []compare.Difference) bool {
	return len(known) > 0 && !slices.ContainsFunc(differences, func(d compare.Difference) bool { return !slices.Contains(known, d) })
}

// holdBack keeps a changed desired object from being applied before the objects that it waits for are ready. If only the live object has
// changed, it is still repaired.
func holdBack(s *State, p Plan) Plan {
	if p.Verb == DoApply && s.Desired.Hold != "" && record.LastAppliedOf(s.Live).Hash != string(s.Sum[:]) {
		return Plan{Verb: DoReturn, Err: s.Held("is not changed"), IsOurs: true}
	}
	return p
}

// slowDown delays a write that another writer undoes again and again.
func slowDown(s *State, p Plan) Plan {
	if p.Verb != DoApply && p.Verb != DoBind && p.Verb != DoTakeBack {
		return p
	}
	if s.Paced == p.Paths && s.Delay != nil {
		return Plan{Verb: DoReturn, Err: s.Delay}
	}
	p.Needs = append(p.Needs, PaceOfWrites)
	return p
}

// checkDesired refuses values that the API server would accept, and should not get.
func checkDesired(s *State, p Plan) Plan {
	if _, unknown := s.Missing(p); p.Verb != DoApply || unknown {
		return p
	}
	if err := CheckValues(s.Desired); err != nil {
		return Plan{Verb: DoReturn, Err: err}
	}
	return p
}

// expand plans to replace a StatefulSet whose claim templates have to grow.
func expand(s *State, p Plan) Plan {
	if _, unknown := s.Missing(p); p.Verb != DoApply || unknown || !s.Options.ExpandVolumes || s.Expanded {
		return p
	}
	switch grown, err := feature.Growth(s.Desired, s.Live); {
	case err != nil:
		return Plan{Verb: DoReturn, Err: err}
	case len(grown) > 0:
		p.Verb = DoExpand
	}
	return p
}

// pathsOf lists the fields without their values, which may be secret.
func pathsOf(differences []compare.Difference) string {
	if len(differences) == 0 {
		return "metadata"
	}
	const most = 3
	var paths []string
	for _, d := range differences {
		if len(paths) == most {
			paths = append(paths, "…")
			break
		}
		paths = append(paths, d.Path)
	}
	return strings.Join(paths, ", ")
}
