package ownedresources

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// subject is one manifest as one form of Go value, on the API server.
type subject struct {
	manifest *manifest
	form     string // typed or unstructured
	want     client.Object
	rename   *strings.Replacer // gives names that nobody has; nil for what is in a namespace

	applier *applier
	client  *upToDateClient     // counted
	other   client.Client // somebody else's
	writes  *writeCounter
	owner   client.Object
}

// writeCounter counts, at the transport, what the API server accepted. Unlike package requests it counts Leases too.
type writeCounter struct {
	next http.RoundTripper
	n    atomic.Int64
}

func (w *writeCounter) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := w.next.RoundTrip(r)
	if r.Method != http.MethodGet && err == nil && answer.StatusCode < http.StatusMultipleChoices {
		w.n.Add(1)
	}
	return answer, err
}

func (w *writeCounter) wrap(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		w.next = next
		return w
	})
	return config
}

// upToDateClient is a client whose cache has just seen the last answer of the API server.
type upToDateClient struct {
	client.Client
	last client.Object
}

func (c *upToDateClient) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if c.last == nil || reflect.TypeOf(c.last) != reflect.TypeOf(obj) {
		return c.Client.Get(ctx, key, obj, opts...)
	}
	reflect.ValueOf(obj).Elem().Set(reflect.ValueOf(c.last.DeepCopyObject()).Elem())
	return nil
}

// apply gives what was done, and how many writes it took.
func (s *subject) apply(ctx context.Context, want client.Object) (Operation, int64, error) {
	o, err := newOwner(s.owner, s.client)
	if err != nil {
		return "", 0, err
	}
	children, err := s.applier.declare(&o, []client.Object{want})
	if err != nil {
		return "", 0, err
	}
	if s.client.last != nil {
		s.applier.children.change(s.client.last.GetUID(), s.applier.children.dropLoop) // as if the changes were hours apart
	}
	s.writes.n.Store(0)
	result, err := s.applier.apply(ctx, &o, children[0])
	if err == nil {
		s.client.last = result.Object
	}
	return result.Operation, s.writes.n.Load(), err
}

// expect applies, and fails unless it takes so many writes.
func (s *subject) expect(t *testing.T, want client.Object, op Operation, n int64, reason string) {
	t.Helper()
	var difference any
	if op == Unchanged {
		k, err := s.applier.kinds.of(want, s.client.Scheme())
		require.NoError(t, err)
		difference = k.comparer.Differences(withData(want), s.client.last)
	}
	got, sent, err := s.apply(t.Context(), want)
	require.NoError(t, err, reason)
	require.Equal(t, op, got, "%s: differences %+v", reason, difference)
	require.Equal(t, n, sent, "writes: %s", reason)
}

// refresh reads the live object.
func (s *subject) refresh(t *testing.T) {
	t.Helper()
	live := reflect.New(reflect.TypeOf(s.want).Elem()).Interface().(client.Object)
	if u, ok := live.(*unstructured.Unstructured); ok {
		u.SetGroupVersionKind(s.kind(t).gvk)
	}
	require.NoError(t, s.other.Get(t.Context(), client.ObjectKeyFromObject(s.want), live))
	s.client.last = live
}

func (s *subject) kind(t *testing.T) *kind {
	t.Helper()
	k, err := s.applier.kinds.of(s.want, s.client.Scheme())
	require.NoError(t, err)
	return k
}

// sent is what an apply of want says, beside its kind, mark and owner.
func (s *subject) sent(t *testing.T) map[string]any {
	t.Helper()
	encoded, err := s.kind(t).comparer.AppendJSON(nil, withData(s.want))
	require.NoError(t, err)
	object := map[string]any{}
	require.NoError(t, utiljson.Unmarshal(encoded, &object))
	return object
}

// decoded makes the subject's form of an object again.
func (s *subject) decoded(t *testing.T, content map[string]any) client.Object {
	t.Helper()
	if _, untyped := s.want.(*unstructured.Unstructured); untyped {
		u := (&unstructured.Unstructured{Object: content}).DeepCopy()
		u.SetGroupVersionKind(s.kind(t).gvk)
		return u
	}
	encoded, err := json.Marshal(content)
	require.NoError(t, err)
	obj := reflect.New(reflect.TypeOf(s.want).Elem()).Interface().(client.Object)
	require.NoError(t, json.Unmarshal(encoded, obj))
	return obj
}

// live is the last seen object as decoded JSON.
func (s *subject) live(t *testing.T) map[string]any {
	t.Helper()
	return contentOf(t, s.client.last)
}

func contentOf(t *testing.T, obj client.Object) map[string]any {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj.DeepCopyObject())
	require.NoError(t, err)
	return content
}

// byHand changes the live object as another field manager. The error is the API server's refusal.
func (s *subject) byHand(t *testing.T, operations ...map[string]any) error {
	t.Helper()
	edited, err := s.edit(t, operations)
	if err == nil {
		s.client.last = edited
	}
	return err
}

func (s *subject) edit(t *testing.T, operations []map[string]any, options ...client.PatchOption) (client.Object, error) {
	t.Helper()
	patch, err := json.Marshal(operations)
	require.NoError(t, err)
	edited := s.client.last.DeepCopyObject().(client.Object)
	return edited, s.other.Patch(t.Context(), edited, client.RawPatch(types.JSONPatchType, patch), append(options, client.FieldOwner("kubectl-edit"))...)
}

func operation(op string, at path, value any) map[string]any {
	o := map[string]any{"op": op, "path": at.pointer()}
	if op != "remove" {
		o["value"] = value
	}
	return o
}

// asCreated gives what the object would be if it had just been created like want; nil if the API server does not say.
func (s *subject) asCreated(t *testing.T, want client.Object) map[string]any {
	t.Helper()
	if s.kind(t).gvk.Kind == "Pod" {
		return nil // admission gives each its own volume
	}
	encoded, err := s.kind(t).comparer.AppendApply(nil, withData(want), s.kind(t).gvk, "")
	require.NoError(t, err)
	text := string(encoded)
	if s.rename != nil {
		text = s.rename.Replace(text)
	}
	u := &unstructured.Unstructured{}
	require.NoError(t, utiljson.Unmarshal([]byte(text), &u.Object))
	if s.rename == nil {
		u.SetNamespace(metav1.NamespaceDefault)
	}
	if err := s.other.Create(t.Context(), u, client.DryRunAll); err != nil {
		t.Logf("not compared with a new object: %v", err)
		return nil
	}
	return u.Object
}

// normalized is what is left of an object without what differs from one to the next.
func (s *subject) normalized(t *testing.T, object map[string]any, without map[string]bool) map[string]any {
	t.Helper()
	encoded, err := json.Marshal(object)
	require.NoError(t, err)
	text := string(encoded)
	if s.rename != nil {
		text = s.rename.Replace(text)
	}
	content := map[string]any{}
	require.NoError(t, utiljson.Unmarshal([]byte(text), &content))
	for _, field := range []string{"apiVersion", "kind", "status"} {
		delete(content, field)
	}
	metadata, _ := content["metadata"].(map[string]any)
	if content["aggregationRule"] != nil {
		delete(content, "rules") // are a controller's
	}
	claims, _ := path{"spec", "volumeClaimTemplates"}.in(content)
	templates, _ := claims.([]any)
	for _, claim := range templates { // an apply drops their kind, which a POST has
		delete(claim.(map[string]any), "apiVersion")
		delete(claim.(map[string]any), "kind")
	}
	content["metadata"] = map[string]any{"labels": metadata["labels"], "annotations": metadata["annotations"]}
	pruned, _ := withoutFields(content, without).(map[string]any)
	return pruned
}

// serverSet are fields and keys that the API server and its controllers give an object.
var serverSet = map[string]bool{
	AnnotationApplied: true, AnnotationSet: true, "deployment.kubernetes.io/revision": true,
	"deprecated.daemonset.template.generation": true, "creationTimestamp": true, "status": true, "uid": true,
	"controller-uid": true, "batch.kubernetes.io/controller-uid": true, "kubernetes.io/metadata.name": true,
	"clusterIP": true, "clusterIPs": true, "nodePort": true, "healthCheckNodePort": true,
	"batch.kubernetes.io/job-name": true, "job-name": true, "autoscaling.alpha.kubernetes.io/conditions": true,
	"paused": true, // by us, see pause
}

// serverKept are these, and fields that an object keeps from its creation on, whatever we want later.
var serverKept = func() map[string]bool {
	kept := maps.Clone(serverSet)
	for _, field := range []string{"ipFamilies", "ipFamilyPolicy", "replicas"} { // the last are handed over
		kept[field] = true
	}
	return kept
}()

// withoutFields drops fields, nulls, and what is empty then: the API server's answers differ in it.
func withoutFields(v any, fields map[string]bool) any {
	switch v := v.(type) {
	case map[string]any:
		kept := map[string]any{}
		for k, e := range v {
			if e = withoutFields(e, fields); !fields[k] && e != nil {
				kept[k] = e
			}
		}
		if len(kept) == 0 {
			return nil
		}
		return kept
	case []any:
		kept := make([]any, len(v))
		for i, e := range v {
			kept[i] = withoutFields(e, fields)
		}
		if len(kept) == 0 {
			return nil
		}
		return kept
	}
	return v
}

// immutableFields are fields that never change once the object is there, whatever their value.
type immutableFields []string

// contains reports whether the field is one of them, or part of one.
func (f immutableFields) contains(at path) bool {
	return slices.ContainsFunc(f, func(known string) bool { return strings.HasPrefix(at.String()+"/", known) })
}

// noteIfImmutable reports whether the API server would refuse any other value too.
func (f *immutableFields) noteIfImmutable(s *subject, t *testing.T, at path, err error) bool {
	for _, words := range []string{"immutable", "updates to statefulset spec", "pod updates may not change"} {
		if strings.Contains(err.Error(), words) {
			if s.kind(t).gvk.Kind != "Pod" { // some of its fields may change
				*f = append(*f, at.String()+"/")
			}
			return true
		}
	}
	return false
}

// isRefusal tells an API server's no from a failure.
func isRefusal(err error) bool {
	for _, no := range []string{
		"INTERNAL_ERROR; received from peer", // it panicked: a Job that is Indexed must not lose its completions
		"duplicate nodePort",
	} {
		if err != nil && strings.Contains(err.Error(), no) {
			return true
		}
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err) ||
		apierrors.IsInternalError(err) && strings.Contains(err.Error(), "failed to create typed")
}

func (s *subject) String() string { return s.manifest.name + "/" + s.form }
