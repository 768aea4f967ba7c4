package external

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/opblocks/opblocks/reconcile"
)

// things is what an object has outside of the cluster during a pass: what the record says at its beginning, and what the pass changes.
type things struct {
	keys []string // what is desired
	all  []Reference
}

func keysOf(all []Reference) (keys []string) {
	for _, ref := range all {
		keys = append(keys, ref.Key)
	}
	return keys
}

// get returns what is recorded under a key.
func (t *things) get(key string) (ref Reference, recorded bool) {
	if i := t.index(key); i >= 0 {
		return t.all[i], true
	}
	return Reference{Key: key}, false
}

func (t *things) index(key string) int {
	return slices.IndexFunc(t.all, func(ref Reference) bool { return ref.Key == key })
}

// set records a thing in place of the one under its key.
func (t *things) set(ref Reference) {
	if i := t.index(ref.Key); i >= 0 {
		t.all[i] = ref
		return
	}
	t.all = append(t.all, ref)
}

// remove removes what is recorded under a key.
func (t *things) remove(key string) {
	t.all = slices.DeleteFunc(t.all, func(ref Reference) bool { return ref.Key == key })
}

// former returns what is recorded under keys that are not desired any more.
func (t *things) former() (former []Reference) {
	for _, ref := range t.all {
		if !slices.Contains(t.keys, ref.Key) {
			former = append(former, ref)
		}
	}
	return former
}

// takeBack looks for a former thing that is desired again. What was written to it is not known, and its deletion may have begun. What was
// issued is of the last thing that was there.
func (p *pass[T, S]) takeBack() {
	if !slices.ContainsFunc(p.record.Former, func(ref Reference) bool { return slices.Contains(p.keys, ref.Key) }) {
		return
	}
	p.record.Version, p.behind = "", true
	if len(p.record.present()) > 0 {
		p.record.forgetWritten()
	}
}

// areConfirmed reports whether there is a thing for each key, no former one, and none is pending.
func (t *things) areConfirmed() bool {
	return len(t.all) == len(t.keys) && !slices.ContainsFunc(t.keys, t.isMissing)
}

// isMissing reports whether the thing of a key is not known to be there.
func (t *things) isMissing(key string) bool {
	ref, recorded := t.get(key)
	return !recorded || ref.Pending
}

// store writes the things into the record in memory, unless a function goes on that has the object: then the pass has another copy of it.
func (p *pass[T, S]) store() {
	if p.visit.IsDetached() {
		return
	}
	r := p.record
	r.Reference, r.Things, r.Former = Reference{}, nil, p.former()
	for _, key := range p.keys {
		ref, recorded := p.get(key)
		switch {
		case !recorded:
		case p.Keys == nil:
			r.Reference = ref
		default:
			r.Things = append(r.Things, ref)
		}
	}
	p.saved.Generation = r.Generation // no fields of an author's own depend on it
	if p.Save != nil && !equality.Semantic.DeepEqual(*r, p.saved) {
		p.Save(p.obj, r)
		p.saved = *r.DeepCopy()
	}
}

// checkpoint writes the record, before something is changed outside of the cluster. Others may have the keys that it does not have any more.
func (p *pass[T, S]) checkpoint(ctx context.Context) error {
	p.store()
	if err := reconcile.Checkpoint(ctx); err != nil {
		return err
	}
	p.unclaim(p.keys...)
	return nil
}
