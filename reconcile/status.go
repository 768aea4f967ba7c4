package reconcile

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/opblocks/opblocks/conditions"
	"github.com/opblocks/opblocks/internal/compare"
)

// statusType is what a pass does with the status of a kind.
type statusType interface {
	// list returns the conditions of the object, or nil if the status has no such field.
	list(obj client.Object) (conditions.List, error)
	// complete sets what every pass sets before it writes. The observed generation stays as it was before if observed is
	// false: then the conditions are still about an earlier generation.
	complete(before, obj client.Object, observed bool)
	// handled returns the request that the object acknowledges as handled, or an empty string if the status has no such field.
	handled(obj client.Object) string
	// setHandled acknowledges a request, see [RequestedAnnotation].
	setHandled(obj client.Object, request string)
	// fillRequired sets empty lists and maps for nil ones that the schema requires: nil would be sent as null, which the API
	// server refuses.
	fillRequired(obj client.Object)
	// equal reports whether two objects have the same status.
	equal(a, b client.Object) bool
	// patch returns the merge patch from the status of before to the status of after. It has a lock on the resource
	// version of before if locked is true or the patch needs one.
	patch(before, after client.Object, locked bool) ([]byte, error)
	// recordable returns an error if nothing can be recorded in the status.
	recordable() error
}

// noStatus is for a kind whose status is not written.
type noStatus struct{}

var errNotRecordable = errors.New("checkpoint of a kind whose status is not written: record what is going to be done elsewhere, such as in an annotation of the object")

func (noStatus) list(client.Object) (conditions.List, error)               { return nil, nil }
func (noStatus) complete(_, _ client.Object, _ bool)                       {}
func (noStatus) handled(client.Object) string                              { return "" }
func (noStatus) setHandled(client.Object, string)                          {}
func (noStatus) fillRequired(client.Object)                                {}
func (noStatus) equal(_, _ client.Object) bool                             { return true }
func (noStatus) patch(_, _ client.Object, _ bool) (data []byte, err error) { return nil, nil }
func (noStatus) recordable() error                                         { return errNotRecordable }

// structStatus is for a kind whose status is a struct. Its fields are indices in the status, through embedded structs.
type structStatus struct {
	field              int     // the index of the status in the object
	conditions         []int   // nil if there are none
	observedGeneration []int   // nil if there is none
	handledRequest     []int   // nil if there is none
	required           [][]int // lists and maps that are not omitted when empty
	binder             conditions.Binder
	history            func(obj client.Object) conditions.List // nil unless the conditions are a history
}

// newStatusType returns the status type of a struct.
func newStatusType(object reflect.Type, binder conditions.Binder, history func(client.Object) conditions.List) (statusType, error) {
	f, ok := object.FieldByName("Status")
	switch {
	case !ok:
		return noStatus{}, nil
	case f.Type.Kind() != reflect.Struct || len(f.Index) != 1:
		return nil, fmt.Errorf("the status of %s is not a plain struct: a pass could not find out what changed in it", object)
	}
	s := &structStatus{field: f.Index[0], binder: binder, history: history}
	for _, field := range reflect.VisibleFields(f.Type) {
		if field.Anonymous && field.Type.Kind() == reflect.Pointer {
			return nil, fmt.Errorf("the status of %s embeds the pointer %s: embed the struct", object, field.Type)
		}
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "conditions":
			s.conditions = field.Index
		case name == "observedGeneration" && field.Type.Kind() == reflect.Int64:
			s.observedGeneration = field.Index
		case name == "lastHandledReconcileAt" && field.Type.Kind() == reflect.String:
			s.handledRequest = field.Index
		}
		collection := field.Type.Kind() == reflect.Slice || field.Type.Kind() == reflect.Map
		if collection && name != "" && name != "-" && !strings.Contains(options, "omit") {
			s.required = append(s.required, field.Index)
		}
	}
	return s, nil
}

// of returns the status of an object, which can be set.
func (s *structStatus) of(obj client.Object) reflect.Value {
	return reflect.ValueOf(obj).Elem().Field(s.field)
}

func (s *structStatus) list(obj client.Object) (conditions.List, error) {
	switch {
	case s.history != nil:
		return s.history(obj), nil
	case s.conditions == nil:
		return nil, nil
	}
	return s.binder.Bind(s.of(obj).FieldByIndex(s.conditions).Addr().Interface())
}

func (s *structStatus) complete(before, obj client.Object, observed bool) {
	if s.observedGeneration != nil {
		generation := obj.GetGeneration()
		if !observed {
			generation = s.of(before).FieldByIndex(s.observedGeneration).Int()
		}
		s.of(obj).FieldByIndex(s.observedGeneration).SetInt(generation)
	}
	s.fillRequired(obj)
	if s.history == nil {
		s.keepTransitions(before, obj)
	}
}

func (s *structStatus) handled(obj client.Object) string {
	if s.handledRequest == nil {
		return ""
	}
	return s.of(obj).FieldByIndex(s.handledRequest).String()
}

func (s *structStatus) setHandled(obj client.Object, request string) {
	if s.handledRequest != nil {
		s.of(obj).FieldByIndex(s.handledRequest).SetString(request)
	}
}

// fillRequired does not look into structs of the status.
func (s *structStatus) fillRequired(obj client.Object) {
	status := s.of(obj)
	for _, i := range s.required {
		switch field := status.FieldByIndex(i); {
		case !field.IsNil():
		case field.Kind() == reflect.Map:
			field.Set(reflect.MakeMap(field.Type()))
		default:
			field.Set(reflect.MakeSlice(field.Type(), 0, 0))
		}
	}
}

// keepTransitions restores lastTransitionTime of a condition that was changed and changed back in the same pass.
func (s *structStatus) keepTransitions(before, after client.Object) {
	if s.conditions == nil {
		return
	}
	standard := reflect.TypeFor[[]metav1.Condition]()
	field := func(obj client.Object) []metav1.Condition {
		list := s.of(obj).FieldByIndex(s.conditions)
		if is, ok := reflect.TypeAssert[[]metav1.Condition](list); ok {
			return is
		}
		if !list.CanConvert(standard) { // structs of the kind's own: their adapter sets the times
			return nil
		}
		return list.Convert(standard).Interface().([]metav1.Condition)
	}
	old, all := field(before), field(after)
	for i := range all {
		if was, ok := conditions.Get(old, all[i].Type); ok && was.Status == all[i].Status {
			all[i].LastTransitionTime = was.LastTransitionTime
		}
	}
}

func (s *structStatus) equal(a, b client.Object) bool {
	return compare.Equal(s.of(a).Addr().Interface(), s.of(b).Addr().Interface())
}

func (s *structStatus) recordable() error { return nil }

// patch carries the UID, so that another object of the same name is never written. It carries the resource version too if
// it is locked, if a list changes, or if a value is removed: a merge patch replaces a list as a whole, which would undo what
// another writer did to it in the meantime.
func (s *structStatus) patch(before, after client.Object, locked bool) ([]byte, error) {
	changed := reflect.New(reflect.TypeOf(before).Elem())
	changed.Elem().Set(reflect.ValueOf(before).Elem())
	changed.Elem().Field(s.field).Set(s.of(after))
	data, err := client.MergeFrom(before).Data(changed.Interface().(client.Object))
	if err != nil {
		return nil, fmt.Errorf("status: %w", err)
	}
	var patch map[string]any
	if err := json.Unmarshal(data, &patch); err != nil {
		return nil, fmt.Errorf("status: %w", err)
	}
	first := s.of(before).IsZero()
	if first { // it is sent as a whole: the schema may require fields that are still zero
		patch["status"] = s.of(after).Interface()
	}
	metadata := map[string]any{}
	if uid := before.GetUID(); uid != "" {
		metadata["uid"] = uid
	}
	if locked || first || replaces(patch) {
		metadata["resourceVersion"] = before.GetResourceVersion()
	}
	patch["metadata"] = metadata
	return json.Marshal(patch)
}

// replaces reports whether a merge patch contains a list or a removal.
func replaces(v any) bool {
	switch v := v.(type) {
	case nil, []any:
		return true
	case map[string]any:
		for _, e := range v {
			if replaces(e) {
				return true
			}
		}
	}
	return false
}

// saveStatus writes the status if it differs from the one that was read. If observed is false, the observed generation does
// not change. A write that another writer undoes again and again is delayed. An error is logged, and retried by p.retry.
func (p *pass[T]) saveStatus(ctx context.Context, observed bool) {
	p.status.complete(p.before, p.obj, observed)
	if p.status.equal(p.before, p.obj) {
		if !p.metrics.hasConditions(p.name) {
			p.metrics.setConditions(p.name, p.measured(p.before))
		}
		return
	}
	if p.fresh == outdated { // the write would meet the same conflict
		p.retry = p.retry.merge(retryFailure(nil))
		return
	}
	was, is := p.readyOf(p.before), p.readyOf(p.obj)
	data, err := p.status.patch(p.before, p.obj, p.fresh == uncertain)
	sum, fields := statusSum(data)
	if wait := p.slowDownStatus(ctx, sum, fields); wait > 0 {
		p.retry = p.retry.merge(retry{after: wait})
		return
	}
	if err == nil {
		err = p.sendStatus(ctx, data)
	}
	switch {
	case err == nil:
		p.memory.countStatus(p.name, sum, p.clock.Now(), p.metrics.loopsOrNil())
		if is.Status == metav1.ConditionTrue && was.Status != metav1.ConditionTrue {
			p.event(corev1.EventTypeNormal, conditions.Ready, "Reconcile", cmp.Or(is.Message, "Everything is as wanted"))
		}
		p.metrics.setConditions(p.name, p.measured(p.before))
	case errors.Is(ctx.Err(), context.Canceled): // the operator ends
	case isGone(err):
		p.forget(p.name)
	case isConflict(err):
		p.retry = p.retry.merge(retryFailure(err))
		log.FromContext(ctx).V(1).Info("Status was written by somebody else meanwhile; trying again", "conflict", err.Error())
	default:
		p.retry = p.retry.merge(retryFailure(err))
		log.FromContext(ctx).Error(err, "Cannot write the status")
	}
}

// writeStatus sends what has changed of the status at once. Afterwards before is the answer of the API server.
func (p *pass[T]) writeStatus(ctx context.Context, locked bool) error {
	data, err := p.status.patch(p.before, p.obj, locked)
	if err != nil {
		return err
	}
	return p.sendStatus(ctx, data)
}

// sendStatus sends a patch of the status.
func (p *pass[T]) sendStatus(ctx context.Context, data []byte) error {
	answer := p.empty()
	answer.SetNamespace(p.name.Namespace)
	answer.SetName(p.name.Name)
	switch err := p.client.Status().Patch(ctx, answer, client.RawPatch(types.MergePatchType, data), p.fieldOwner); {
	case apierrors.IsNotFound(err):
		return p.explainNotFound(ctx, err)
	case err != nil:
		return err
	}
	p.writes.Record(answer)
	p.before = answer
	p.obj.SetResourceVersion(answer.GetResourceVersion())
	return nil
}

var errNoSubresource = errors.New("the kind has no status subresource: add the marker +kubebuilder:subresource:status to its type, in a test WithStatusSubresource to the fake client")

// explainNotFound returns why a status write was answered by NotFound: the object is gone, which the cache may not show yet,
// or its kind has no status subresource.
func (p *pass[T]) explainNotFound(ctx context.Context, answer error) error {
	switch _, err := p.readLive(ctx); {
	case apierrors.IsNotFound(err):
		return goneError{p.conflict()}
	case err != nil:
		return errors.Join(answer, err)
	}
	return fmt.Errorf("%w: %w", errNoSubresource, answer)
}

// goneError is a conflict with the deletion of the object.
type goneError struct{ error }

func (e goneError) Unwrap() error { return e.error }

func isGone(err error) bool {
	_, gone := errors.AsType[goneError](err)
	return gone
}
