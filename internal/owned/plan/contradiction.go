package plan

import (
	"errors"
	"reflect"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opblocks/opblocks/internal/applyschema"
	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/record"
)

// Contradiction searches for the parts of a live object that contradict the desired one, so that the API server refuses to apply it.
type Contradiction struct {
	schema  applyschema.Schema
	want    map[string]any
	merged  map[string]any // the result that the refused apply would have had
	Entries []metav1.ManagedFieldsEntry
	causes  [][]applyschema.Step
	level   int // how many steps around the refused fields parts are removed: see contradicting
	removed [][]applyschema.Step
	asIs    bool // merged itself has to be tried first: the API server may accept it although it refused the apply
}

// NewContradiction starts the search. It returns nil if the refusal names no field that may be replaced.
func NewContradiction(d *owned.Desired, live *unstructured.Unstructured, refusal error) (*Contradiction, error) {
	want, err := Tree(d, record.ByApply)
	if err != nil {
		return nil, err
	}
	merged, entries, err := MergeInto(d, live, want)
	if err != nil {
		return nil, nil // the live object may have fields of a newer API server, which the schema lacks
	}
	c := &Contradiction{schema: d.Kind.Comparer.Schema(), want: want, merged: merged, Entries: entries}
	c.schema.FillEmpty(want, merged)
	for _, cause := range CausesOf(refusal, merged) {
		c.causes = append(c.causes, cause)
		switch empty := applyschema.At(merged, cause).(type) {
		case map[string]any:
			c.asIs = c.asIs || len(empty) == 0
		case []any:
			c.asIs = c.asIs || len(empty) == 0
		}
	}
	if len(c.causes) == 0 {
		return nil, nil
	}
	return c, nil
}

// Next returns the next object to try, as decoded JSON. It returns nil if nothing is left to try.
func (c *Contradiction) Next() map[string]any {
	if c.asIs {
		c.asIs = false
		return c.merged
	}
	for deepest := c.deepest(); c.level <= deepest; c.level++ {
		if removed := c.contradicting(); len(removed) > len(c.removed) {
			c.removed = removed
			tree, _ := applyschema.Without(c.merged, removed).(map[string]any)
			return tree
		}
	}
	return nil
}

// Learn takes the API server's refusal of the last result of Next. If the refusal names no new field, the next result also lacks parts that
// are one step farther from the known fields.
func (c *Contradiction) Learn(refusal error) {
	tree := applyschema.Without(c.merged, c.removed)
	news := false
	for _, cause := range CausesOf(refusal, tree) {
		before := applyschema.PathBefore(c.merged, c.removed, cause)
		if !slices.ContainsFunc(c.causes, func(known []applyschema.Step) bool { return reflect.DeepEqual(known, before) }) {
			c.causes, news = append(c.causes, before), true
		}
	}
	if !news {
		c.level++
	}
}

func (c *Contradiction) deepest() (most int) {
	for _, cause := range c.causes {
		most = max(most, len(cause))
	}
	return most + 1
}

// contradicting returns the parts to remove at the current level, together with the parts of the lower levels:
//
//   - Level 0: fields of others at the refused fields.
//   - Level 1: list items of others that have the same value as a refused field.
//   - Level n: fields of others n−1 steps around a refused field.
func (c *Contradiction) contradicting() (found [][]applyschema.Step) {
	add := func(paths [][]applyschema.Step) {
		for _, path := range paths {
			if !slices.ContainsFunc(found, func(known []applyschema.Step) bool { return reflect.DeepEqual(known, path) }) {
				found = append(found, path)
			}
		}
	}
	for _, cause := range c.causes {
		if isReplaceable(cause) {
			add(c.schema.Foreign(c.want, c.merged, cause))
		}
		if c.level >= 1 {
			add(c.clashing(cause))
		}
		for outwards := 1; outwards < c.level; outwards++ {
			if scope := cause[:max(0, len(cause)-outwards)]; isReplaceable(scope) {
				add(c.schema.Foreign(c.want, c.merged, scope))
			}
		}
	}
	return found
}

// clashing returns the list items of others that have, in the same field, the same value as the refused field at the path cause.
func (c *Contradiction) clashing(cause []applyschema.Step) (found [][]applyschema.Step) {
	value := applyschema.At(c.merged, cause)
	switch value.(type) {
	case string, int64, float64:
	default:
		return nil
	}
	for _, path := range pathsLike(c.merged, cause, nil) {
		if !reflect.DeepEqual(path, cause) && reflect.DeepEqual(applyschema.At(c.merged, path), value) {
			for _, foreign := range c.schema.Foreign(c.want, c.merged, path) {
				if len(foreign) < len(path) || reflect.DeepEqual(foreign, path) {
					found = append(found, foreign)
				}
			}
		}
	}
	return found
}

// pathsLike returns the paths of a tree that differ from a path only in the indices of list items.
func pathsLike(tree any, like, at []applyschema.Step) (paths [][]applyschema.Step) {
	if len(at) == len(like) {
		return [][]applyschema.Step{slices.Clone(at)}
	}
	switch step := like[len(at)].(type) {
	case string:
		return pathsLike(tree, like, append(slices.Clip(at), step))
	case int:
		items, _ := applyschema.At(tree, at).([]any)
		for i := range items {
			paths = append(paths, pathsLike(tree, like, append(slices.Clip(at), i))...)
		}
	}
	return paths
}

// isReplaceable reports whether fields of others at a path may be removed: the path is not in metadata or status, and does not lead to the
// whole spec of the object or of a pod.
func isReplaceable(path []applyschema.Step) bool {
	if len(path) < 2 || path[0] == "metadata" || path[0] == "status" {
		return false
	}
	switch path[len(path)-1] {
	case "spec", "template", "jobTemplate", "metadata":
		return false
	}
	return true
}

// CausesOf returns the paths, in the refused tree, of the fields that the API server names in its refusal.
func CausesOf(refusal error, tree any) (causes [][]applyschema.Step) {
	if IsDuplicateNodePort(refusal) {
		return pathsLike(tree, []applyschema.Step{"spec", "ports", 0, "nodePort"}, nil)
	}
	var status apierrors.APIStatus
	if !errors.As(refusal, &status) || status.Status().Details == nil {
		return nil
	}
	for _, cause := range status.Status().Details.Causes {
		if path, ok := parseFieldPath(cause.Field); ok {
			if steps, ok := withoutClaimVolumes(tree, path.steps()); ok {
				causes = append(causes, steps)
			}
		}
	}
	return causes
}

var podVolumes = []applyschema.Step{"spec", "template", "spec", "volumes"}

// withoutClaimVolumes returns the path at which a tree has the field that a refusal names by path. It returns false if the tree does not
// have the field.
//
// The two paths differ in the pod volumes of a StatefulSet with claim templates. The API server validates the pods that the StatefulSet
// would create. Their list of volumes first has one volume for each claim template, in any order, and then the volumes of the pod template,
// except those with the name of a claim template.
func withoutClaimVolumes(tree any, path []applyschema.Step) ([]applyschema.Step, bool) {
	n := len(podVolumes)
	if len(path) <= n || !reflect.DeepEqual(path[:n], podVolumes) || !isStatefulSet(tree) {
		return path, true
	}
	index, isItem := path[n].(int)
	if !isItem {
		return path, true
	}
	claimed := map[any]bool{}
	templates, _ := applyschema.At(tree, []applyschema.Step{"spec", "volumeClaimTemplates"}).([]any)
	for _, template := range templates {
		claimed[applyschema.At(template, []applyschema.Step{"metadata", "name"})] = true
	}
	if index -= len(claimed); index < 0 {
		return nil, false
	}
	volumes, _ := applyschema.At(tree, podVolumes).([]any)
	for i, volume := range volumes {
		if claimed[applyschema.At(volume, []applyschema.Step{"name"})] {
			continue
		}
		if index == 0 {
			path = slices.Clone(path)
			path[n] = i
			return path, true
		}
		index--
	}
	return nil, false
}

func isStatefulSet(tree any) bool {
	version, _ := applyschema.At(tree, []applyschema.Step{"apiVersion"}).(string)
	return applyschema.At(tree, []applyschema.Step{"kind"}) == "StatefulSet" && strings.HasPrefix(version, "apps/")
}

func (p fieldPath) steps() []applyschema.Step {
	steps := make([]applyschema.Step, len(p))
	for i, element := range p {
		if steps[i] = element.name; element.isIndex {
			steps[i] = element.index
		}
	}
	return steps
}

// IsInvalid reports whether the API server refused an object because its content is invalid.
func IsInvalid(err error) bool { return apierrors.IsInvalid(err) && !IsUntypable(err) }

// IsDuplicateNodePort reports whether the API server refused a Service because two ports have the same node port. The API server answers
// this with a 500 without a reason.
func IsDuplicateNodePort(err error) bool {
	return err != nil && strings.Contains(err.Error(), "duplicate nodePort")
}
