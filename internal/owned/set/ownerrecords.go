package set

import (
	"context"
	"maps"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/apply"
	"github.com/opblocks/opblocks/internal/owned/feature"
	"github.com/opblocks/opblocks/internal/owned/write"
	"github.com/opblocks/opblocks/internal/passcontext"
	"github.com/opblocks/opblocks/internal/record"
)

// RecordPrefixes are the prefixes of the annotations in which this library stores records on owners. Whoever may write the owner can write
// any value there. So a value only says where to look and what to try, and proves nothing about other objects: before an object is deleted,
// the live object itself has to show that it is ours.
var RecordPrefixes = []string{record.RunPrefix, record.ExpansionPrefix}

// Some facts must be known longer than the child exists: that a Job has run, or that a StatefulSet is being replaced. They are stored in
// annotations of the owner, one for each child. The owner's resource version is a precondition of each write of such an annotation. So a
// process that sees an old version of the owner cannot write one.

// withoutRecords returns the owner as the functions that build children get it: without the annotations in which this library stores
// records. If a function copies the owner's annotations into a pod template, each new record would change what is desired, and a Job of
// [ownedresources.Child.RunOnce] would be replaced again and again. If the owner has no record and the set writes none, withoutRecords
// returns the owner itself.
func (s *Set) withoutRecords(obj client.Object) client.Object {
	isRecord := func(key, _ string) bool {
		return slices.ContainsFunc(RecordPrefixes, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
	}
	has := false
	for key := range obj.GetAnnotations() {
		has = has || isRecord(key, "")
	}
	if !has && !s.holdsObjects() {
		return obj
	}
	without := obj.DeepCopyObject().(client.Object)
	annotations := without.GetAnnotations()
	maps.DeleteFunc(annotations, isRecord)
	without.SetAnnotations(annotations)
	return without
}

// abandonExpansions looks for StatefulSets that this set deleted in order to replace them by ones with larger volumes, and that are not
// desired any more. The owner's annotations name them. Until the garbage collector has orphaned the pods of such a StatefulSet,
// abandonExpansions returns an error. Afterwards it deletes the pods.
func (s *Set) abandonExpansions(ctx context.Context, o *owned.Owner, desired map[string]bool) error {
	if !slices.ContainsFunc(s.Children, func(c *Child) bool { return c.Options.ExpandVolumes }) {
		return nil
	}
	for key := range o.Object.GetAnnotations() {
		if !strings.HasPrefix(key, record.ExpansionPrefix) || desired[key] {
			continue
		}
		e := feature.ExpansionOf(o, key)
		if e == nil || !o.IsSet(e.Set) {
			continue
		}
		if err := o.RequireCurrent(ctx); err != nil {
			return err
		}
		if err := write.DeleteOrphanedPods(ctx, o, e); err != nil {
			return err
		}
		if o.Object.GetDeletionTimestamp() == nil {
			return write.SetRecord(ctx, o, key, "") // this write triggers the next reconcile, which handles the next record
		}
	}
	return nil
}

var jobKind = batchv1.SchemeGroupVersion.WithKind("Job").GroupKind()

// UndesiredRuns finds the annotations of the owner in which this set recorded the run of a Job, if the set does not desire this Job any
// more. It returns their keys. If a child of kind Job could not be built, not all desired Jobs are known, so it returns none.
func UndesiredRuns(o *owned.Owner, desired DesiredNames) (keys []string) {
	if slices.ContainsFunc(desired.unbuilt, func(k *owned.Kind) bool { return k.GVK.GroupKind() == jobKind }) {
		return nil
	}
	for key, value := range o.Object.GetAnnotations() {
		if !strings.HasPrefix(key, record.RunPrefix) {
			continue
		}
		last := record.ParseRun(value)
		if last.State != "" && o.IsSet(last.Set) && !slices.ContainsFunc(desired.Objects, func(d owned.Declared) bool {
			return d.Options.RunOnce && record.Key(record.RunPrefix, o.Namespace, d.Object) == key
		}) {
			keys = append(keys, key)
		}
	}
	return keys
}

// forgetRuns removes the owner's annotations about Jobs that this set does not desire any more, once the Jobs are gone. If another set of
// the same reconcile desires such a Job now, the annotation is assigned to that set.
func (s *Set) forgetRuns(ctx context.Context, o *owned.Owner, desired DesiredNames, found []written) error {
	for _, key := range UndesiredRuns(o, desired) {
		if slices.ContainsFunc(found, func(w written) bool {
			return w.kind.GVK.GroupKind() == jobKind && record.Key(record.RunPrefix, o.Namespace, w.object) == key
		}) {
			continue
		}
		value := ""
		if pass := passcontext.FromContext(ctx); pass != nil {
			if _, unknown := pass.AnnotationKeptBy(record.RunPrefix); unknown {
				continue
			}
			if set, kept := pass.AnnotationKeptBy(key); kept {
				last := record.ParseRun(o.Object.GetAnnotations()[key])
				last.Set = set
				value = last.String()
			}
		}
		if err := write.SetRecord(ctx, o, key, value); err != nil {
			return err
		}
	}
	return nil
}

// removeRunFinalizers removes the finalizer opblocks.dev/run-once from all Jobs of an owner that is being deleted. It lists the Jobs from
// the API server, because the cache may not show the latest. It does not search by controller: the deletion of the owner may already have
// removed the owner references of some Jobs.
func (s *Set) removeRunFinalizers(ctx context.Context, o *owned.Owner) error {
	for i, child := range s.Children {
		if !child.Options.RunOnce {
			continue
		}
		kinds, err := s.KindsIn(o.Client.Scheme())
		if err != nil {
			return err
		}
		jobs, err := o.ListLive(ctx, kinds[i].GVK, o.Namespace)
		if err != nil {
			return err
		}
		for j := range jobs {
			job := &jobs[j]
			if job.GetAnnotations()[record.RunOwner] != string(o.Reference.UID) || !slices.Contains(job.GetFinalizers(), record.RunOnce) {
				continue
			}
			if _, err := apply.RemoveRunFinalizer(ctx, s.Applier.Writes, o, kinds[i], job); err != nil {
				return err
			}
		}
		return nil // one list has the Jobs of all children
	}
	return nil
}
