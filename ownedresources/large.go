package ownedresources

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/compare"
)

// An object and its managed fields must fit into one request to etcd, of 1.5 MiB by default. A managed fields entry takes
// some bytes more than the name of each field, so that of a ConfigMap with many keys may be as large as its values. If a
// POST or a patch would be too large, the API server drops all managed fields. But it refuses a server-side apply, which
// needs them.
//
// Such an object is written by a patch of what an apply would have made of it. As it has no managed fields, nobody knows
// what else is ours: fields that are not desired are removed, see [applier.reclaim].

// isTooLarge reports whether an object is too large for etcd.
func isTooLarge(err error) bool {
	if err == nil {
		return false
	}
	text := err.Error()
	return apierrors.IsRequestEntityTooLargeError(err) || strings.Contains(text, "code = ResourceExhausted") ||
		strings.Contains(text, "etcdserver: request is too large")
}

// writeLarge writes an object of which an apply is too large.
func (a *applier) writeLarge(ctx context.Context, d *desired, last lastApplied, refusal error) (client.Object, error) {
	live, err := a.readTree(ctx, d)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", d, err)
	}
	if err := d.owner.mayWrite(d, live); err != nil {
		return nil, err
	}
	want, err := d.tree(byApply)
	if err != nil {
		return nil, err
	}
	merged, _, err := d.mergeInto(live, want)
	if err != nil {
		return nil, refusal
	}
	for _, withSpec := range []bool{true, false} {
		var removed [][]compare.Step
		if d.ourEntry(live) < 0 && last.method != byOthers && last.hash != string(d.sum[:]) {
			if removed, err = d.unwanted(merged, withSpec); err != nil {
				return nil, err
			}
		}
		tree, _ := compare.Without(merged, removed).(map[string]any)
		patch, err := replacePatch(d, live, tree, nil)
		if err != nil {
			return nil, fmt.Errorf("fields of %s: %w", d, err)
		}
		answer, err := a.replace(ctx, d, patch)
		switch {
		case isTooLarge(err):
			return nil, fmt.Errorf("%w: etcd takes 1.5 MiB a request by default: split the object", err)
		case err == nil || !isInvalid(err) || !withSpec:
			return answer, err
		}
	}
	return nil, refusal
}

// unwanted returns what a tree contains and the desired object does not, without what is surely of others.
func (d *desired) unwanted(tree map[string]any, withSpec bool) (paths [][]compare.Step, err error) {
	full, err := d.tree(byCreate)
	if err != nil {
		return nil, err
	}
	schema := d.kind.comparer.Schema()
	for name := range tree {
		switch name {
		case "apiVersion", "kind", "metadata", "status":
			continue
		case "spec":
			if !withSpec {
				continue
			}
		}
		for _, path := range schema.Foreign(full, tree, []compare.Step{name}) {
			if len(path) != 2 || path[0] != "spec" || path[1] != "replicas" {
				paths = append(paths, path)
			}
		}
	}
	for _, shared := range []string{"labels", "annotations"} {
		wanted, _ := compare.At(full, []compare.Step{"metadata", shared}).(map[string]any)
		live, _ := compare.At(tree, []compare.Step{"metadata", shared}).(map[string]any)
		for key := range live {
			if wanted[key] == nil && !isOfKubernetes(key) {
				paths = append(paths, []compare.Step{"metadata", shared, key})
			}
		}
	}
	return paths, nil
}
