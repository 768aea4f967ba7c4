package simulation

import (
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/simulation/state"
)

// otherWrite is a write of the other writer just before one of the operator.
type otherWrite struct {
	client.Object      // as the other writer left it: only its metadata
	condition     bool // the other writer set a condition too
}

// writeAsOther writes the object of a request as another writer: an annotation, a label and a finalizer; and a condition, if
// the request writes the status. They must survive the request. The caller holds the lock.
func (r *Run) writeAsOther(c *call) {
	obj := &metav1.PartialObjectMetadata{}
	obj.SetGroupVersionKind(c.Kind)
	if err := r.user.Get(r.context(), c.Object, obj); err != nil {
		return // there is nothing to conflict with
	}
	before := obj.DeepCopy()
	metav1.SetMetaDataAnnotation(&obj.ObjectMeta, state.OtherWriterKey, "here")
	metav1.SetMetaDataLabel(&obj.ObjectMeta, state.OtherWriterKey, "here")
	if obj.DeletionTimestamp == nil {
		obj.Finalizers = append(obj.Finalizers, state.OtherWriterKey)
	}
	if err := r.user.Patch(r.context(), obj, client.MergeFrom(before)); err != nil {
		r.failLocked(fmt.Errorf("another writer's patch of %s: %w", c, err))
		return
	}
	r.otherWrites = append(r.otherWrites, otherWrite{obj, c.Subresource == "status" && r.setCondition(c)})
	r.trace.addBefore(row{what: "another writer: annotate " + objectID{c.Kind, c.Object}.String()})
}

// setCondition sets a condition as another controller does. It returns false if that is not possible, such as for a kind
// without conditions.
func (r *Run) setCondition(c *call) bool {
	made, err := r.scenario.Scheme.New(c.Kind)
	obj, typed := made.(client.Object)
	if err != nil || !typed || conditionsOf(obj) == nil {
		return false
	}
	if err := r.user.Get(r.context(), c.Object, obj); err != nil {
		return false
	}
	before := obj.DeepCopyObject().(client.Object)
	meta.SetStatusCondition(conditionsOf(obj), metav1.Condition{Type: state.OtherWriterCondition, Status: metav1.ConditionTrue, Reason: "AnotherWriter"})
	return r.user.Status().Patch(r.context(), obj, client.MergeFrom(before)) == nil // invalid if the status lacks required fields
}

// conditionsOf returns a pointer to the conditions in an object's status if they are of type metav1.Condition, else nil.
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

// deleteAsOther deletes the object of a request as another writer does. The caller holds the lock.
func (r *Run) deleteAsOther(c *call) {
	obj := &metav1.PartialObjectMetadata{}
	obj.SetGroupVersionKind(c.Kind)
	obj.Namespace, obj.Name = c.Object.Namespace, c.Object.Name
	if err := r.user.Delete(r.context(), obj, r.propagation(c)...); client.IgnoreNotFound(err) != nil {
		r.failLocked(fmt.Errorf("another writer's deletion before %s: %w", c, err))
		return
	}
	r.trace.addBefore(row{what: "another writer: delete " + objectID{c.Kind, c.Object}.String()})
}

// propagation returns how the other writer deletes the object of a request: a Job with its pods, as kubectl does. The API
// server's default would leave the pods of a Job behind, for which the operator is not to blame. The caller holds the lock.
func (r *Run) propagation(c *call) []client.DeleteOption {
	if c.Kind.Group != "batch" || c.Kind.Kind != "Job" {
		return nil
	}
	for id, obj := range r.history.present {
		owner := metav1.GetControllerOf(obj)
		if id.kind.Kind == "Pod" && id.name.Namespace == c.Object.Namespace && owner != nil && owner.Kind == "Job" && owner.Name == c.Object.Name {
			return []client.DeleteOption{client.PropagationPolicy(metav1.DeletePropagationBackground)}
		}
	}
	return nil
}

// checkOtherWrites returns an error if the operator has lost something that the other writer wrote just before.
func (r *Run) checkOtherWrites() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, obj := range r.otherWrites {
		id := objectID{obj.GetObjectKind().GroupVersionKind(), client.ObjectKeyFromObject(obj)}
		now := r.history.present[id]
		if now == nil || now.GetUID() != obj.GetUID() || now.GetDeletionTimestamp() != nil {
			continue
		}
		lost := func(what string) error {
			return fmt.Errorf("lost what another writer wrote just before: %s of %s\n"+
				"Send the resource version that was read, or change only fields of your own", what, id)
		}
		if now.GetAnnotations()[state.OtherWriterKey] == "" {
			return lost("the annotation " + state.OtherWriterKey)
		}
		if now.GetLabels()[state.OtherWriterKey] == "" {
			return lost("the label " + state.OtherWriterKey)
		}
		if slices.Contains(obj.GetFinalizers(), state.OtherWriterKey) && !slices.Contains(now.GetFinalizers(), state.OtherWriterKey) {
			return lost("the finalizer " + state.OtherWriterKey)
		}
		if obj.condition && meta.FindStatusCondition(*conditionsOf(now), state.OtherWriterCondition) == nil {
			return lost("the condition " + state.OtherWriterCondition)
		}
	}
	return nil
}

// releaseFinalizers removes the other writer's finalizer from objects that are being deleted.
func (r *Run) releaseFinalizers() {
	r.mu.Lock()
	all := slices.Clone(r.otherWrites)
	r.mu.Unlock()
	for _, obj := range all {
		now := obj.Object.DeepCopyObject().(client.Object)
		if err := r.user.Get(r.context(), client.ObjectKeyFromObject(obj), now); err != nil {
			continue
		}
		i := slices.Index(now.GetFinalizers(), state.OtherWriterKey)
		if now.GetDeletionTimestamp() == nil || i < 0 {
			continue
		}
		before := now.DeepCopyObject().(client.Object)
		now.SetFinalizers(slices.Delete(slices.Clone(now.GetFinalizers()), i, i+1))
		if err := r.user.Patch(r.context(), now, client.MergeFrom(before)); err != nil {
			r.fail(fmt.Errorf("another writer's finalizer: %w", err))
		}
	}
}
