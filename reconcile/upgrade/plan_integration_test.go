package upgrade_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr/testr"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/opblocks/opblocks/ownedresources"
	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
	"github.com/opblocks/opblocks/reconcile/upgrade"
)

// controlPlane runs an API server without controllers, so only the tests write.
var controlPlane = controlplane.Shared(controlplane.Options{})

// budget is the kind of the owners. It is a built-in kind with a status.
type budget = policyv1.PodDisruptionBudget

type steps = []reconcile.NamedStep[*budget]

// children returns the only step of an operator, a set of these children.
func children(all ...ownedresources.AnyChild[*budget]) steps {
	return steps{reconcile.Named("children", ownedresources.Ensure(all...))}
}

// env is a namespace of a real API server.
type env struct {
	access    *rest.Config
	client    client.Client
	namespace string
	beside    func() steps // the steps of a second controller, for plans
	sent      sent
}

// sent records the requests to the API server, except discovery.
type sent struct {
	mu  sync.Mutex
	all []string
}

func (s *sent) RoundTrip(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.all = append(s.all, strings.TrimSpace(r.Method+" "+r.URL.Path+" "+r.URL.Query().Get("dryRun")))
		return next.RoundTrip(r)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// take returns the requests since the last call, except lists and watches, and except reads outside of the namespace.
func (s *sent) take(namespace string) (all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, request := range s.all {
		method, path, _ := strings.Cut(request, " ")
		path, dryRun, _ := strings.Cut(path, " ")
		parts := strings.Split(path, "/")
		at := slices.Index(parts, namespace)
		if method == http.MethodGet && (at < 0 || len(parts) == at+2) {
			continue
		}
		if at < 0 { // the object is outside of the namespace
			all = append(all, strings.TrimSpace(method+" "+path+" "+dryRun))
			continue
		}
		all = append(all, strings.TrimSpace(method+" "+parts[at+1]+" "+dryRun))
	}
	s.all = nil
	return all
}

func newEnv(t *testing.T) *env {
	t.Helper()
	cp := controlPlane(t)
	e := &env{access: cp.Config(), namespace: controlplane.Namespace(t, cp)}
	var err error
	e.client, err = client.New(e.access, client.Options{})
	require.NoError(t, err)
	return e
}

func (e *env) create(t *testing.T, objs ...client.Object) {
	t.Helper()
	for _, obj := range objs {
		obj.SetNamespace(e.namespace)
		require.NoError(t, e.client.Create(t.Context(), obj))
	}
}

// run reconciles an object until two reconciles in a row write nothing. The first reconcile of a process may only find out that it
// has to read again.
func (e *env) run(t *testing.T, name string, controllers ...steps) {
	t.Helper()
	var counted sent
	access := rest.CopyConfig(e.access)
	access.Wrap(counted.RoundTrip)
	c, err := client.New(access, client.Options{Mapper: e.client.RESTMapper()})
	require.NoError(t, err)
	var all []*reconcile.Reconciler[*budget]
	for _, steps := range controllers {
		if len(steps) > 0 {
			all = append(all, reconcile.New(c, steps...).WithoutStatus())
		}
	}
	var last []string
	quiet, passes := 0, 0
	for quiet < 2 {
		for _, r := range all {
			_, err := r.Reconcile(log.IntoContext(t.Context(), testr.New(t)), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: e.namespace, Name: name}})
			require.NoError(t, err)
		}
		last = counted.take(e.namespace)
		if !slices.ContainsFunc(last, func(request string) bool {
			return !strings.HasPrefix(request, http.MethodGet) && !strings.HasSuffix(request, " All")
		}) {
			quiet++
			continue
		}
		quiet = 0
		passes++
		require.Less(t, passes, 10, "the operator writes in each pass: %v", last)
		e.removeFinalizers(t)
	}
}

// plan returns the plan of an operator in a format.
func (e *env) plan(t *testing.T, ctx context.Context, format string, steps steps) (string, error) { //nolint:revive // t comes first in a test
	t.Helper()
	access := rest.CopyConfig(e.access)
	access.Wrap(e.sent.RoundTrip)
	return planOf(ctx, access, []string{e.namespace, e.elsewhere()}, format, func(mgr ctrl.Manager) error {
		if e.beside != nil && len(e.beside()) > 0 {
			if err := reconcile.For(mgr, e.beside()...).WithoutStatus().Complete(); err != nil {
				return err
			}
		}
		return reconcile.For(mgr, steps...).WithoutStatus().Complete()
	})
}

func planWith(ctx context.Context, access *rest.Config, namespace, format string, steps steps) (string, error) {
	return planOf(ctx, access, []string{namespace}, format, func(mgr ctrl.Manager) error {
		return reconcile.For(mgr, steps...).WithoutStatus().Complete()
	})
}

func planOf(ctx context.Context, access *rest.Config, namespaces []string, format string, setup func(ctrl.Manager) error) (string, error) {
	var out strings.Builder
	covered := map[string]cache.Config{}
	for _, namespace := range namespaces {
		covered[namespace] = cache.Config{}
	}
	err := upgrade.Plan(ctx, access, ctrl.Options{
		Scheme: scheme.Scheme, GracefulShutdownTimeout: new(controlplane.Patience),
		Cache: cache.Options{DefaultNamespaces: covered, DefaultTransform: reconcile.TransformCompact()},
	}, setup, &out, upgrade.Options{Format: format, Progress: io.Discard})
	return out.String(), err
}

func newBudget(name string) *budget { return &budget{ObjectMeta: metav1.ObjectMeta{Name: name}} }

func settings(content string) func(*budget) *corev1.ConfigMap {
	return func(o *budget) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: o.Name}, Data: map[string]string{"content": content}}
	}
}

func TestPlanOfOneField(t *testing.T) {
	e := newEnv(t)
	version := func(content string) steps { return children(ownedresources.Build(settings(content))) }
	for i := range 5 {
		name := fmt.Sprintf("shop-%d", i)
		e.create(t, newBudget(name))
		e.run(t, name, version("one"))
	}

	same, err := e.plan(t, t.Context(), "text", version("one"))
	require.NoError(t, err)
	require.Contains(t, same, "PodDisruptionBudget: 0 of 5 change, 5 are as desired.\nNothing would be changed.\n")
	require.Empty(t, e.sent.take(e.namespace), "a child that does not differ costs no request")

	got, err := e.plan(t, t.Context(), "text", version("two"))
	require.ErrorIs(t, err, upgrade.ErrChanges)
	require.Contains(t, got, `PodDisruptionBudget: 5 of 5 change.
All changes are in the same field: data.content.
5 × ConfigMap is changed
No child is deleted.

5 × ConfigMap is changed
    data.content: "one" → "two"
  ConfigMap `+e.namespace+"/shop-0 of PodDisruptionBudget "+e.namespace+"/shop-0 is shown; also "+e.namespace+"/shop-1, "+e.namespace+"/shop-2, "+e.namespace+"/shop-3, "+e.namespace+`/shop-4
`)
	requests := e.sent.take(e.namespace)
	require.Len(t, requests, 10)
	require.Equal(t, []string{"GET configmaps", "PATCH configmaps All"}, requests[:2])

	e.run(t, "shop-0", version("two"))
	got, err = e.plan(t, t.Context(), "text", version("two"))
	require.ErrorIs(t, err, upgrade.ErrChanges)
	require.Contains(t, got, "PodDisruptionBudget: 4 of 5 change, 1 are as desired.\n")
}

// named returns one of several steps of an operator.
func named(name string, all ...ownedresources.AnyChild[*budget]) reconcile.NamedStep[*budget] {
	return reconcile.Named(name, ownedresources.Ensure(all...))
}

// finishJobs sets the status of all Jobs to complete, as the Job controller would.
func (e *env) finishJobs(t *testing.T) {
	t.Helper()
	var jobs batchv1.JobList
	require.NoError(t, e.client.List(t.Context(), &jobs, client.InNamespace(e.namespace)))
	for i := range jobs.Items {
		job, now := &jobs.Items[i], metav1.Now()
		job.Status = batchv1.JobStatus{
			StartTime: &now, CompletionTime: &now, Succeeded: 1, UncountedTerminatedPods: &batchv1.UncountedTerminatedPods{},
			Conditions: []batchv1.JobCondition{
				{Type: batchv1.JobSuccessCriteriaMet, Status: corev1.ConditionTrue, LastTransitionTime: now},
				{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: now},
			},
		}
		require.NoError(t, e.client.Status().Update(t.Context(), job))
	}
}

// removeFinalizers removes the finalizers from all objects that are being deleted, as Kubernetes' controllers would.
func (e *env) removeFinalizers(t *testing.T) {
	t.Helper()
	for _, list := range []client.ObjectList{&batchv1.JobList{}, &appsv1.StatefulSetList{}, &corev1.PersistentVolumeClaimList{}} {
		require.NoError(t, e.client.List(t.Context(), list, client.InNamespace(e.namespace)))
		require.NoError(t, meta.EachListItem(list, func(item runtime.Object) error {
			obj := item.(client.Object)
			if obj.GetDeletionTimestamp() == nil {
				return nil
			}
			obj.SetFinalizers(nil)
			return e.client.Update(t.Context(), obj)
		}))
	}
}
