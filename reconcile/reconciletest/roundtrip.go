package reconciletest

import (
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/conversion"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/roundtrip"
)

// RoundTrip checks the conversion between two versions of a kind, by the interfaces of controller-runtime. It converts random objects of each
// version to the other one and back, and fails the test if anything is lost, added or changed. The message names the field, and has the
// smallest object that shows it:
//
//	reconciletest.RoundTrip(t, &v1.Memcached{}, &v1alpha1.Memcached{})
//
// A spoke cannot hold every field of the hub: keep the others in an annotation of the spoke, and take that off again on the way back. A
// conversion that fails, panics, or changes the object that it reads is a failure too. Empty lists and maps count as absent.
//
// The objects are the same in each run. Values are random: texts have any characters, and numbers any size. If a field has only certain
// values, add a function for the fields of its type, in the form of package randfill:
//
//	func(s *v1.MemcachedSpec, c randfill.Continue) { c.FillNoCustom(s); s.Policy = v1.PolicyRetain }
func RoundTrip(t testing.TB, hub conversion.Hub, spoke conversion.Convertible, fill ...any) {
	t.Helper()
	newHub, newSpoke := newOf(hub), newOf(spoke)
	up := func(from, to runtime.Object) error {
		return from.(conversion.Convertible).ConvertTo(to.(conversion.Hub))
	}
	down := func(from, to runtime.Object) error {
		return to.(conversion.Convertible).ConvertFrom(from.(conversion.Hub))
	}
	for _, way := range []struct {
		name  string
		check roundtrip.Way
	}{
		{reflect.TypeOf(spoke).String() + " to " + reflect.TypeOf(hub).String(), roundtrip.Way{Start: newSpoke, Middle: newHub, There: up, Back: down, Fill: fill}},
		{reflect.TypeOf(hub).String() + " to " + reflect.TypeOf(spoke).String(), roundtrip.Way{Start: newHub, Middle: newSpoke, There: down, Back: up, Fill: fill}},
	} {
		if err := way.check.Check(); err != nil {
			t.Errorf("%s and back: %v", way.name, err)
		}
	}
}

// newOf returns a function that returns new, empty objects of a type.
func newOf(obj runtime.Object) func() runtime.Object {
	return func() runtime.Object { return reflect.New(reflect.TypeOf(obj).Elem()).Interface().(runtime.Object) }
}
