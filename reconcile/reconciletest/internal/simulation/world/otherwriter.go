package world

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/request"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/state"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/trace"
)

// OtherWriter is a writer of the operator's objects that is neither the user nor the operator. The caller of its methods holds the
// run's lock.
type OtherWriter struct {
	scheme   *runtime.Scheme
	user     client.Client
	trace    *trace.Trace
	present  map[request.ObjectID]client.Object // the objects that exist
	failures *Failures

	writes  []otherWrite
	Removed []string // finished Jobs that the other writer has deleted
}

// otherWrite is a write of the other writer just before a write of the operator.
type otherWrite struct {
	client.Object            // the object after the write: only its metadata
	must          OtherParts // the parts that the operator must not remove
}

// OtherParts says which parts of an object the other writer has written.
type OtherParts struct{ annotation, label, finalizer, condition bool }

// partsIn returns which of these parts the object has.
func partsIn(obj client.Object) OtherParts {
	parts := OtherParts{
		annotation: obj.GetAnnotations()[state.OtherWriterKey] != "",
		label:      obj.GetLabels()[state.OtherWriterKey] != "",
		finalizer:  slices.Contains(obj.GetFinalizers(), state.OtherWriterKey),
	}
	if conditions := conditionsOf(obj); conditions != nil {
		parts.condition = meta.FindStatusCondition(*conditions, state.OtherWriterCondition) != nil
	}
	return parts
}

// Parts returns, for each object that the other writer has written, which parts are still there.
func (o *OtherWriter) Parts() []OtherParts {
	parts := make([]OtherParts, len(o.writes))
	for i := range o.writes {
		if now := o.read(&o.writes[i]); now != nil {
			parts[i] = partsIn(now)
		}
	}
	return parts
}

// ForgetRemovedParts compares the parts with their former presence, and forgets those that are gone now. A user or another controller has
// removed them, so the operator is not to blame.
func (o *OtherWriter) ForgetRemovedParts(before []OtherParts) {
	for i, had := range before {
		now, must := o.read(&o.writes[i]), &o.writes[i].must
		if now == nil {
			continue
		}
		has := partsIn(now)
		must.annotation = must.annotation && (has.annotation || !had.annotation)
		must.label = must.label && (has.label || !had.label)
		must.finalizer = must.finalizer && (has.finalizer || !had.finalizer)
		must.condition = must.condition && (has.condition || !had.condition)
	}
}

// read returns the object as it is on the server, nil if it does not exist any more.
func (o *OtherWriter) read(w *otherWrite) client.Object {
	kind := w.GetObjectKind().GroupVersionKind()
	var now client.Object = &metav1.PartialObjectMetadata{}
	if made, err := o.scheme.New(kind); err == nil {
		now = made.(client.Object)
	}
	now.GetObjectKind().SetGroupVersionKind(kind)
	if err := o.user.Get(context.Background(), client.ObjectKeyFromObject(w), now); err != nil || now.GetUID() != w.GetUID() {
		return nil
	}
	return now
}

// Write writes the object of a request as another writer. It adds an annotation, a label, a finalizer if the object is not being deleted,
// and a condition if the request writes the status. The operator's request must not remove them.
func (o *OtherWriter) Write(c *request.Call) {
	obj := &metav1.PartialObjectMetadata{}
	obj.SetGroupVersionKind(c.Kind)
	if err := o.user.Get(context.Background(), c.Object, obj); err != nil {
		return // without an object, no conflict can happen
	}
	before := obj.DeepCopy()
	metav1.SetMetaDataAnnotation(&obj.ObjectMeta, state.OtherWriterKey, "here")
	metav1.SetMetaDataLabel(&obj.ObjectMeta, state.OtherWriterKey, "here")
	if obj.DeletionTimestamp == nil {
		obj.Finalizers = append(obj.Finalizers, state.OtherWriterKey)
	}
	if err := o.user.Patch(context.Background(), obj, client.MergeFrom(before)); err != nil {
		o.failures.AddLocked(fmt.Errorf("another writer's patch of %s: %w", c, err))
		return
	}
	must := OtherParts{annotation: true, label: true, finalizer: obj.DeletionTimestamp == nil, condition: c.Subresource == "status" && o.setCondition(c)}
	o.writes = append(o.writes, otherWrite{obj, must})
	o.trace.AddBefore(trace.Row{What: "another writer: annotate " + request.ObjectID{Kind: c.Kind, Name: c.Object}.String()})
}

// setCondition sets a condition as another controller does. It returns false if that is not possible, such as for a kind
// without conditions.
func (o *OtherWriter) setCondition(c *request.Call) bool {
	made, err := o.scheme.New(c.Kind)
	obj, typed := made.(client.Object)
	if err != nil || !typed || conditionsOf(obj) == nil {
		return false
	}
	if err := o.user.Get(context.Background(), c.Object, obj); err != nil {
		return false
	}
	before := obj.DeepCopyObject().(client.Object)
	meta.SetStatusCondition(conditionsOf(obj), metav1.Condition{Type: state.OtherWriterCondition, Status: metav1.ConditionTrue, Reason: "AnotherWriter"})
	return o.user.Status().Patch(context.Background(), obj, client.MergeFrom(before)) == nil // the patch is invalid if the status lacks required fields
}

// conditionsOf returns a pointer to the conditions in an object's status. If they are not of type metav1.Condition, it returns nil.
func conditionsOf(obj runtime.Object) *[]metav1.Condition {
	status := reflect.Indirect(reflect.ValueOf(obj)).FieldByName("Status")
	if status.Kind() != reflect.Struct {
		return nil
	}
	if list := status.FieldByName("Conditions"); list.IsValid() {
		if conditions, ok := reflect.TypeAssert[*[]metav1.Condition](list.Addr()); ok {
			return conditions
		}
	}
	return nil
}

// Remove deletes the object of a request as another writer does.
func (o *OtherWriter) Remove(c *request.Call) {
	obj := &metav1.PartialObjectMetadata{}
	obj.SetGroupVersionKind(c.Kind)
	obj.Namespace, obj.Name = c.Object.Namespace, c.Object.Name
	if err := o.user.Delete(context.Background(), obj, o.propagation(c)...); client.IgnoreNotFound(err) != nil {
		o.failures.AddLocked(fmt.Errorf("another writer's deletion before %s: %w", c, err))
		return
	}
	id := request.ObjectID{Kind: c.Kind, Name: c.Object}
	if job, ok := o.present[id].(*batchv1.Job); ok && hasFinished(job) {
		o.Removed = append(o.Removed, id.String())
	}
	o.trace.AddBefore(trace.Row{What: "another writer: delete " + id.String()})
}

// propagation returns the options with which the other writer deletes the object of a request. If the object has pods, such as a Job that
// runs, it is deleted with its pods: see Propagation. Otherwise it is deleted with the API server's default. A suspended Job then stays
// until the garbage collector has seen it, so an operator can see that it did not run. If the Job were gone at once, an operator that
// starts each run once would not start it again.
func (o *OtherWriter) propagation(c *request.Call) []client.DeleteOption {
	for id, obj := range o.present {
		owner := metav1.GetControllerOf(obj)
		if id.Kind.Kind == "Pod" && id.Name.Namespace == c.Object.Namespace && owner != nil && owner.Kind == c.Kind.Kind && owner.Name == c.Object.Name {
			return Propagation(c.Kind)
		}
	}
	return nil
}

// hasFinished reports whether a Job has succeeded or failed.
func hasFinished(job *batchv1.Job) bool {
	return slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
		return (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue
	})
}

// Propagation returns the options with which a person deletes an object of the kind. A Job is deleted with its pods, as kubectl does. The
// API server's default would leave the pods.
func Propagation(kind schema.GroupVersionKind) []client.DeleteOption {
	if kind.Group != batchv1.GroupName || kind.Kind != "Job" {
		return nil
	}
	return []client.DeleteOption{client.PropagationPolicy(metav1.DeletePropagationBackground)}
}

// Check returns an error if the operator has removed something that the other writer wrote just before.
func (o *OtherWriter) Check() error {
	for _, obj := range o.writes {
		id := request.ObjectID{Kind: obj.GetObjectKind().GroupVersionKind(), Name: client.ObjectKeyFromObject(obj)}
		now := o.present[id]
		if now == nil || now.GetUID() != obj.GetUID() || now.GetDeletionTimestamp() != nil {
			continue
		}
		switch has := partsIn(now); {
		case obj.must.annotation && !has.annotation:
			return LostError("the annotation "+state.OtherWriterKey, id)
		case obj.must.label && !has.label:
			return LostError("the label "+state.OtherWriterKey, id)
		case obj.must.finalizer && !has.finalizer:
			return LostError("the finalizer "+state.OtherWriterKey, id)
		case obj.must.condition && !has.condition:
			return LostError("the condition "+state.OtherWriterCondition, id)
		}
	}
	return nil
}

// LostError returns the error that the operator has removed something that another writer wrote. what names it.
func LostError(what string, of request.ObjectID) error {
	return fmt.Errorf("lost what another writer wrote just before: %s of %s\n"+
		"Send the resource version that was read, or change only fields of your own", what, of)
}

// ReleaseFinalizers removes the other writer's finalizer from objects that are being deleted.
func (o *OtherWriter) ReleaseFinalizers() {
	for _, obj := range o.writes {
		now := obj.Object.DeepCopyObject().(client.Object)
		if err := o.user.Get(context.Background(), client.ObjectKeyFromObject(obj), now); err != nil {
			continue
		}
		i := slices.Index(now.GetFinalizers(), state.OtherWriterKey)
		if now.GetDeletionTimestamp() == nil || i < 0 {
			continue
		}
		before := now.DeepCopyObject().(client.Object)
		now.SetFinalizers(slices.Delete(slices.Clone(now.GetFinalizers()), i, i+1))
		if err := o.user.Patch(context.Background(), now, client.MergeFrom(before)); err != nil {
			o.failures.AddLocked(fmt.Errorf("another writer's finalizer: %w", err))
		}
	}
}
