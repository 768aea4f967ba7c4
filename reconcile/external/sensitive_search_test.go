package external_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/external"
	"github.com/opblocks/opblocks/reconcile/secrets"
)

// login is a desired state that contains a password.
type login struct {
	Name     string
	Password secrets.Sensitive
}

// web is an HTTP API. Its clients send the password in the query and in the user part of the URL.
type web struct {
	client http.Client
	exists bool
	answer func(r *http.Request) (status int, err error) // nil if the API carries out the request
}

func (w *web) RoundTrip(r *http.Request) (*http.Response, error) {
	status := http.StatusOK
	if w.answer != nil {
		var err error
		if status, err = w.answer(r); err != nil {
			return nil, err
		}
	}
	switch {
	case status != http.StatusOK:
	case r.Method == http.MethodGet && !w.exists:
		status = http.StatusNotFound
	case r.Method != http.MethodGet:
		w.exists = r.Method == http.MethodPut
	}
	return &http.Response{StatusCode: status, Status: http.StatusText(status), Body: io.NopCloser(strings.NewReader("")), Request: r}, nil
}

// send sends a request, and returns an error for a bad answer, as an author would write it.
func (w *web) send(ctx context.Context, method string, l login) error {
	url := fmt.Sprintf("https://%s@api.example.com/logins/%s?token=%s#%s", secret, l.Name, secret, secret)
	request, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return err
	}
	response, err := w.client.Do(request)
	if err != nil {
		return fmt.Errorf("%s of %v %+v: %w", method, l, l, err)
	}
	defer response.Body.Close()
	cause := fmt.Errorf("%s of %v: the API answers %s", method, l, response.Status)
	switch response.StatusCode {
	case http.StatusOK:
		return nil
	case http.StatusNotFound:
		return external.ErrNotFound
	case http.StatusBadRequest:
		return external.Refused("BadLogin", cause)
	case http.StatusTooManyRequests:
		return external.Throttled(time.Minute, cause)
	case http.StatusServiceUnavailable:
		return external.Unreachable(cause)
	}
	return cause
}

// searched is a step that records the errors which it returns.
type searched struct {
	*external.Step[*Account, login]
	seen *strings.Builder
}

func (s searched) Reconcile(ctx context.Context, c client.Client, a *Account) error {
	err := s.Step.Reconcile(ctx, c, a)
	fmt.Fprintf(s.seen, "returned: %v\n%+v\n", err, err)
	return err
}

func (s searched) Finalize(ctx context.Context, c client.Client, a *Account) error {
	err := s.Step.Finalize(ctx, c, a)
	fmt.Fprintf(s.seen, "returned: %v\n%+v\n", err, err)
	return err
}

// TestSecretsAreNotShown uses a resource whose desired state contains a password, and makes it fail in all possible ways. Then it
// searches for the password in everything that people can read: the object, events, logs, metrics and returned errors.
func TestSecretsAreNotShown(t *testing.T) {
	status := func(code int) func(*http.Request) (int, error) {
		return func(*http.Request) (int, error) { return code, nil }
	}
	unlessGet := func(answer func(*http.Request) (int, error)) func(*http.Request) (int, error) {
		return func(r *http.Request) (int, error) {
			if r.Method == http.MethodGet {
				return http.StatusOK, nil
			}
			return answer(r)
		}
	}
	hang := make(chan struct{})
	panics := func(*http.Request) (int, error) { panic("cannot log in with " + secret) }
	for name, tc := range map[string]struct {
		reason string // the reasons that Ready may have
		answer func(*http.Request) (int, error)
		shown  string // a text that must be found: otherwise the search would prove nothing
	}{
		"success":     {"Succeeded", nil, "alice is as desired"},
		"refusal":     {"BadLogin", unlessGet(status(http.StatusBadRequest)), "(hidden)"},
		"throttling":  {external.ReasonRateLimited, status(http.StatusTooManyRequests), "(hidden)"},
		"outage":      {external.ReasonUnreachable, status(http.StatusServiceUnavailable), "(hidden)"},
		"other error": {"Failed", unlessGet(status(http.StatusConflict)), "(hidden)"},
		"network":     {external.ReasonUnreachable, func(*http.Request) (int, error) { return 0, errors.New("connection reset") }, "?(hidden)"},
		"timeout": {external.ReasonUnreachable, func(r *http.Request) (int, error) {
			<-r.Context().Done()
			return 0, r.Context().Err()
		}, "?(hidden)"},
		"panic": {"Panicked", panics, "Observe panicked"},
		"panic with an error": {"Panicked", func(r *http.Request) (int, error) {
			panic(fmt.Errorf("cannot log in: %s", r.URL))
		}, "a value of type *errors.errorString"},
		"panic of the creation": {"Panicked", unlessGet(panics), "panicked"},
		"never returns": {external.ReasonUnreachable + " " + "NotReturned", func(*http.Request) (int, error) {
			<-hang
			return 0, errors.New("late")
		}, "has not returned"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hang = make(chan struct{})
				w := &web{}
				w.client.Transport = w
				s := newSearch(t, w)
				s.pass() // creates the thing
				w.answer = tc.answer
				for _, change := range []func(*Account){
					func(a *Account) { a.Spec.Quota = 2 },
					func(a *Account) { a.Spec.Quota = 3 },
					func(a *Account) { a.Annotations = map[string]string{reconcile.RequestedAnnotation: "now"} },
				} {
					s.edit(change)
					require.Contains(t, strings.Fields(tc.reason), s.pass())
				}
				require.NoError(t, s.client.Delete(t.Context(), s.object))
				s.pass()
				close(hang)
				synctest.Wait()
				w.answer = nil
				s.clock.SetTime(s.clock.Now().Add(time.Hour))
				s.pass()
				seen := s.all()
				require.Contains(t, seen, tc.shown)
				require.NotContains(t, seen, secret)
			})
		})
	}
}

// search has an object, and everything that its passes have written or returned.
type search struct {
	t          *testing.T
	client     client.Client
	object     *Account
	clock      *clocktesting.FakePassiveClock
	reconciler *reconcile.Reconciler[*Account]
	events     *events.FakeRecorder
	registry   *prometheus.Registry
	seen       *strings.Builder
}

func newSearch(t *testing.T, w *web) *search {
	t.Helper()
	s := &search{
		t: t, object: newAccount(), events: events.NewFakeRecorder(1000), registry: prometheus.NewRegistry(), seen: &strings.Builder{},
		clock: clocktesting.NewFakePassiveClock(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)),
	}
	s.object.UID, s.object.Generation = "6d1f", 1
	s.client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(s.object).WithStatusSubresource(s.object).Build()
	step := external.New(external.Resource[*Account, login]{
		Record: func(a *Account) *external.Record { return &a.Status.Account },
		Key:    func(a *Account) string { return a.Spec.Login },
		Server: func(*Account) string { return "https://" + secret + "@api.example.com" },
		Quota:  rate.NewLimiter(rate.Inf, 1), Clock: s.clock,
		Observe: func(ctx context.Context, _ client.Client, a *Account, _ external.Reference) (login, error) {
			return login{Name: a.Spec.Login}, w.send(ctx, http.MethodGet, login{a.Spec.Login, secrets.Sensitive(secret)})
		},
		Desired: func(_ context.Context, _ client.Client, a *Account) (login, error) {
			return login{a.Spec.Login, secrets.Sensitive(secret)}, nil
		},
		Differs: func(_ external.Reference, _, _ login) bool { return true },
		Create: func(ctx context.Context, _ client.Client, _ *Account, _ external.Reference, desired login) (string, error) {
			return "", w.send(ctx, http.MethodPut, desired)
		},
		Update: func(ctx context.Context, _ client.Client, _ *Account, _ external.Reference, _, desired login) error {
			return w.send(ctx, http.MethodPut, desired)
		},
		Delete: func(ctx context.Context, _ client.Client, a *Account, _ external.Reference) error {
			return w.send(ctx, http.MethodDelete, login{a.Spec.Login, secrets.Sensitive(secret)})
		},
	})
	require.NoError(t, step.Measure(s.registry))
	s.reconciler = reconcile.New(s.client, reconcile.Named("account", searched{step, s.seen}).Finalizer("test.opblocks.dev/account")).
		WithClock(s.clock).WithRecorder(s.events)
	return s
}

func (s *search) edit(change func(*Account)) {
	s.t.Helper()
	require.NoError(s.t, s.client.Get(s.t.Context(), client.ObjectKeyFromObject(s.object), s.object))
	change(s.object)
	s.object.Generation++
	require.NoError(s.t, s.client.Update(s.t.Context(), s.object))
}

// pass reconciles the object, records what the pass has written or returned, and returns the reason of Ready.
func (s *search) pass() (reason string) {
	s.t.Helper()
	logger := funcr.NewJSON(func(line string) { s.seen.WriteString(line + "\n") }, funcr.Options{Verbosity: 10, LogCaller: funcr.All})
	ctx := log.IntoContext(s.t.Context(), logger)
	if _, err := s.reconciler.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(s.object)}); err != nil {
		fmt.Fprintf(s.seen, "%v\n", err)
	}
	var a Account
	if err := s.client.Get(ctx, client.ObjectKeyFromObject(s.object), &a); err != nil {
		return ""
	}
	data, err := json.Marshal(a)
	require.NoError(s.t, err)
	s.seen.Write(data)
	for _, c := range a.Status.Conditions {
		if c.Type == "Ready" {
			reason = c.Reason
		}
	}
	return reason
}

// all returns everything that people can read.
func (s *search) all() string {
	s.t.Helper()
	close(s.events.Events)
	for event := range s.events.Events {
		s.seen.WriteString(event + "\n")
	}
	s.seen.WriteString(strings.Join(series(s.t, s.registry, ""), "\n"))
	return s.seen.String()
}
