package operatortest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/opblocks/opblocks/reconcile"
)

// permission is one verb of a rule, for one resource.
type permission struct{ verb, group, resource string }

func (p permission) String() string {
	return strings.TrimSuffix(p.verb+" "+p.resource+"."+p.group, ".")
}

// rule returns a rule of this permission only.
func (p permission) rule() rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{p.group}, Resources: []string{p.resource}, Verbs: []string{p.verb}}
}

// permissions returns all verbs of the operator's ClusterRole and of its Role.
func (i *Installation) permissions(t testing.TB) (all []permission) {
	t.Helper()
	for _, rule := range slices.Concat(i.Rules(t), i.ownRules(t)) {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					all = append(all, permission{verb, group, resource})
				}
			}
		}
	}
	return all
}

// AssertEachVerbUsed asserts that the operator needs each verb of each rule of its roles. It runs a lifecycle once with all of
// them, in which nothing is refused, and once without each of them, in which the API server refuses a request and the operator
// reports that. A run ends with the first refusal.
func (i *Installation) AssertEachVerbUsed(t *testing.T, lifecycle func(*User) *Lifecycle) {
	t.Helper()
	all := i.permissions(t)
	t.Run("all", func(t *testing.T) {
		t.Parallel()
		r := i.run(t, lifecycle, all, false)
		require.NoError(t, r.err, r.log.String())
		require.Empty(t, r.requests.Denied())
	})
	for n, missing := range all {
		t.Run("without "+missing.String(), func(t *testing.T) {
			t.Parallel()
			// client-go writes to another log if it cannot write the lease or an event about it. An operator that may not watch
			// definitions asks which kinds are served instead.
			reported := missing.resource != "leases" && missing.resource != "customresourcedefinitions" && (missing.resource != "events" || missing.group != "")
			r := i.run(t, lifecycle, slices.Delete(slices.Clone(all), n, n+1), reported)
			require.NotEmpty(t, r.requests.Denied(), "no request needs this verb; the lifecycle ends with %v", r.err)
			if reported {
				assert.True(t, r.isReported(), "the refusal of %v is not reported", r.requests.Denied())
			}
		})
	}
}

// lifecycleRun is one run of a [Lifecycle].
type lifecycleRun struct {
	requests Requests
	log      lines // the operator's log, and the error that it ended with
	err      error // nil if the last step was reached
}

// isReported reports whether the operator has reported that a request was refused.
func (r *lifecycleRun) isReported() bool { return strings.Contains(r.log.String(), "forbidden") }

// run runs a lifecycle in a new namespace, with an operator that has some permissions. It ends after the last step, or when the
// API server has refused a request and the operator has reported that, if reported is true.
func (i *Installation) run(t *testing.T, lifecycle func(*User) *Lifecycle, allowed []permission, reported bool) *lifecycleRun {
	t.Helper()
	u := NewUser(t, i.ControlPlane, i.Scheme())
	l := lifecycle(u)
	var rules []rbacv1.PolicyRule
	for _, p := range allowed {
		rules = append(rules, p.rule())
	}
	access := i.grant(t, "operator-"+u.Namespace, rules, allowed[0])
	access.Wrap(func(next http.RoundTripper) http.RoundTripper { return withoutWatchList{next} })
	if l.Before != nil {
		require.NoError(t, l.Before(t.Context()))
	}

	r := &lifecycleRun{}
	options := electLeader(u.Namespace, i.Name)
	options.Scheme, options.Cache, options.Client = l.Options.Scheme, l.Options.Cache, l.Options.Client
	options.Logger = funcr.New(r.log.add, funcr.Options{})
	options.Metrics = metricsserver.Options{BindAddress: "0"}
	options.GracefulShutdownTimeout = new(Patience)
	options.Controller = config.Controller{SkipNameValidation: new(true)}
	vanished := &atomic.Bool{}
	options.NewClient = Intercept(u.disturb(vanished))
	mgr, err := reconcile.NewManager(r.requests.Count(access), options)
	require.NoError(t, err)
	require.NoError(t, l.Setup(mgr))

	running, stop := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	ended.Go(func() {
		if err := mgr.Start(running); err != nil {
			r.log.add("", err.Error())
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	go func() {
		defer cancel()
		for ctx.Err() == nil && len(r.requests.Denied()) == 0 {
			pause(ctx, interval)
		}
		for reported && ctx.Err() == nil && !r.isReported() {
			pause(ctx, interval)
		}
	}()
	r.err = l.do(ctx, u)
	for vanished.Load() && !r.requests.IsRead(Vanishing) && ctx.Err() == nil { // the operator finds out why its write failed
		pause(ctx, interval)
	}
	if len(r.requests.Denied()) > 0 {
		<-ctx.Done()
	}
	stop()
	ended.Wait()
	utilnet.CloseIdleConnectionsFor(mgr.GetHTTPClient().Transport)
	return r
}

// withoutWatchList answers as an API server that cannot stream lists: the cache then lists and watches. Otherwise it would
// only watch, and not need the permission to list.
type withoutWatchList struct{ next http.RoundTripper }

func (w withoutWatchList) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Query().Get("sendInitialEvents") == "" {
		return w.next.RoundTrip(request)
	}
	status := apierrors.NewInvalid(metav1.SchemeGroupVersion.WithKind("ListOptions").GroupKind(), "", field.ErrorList{
		field.Forbidden(field.NewPath("sendInitialEvents"), "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"),
	}).Status()
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	body, err := json.Marshal(status)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		Status: "422 Unprocessable Entity", StatusCode: http.StatusUnprocessableEntity, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)), Request: request,
	}, nil
}

// WrappedRoundTripper lets client-go find the connections to close.
func (w withoutWatchList) WrappedRoundTripper() http.RoundTripper { return w.next }

// grant binds rules to a user, in all namespaces, and returns the config for the user when the API server knows them, which it
// shows by allowing one of them.
func (i *Installation) grant(t testing.TB, user string, rules []rbacv1.PolicyRule, one permission) *rest.Config {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: rules}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
	}
	for _, obj := range []client.Object{role, binding} {
		require.NoError(t, i.Create(t.Context(), obj))
	}
	resource, subresource, _ := strings.Cut(one.resource, "/")
	Eventually(t, "the role is in force", func(c *assert.CollectT) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User:               user,
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: one.verb, Group: one.group, Resource: resource, Subresource: subresource},
		}}
		require.NoError(c, i.Create(context.Background(), review))
		assert.True(c, review.Status.Allowed)
	})
	return i.ControlPlane.ConfigFor(user)
}

// lines are the lines of a log.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) add(prefix, args string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.WriteString(prefix + " " + args + "\n")
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
