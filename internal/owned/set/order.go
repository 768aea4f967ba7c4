package set

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/feature"
)

// Order is the order in which the children of a set are applied.
type Order struct {
	index    map[*Child]int
	Sequence []int   // the indices of the children in the order of application: dependencies first, then by the ranks of their kinds, then as declared
	Rank     []int   // by child: one more than the highest rank of the children after which it comes; 0 if there are none
	before   [][]int // by child: the indices of the children after which it comes
}

// NewOrder returns an error for a mistake in the children: a child is nil, is given twice, comes after a child of another set, comes after
// itself in a cycle, or has options that exclude each other.
func NewOrder(children []*Child) (*Order, error) {
	o := &Order{index: make(map[*Child]int, len(children)), Rank: make([]int, len(children)), before: make([][]int, len(children))}
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
	for rank := range owned.Ranks {
		for i, child := range children {
			if owned.RankOf(child.kindName()) != rank {
				continue
			}
			if err := o.visit(children, i, nil); err != nil {
				return nil, err
			}
		}
	}
	return o, nil
}

func (o *Order) checkChild(child *Child) error {
	if u, untyped := child.Sample.(*unstructured.Unstructured); untyped && u.GetKind() == "" {
		return errors.New("it has no kind: give it one with the method Kind")
	}
	if err := cmp.Or(child.Mistake, feature.MistakeOf(&child.Options, child.groupKind(), len(child.Inputs) > 0)); err != nil {
		return err
	}
	for _, in := range child.Inputs {
		if in.Mistake != nil {
			return in.Mistake
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

// visit appends a child to the sequence, after the children after which it comes. path has the children that led to this one, to find
// cycles.
func (o *Order) visit(children []*Child, i int, path []int) error {
	if slices.Contains(o.Sequence, i) {
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
		o.Rank[i], o.before[i] = max(o.Rank[i], o.Rank[j]+1), append(o.before[i], j)
	}
	o.Sequence = append(o.Sequence, i)
	return nil
}
