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

// Child is an [ownedresources.Child] without its types.
type Child struct {
	Build    func(*Reconciliation) error // adds the desired objects to the Reconciliation
	function string                      // the name of the function that builds
	Sample   client.Object               // an empty object of the child's kind, in the type of its live objects
	Inputs   []*Input                    // what Build reads
	After    []*Child
	Options  owned.Options
	Mistake  error // a mistake in a call of one of its methods

	Configuration bool // the objects are built by apply configurations
	inSet         bool // a set has the child, so the child must not change any more
}

// NewChild returns a child of the kind of sample. build builds its objects by calling f, the user's function. NewChild uses only f's name.
func NewChild(sample client.Object, f any, build func(*Reconciliation) error) *Child {
	return &Child{Sample: sample, Build: build, function: goruntime.FuncForPC(reflect.ValueOf(f).Pointer()).Name()}
}

// Change calls f, which changes the child. If a set has the child already, Change does not call f, and notes as a mistake that the method
// was called too late.
func (c *Child) Change(method string, f func(*Child)) {
	if c.inSet {
		c.Mistake = fmt.Errorf("its method %s was called after Ensure: call it before", method)
		return
	}
	f(c)
}

func (c *Child) empty() client.Object { return c.Sample.DeepCopyObject().(client.Object) }

// AddConfiguration adds an object, given as an apply configuration, to the child that is being built.
func (r *Reconciliation) AddConfiguration(configuration runtime.ApplyConfiguration) error {
	obj, err := fromConfiguration(configuration, r.Kinds[r.building].GVK)
	if err == nil {
		r.Add(obj)
	}
	return err
}

// fromConfiguration returns an apply configuration as an unstructured object of a kind.
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

// dependencies returns the children that have to be applied before this one.
func (c *Child) dependencies() []*Child {
	before := slices.Clip(c.After)
	for _, in := range c.Inputs {
		before = append(before, in.live...)
	}
	return before
}

// liveInput returns a child whose live object this one is built from, or nil.
func (c *Child) liveInput() *Child {
	for _, in := range c.Inputs {
		if live := in.live; len(live) > 0 {
			return live[0]
		}
	}
	return nil
}

// kindName returns the kind of the child's objects, for messages.
func (c *Child) kindName() string {
	if u, untyped := c.Sample.(*unstructured.Unstructured); untyped {
		return u.GetKind()
	}
	return reflect.TypeOf(c.Sample).Elem().Name()
}

// groupKind returns the kind of the child's objects. For Go types it knows only the kinds that have an option of their own: Secret, Job and
// StatefulSet.
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

// Describe names a child whose objects are not known, for messages.
func (c *Child) Describe() string { return "child " + c.kindName() }
