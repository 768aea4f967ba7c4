package reconciletest_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// A request through a clientset has the same name as a request through the manager's client, so faults are named alike.
func TestRequestNamesOverHTTP(t *testing.T) {
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "a"}}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a"}}},
		}},
	}
	merge := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`))
	web := client.ObjectKey{Namespace: "default", Name: "web"}
	tests := map[string]struct {
		reason string
		by     func(ctx context.Context, c client.Client, r client.Reader) error
		over   func(ctx context.Context, c kubernetes.Interface) error
		want   string
	}{
		"Get": {
			reason: "an uncached read",
			by:     func(ctx context.Context, _ client.Client, r client.Reader) error { return r.Get(ctx, web, config("")) },
			over: func(ctx context.Context, c kubernetes.Interface) error {
				_, err := c.CoreV1().ConfigMaps("default").Get(ctx, "web", metav1.GetOptions{})
				return err
			},
			want: "get ConfigMap default/web",
		},
		"List": {
			reason: "of all namespaces",
			by: func(ctx context.Context, _ client.Client, r client.Reader) error {
				return r.List(ctx, &corev1.ConfigMapList{})
			},
			over: func(ctx context.Context, c kubernetes.Interface) error {
				_, err := c.CoreV1().ConfigMaps("").List(ctx, metav1.ListOptions{})
				return err
			},
			want: "list ConfigMap",
		},
		"Create": {
			reason: "the server generates the name",
			by: func(ctx context.Context, c client.Client, _ client.Reader) error {
				return c.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "web-"}})
			},
			over: func(ctx context.Context, c kubernetes.Interface) error {
				_, err := c.CoreV1().ConfigMaps("default").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "web-"}}, metav1.CreateOptions{})
				return err
			},
			want: "create ConfigMap default/web-*",
		},
		"Update": {
			reason: "without a resource version",
			by:     func(ctx context.Context, c client.Client, _ client.Reader) error { return c.Update(ctx, config("web")) },
			over: func(ctx context.Context, c kubernetes.Interface) error {
				_, err := c.CoreV1().ConfigMaps("default").Update(ctx, config("web"), metav1.UpdateOptions{})
				return err
			},
			want: "update ConfigMap default/web",
		},
		"UpdateStatus": {
			reason: "a subresource",
			by: func(ctx context.Context, c client.Client, _ client.Reader) error {
				return c.Status().Update(ctx, deployment.DeepCopy())
			},
			over: func(ctx context.Context, c kubernetes.Interface) error {
				_, err := c.AppsV1().Deployments("default").UpdateStatus(ctx, deployment.DeepCopy(), metav1.UpdateOptions{})
				return err
			},
			want: "update Deployment/status default/web",
		},
		"Patch": {
			reason: "a merge patch",
			by: func(ctx context.Context, c client.Client, _ client.Reader) error {
				return c.Patch(ctx, config("web"), merge)
			},
			over: func(ctx context.Context, c kubernetes.Interface) error {
				_, err := c.CoreV1().ConfigMaps("default").Patch(ctx, "web", types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{})
				return err
			},
			want: "patch ConfigMap default/web",
		},
		"PatchScale": {
			reason: "a subresource with a kind of its own",
			by: func(ctx context.Context, c client.Client, _ client.Reader) error {
				return c.SubResource("scale").Patch(ctx, deployment.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":2}}`)), client.WithSubResourceBody(&corev1.ConfigMap{}))
			},
			over: func(ctx context.Context, c kubernetes.Interface) error {
				_, err := c.AppsV1().Deployments("default").Patch(ctx, "web", types.MergePatchType, []byte(`{"spec":{"replicas":2}}`), metav1.PatchOptions{}, "scale")
				return err
			},
			want: "patch Deployment/scale default/web",
		},
		"Apply": {
			reason: "server-side apply is a patch of its own",
			by: func(ctx context.Context, c client.Client, _ client.Reader) error {
				return c.Apply(ctx, corev1ac.ConfigMap("web", "default"), client.FieldOwner("me"))
			},
			over: func(ctx context.Context, c kubernetes.Interface) error {
				_, err := c.CoreV1().ConfigMaps("default").Apply(ctx, corev1ac.ConfigMap("web", "default"), metav1.ApplyOptions{FieldManager: "me"})
				return err
			},
			want: "apply ConfigMap default/web",
		},
		"Evict": {
			reason: "the creation of a subresource",
			by: func(ctx context.Context, c client.Client, _ client.Reader) error {
				return c.SubResource("eviction").Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}, &policyv1.Eviction{})
			},
			over: func(ctx context.Context, c kubernetes.Interface) error {
				return c.CoreV1().Pods("default").EvictV1(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "web"}})
			},
			want: "create Pod/eviction default/web",
		},
		"Delete": {
			reason: "with options in the body",
			by: func(ctx context.Context, c client.Client, _ client.Reader) error {
				return c.Delete(ctx, config("web"), client.PropagationPolicy(metav1.DeletePropagationForeground))
			},
			over: func(ctx context.Context, c kubernetes.Interface) error {
				foreground := metav1.DeletePropagationForeground
				return c.CoreV1().ConfigMaps("default").Delete(ctx, "web", metav1.DeleteOptions{PropagationPolicy: &foreground})
			},
			want: "delete ConfigMap default/web",
		},
		"DeleteCollection": {
			reason: "of a namespace",
			by: func(ctx context.Context, c client.Client, _ client.Reader) error {
				return c.DeleteAllOf(ctx, config(""), client.InNamespace("default"))
			},
			over: func(ctx context.Context, c kubernetes.Interface) error {
				return c.CoreV1().ConfigMaps("default").DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
			},
			want: "deletecollection ConfigMap default/",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			sent := func(pass func(ctx context.Context, p *reconciletest.Process) error) (names []string) {
				s := of(func(p *reconciletest.Process) shopFunc {
					done := false
					return func(ctx context.Context, _ client.Client, s *Shop) (ctrl.Result, error) {
						if !done && s.Spec.Motto != "" {
							done = true // what the operator does conflicts with the simulated controllers
							assert.NoError(t, client.IgnoreNotFound(pass(ctx, p)), tc.reason)
						}
						return ctrl.Result{}, nil
					}
				})
				s.Objects = []client.Object{shop(), config("web"), deployment.DeepCopy(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Spec: deployment.Spec.Template.Spec}}
				reconciletest.Run(t, s, func(_ *testing.T, env *reconciletest.Env) {
					env.Do(reconciletest.Change(shop(), func(s *Shop) { s.Spec.Motto = "more" }))
					for _, r := range env.RequestLog.Requests() {
						if !r.Cached && r.External == "" {
							names = append(names, r.String())
						}
					}
				})
				return names
			}
			assert.Equal(t, []string{tc.want}, sent(func(ctx context.Context, p *reconciletest.Process) error {
				return tc.by(ctx, p.Client(), p.APIReader())
			}), tc.reason)
			assert.Equal(t, []string{tc.want}, sent(func(ctx context.Context, p *reconciletest.Process) error {
				return tc.over(ctx, kubernetes.NewForConfigOrDie(p.Config()))
			}), tc.reason)
		})
	}
}

// byClientset returns the scenario of an operator that does everything but its watches with a clientset, from a config that it copies
// and wraps.
func byClientset(pass func(ctx context.Context, maps *kubernetes.Clientset, s *Shop) error) reconciletest.Scenario {
	return managed(func(p *reconciletest.Process, b *ctrl.Builder) ctrlreconcile.Reconciler {
		b.For(&Shop{}).Owns(&corev1.ConfigMap{})
		copied := rest.CopyConfig(p.Manager().GetConfig())
		copied.Wrap(func(inner http.RoundTripper) http.RoundTripper { return wrapped{inner} })
		set := kubernetes.NewForConfigOrDie(copied)
		return &shopReconciler{p.Client(), func(ctx context.Context, _ client.Client, s *Shop) (ctrl.Result, error) {
			return ctrl.Result{}, pass(ctx, set, s)
		}}
	}, reconciletest.Create(shop()), reconciletest.Change(shop(), func(s *Shop) { s.Spec.Motto = "more" }), reconciletest.Delete(shop()))
}

type wrapped struct{ http.RoundTripper }

func (w wrapped) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("X-Wrapped", "yes")
	return w.RoundTripper.RoundTrip(r)
}

// ownedConfig returns the ConfigMap that a shop owns.
func ownedConfig(s *Shop) *corev1.ConfigMap {
	made := config(s.Name)
	made.Data = map[string]string{"motto": s.Spec.Motto}
	made.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(s, shopVersion.WithKind("Shop"))}
	return made
}

// A sound operator that writes by a clientset survives, and the requests of the clientset have faults.
func TestClientsetSurvives(t *testing.T) {
	report := reconciletest.ExploreQuietly(t, byClientset(func(ctx context.Context, c *kubernetes.Clientset, s *Shop) error {
		maps, want := c.CoreV1().ConfigMaps(s.Namespace), ownedConfig(s)
		have, err := maps.Get(ctx, s.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			_, err = maps.Create(ctx, want, metav1.CreateOptions{})
		case err == nil && have.Data["motto"] != s.Spec.Motto:
			have.Data = want.Data
			_, err = maps.Update(ctx, have, metav1.UpdateOptions{})
		}
		return err
	}))
	require.Empty(t, report.Failures, report)
	require.NoError(t, report.Unfinished)
	for _, kind := range []reconciletest.FaultKind{reconciletest.Faults.CrashBefore, reconciletest.Faults.CrashAfter, reconciletest.Faults.Timeout, reconciletest.Faults.Conflict, reconciletest.Faults.TooManyRequests, reconciletest.Faults.InternalError, reconciletest.Faults.AlreadyExists, reconciletest.Faults.Stale} {
		assert.Positive(t, report.Survived[kind], kind)
	}
}

// The mistakes of an operator that writes by a clientset are found, as with the manager's client.
func TestClientsetMistakes(t *testing.T) {
	tests := map[string]struct {
		reason string
		pass   func(ctx context.Context, c *kubernetes.Clientset, s *Shop) error
		fault  reconciletest.FaultKind
		says   string
	}{
		"CreatesWithoutLooking": {
			reason: "after a lost answer or a crash the name is generated once more",
			pass: func(ctx context.Context, c *kubernetes.Clientset, s *Shop) error {
				if s.Status.Phase == "Open" {
					return nil
				}
				made := ownedConfig(s)
				made.Name, made.GenerateName = "", "web-"
				if _, err := c.CoreV1().ConfigMaps(s.Namespace).Create(ctx, made, metav1.CreateOptions{}); err != nil {
					return err
				}
				return c.RESTClient().Patch(types.MergePatchType).AbsPath("/apis/example.com/v1/namespaces", s.Namespace, "shops", s.Name, "status").
					Body([]byte(`{"status":{"phase":"Open"}}`)).Do(ctx).Error()
			},
			fault: reconciletest.Faults.CrashAfter, says: "crash after: create ConfigMap default/web-* #1",
		},
		"TakesConflictForSuccess": {
			reason: "the update is lost",
			pass: func(ctx context.Context, c *kubernetes.Clientset, s *Shop) error {
				maps, want := c.CoreV1().ConfigMaps(s.Namespace), ownedConfig(s)
				have, err := maps.Get(ctx, s.Name, metav1.GetOptions{})
				switch {
				case apierrors.IsNotFound(err):
					_, err = maps.Create(ctx, want, metav1.CreateOptions{})
				case err == nil && have.Data["motto"] != s.Spec.Motto:
					have.Data = want.Data
					if _, err = maps.Update(ctx, have, metav1.UpdateOptions{}); apierrors.IsConflict(err) || apierrors.IsTooManyRequests(err) {
						err = nil
					}
				}
				return err
			},
			fault: reconciletest.Faults.TooManyRequests, says: "too many requests at: update ConfigMap default/web #1",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			report := reconciletest.ExploreQuietly(t, byClientset(tc.pass))
			require.NotEmpty(t, report.Failures, tc.reason)
			assert.True(t, hasFailed(report, tc.fault), report)
			assert.Contains(t, report.String(), tc.says)
		})
	}
}

func hasFailed(report *reconciletest.Report, kind reconciletest.FaultKind) bool {
	return slices.ContainsFunc(report.Failures, func(f reconciletest.Failure) bool {
		return len(f.Faults) > 0 && strings.HasPrefix(f.Faults[0].String(), kind.String()+":")
	})
}

// An operator with shared informers of its own sees what the manager's cache would show, and survives the same faults. It enqueues in
// their handlers, in a controller without a watch of the manager's cache.
func TestOwnInformers(t *testing.T) {
	s := managed(func(p *reconciletest.Process, b *ctrl.Builder) ctrlreconcile.Reconciler {
		mgr := p.Manager()
		set := kubernetes.NewForConfigOrDie(p.Config())
		factory := informers.NewSharedInformerFactory(set, 0)
		lister := factory.Core().V1().ConfigMaps().Lister()
		factory.Core().V1().ConfigMaps().Informer()
		require.NoError(t, mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
			factory.StartWithContext(ctx)
			<-ctx.Done()
			factory.Shutdown()
			return nil
		})))
		b.For(&Shop{}).Owns(&corev1.ConfigMap{})
		return &shopReconciler{p.Client(), func(ctx context.Context, _ client.Client, s *Shop) (ctrl.Result, error) {
			factory.WaitForCacheSync(ctx.Done())
			maps, want := set.CoreV1().ConfigMaps(s.Namespace), ownedConfig(s)
			have, err := lister.ConfigMaps(s.Namespace).Get(s.Name)
			switch {
			case apierrors.IsNotFound(err):
				_, err = maps.Create(ctx, want, metav1.CreateOptions{})
			case err == nil && have.Data["motto"] != s.Spec.Motto:
				have = have.DeepCopy()
				have.Data = want.Data
				_, err = maps.Update(ctx, have, metav1.UpdateOptions{})
			}
			return ctrl.Result{}, err
		}}
	}, reconciletest.Create(shop()), reconciletest.Change(shop(), func(s *Shop) { s.Spec.Motto = "more" }))
	report := reconciletest.ExploreQuietly(t, s)
	require.Empty(t, report.Failures, report)
	assert.Positive(t, report.Survived[reconciletest.Faults.Stale])
	for _, right := range report.Rights {
		if right.Resource == "configmaps" && right.Verb == "watch" {
			return
		}
	}
	t.Error("the watch needs a right")
}

// An operator that opens a real connection ends the run, and the message names the call.
func TestRealConnections(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) }))
	defer server.Close()
	request := func(ctx context.Context, c *http.Client) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, http.NoBody)
		if err != nil {
			return err
		}
		answer, err := c.Do(r)
		if err != nil {
			return err
		}
		return answer.Body.Close()
	}
	tests := map[string]struct {
		reason string
		open   func(ctx context.Context) error
		says   string
	}{
		"DefaultClient": {
			reason: "the proxy of the default transport is asked for first",
			open:   func(context.Context) error { return request(context.Background(), http.DefaultClient) },
			says:   "it calls net/http.(*Client).Do at config_test.go:",
		},
		"OtherClient": {
			reason: "the context of the process has a hook",
			open: func(ctx context.Context) error {
				return request(ctx, &http.Client{Transport: &http.Transport{DisableKeepAlives: true}})
			},
			says: "it calls net/http.(*Client).Do at config_test.go:",
		},
		"Dial": {
			reason: "the context of the process has a hook",
			open: func(ctx context.Context) error {
				c, err := (&net.Dialer{}).DialContext(ctx, "tcp", server.Listener.Addr().String())
				if err != nil {
					return err
				}
				return c.Close()
			},
			says: "it calls net.(*Dialer).DialContext at config_test.go:",
		},
		"Lookup": {
			reason: "the context of the process has a hook",
			open: func(ctx context.Context) error {
				_, err := net.DefaultResolver.LookupIPAddr(ctx, "db.example.com")
				return err
			},
			says: "it calls net.(*Resolver).LookupIPAddr at config_test.go:",
		},
		"Refused": {
			reason: "nothing sees the call, so the error is explained",
			open: func(context.Context) error {
				_, err := net.Dial("tcp", "127.0.0.1:1") //nolint:noctx // operators do that
				return err
			},
			says: "connection refused\nThat is the error of a real connection.",
		},
	}
	for name, tc := range tests {
		for where, inStart := range map[string]bool{"Start": true, "Pass": false} {
			t.Run(name+where, func(t *testing.T) {
				s := of(func(p *reconciletest.Process) shopFunc {
					return func(ctx context.Context, _ client.Client, _ *Shop) (ctrl.Result, error) {
						return ctrl.Result{}, tc.open(ctx)
					}
				}, reconciletest.Create(shop()))
				if inStart {
					s.Start = func(p *reconciletest.Process) error {
						p.Reconcile(&Shop{}, &shopReconciler{p.Client(), idle(p)})
						return tc.open(p.Context())
					}
				}
				report := reconciletest.ExploreQuietly(t, s)
				require.Len(t, report.Failures, 1, tc.reason)
				assert.Empty(t, report.Failures[0].Faults)
				assert.ErrorContains(t, report.Failures[0].Err, tc.says, tc.reason)
				assert.ErrorContains(t, report.Failures[0].Err, "Process.RoundTripper")
			})
		}
	}
}
