package ownedresources

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// order is the order in which the children of a set are applied.
type order[T client.Object] struct {
	index    map[*Child[T]]int
	sequence []int // each child after those that it comes after, and otherwise as declared
	rank     []int // of each child: one more than the highest of those that it comes after, or 0
}

// newOrder returns an error for a mistake in the children: nil, one given twice, one that comes after a child of another set,
// a cycle, an option for another type, or an input that cannot be compared.
func newOrder[T client.Object](children []*Child[T]) (*order[T], error) {
	o := &order[T]{index: make(map[*Child[T]]int, len(children)), rank: make([]int, len(children))}
	for i, child := range children {
		if child == nil {
			return nil, fmt.Errorf("child %d is nil", i+1)
		}
		if _, twice := o.index[child]; twice {
			return nil, fmt.Errorf("child %d, a %s, is given twice", i+1, child.kindName())
		}
		o.index[child] = i
	}
	for i, child := range children {
		if err := o.checkChild(child); err != nil {
			return nil, fmt.Errorf("child %d, a %s: %w", i+1, child.kindName(), err)
		}
	}
	for i := range children {
		if err := o.visit(children, i, nil); err != nil {
			return nil, err
		}
	}
	return o, nil
}

func (o *order[T]) checkChild(child *Child[T]) error {
	desiredType := reflect.TypeOf(child.sample)
	if child.configuration {
		desiredType = reflect.TypeFor[*unstructured.Unstructured]()
	}
	if err := child.options.mistake(desiredType, child.groupKind(), reflect.TypeFor[T]()); err != nil {
		return err
	}
	if retains, owner := child.options.retainType, reflect.TypeFor[T](); retains != nil && !owner.AssignableTo(retains) {
		return fmt.Errorf("its Retain is for %s: give that a function of %s", retains, owner)
	}
	for _, in := range child.inputs {
		if err := in.check(); err != nil {
			return err
		}
	}
	for _, before := range child.dependencies() {
		if before == nil {
			return errors.New("it comes after a child that is nil")
		}
		if _, known := o.index[before]; !known {
			return fmt.Errorf("it comes after a %s that is not in this set: give both to one Ensure", before.kindName())
		}
	}
	return nil
}

// visit appends a child to the sequence, after those that it comes after. path leads to the child.
func (o *order[T]) visit(children []*Child[T], i int, path []int) error {
	if slices.Contains(o.sequence, i) {
		return nil
	}
	if start := slices.Index(path, i); start >= 0 {
		var names []string
		for _, j := range append(path[start:], i) {
			names = append(names, fmt.Sprintf("child %d, a %s", j+1, children[j].kindName()))
		}
		return fmt.Errorf("the order of the children is a cycle: %s: take one After away", strings.Join(names, ", after "))
	}
	for _, before := range children[i].dependencies() {
		j := o.index[before]
		if err := o.visit(children, j, append(slices.Clip(path), i)); err != nil {
			return err
		}
		o.rank[i] = max(o.rank[i], o.rank[j]+1)
	}
	o.sequence = append(o.sequence, i)
	return nil
}

// dependencies returns the children that have to be applied before this one.
func (c *Child[T]) dependencies() []*Child[T] {
	before := slices.Clip(c.after)
	for _, in := range c.inputs {
		before = append(before, in.liveChildren()...)
	}
	return before
}

// liveInput returns a child whose live object this one is built from, or nil.
func (c *Child[T]) liveInput() *Child[T] {
	for _, in := range c.inputs {
		if live := in.liveChildren(); len(live) > 0 {
			return live[0]
		}
	}
	return nil
}

// kindName returns the kind of the child's objects, for messages.
func (c *Child[T]) kindName() string {
	if u, untyped := c.sample.(*unstructured.Unstructured); untyped {
		return u.GetKind()
	}
	return reflect.TypeOf(c.sample).Elem().Name()
}

// groupKind returns the kind of the child's objects. The kind of a Go type is known for those that options are for.
func (c *Child[T]) groupKind() schema.GroupKind {
	switch c.sample.(type) {
	case *corev1.Secret:
		return schema.GroupKind{Kind: "Secret"}
	case *batchv1.Job:
		return schema.GroupKind{Group: batchv1.GroupName, Kind: "Job"}
	case *appsv1.StatefulSet:
		return schema.GroupKind{Group: appsv1.GroupName, Kind: "StatefulSet"}
	}
	return c.sample.GetObjectKind().GroupVersionKind().GroupKind()
}

// describe names a child whose objects are not known, for messages.
func (c *Child[T]) describe() string { return "child " + c.kindName() }
