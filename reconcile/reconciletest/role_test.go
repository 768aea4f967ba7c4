package reconciletest_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

func TestRights(t *testing.T) {
	rights := map[string]struct {
		reason string
		start  func(p *reconciletest.Process, c client.Client) shopFunc
		want   []string // in addition to list and watch of the shops
	}{
		"CachedRead": {
			reason: "the cache lists and watches, in all namespaces",
			start: func(*reconciletest.Process, client.Client) shopFunc {
				return func(ctx context.Context, c client.Client, _ *Shop) (ctrl.Result, error) {
					return ctrl.Result{}, client.IgnoreNotFound(c.Get(ctx, client.ObjectKeyFromObject(config("a")), config("a")))
				}
			},
			want: []string{"list configmaps", "watch configmaps"},
		},
		"LiveReads": {
			reason: "the API server is asked for the object, or for the objects of the namespace",
			start: func(p *reconciletest.Process, _ client.Client) shopFunc {
				return func(ctx context.Context, c client.Client, _ *Shop) (ctrl.Result, error) {
					deployment := &unstructured.Unstructured{}
					deployment.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
					return ctrl.Result{}, firstOf(
						client.IgnoreNotFound(c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "web"}, deployment)),
						p.APIReader().List(ctx, &corev1.PodList{}, client.InNamespace("default")))
				}
			},
			want: []string{"list pods in default", "get deployments.apps default/web"},
		},
		"ApplyThatCreates": {
			reason: "an apply is a patch, and the API server also asks for create if it creates",
			start: func(*reconciletest.Process, client.Client) shopFunc {
				return func(ctx context.Context, c client.Client, _ *Shop) (ctrl.Result, error) {
					return ctrl.Result{}, c.Apply(ctx, corev1ac.ConfigMap("a", "default"), client.FieldOwner("shop"))
				}
			},
			want: []string{"create configmaps in default", "patch configmaps default/a"},
		},
		"OwnerThatIsBlocked": {
			reason: "an owner reference that blocks the deletion of the owner needs its finalizers",
			start: func(*reconciletest.Process, client.Client) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					child := config("a")
					if err := controllerutil.SetControllerReference(s, child, c.Scheme()); err != nil {
						return ctrl.Result{}, err
					}
					return ctrl.Result{}, client.IgnoreAlreadyExists(c.Create(ctx, child))
				}
			},
			want: []string{"create configmaps in default", "update shops.example.com/finalizers default/web"},
		},
		"ChangeOfOwners": {
			reason: "who may change the owners can have the object deleted",
			start: func(*reconciletest.Process, client.Client) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					child := config("a")
					if err := client.IgnoreAlreadyExists(c.Create(ctx, child)); err != nil {
						return ctrl.Result{}, err
					}
					base := client.MergeFrom(config("a"))
					child = config("a")
					if err := controllerutil.SetOwnerReference(s, child, c.Scheme()); err != nil {
						return ctrl.Result{}, err
					}
					return ctrl.Result{}, c.Patch(ctx, child, base)
				}
			},
			want: []string{"create configmaps in default", "delete configmaps default/a", "patch configmaps default/a"},
		},
		"StatusAndEvents": {
			reason: "the status is a subresource; an event is created, and patched if it is repeated",
			start: func(p *reconciletest.Process, _ client.Client) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					if s.Status.Phase == "Open" {
						return ctrl.Result{}, nil
					}
					p.EventRecorder().Eventf(s, nil, corev1.EventTypeNormal, "Opened", "Open", "it is open")
					p.LegacyEventRecorder().Event(s, corev1.EventTypeNormal, "Opened", "it is open")
					return ctrl.Result{}, open(ctx, c, s, "Open")
				}
			},
			want: []string{
				"create events in default", "patch events in default",
				"create events.events.k8s.io in default", "patch events.events.k8s.io in default", "update shops.example.com/status default/web",
			},
		},
		"DeleteAllOf": {
			reason: "a collection is deleted by a verb of its own",
			start: func(*reconciletest.Process, client.Client) shopFunc {
				return func(ctx context.Context, c client.Client, _ *Shop) (ctrl.Result, error) {
					return ctrl.Result{}, c.DeleteAllOf(ctx, config("a"), client.InNamespace("default"))
				}
			},
			want: []string{"deletecollection configmaps in default"},
		},
	}
	for name, tc := range rights {
		t.Run(name, func(t *testing.T) {
			s := of(func(p *reconciletest.Process) shopFunc { return tc.start(p, p.Client()) }, reconciletest.Create(shop()))
			report := reconciletest.ExploreQuietly(t, with(s, reconciletest.Options{Replay: "internal error at: none #1"}))
			got := []string{}
			for _, right := range report.Rights {
				if text := right.String(); text != "list shops.example.com" && text != "watch shops.example.com" {
					got = append(got, text)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// A cache that is restricted to one namespace needs rights in that namespace only.
func TestRightsInOneNamespace(t *testing.T) {
	s := of(soundOperators["UpdatesTheStatusInEachPass"], reconciletest.Create(shop()))
	start := s.Start
	s.Start = func(p *reconciletest.Process) error {
		p.Manager(cache.Options{DefaultNamespaces: map[string]cache.Config{"default": {}}})
		return start(p)
	}
	var got []string
	for _, right := range reconciletest.ExploreQuietly(t, with(s, reconciletest.Options{Replay: "internal error at: none #1"})).Rights {
		got = append(got, right.String())
	}
	require.Equal(t, []string{"list shops.example.com in default", "watch shops.example.com in default", "update shops.example.com/status default/web"}, got)
}

const allOfShops = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: manager-role}
rules:
- {apiGroups: [example.com], resources: [shops], verbs: [get, list]}
- {apiGroups: [""], resources: [configmaps], resourceNames: [settings], verbs: [get]}
- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [create, get, update]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: manager-role, namespace: system}
rules:
- {apiGroups: [""], resources: [events], verbs: [create]}
- {apiGroups: [""], resources: [secrets], verbs: [get]}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: operator}
`

func TestCompareRole(t *testing.T) {
	fits := map[reconciletest.Right]string{
		{Verb: "get", Group: "example.com", Resource: "shops", Namespace: "default", Name: "web"}: "get Shop default/web",
		{Verb: "list", Group: "example.com", Resource: "shops"}:                                   "the cache of Shop",
		{Verb: "get", Resource: "configmaps", Namespace: "default", Name: "settings"}:             "get ConfigMap default/settings",
		{Verb: "get", Resource: "secrets", Namespace: "system", Name: "a"}:                        "get Secret system/a",
	}
	tests := map[string]struct {
		reason     string
		role       string
		without    reconciletest.Right
		with       []reconciletest.Right
		unexplored []string
		want       string
	}{
		"Fits": {reason: "everything is granted and used; leases and events belong to the manager", role: allOfShops},
		"Missing": {
			reason: "both verbs of the resource are in one marker, and each request is named", role: allOfShops,
			with: []reconciletest.Right{
				{Verb: "patch", Group: "apps", Resource: "deployments", Namespace: "default", Name: "web"},
				{Verb: "create", Group: "apps", Resource: "deployments", Namespace: "default"},
			},
			want: "  missing: create deployments.apps in default (a request)\n" +
				"  missing: patch deployments.apps default/web (a request)\n" +
				"    write // +kubebuilder:rbac:groups=apps,resources=deployments,verbs=create;patch\n",
		},
		"OtherName": {
			reason: "resourceNames limit the rule", role: allOfShops,
			with: []reconciletest.Right{{Verb: "get", Resource: "configmaps", Namespace: "default", Name: "other"}},
			want: "  missing: get configmaps default/other (a request)\n" +
				"    write // +kubebuilder:rbac:groups=\"\",resources=configmaps,verbs=get\n",
		},
		"OtherNamespace": {
			reason: "a Role grants in its namespace", role: allOfShops,
			with: []reconciletest.Right{{Verb: "get", Resource: "secrets", Namespace: "default", Name: "a"}},
			want: "  missing: get secrets default/a (a request)\n" +
				"    write // +kubebuilder:rbac:groups=\"\",resources=secrets,verbs=get\n",
		},
		"Enforced": {
			reason: "only an admission plug-in asks for it, and it gives away much", role: allOfShops,
			with: []reconciletest.Right{{Verb: "delete", Resource: "configmaps", Namespace: "default", Name: "a", Enforced: true}},
		},
		"Unused": {
			reason: "the verb is named, with the namespace of the Role", role: allOfShops,
			without: reconciletest.Right{Verb: "get", Resource: "secrets", Namespace: "system", Name: "a"},
			want:    "  unused: get secrets in namespace system; remove it from its marker, add an action that needs it, or name it as unexplored\n",
		},
		"Unexplored": {
			reason: "no scenario needs it, which the author knows", role: allOfShops,
			without:    reconciletest.Right{Verb: "get", Resource: "secrets", Namespace: "system", Name: "a"},
			unexplored: []string{"get secrets"},
		},
		"UnexploredButUsed": {
			reason: "the exception is no longer needed", role: allOfShops,
			unexplored: []string{"get shops.example.com"},
			want:       "  get shops.example.com is used: do not name it as unexplored\n",
		},
		"UnexploredButNotGranted": {
			reason: "the exception is about nothing", role: allOfShops,
			unexplored: []string{"delete pods"},
			want:       "  delete pods is named as unexplored, but no rule grants it\n",
		},
		"Wildcard": {
			reason: "it covers what is asked for, and more than that",
			role: "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: all}, " +
				"rules: [{apiGroups: ['*'], resources: ['*'], verbs: ['*']}]}",
			want: "  too wide: * *.*; name the verbs and the resources\n",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			rights := map[reconciletest.Right]string{}
			for right, request := range fits {
				if right != tc.without {
					rights[right] = request
				}
			}
			for _, right := range tc.with {
				rights[right] = "a request"
			}
			file := filepath.Join(t.TempDir(), "role.yaml")
			require.NoError(t, os.WriteFile(file, []byte(tc.role), 0o600))
			got, err := reconciletest.CompareRole(file, []*reconciletest.Report{reconciletest.NewReport(rights)}, tc.unexplored...)
			require.NoError(t, err)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestCompareRoleWithoutRole(t *testing.T) {
	_, err := reconciletest.CompareRole(filepath.Join(t.TempDir(), "role.yaml"), nil)
	require.ErrorIs(t, err, os.ErrNotExist)
	file := filepath.Join(t.TempDir(), "role.yaml")
	require.NoError(t, os.WriteFile(file, []byte("kind: ConfigMap\napiVersion: v1\n"), 0o600))
	_, err = reconciletest.CompareRole(file, nil)
	require.ErrorContains(t, err, "name the file that controller-gen generates")
}

// After a sample, unused rights are not reported: the runs that were left out may use them.
func TestCompareRoleAfterSample(t *testing.T) {
	file := filepath.Join(t.TempDir(), "role.yaml")
	require.NoError(t, os.WriteFile(file, []byte(allOfShops), 0o600))
	s := of(soundOperators["UpdatesTheStatusInEachPass"], reconciletest.Create(shop()))
	sample := reconciletest.ExploreQuietly(t, with(s, reconciletest.Options{Limit: 1}))
	got, err := reconciletest.CompareRole(file, []*reconciletest.Report{sample})
	require.NoError(t, err)
	require.NotContains(t, got, "unused")
	require.Contains(t, got, "missing: watch shops.example.com")
}

// recordedTest keeps the messages of AssertRole.
type recordedTest struct {
	testing.TB

	logs, errors string
}

func (r *recordedTest) Helper()                        {}
func (r *recordedTest) Logf(format string, a ...any)   { r.logs += fmt.Sprintf(format, a...) }
func (r *recordedTest) Errorf(format string, a ...any) { r.errors += fmt.Sprintf(format, a...) }

// AssertRole says in the test's log whether it could judge unused rights.
func TestAssertRoleSaysWhatItJudged(t *testing.T) {
	file := filepath.Join(t.TempDir(), "role.yaml")
	require.NoError(t, os.WriteFile(file, []byte("{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: shops}, rules: ["+
		"{apiGroups: [example.com], resources: [shops, shops/status], verbs: [list, watch, update]}]}"), 0o600))
	const rest = "; remove it from its marker, add an action that needs it, or name it as unexplored\n"
	const faultless = "; a fault may need it: explore all faults once; if none does, remove it from its marker, add an action that needs it, or name it as unexplored\n"
	tests := map[string]struct {
		reason  string
		options reconciletest.Options
		log     string
		want    []string
	}{
		"AllFaults": {
			reason: "all runs were done", options: reconciletest.Options{Limit: 10_000},
			want: []string{"  unused: update shops.example.com" + rest, "  unused: list shops.example.com/status" + rest},
		},
		"Sample": {
			reason: "other faults may need more rights", options: reconciletest.Options{Limit: 1},
			log: "only missing rights were judged, and not unused ones, since not all faults were tried: run it without -short, Limit and Budget",
		},
		"WithoutFaults": {
			reason: "that is what was asked for", options: reconciletest.Options{WithoutFaults: true},
			want: []string{"  unused without faults: update shops.example.com" + faultless, "  unused without faults: list shops.example.com/status" + faultless},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := of(soundOperators["UpdatesTheStatusInEachPass"], reconciletest.Create(shop()))
			report := reconciletest.ExploreQuietly(t, with(s, tc.options))
			said := &recordedTest{TB: t}
			reconciletest.AssertRole(said, file, []*reconciletest.Report{report})
			require.Contains(t, said.logs, tc.log, tc.reason)
			require.Equal(t, tc.log == "", said.logs == "", tc.reason)
			require.Equal(t, len(tc.want) == 0, said.errors == "", tc.reason)
			for _, want := range tc.want {
				require.Contains(t, said.errors, want, tc.reason)
			}
		})
	}
}
