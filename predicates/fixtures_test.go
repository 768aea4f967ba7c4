package predicates_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// passes gives the event, whichever kind it is of, to the predicate.
func passes(p predicate.Predicate, e any) bool {
	switch e := e.(type) {
	case event.CreateEvent:
		return p.Create(e)
	case event.UpdateEvent:
		return p.Update(e)
	case event.DeleteEvent:
		return p.Delete(e)
	case event.GenericEvent:
		return p.Generic(e)
	default:
		panic(fmt.Sprintf("%T is no event", e))
	}
}

func created(obj client.Object) any { return event.CreateEvent{Object: obj} }
func updated(before, now client.Object) any {
	return event.UpdateEvent{ObjectOld: before, ObjectNew: now}
}
func deleted(obj client.Object) any { return event.DeleteEvent{Object: obj} }
func missed(obj client.Object) any  { return event.DeleteEvent{Object: obj, DeleteStateUnknown: true} }
func generic(obj client.Object) any { return event.GenericEvent{Object: obj} }

// pod makes an object of what a case is about.
func pod(of ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "6d1f", Generation: 1, ResourceVersion: "100"}}
	for _, f := range of {
		f(p)
	}
	return p
}

func label(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { metav1.SetMetaDataLabel(&p.ObjectMeta, key, value) }
}

func annotation(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { metav1.SetMetaDataAnnotation(&p.ObjectMeta, key, value) }
}

func uid(uid string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.UID = types.UID(uid) } }

func generation(n int64) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Generation = n } }

func version(v string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.ResourceVersion = v } }

func onNode(name string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.NodeName = name } }

func beingDeleted(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: noon} }

func condition(status metav1.ConditionStatus, reason, message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
			Type: "Ready", Status: corev1.ConditionStatus(status), Reason: reason, Message: message, LastTransitionTime: metav1.Time{Time: noon},
		})
	}
}
