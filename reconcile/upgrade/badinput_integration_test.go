package upgrade_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/opblocks/opblocks/ownedresources"
	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
	"github.com/opblocks/opblocks/reconcile/upgrade"
)

// If one object cannot be planned, its line in the plan says why, and all other objects are planned.
func TestPlanOfObjectsThatCannotBePlanned(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		before func(t *testing.T, e *env)
		steps  func() steps
		says   string // a part of the line of the object "bad"
		also   string // a part of another line
		err    error
	}{
		"a child of somebody else": {
			reason: "it is left alone",
			before: func(t *testing.T, e *env) {
				e.create(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "bad"}})
			},
			says: "ConfigMap NS/bad exists and is not controlled by anything: it is left alone; choose another name, or let the operator take it over with Adopt",
			err:  upgrade.ErrIncomplete,
		},
		"a child of somebody else, and one that is not desired any more": {
			reason: "nothing is deleted while a child fails, and the plan says so",
			before: func(t *testing.T, e *env) {
				e.run(t, "bad", children(ownedresources.Build(secret(nil))))
				e.create(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "bad"}})
			},
			steps: func() steps {
				return children(ownedresources.Build(settings("one")), ownedresources.BuildEach(func(*budget) ([]*corev1.Secret, error) { return nil, nil }))
			},
			says: "ConfigMap NS/bad exists and is not controlled by anything", also: "no child of PodDisruptionBudget bad fails",
			err: upgrade.ErrIncomplete,
		},
		"a quota": {
			reason: "the API server checks quotas in dry runs too",
			before: func(t *testing.T, e *env) {
				e.create(t, &corev1.ResourceQuota{
					ObjectMeta: metav1.ObjectMeta{Name: "none"},
					Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/secrets": resource.MustParse("0")}},
				})
				quota := &corev1.ResourceQuota{}
				require.NoError(t, e.client.Get(t.Context(), client.ObjectKey{Namespace: e.namespace, Name: "none"}, quota))
				quota.Status.Hard = quota.Spec.Hard // the quota controller does not run, which would set this
				quota.Status.Used = corev1.ResourceList{"count/secrets": resource.MustParse("0")}
				require.NoError(t, e.client.Status().Update(t.Context(), quota))
			},
			steps: func() steps {
				return children(ownedresources.Build(settings("one")), ownedresources.BuildEach(func(o *budget) ([]*corev1.Secret, error) {
					if o.Name != "bad" {
						return nil, nil
					}
					return []*corev1.Secret{{ObjectMeta: metav1.ObjectMeta{Name: o.Name}}}, nil
				}))
			},
			says: "exceeded quota: none, requested: count/secrets=1, used: count/secrets=0, limited: count/secrets=0",
			err:  upgrade.ErrIncomplete,
		},
		"a webhook that is down": {
			reason: "its configuration says Fail",
			before: func(t *testing.T, e *env) {
				hook := &admissionregistrationv1.ValidatingWebhookConfiguration{
					ObjectMeta: metav1.ObjectMeta{Name: e.namespace},
					Webhooks: []admissionregistrationv1.ValidatingWebhook{{
						Name: "down.example.com", AdmissionReviewVersions: []string{"v1"}, SideEffects: new(admissionregistrationv1.SideEffectClassNone), FailurePolicy: new(admissionregistrationv1.Fail),
						ClientConfig:      admissionregistrationv1.WebhookClientConfig{URL: new("https://127.0.0.1:1/")},
						NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: e.namespace}},
						MatchConditions:   []admissionregistrationv1.MatchCondition{{Name: "bad", Expression: "object.metadata.name == 'bad'"}},
						Rules: []admissionregistrationv1.RuleWithOperations{{
							Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
							Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
						}},
					}},
				}
				require.NoError(t, e.client.Create(t.Context(), hook))
				t.Cleanup(func() { require.NoError(t, e.client.Delete(context.Background(), hook)) })
				require.Eventually(t, func() bool { // the API server reads the policy in the background
					err := e.client.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: "bad"}}, client.DryRunAll)
					return err != nil
				}, controlplane.Patience, 10*time.Millisecond)
			},
			says: `failed calling webhook "down.example.com"`,
			err:  upgrade.ErrIncomplete,
		},
		"an object that is being deleted": {
			reason: "its children are not reconciled any more",
			before: func(t *testing.T, e *env) {
				bad := newBudget("bad")
				bad.Namespace = e.namespace
				require.NoError(t, e.client.Get(t.Context(), client.ObjectKeyFromObject(bad), bad))
				bad.Finalizers = []string{"example.com/hold"}
				require.NoError(t, e.client.Update(t.Context(), bad))
				require.NoError(t, e.client.Delete(t.Context(), bad))
				t.Cleanup(func() {
					require.NoError(t, e.client.Get(context.Background(), client.ObjectKeyFromObject(bad), bad))
					bad.Finalizers = nil
					require.NoError(t, e.client.Update(context.Background(), bad))
				})
			},
			says: "it is being deleted",
			err:  upgrade.ErrChanges,
		},
		"an object that is paused": {
			reason: "no step runs",
			before: func(t *testing.T, e *env) {
				bad := newBudget("bad")
				bad.Namespace = e.namespace
				require.NoError(t, e.client.Get(t.Context(), client.ObjectKeyFromObject(bad), bad))
				bad.Annotations = map[string]string{reconcile.PausedAnnotation: "true"}
				require.NoError(t, e.client.Update(t.Context(), bad))
			},
			says: "it is paused",
			err:  upgrade.ErrChanges,
		},
		"a builder that panics": {
			reason: "it panics in a pass too",
			steps: func() steps {
				return children(ownedresources.Build(func(o *budget) *corev1.ConfigMap {
					if o.Name == "bad" {
						panic("canary")
					}
					return settings("one")(o)
				}))
			},
			says: `step "children": it panicked; the log has the stack`,
			err:  upgrade.ErrIncomplete,
		},
		"an input that is missing": {
			reason: "the child waits for it",
			steps: func() steps {
				input := ownedresources.From(func(ctx context.Context, r client.Reader, o *budget) (string, error) {
					if o.Name != "bad" {
						return "one", nil
					}
					found := &corev1.Secret{}
					return "one", r.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: "password"}, found)
				}, ownedresources.Reads(&corev1.Secret{}, func(*budget) []types.NamespacedName { return []types.NamespacedName{{Name: "password"}} }))
				return children(ownedresources.BuildFrom(input, func(o *budget, content string) (*corev1.ConfigMap, error) { return settings(content)(o), nil }))
			},
			says: `child ConfigMap: secrets "password" not found`,
			err:  upgrade.ErrChanges,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t)
			e.create(t, newBudget("a-good"), newBudget("bad"))
			if tc.before != nil {
				tc.before(t, e)
			}
			steps := func() steps { return children(ownedresources.Build(settings("one"))) }
			if tc.steps != nil {
				steps = tc.steps
			}
			got, err := e.planJSON(t, steps())
			require.ErrorIs(t, err, tc.err, tc.reason)
			require.NotEmpty(t, got.Changes, "the other object is planned")
			require.Contains(t, fmt.Sprint(got.Changes), e.namespace+"/a-good")
			require.Contains(t, fmt.Sprint(got.Changes), tc.also)
			others := slices.Concat(got.NotPlanned, got.Skipped)
			require.Len(t, others, 1)
			require.Contains(t, strings.ReplaceAll(others[0].Reason, e.namespace, "NS"), tc.says)
			require.NotContains(t, fmt.Sprint(got), "canary")
		})
	}
}

// A plan needs only the role of the operator. If the role lacks a permission, the line of the object
// says so.
func TestPlanWithoutRights(t *testing.T) {
	e := newEnv(t)
	e.create(t, newBudget("web"))
	may := func(rules ...rbacv1.PolicyRule) *rest.Config {
		user := "user-" + e.namespace
		e.create(t,
			&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "operator"}, Rules: rules},
			&rbacv1.RoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: "operator"}, Subjects: []rbacv1.Subject{{Kind: "User", Name: user}},
				RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "operator"},
			})
		return controlPlane(t).ConfigFor(user)
	}
	access := may(
		rbacv1.PolicyRule{APIGroups: []string{"policy"}, Resources: []string{"poddisruptionbudgets"}, Verbs: []string{"get", "list", "watch"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "watch"}},
	)
	out, err := planWith(t.Context(), access, e.namespace, "text", children(ownedresources.Build(settings("one"))))
	require.ErrorIs(t, err, upgrade.ErrIncomplete)
	require.Contains(t, out, `cannot create resource "configmaps" in API group "" in the namespace`)

	_, err = planWith(t.Context(), access, e.namespace, "text", children(ownedresources.Build(secret(nil))))
	require.ErrorContains(t, err, `resource "secrets" in API group "" in the namespace "`+e.namespace+`": add the permission to the operator's role`, "the operator itself could not start")
}

// The API server stops answering, or the user interrupts the plan.
func TestPlanThatEndsEarly(t *testing.T) {
	e := newEnv(t)
	for i := range 12 {
		e.create(t, newBudget(fmt.Sprintf("shop-%02d", i)))
	}
	var writes atomic.Int32
	after := func(n int32, do func(*http.Request) (*http.Response, error)) *rest.Config {
		writes.Store(0)
		access := rest.CopyConfig(e.access)
		access.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) {
				if r.Method != http.MethodGet && writes.Add(1) > n {
					return do(r)
				}
				return next.RoundTrip(r)
			})
		})
		return access
	}
	steps := func() steps { return children(ownedresources.Build(settings("one"))) }

	out, err := planWith(t.Context(), after(3, func(*http.Request) (*http.Response, error) { return nil, errors.New("connection refused") }), e.namespace, "text", steps())
	require.ErrorIs(t, err, upgrade.ErrIncomplete)
	require.Contains(t, out, "THE PLAN IS NOT COMPLETE: the API server has not answered for 5 objects in a row\n"+
		"PodDisruptionBudget: 3 of 12 change, 5 are not known, 4 were not looked at.\n")

	ctx, interrupt := context.WithCancel(t.Context())
	out, err = planWith(ctx, after(3, func(r *http.Request) (*http.Response, error) {
		interrupt()
		return nil, r.Context().Err()
	}), e.namespace, "text", steps())
	require.ErrorIs(t, err, upgrade.ErrIncomplete)
	require.Contains(t, out, "THE PLAN IS NOT COMPLETE: it was interrupted\nPodDisruptionBudget: 3 of 12 change, 9 were not looked at.\n")
}

// Only reads and dry runs are sent, whatever the operator does.
func TestPlanSendsNoWrites(t *testing.T) {
	e := newEnv(t)
	e.create(t, newBudget("web"))
	var refused []error
	access := rest.CopyConfig(e.access)
	access.Wrap(e.sent.RoundTrip)
	var out strings.Builder
	err := upgrade.Plan(t.Context(), access, ctrl.Options{LeaderElection: true, LeaderElectionID: "plan.example.com", LeaderElectionNamespace: e.namespace}, func(mgr ctrl.Manager) error {
		own, err := client.New(mgr.GetConfig(), client.Options{}) // the operator's own client, which does not send dry runs
		if err != nil {
			return err
		}
		obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: "theirs"}}
		refused = append(refused, own.Create(t.Context(), obj.DeepCopy()), own.Update(t.Context(), obj.DeepCopy()), own.Delete(t.Context(), obj), own.Delete(t.Context(), obj, client.DryRunAll),
			own.Patch(t.Context(), obj.DeepCopy(), client.MergeFrom(obj)), own.DeleteAllOf(t.Context(), obj, client.InNamespace(e.namespace)))
		mgr.GetEventRecorder("plan").Eventf(newBudget("web"), nil, corev1.EventTypeNormal, "Any", "Any", "nothing is emitted")
		if err := mgr.Add(manager.RunnableFunc(func(ctx context.Context) error { return own.Create(ctx, obj.DeepCopy()) })); err != nil {
			return err
		}
		step := reconcile.Named("writes", reconcile.Func(func(ctx context.Context, c client.Client, o *budget) error { return errors.New("never called") }))
		return reconcile.For(mgr, append(children(ownedresources.Build(settings("one")), ownedresources.Build(func(o *budget) *corev1.Secret {
			return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: o.Name + "-elsewhere", Namespace: o.Namespace}}
		}).Anywhere()), step)...).WithoutStatus().Complete()
	}, &out, upgrade.Options{Progress: io.Discard, Namespace: e.namespace, Selector: labels.Everything()})
	require.ErrorIs(t, err, upgrade.ErrChanges, out.String())
	for _, err := range refused {
		require.ErrorContains(t, err, "it was not sent: a plan sends only reads and dry runs")
	}
	require.Contains(t, out.String(), "What these steps of PodDisruptionBudget would do is not in the plan, since they have no method Preview: writes.")
	require.Contains(t, out.String(), "manager.RunnableFunc, which the operator adds to its manager, did not run.")
	require.Contains(t, out.String(), "1 × Secret is created", "the finalizer that a pass would add first is taken for granted")
	for _, request := range e.sent.take(e.namespace) {
		require.True(t, strings.HasPrefix(request, "GET ") || strings.HasSuffix(request, " All"), request)
	}
}

func TestPlanOfNothing(t *testing.T) {
	e := newEnv(t)
	err := upgrade.Plan(t.Context(), e.access, ctrl.Options{}, func(ctrl.Manager) error { return nil }, io.Discard, upgrade.Options{})
	require.ErrorContains(t, err, "there is nothing to plan: the set-up added neither")
	err = upgrade.Plan(t.Context(), e.access, ctrl.Options{}, nil, io.Discard, upgrade.Options{Format: "yaml"})
	require.ErrorContains(t, err, `the format "yaml" of a plan is not known: use text, json or markdown`)
}

// The plan contains a user's own step that has the method Preview.
func TestPlanOfOwnStep(t *testing.T) {
	e := newEnv(t)
	e.create(t, newBudget("old"), newBudget("new"))
	own := reconcile.Named("account", reconcile.Step[*budget](&account{exists: func(name string) bool { return name == "old" }}))
	got, err := e.planJSON(t, steps{own})
	require.ErrorIs(t, err, upgrade.ErrChanges)
	require.Equal(t, []planned{{Action: "create", Kind: "account", Shown: "new", Effects: []string{"the database gets an account"}}}, got.Changes)
	require.Len(t, got.NotExact, 4, "nothing is left out")
}

// The plan also contains a set in a user's own reconciler, which does not use package reconcile.
func TestPlanOfOwnReconciler(t *testing.T) {
	e := newEnv(t)
	e.create(t, newBudget("web"))
	var out strings.Builder
	err := upgrade.Plan(t.Context(), e.access, ctrl.Options{Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{e.namespace: {}}}}, func(mgr ctrl.Manager) error {
		set := ownedresources.Ensure(ownedresources.Build(settings("one")))
		b := ctrl.NewControllerManagedBy(mgr).For(&budget{})
		if err := set.SetupWithBuilder(mgr, b); err != nil {
			return err
		}
		return b.Complete(ctrlreconcile.Func(func(context.Context, ctrl.Request) (ctrl.Result, error) { panic("a plan starts no reconciler") }))
	}, &out, upgrade.Options{Progress: io.Discard})
	require.ErrorIs(t, err, upgrade.ErrChanges)
	require.Contains(t, out.String(), "1 × ConfigMap is created")
}
