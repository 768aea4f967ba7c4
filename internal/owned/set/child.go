package set

import (
	"encoding/json"
	"fmt"
	"reflect"
	goruntime "runtime"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	k8sjson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned"
)

// Child is an [ownedresources.Child] without its type parameters.
type Child struct {
	Build    func(*Reconciliation) error // calls the user's function and adds the objects that it returns to the Reconciliation
	function string                      // the name of the function that builds
	Sample   client.Object               // an empty object of the child's kind, in the type of its live objects
	Inputs   []*Input                    // the inputs whose values Build uses
	After    []*Child
	Options  owned.Options
	Mistake  error // the mistake in a call of one of the child's methods; nil for none

	Configuration bool // the objects are built as apply configurations
	inSet         bool // the child belongs to a set, so it must not be changed any more
}

// NewChild returns a child of the kind of sample. build builds its objects by calling f, the user's function. NewChild itself uses only the
// name of f.
func NewChild(sample client.Object, f any, build func(*Reconciliation) error) *Child {
	return &Child{Sample: sample, Build: build, function: goruntime.FuncForPC(reflect.ValueOf(f).Pointer()).Name()}
}

// Change calls f, which changes the child. If the child already belongs to a set, Change does not call f. It records as a mistake that the
// method was called too late.
func (c *Child) Change(method string, f func(*Child)) {
	if c.inSet {
		c.Mistake = fmt.Errorf("its method %s was called after Ensure: call it before", method)
		return
	}
	f(c)
}

func (c *Child) empty() client.Object { return c.Sample.DeepCopyObject().(client.Object) }

// AddConfiguration adds an object, built as an apply configuration, to the child that is being built.
func (r *Reconciliation) AddConfiguration(configuration runtime.ApplyConfiguration) error {
	obj, err := fromConfiguration(configuration, r.Kinds[r.building].GVK)
	if err == nil {
		r.Add(obj)
	}
	return err
}

// fromConfiguration converts an apply configuration to an unstructured object of a kind.
func fromConfiguration(configuration runtime.ApplyConfiguration, gvk schema.GroupVersionKind) (*unstructured.Unstructured, error) {
	data, err := json.Marshal(configuration)
	if err != nil {
		return nil, fmt.Errorf("apply configuration %T: it has no JSON form: %w", configuration, err)
	}
	obj := &unstructured.Unstructured{}
	if err := k8sjson.Unmarshal(data, &obj.Object); err != nil {
		return nil, fmt.Errorf("apply configuration %T: %w", configuration, err)
	}
	if given := obj.GroupVersionKind(); !given.Empty() && given != gvk {
		return nil, fmt.Errorf("apply configuration %T is of %s, and the sample that was given with it of %s: give a sample of the same kind", configuration, given, gvk)
	}
	obj.SetGroupVersionKind(gvk)
	return obj, nil
}

// dependencies returns the children that have to be applied before this one: those after which it comes, and those whose live objects its
// inputs read.
func (c *Child) dependencies() []*Child {
	before := slices.Clip(c.After)
	for _, in := range c.Inputs {
		before = append(before, in.live...)
	}
	return before
}

// liveInput returns a child whose live objects an input of this child reads, or nil.
func (c *Child) liveInput() *Child {
	for _, in := range c.Inputs {
		if live := in.live; len(live) > 0 {
			return live[0]
		}
	}
	return nil
}

// kindName returns the name of the kind of the child's objects, for messages.
func (c *Child) kindName() string {
	if u, untyped := c.Sample.(*unstructured.Unstructured); untyped {
		return u.GetKind()
	}
	return reflect.TypeOf(c.Sample).Elem().Name()
}

// groupKind returns the kind of the child's objects. For typed objects it knows only Secret, Job and StatefulSet, because only these kinds
// have options of their own.
func (c *Child) groupKind() schema.GroupKind {
	switch c.Sample.(type) {
	case *corev1.Secret:
		return schema.GroupKind{Kind: "Secret"}
	case *batchv1.Job:
		return schema.GroupKind{Group: batchv1.GroupName, Kind: "Job"}
	case *appsv1.StatefulSet:
		return schema.GroupKind{Group: appsv1.GroupName, Kind: "StatefulSet"}
	}
	return c.Sample.GetObjectKind().GroupVersionKind().GroupKind()
}

// Describe names a child for messages, if its objects are not known.
func (c *Child) Describe() string { return "child " + c.kindName() }
