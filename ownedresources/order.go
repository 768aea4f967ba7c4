package ownedresources

import (
	"cmp"
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
)

// order is the order in which the children of a set are applied.
type order struct {
	index    map[*child]int
	sequence []int   // the children in the order in which they are applied: each after the ones that it comes after, otherwise as declared
	rank     []int   // by child: one more than the highest rank of the children that it comes after, or 0
	before   [][]int // by child: the children that it comes after
}

// newOrder returns an error for a mistake in the children: one is nil, is given twice, comes after a child of another set, comes
// after itself in a cycle, or has options that exclude each other.
func newOrder(children []*child) (*order, error) {
	o := &order{index: make(map[*child]int, len(children)), rank: make([]int, len(children)), before: make([][]int, len(children))}
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
	for rank := range ranks {
		for i, child := range children {
			if rankOf(child.kindName()) != rank {
				continue
			}
			if err := o.visit(children, i, nil); err != nil {
				return nil, err
			}
		}
	}
	return o, nil
}

func (o *order) checkChild(child *child) error {
	if u, untyped := child.sample.(*unstructured.Unstructured); untyped && u.GetKind() == "" {
		return errors.New("it has no kind: give it one with the method Kind")
	}
	if err := cmp.Or(child.mistake, child.options.mistake(child.groupKind(), len(child.inputs) > 0)); err != nil {
		return err
	}
	for _, in := range child.inputs {
		if in.mistake != nil {
			return in.mistake
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
func (o *order) visit(children []*child, i int, path []int) error {
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
		o.rank[i], o.before[i] = max(o.rank[i], o.rank[j]+1), append(o.before[i], j)
	}
	o.sequence = append(o.sequence, i)
	return nil
}

// dependencies returns the children that have to be applied before this one.
func (c *child) dependencies() []*child {
	before := slices.Clip(c.after)
	for _, in := range c.inputs {
		before = append(before, in.live...)
	}
	return before
}

// liveInput returns a child whose live object this one is built from, or nil.
func (c *child) liveInput() *child {
	for _, in := range c.inputs {
		if live := in.live; len(live) > 0 {
			return live[0]
		}
	}
	return nil
}

// kindName returns the kind of the child's objects, for messages.
func (c *child) kindName() string {
	if u, untyped := c.sample.(*unstructured.Unstructured); untyped {
		return u.GetKind()
	}
	return reflect.TypeOf(c.sample).Elem().Name()
}

// groupKind returns the kind of the child's objects. For Go types, it knows only the kinds that an option is for.
func (c *child) groupKind() schema.GroupKind {
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
func (c *child) describe() string { return "child " + c.kindName() }
