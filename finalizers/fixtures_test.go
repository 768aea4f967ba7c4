package finalizers_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/opblocks/opblocks/finalizers"
	"github.com/opblocks/opblocks/internal/requests"
	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

const (
	account  = "example.com/account"
	database = "example.com/database"
	theirs   = "others.example.com/theirs"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// counted is controller-runtime's fake client, and counts the patches.
type counted struct {
	client.WithWatch
	requests int
}

func newFake(objects ...client.Object) *counted {
	c := &counted{}
	c.WithWatch = fake.NewClientBuilder().WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, next client.WithWatch, obj client.Object, p client.Patch, o ...client.PatchOption) error {
			if err := ctx.Err(); err != nil { // a real client sends nothing in this case
				return err
			}
			c.requests++
			return next.Patch(ctx, obj, p, o...)
		},
	}).Build()
	return c
}

// user returns a ConfigMap that stands for a custom resource.
func user(names ...string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "ann", Finalizers: names}}
}

// deletedUser returns a user whose deletion started at noon.
func deletedUser(names ...string) *corev1.ConfigMap {
	u := user(names...)
	u.DeletionTimestamp = &metav1.Time{Time: noon}
	return u
}

// read returns the object as a reconciler would read it.
func read(t *testing.T, c client.Client) *corev1.ConfigMap {
	t.Helper()
	u := &corev1.ConfigMap{}
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "ann"}, u))
	return u
}

// clock returns a clock that always shows the same time.
func clock(at time.Time) func() time.Time { return func() time.Time { return at } }

var errDown = errors.New("the database does not answer")

func succeed(context.Context) error { return nil }

// waitError is an error with the method Waiting, which tells Finalize that the cleanup waits. Any package may define
// such a type.
type waitError struct{ after time.Duration }

func (*waitError) Error() string                                   { return "connections are being drained" }
func (e *waitError) Waiting() (reason string, after time.Duration) { return "Draining", e.after }

// newOrdered returns two finalizers. Each cleanup appends its name to ran and returns its failure.
func newOrdered(ran *[]string, failures map[string]error) []finalizers.Finalizer {
	cleanup := func(name string) func(context.Context) error {
		return func(context.Context) error {
			*ran = append(*ran, name)
			return failures[name]
		}
	}
	return []finalizers.Finalizer{{Name: database, Cleanup: cleanup(database)}, {Name: account, Cleanup: cleanup(account)}}
}

// nextEvent returns the recorder's next event, or "".
func nextEvent(recorder *events.FakeRecorder) string {
	select {
	case event := <-recorder.Events:
		return event
	default:
		return ""
	}
}

// controlPlane runs an API server without controllers.
var controlPlane = controlplane.Shared(controlplane.Options{})

// server is a client of a real API server, and a namespace there. It counts its requests.
type server struct {
	client.Client
	count     requests.Count
	namespace string
}

func newServer(t *testing.T) *server {
	t.Helper()
	cp := controlPlane(t)
	s := &server{namespace: controlplane.Namespace(t, cp)}
	var err error
	s.Client, err = client.New(s.count.Wrap(cp.Config()), client.Options{})
	require.NoError(t, err)
	return s
}

func (s *server) create(t *testing.T, obj client.Object, names ...string) {
	t.Helper()
	obj.SetNamespace(s.namespace)
	obj.SetName("ann")
	obj.SetFinalizers(names)
	require.NoError(t, s.Create(t.Context(), obj))
	t.Cleanup(func() { // an object with a finalizer would block the deletion of the namespace
		_ = s.Patch(context.Background(), obj, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))
	})
}

func (s *server) read(t *testing.T, obj client.Object) []string {
	t.Helper()
	require.NoError(t, s.Get(t.Context(), client.ObjectKeyFromObject(obj), obj))
	return obj.GetFinalizers()
}
