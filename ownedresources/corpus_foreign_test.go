package ownedresources

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// foreignItems are somebody else's items in lists that several writers share, by the path's end.
var foreignItems = map[string]any{
	"/spec/containers":       map[string]any{"name": "theirs", "image": "theirs:1"},
	"/spec/initContainers":   map[string]any{"name": "theirs-first", "image": "theirs:1"},
	"/spec/volumes":          map[string]any{"name": "theirs", "emptyDir": map[string]any{}},
	"/spec/imagePullSecrets": map[string]any{"name": "theirs"},
	"/spec/hostAliases":      map[string]any{"ip": "10.7.7.7", "hostnames": []any{"theirs.local"}},
	"/containers/0/env":      map[string]any{"name": "THEIRS", "value": "x"},
	"/containers/0/ports":    map[string]any{"containerPort": int64(65001), "protocol": "TCP"},
	"/topologySpreadConstraints": map[string]any{"topologyKey": "theirs", "maxSkew": int64(1), "whenUnsatisfiable": "ScheduleAnyway",
		"labelSelector": map[string]any{}},
	"/spec/ports": map[string]any{"name": "theirs", "port": int64(65001), "protocol": "TCP", "targetPort": int64(1)},
	"/secrets":    map[string]any{"name": "theirs"},
	"/webhooks": map[string]any{"name": "theirs.example.com", "admissionReviewVersions": []any{"v1"}, "sideEffects": "None",
		"failurePolicy": "Ignore", "clientConfig": map[string]any{"url": "https://theirs.example.com"}},
	"/spec/matchConditions": map[string]any{"name": "theirs", "expression": "true"},
	"/spec/parts":           map[string]any{"name": "theirs"},
	"/spec/tags":            "theirs",
	"/spec/endpoints":       map[string]any{"port": int64(65001), "protocol": "TCP"},
	"/members":              "theirs",
}

// leaveForeignFields adds somebody else's fields, which must not cause a write and survive ours.
func (s *subject) leaveForeignFields(t *testing.T, n *counts) {
	t.Helper()
	theirs := []path{{"metadata", "labels", "theirs"}, {"metadata", "annotations", "theirs"}}
	ops := []map[string]any{operation("add", theirs[1], "x")}
	if labels, _ := (path{"metadata", "labels"}).in(s.live(t)); labels == nil {
		ops = append(ops, operation("add", path{"metadata", "labels"}, map[string]any{}))
	}
	require.NoError(t, s.byHand(t, append(ops, operation("add", theirs[0], "x"))...))
	s.expect(t, s.want, Unchanged, 0, "a foreign label and annotation")

	for _, at := range fieldsOf(s.sent(t)) {
		for end, item := range foreignItems {
			if !strings.HasSuffix(at.String(), end) {
				continue
			}
			if err := s.byHand(t, operation("add", at.with("-"), item)); err != nil {
				require.True(t, isRefusal(err), "%s: %v", at, err)
				t.Logf("foreign item of %s: refused: %v", at, err)
				continue
			}
			live, _ := at.in(s.live(t))
			theirs = append(theirs, at.with(len(live.([]any))-1))
			s.expect(t, s.want, Unchanged, 0, "a foreign item of "+at.String())
		}
	}
	n.foreign.Add(int64(len(theirs)))
	want := s.want.DeepCopyObject().(client.Object)
	annotations := want.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations["example.com/changed"] = "yes"
	want.SetAnnotations(annotations)
	before := s.live(t)
	s.expect(t, want, Applied, 1, "a change of ours beside foreign fields")
	for _, at := range theirs {
		old, _ := at.in(before)
		now, there := at.in(s.live(t))
		if !there || !reflect.DeepEqual(old, now) {
			t.Errorf("foreign %s did not survive a write of ours: %v became %v", at, old, now)
		}
	}
	s.expect(t, s.want, Applied, 1, "the change taken back")
}
