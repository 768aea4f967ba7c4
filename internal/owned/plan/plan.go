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

// Verb says what is done next to a live object.
type Verb string

// The values of Verb.
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

// Plan says what is done next to a live object, and why.
type Plan struct {
	Verb        Verb
	Paths       string               // the paths of the fields that differ, for logs and events
	Differences []compare.Difference // the same fields, with their values
	Adopts      types.UID            // for an object that is adopted: the UID of its former owner
	Needs       []Fact               // the facts that have to be known before the plan is executed
	Err         error                // for DoReturn, the error to return; for DoRemove, DoCollect and DoRefuse, the reason
	IsOurs      bool                 // for DoReturn: the live object is ours, so other children may be built from it
}

// Fact names something that a plan depends on, and that has to be found out first. It takes a request, or it changes with time.
type Fact string

// The facts that a plan may need.
const (
	OwnerIsAlive Fact = "whether the owner is as the API server has it"
	FormerIsGone Fact = "whether the former owner that the mark names is gone"
	BuiltByOne   Fact = "whether no other step builds the object too"
	PaceOfWrites Fact = "whether a write has to wait, because another writer undoes it again and again"
)

// State is what is known of one desired object and its live object.
type State struct {
	*owned.Desired
	Live      client.Object
	Rewritten []compare.Difference // how the API server's answer to our last write differed from what was sent, as far as this process remembers
	Known     map[Fact]bool
	Gone      bool   // the answer to the fact FormerIsGone
	Paced     string // the Paths of the plan for which the fact PaceOfWrites was found out
	Delay     error  // the answer to the fact PaceOfWrites: a [*owned.WaitingError] while a write has to wait
	Expanded  bool   // DoExpand has ended without a replacement, so the object is applied
}

// Stage is one step of the decision about a live object. It gets the plan of the stages before, and returns it or another one. It sends no
// request and changes nothing.
type Stage func(s *State, p Plan) Plan

// Stages are all stages, in the order in which they decide. A stage can replace the plan of the stages before.
var Stages = []Stage{leaveOthers, bind, CompareLive, requireOneBuilder, holdBack, slowDown, checkDesired, expand}

// Decide returns what is done next to a live object. Its result depends only on its arguments.
func Decide(stages []Stage, s *State) (p Plan) {
	for _, stage := range stages {
		if p = stage(s, p); p.Verb == DoReturn || p.Verb == DoRemove || p.Verb == DoCollect {
			return p
		}
	}
	return p
}

// Missing returns the first fact that the plan needs and that is not known yet.
func (s *State) Missing(p Plan) (Fact, bool) {
	i := slices.IndexFunc(p.Needs, func(f Fact) bool { return !s.Known[f] || f == PaceOfWrites && s.Paced != p.Paths })
	if i < 0 || p.Verb == DoReturn {
		return "", false
	}
	return p.Needs[i], true
}

// leaveOthers plans to return an error for an object that belongs to another owner, and to delete or adopt an object of a former owner.
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
	case !s.Known[FormerIsGone]: // the first plan only asks for the fact, and nothing is deleted before it is known
		return Plan{Verb: DoRemove, Needs: []Fact{FormerIsGone}, Err: former}
	case !s.Gone && former.Mark.Owner == s.Owner.ObjectName(): // the cache is behind: our owner is deleted, and the owner that the mark names is the present one
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

// bind checks whether the live object names its owner as it should: by an owner reference, or by a mark (a label and annotations). If it
// should have a mark and still has the reference, bind plans a patch that removes the reference. An apply would not remove a reference that
// another field manager has written too. If the reference or the mark is about to change, bind adds OwnerIsAlive to the facts that the plan
// needs.
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

// CompareLive plans an apply if the hash, the set, the order or the owner of the live object differs from the desired one, or if the live
// object does not have everything that is desired. Package compare decides which fields are compared. Differences that the API server made
// before, when the same was sent, do not count. If the managed fields were cleared and fields of ours have to be removed from the entry of
// before-first-apply, CompareLive plans an apply although nothing differs.
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

// requireOneBuilder adds the fact BuiltByOne to the needs of a write. If two steps built the same object, they would undo each other's
// writes.
func requireOneBuilder(_ *State, p Plan) Plan {
	if p.Verb == DoApply || p.Verb == DoBind || p.Verb == DoRefuse {
		p.Needs = append(p.Needs, BuiltByOne)
	}
	return p
}

// lacks returns the paths of fields that options of the child require and that the live object does not have.
func lacks(d *owned.Desired, live client.Object) (paths []string) {
	paths = feature.LacksGenerated(d, live)
	if feature.LacksRunFinalizer(d, live) {
		paths = append(paths, "metadata.finalizers")
	}
	return paths
}

// pathsOf returns the paths of the fields that differ. If the live object's annotation names another set, it returns the path of this
// annotation instead.
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

// ContainsAll reports whether known contains all differences. If known is empty, it reports false.
func ContainsAll(known, differences []compare.Difference) bool {
	return len(known) > 0 && !slices.ContainsFunc(differences, func(d compare.Difference) bool { return !slices.Contains(known, d) })
}

// holdBack keeps an apply waiting if the desired object has changed, and the objects that it waits for are not ready. If only the live
// object has changed, the apply is not held back.
func holdBack(s *State, p Plan) Plan {
	if p.Verb == DoApply && s.Desired.Hold != "" && record.LastAppliedOf(s.Live).Hash != string(s.Sum[:]) {
		return Plan{Verb: DoReturn, Err: s.Held("is not changed"), IsOurs: true}
	}
	return p
}

// slowDown plans to return an error while a write has to wait because another writer undoes our writes.
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

// checkDesired plans to return an error if the desired object has values that the API server would accept, but that must not be sent: see
// CheckValues.
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

// pathsOf lists the paths of the fields that differ, without their values, which may be secret.
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
