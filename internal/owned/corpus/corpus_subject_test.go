package corpus

import (
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/apply"
	"github.com/opblocks/opblocks/internal/record"
)

// subject is one manifest in one form (Go struct or unstructured), and its object on the API server.
type subject struct {
	manifest *manifest
	form     string // "typed" for a Go struct, or "unstructured"
	want     client.Object
	rename   *strings.Replacer // gives the object names that are free in the cluster; nil for a namespaced object

	applier   *apply.Applier
	apiReader client.Reader
	client    *upToDateClient // the operator's client, whose writes are counted
	other     client.Client   // the client of another writer
	writes    *writeCounter
	owner     client.Object

	elsewhere map[string]bool // by path: the fields that other subjects change and drop one at a time, and this one does not
	droppable *shapes         // the fields that the typed subjects could drop, by shapeOf
	accepted  *sync.Map       // by shapeOf: the index of the other value that the API server accepted in the typed subjects, or -1
}

// plansChange reports whether this subject previews a changed field. Otherwise it previews a dropped field. The two forms of a manifest
// differ in this, and so do neighbouring manifests.
func (s *subject) plansChange() bool { return s.manifest.even == (s.form == "typed") }

func (s *subject) String() string { return s.manifest.name + "/" + s.form }

// writeCounter is a transport that counts the writes that the API server has accepted. Unlike package requests, it counts writes to Leases
// too.
type writeCounter struct {
	next http.RoundTripper
	n    atomic.Int64
	all  atomic.Int64 // all requests, also reads, dry runs and refused requests
}

func (w *writeCounter) RoundTrip(r *http.Request) (*http.Response, error) {
	w.all.Add(1)
	answer, err := w.next.RoundTrip(r)
	if r.Method != http.MethodGet && !r.URL.Query().Has("dryRun") && err == nil && answer.StatusCode < http.StatusMultipleChoices {
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

// upToDateClient is a client whose cache shows the API server's last answer.
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

// apply applies want, and returns what was done and the number of writes.
func (s *subject) apply(ctx context.Context, want client.Object) (apply.Operation, int64, error) {
	o, err := owned.NewOwner(s.owner, s.client, s.apiReader)
	if err != nil {
		return "", 0, err
	}
	children, err := s.applier.Declare(&o, []client.Object{want})
	if err != nil {
		return "", 0, err
	}
	if s.client.last != nil {
		s.applier.Children.Change(s.client.last.GetUID(), s.applier.Children.DropLoop) // otherwise the writes would be delayed, since they follow each other within seconds
	}
	rewritten := ""
	if s.client.last != nil {
		rewritten = record.LastAppliedOf(s.client.last).Rewritten
	}
	s.writes.n.Store(0)
	result, err := s.applyOne(ctx, &o, children)
	for apierrors.IsConflict(err) && s.client.last != nil { // a controller has written the object in between
		live := s.client.last.DeepCopyObject().(client.Object)
		if err = s.other.Get(ctx, client.ObjectKeyFromObject(live), live); err == nil {
			s.client.last = live
			s.writes.n.Store(0)
			result, err = s.applyOne(ctx, &o, children)
		}
	}
	sent := s.writes.n.Load()
	if err == nil {
		if s.client.last = result.Object; record.LastAppliedOf(result.Object).Rewritten != rewritten {
			sent-- // the second write, which stores a hash of the differences
		}
	}
	return result.Operation, sent, err
}

func (s *subject) applyOne(ctx context.Context, o *owned.Owner, children []owned.Declared) (apply.Result, error) {
	results, err := apply.All(ctx, s.applier, o, children)
	return results[0], err
}

// expect applies want, and requires this operation and this number of writes.
func (s *subject) expect(t *testing.T, want client.Object, op apply.Operation, n int64, reason string) {
	t.Helper()
	before := s.client.last
	got, sent, err := s.apply(t.Context(), want)
	require.NoError(t, err, reason)
	if op == apply.Unchanged && got != op {
		t.Errorf("%s: differences %+v", reason, s.kind(t).Comparer.Differences(owned.WithData(want), before))
	}
	require.Equal(t, op, got, reason)
	require.Equal(t, n, sent, "writes: %s", reason)
}

// refresh reads the live object, as if the event of the last change had reached the cache.
func (s *subject) refresh(t *testing.T) {
	t.Helper()
	live := reflect.New(reflect.TypeOf(s.want).Elem()).Interface().(client.Object)
	if u, ok := live.(*unstructured.Unstructured); ok {
		u.SetGroupVersionKind(s.kind(t).GVK)
	}
	require.NoError(t, s.other.Get(t.Context(), client.ObjectKeyFromObject(s.want), live))
	s.client.last = live
}

func (s *subject) kind(t *testing.T) *owned.Kind {
	t.Helper()
	k, err := s.applier.Kinds.Of(s.want, s.client.Scheme())
	require.NoError(t, err)
	return k
}

// sent returns what an apply sends, without the kind, the owner reference and the annotations of this library.
func (s *subject) sent(t *testing.T) map[string]any {
	t.Helper()
	encoded, err := s.kind(t).Comparer.AppendJSON(nil, owned.WithData(s.want))
	require.NoError(t, err)
	object := map[string]any{}
	require.NoError(t, utiljson.Unmarshal(encoded, &object))
	return object
}

// decoded returns an object with this content, as a Go struct or unstructured, like the subject.
func (s *subject) decoded(t *testing.T, content map[string]any) client.Object {
	t.Helper()
	if _, untyped := s.want.(*unstructured.Unstructured); untyped {
		u := (&unstructured.Unstructured{Object: content}).DeepCopy()
		u.SetGroupVersionKind(s.kind(t).GVK)
		return u
	}
	encoded, err := json.Marshal(content)
	require.NoError(t, err)
	obj := reflect.New(reflect.TypeOf(s.want).Elem()).Interface().(client.Object)
	require.NoError(t, json.Unmarshal(encoded, obj))
	return obj
}

// live returns the content of the object in its last known version.
func (s *subject) live(t *testing.T) map[string]any {
	t.Helper()
	return contentOf(t, s.client.last)
}

func contentOf(t *testing.T, obj client.Object) map[string]any {
	t.Helper()
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return u.DeepCopy().Object
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	require.NoError(t, err)
	return content
}

// byHand changes the live object as another field manager. If the API server refuses the change, it returns the error.
func (s *subject) byHand(t *testing.T, operations ...map[string]any) error {
	t.Helper()
	edited, err := s.edit(t, operations)
	if err == nil {
		s.client.last = edited
	}
	return err
}

// edit patches the live object as another field manager, and returns the API server's answer.
func (s *subject) edit(t *testing.T, operations []map[string]any, options ...client.PatchOption) (client.Object, error) {
	t.Helper()
	patch, err := json.Marshal(operations)
	require.NoError(t, err)
	edited := s.client.last.DeepCopyObject().(client.Object)
	return edited, s.other.Patch(t.Context(), edited, client.RawPatch(types.JSONPatchType, patch), append(options, client.FieldOwner("kubectl-edit"))...)
}

// operation returns an operation of a JSON patch.
func operation(op string, at path, value any) map[string]any {
	o := map[string]any{"op": op, "path": at.pointer()}
	if op != "remove" {
		o["value"] = value
	}
	return o
}

// restartOperator replaces the applier by one that remembers nothing, and checks that an apply sends nothing.
func (s *subject) restartOperator(t *testing.T, n *counts) {
	t.Helper()
	before := s.applier
	s.applier = apply.New()
	s.applier.Kinds = before.Kinds
	if !s.kind(t).Comparer.Covers(owned.WithData(s.want), s.client.last) {
		n.settled.Add(1) // for example, admission adds tolerations to a pod
	}
	s.expect(t, s.want, apply.Unchanged, 0, "after a restart")
}

// migrate removes the annotation opblocks.dev/applied and applies again. Without the annotation, the applier first moves the ownership of
// the fields of the POST to our server-side apply.
func (s *subject) migrate(t *testing.T) {
	t.Helper()
	for {
		if s.client.last.GetAnnotations()[record.Applied] != "" {
			require.NoError(t, s.byHand(t, operation("remove", path{"metadata", "annotations", record.Applied}, nil)))
		}
		op, n, err := s.apply(t.Context(), s.want)
		if apierrors.IsConflict(err) { // a controller has written the object in between
			s.refresh(t)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, apply.Applied, op)
		require.LessOrEqual(t, n, int64(2), "the first apply after the POST migrates fields, then applies")
		break
	}
	s.expect(t, s.want, apply.Unchanged, 0, "after the migration")
}

// migrationWrites returns 1 if the next apply first has to move the ownership of fields: after a POST, and after a repair that replaced
// whole lists. Otherwise it returns 0.
func (s *subject) migrationWrites() int64 {
	if strings.HasPrefix(s.client.last.GetAnnotations()[record.Applied], string(record.ByApply)) {
		return 0
	}
	return 1
}

// recreate deletes the live object and applies it again.
func (s *subject) recreate(t *testing.T) {
	t.Helper()
	s.recreateOnly(t)
	s.migrate(t)
	s.pause(t)
}

func (s *subject) recreateOnly(t *testing.T) {
	t.Helper()
	deleted := s.client.last
	require.NoError(t, s.other.Delete(t.Context(), deleted, client.GracePeriodSeconds(0), client.PropagationPolicy(metav1.DeletePropagationBackground)))
	require.Eventually(t, func() bool {
		return apierrors.IsNotFound(s.other.Get(t.Context(), client.ObjectKeyFromObject(s.want), s.kind(t).Empty()))
	}, 20*time.Second, 20*time.Millisecond)
	s.client.last = nil
	s.applier.Writes.Observe(deleted) // as the watch of the object would call it
	s.expect(t, s.want, apply.Created, 1, "deleted by hand")
	s.refresh(t)
}

// pause sets the field paused of a Deployment, as another field manager. So the Deployment's controller does not replace pods after every
// change.
func (s *subject) pause(t *testing.T) {
	t.Helper()
	at := path{"spec", "paused"}
	if _, wanted := at.in(s.sent(t)); wanted || s.kind(t).GVK.Kind != "Deployment" {
		return
	}
	require.NoError(t, s.byHand(t, operation("add", at, true)))
	s.expect(t, s.want, apply.Unchanged, 0, "paused by somebody else")
}
