package reconciletest

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Names of what another writer adds just before a write of the operator.
const (
	anotherAnnotation = "reconciletest.opblocks.dev/another-writer"
	anotherFinalizer  = "reconciletest.opblocks.dev/another-writer"
	anotherCondition  = "reconciletest.opblocks.dev/AnotherWriter"
)

// touch writes the object as somebody else: an annotation, a label and a finalizer, and, before its status is written, a condition.
// They must survive.
func (r *run) touch(request *Request) {
	obj := &metav1.PartialObjectMetadata{}
	obj.SetGroupVersionKind(request.Kind)
	if err := r.user.Get(context.Background(), request.Object, obj); err != nil {
		return // there is nothing to conflict with
	}
	before := obj.DeepCopy()
	metav1.SetMetaDataAnnotation(&obj.ObjectMeta, anotherAnnotation, "here")
	metav1.SetMetaDataLabel(&obj.ObjectMeta, anotherAnnotation, "here")
	if obj.DeletionTimestamp == nil {
		obj.Finalizers = append(obj.Finalizers, anotherFinalizer)
	}
	if err := r.user.Patch(context.Background(), obj, client.MergeFrom(before)); err != nil {
		r.failLocked(fmt.Errorf("another writer's patch of %s: %w", request, err))
		return
	}
	r.touched = append(r.touched, touched{obj, request.Subresource == "status" && r.report(request)})
	r.trace.addBefore(row{what: "another writer: annotate " + request.Kind.Kind + " " + nameOf(request.Object)})
}

// touched is an object that another writer wrote.
type touched struct {
	client.Object
	reported bool // a condition too
}

// report sets a condition as another controller does, if the kind has some, and says whether.
func (r *run) report(request *Request) bool {
	made, err := r.scenario.Scheme.New(request.Kind)
	obj, typed := made.(client.Object)
	if err != nil || !typed || conditionsOf(obj) == nil {
		return false
	}
	if err := r.user.Get(context.Background(), request.Object, obj); err != nil {
		return false
	}
	before := obj.DeepCopyObject().(client.Object)
	meta.SetStatusCondition(conditionsOf(obj), metav1.Condition{Type: anotherCondition, Status: metav1.ConditionTrue, Reason: "AnotherWriter"})
	return r.user.Status().Patch(context.Background(), obj, client.MergeFrom(before)) == nil // before a first status it may be invalid
}

// conditionsOf gives the standard conditions in an object's status, or nil.
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

// remove deletes the object as somebody else.
func (r *run) remove(request *Request) {
	obj := &metav1.PartialObjectMetadata{}
	obj.SetGroupVersionKind(request.Kind)
	obj.Namespace, obj.Name = request.Object.Namespace, request.Object.Name
	if err := r.user.Delete(context.Background(), obj); client.IgnoreNotFound(err) != nil {
		r.failLocked(fmt.Errorf("another writer's deletion before %s: %w", request, err))
		return
	}
	r.trace.addBefore(row{what: "another writer: delete " + request.Kind.Kind + " " + nameOf(request.Object)})
}

// checkTouched makes sure that what another writer wrote just before the operator's own write is still there.
func (r *run) checkTouched() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, obj := range r.touched {
		now := r.present[madeKey{obj.GetObjectKind().GroupVersionKind(), client.ObjectKeyFromObject(obj)}]
		if now == nil || now.GetUID() != obj.GetUID() || now.GetDeletionTimestamp() != nil {
			continue
		}
		lost := func(what string) error {
			return fmt.Errorf("lost what another writer wrote just before: %s of %s %s", what, obj.GetObjectKind().GroupVersionKind().Kind, nameOf(client.ObjectKeyFromObject(obj)))
		}
		if now.GetAnnotations()[anotherAnnotation] == "" {
			return lost("the annotation " + anotherAnnotation)
		}
		if now.GetLabels()[anotherAnnotation] == "" {
			return lost("the label " + anotherAnnotation)
		}
		if slices.Contains(obj.GetFinalizers(), anotherFinalizer) && !slices.Contains(now.GetFinalizers(), anotherFinalizer) {
			return lost("the finalizer " + anotherFinalizer)
		}
		if obj.reported && meta.FindStatusCondition(*conditionsOf(now), anotherCondition) == nil {
			return lost("the condition " + anotherCondition)
		}
	}
	return nil
}

// releaseFinalizers is what the other writer does when an object is to go.
func (r *run) releaseFinalizers() {
	r.mu.Lock()
	touched := slices.Clone(r.touched)
	r.mu.Unlock()
	for _, obj := range touched {
		now := obj.Object.DeepCopyObject().(client.Object)
		if err := r.user.Get(r.context(), client.ObjectKeyFromObject(obj), now); err != nil {
			continue
		}
		i := slices.Index(now.GetFinalizers(), anotherFinalizer)
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
