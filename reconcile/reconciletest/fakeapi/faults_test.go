//go:build !race

// These tests are left out under the race detector: an exploration runs one pass at a time, so it has no races, and with the detector it
// takes ten times as long.

package fakeapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
	"github.com/opblocks/opblocks/reconcile/reconciletest/fakeapi"
)

// buckets is a storage service that gives each bucket a size.
type buckets = fakeapi.API[int]

// scenarioOf returns the scenario of an operator that keeps a bucket for each ConfigMap.
func scenarioOf(start func(p *reconciletest.Process) ctrlreconcile.Func) reconciletest.Scenario {
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	return reconciletest.Scenario{
		Scheme:   clientgoscheme.Scheme,
		External: func() reconciletest.External { return &buckets{Kind: "bucket"} },
		Start: func(p *reconciletest.Process) error {
			p.Reconcile(&corev1.ConfigMap{}, start(p))
			return nil
		},
		Actions: []reconciletest.Action{reconciletest.Create(config), reconciletest.Change(config, func(c *corev1.ConfigMap) { c.Data = map[string]string{"size": "5"} })},
	}
}

// serve returns a handler that serves buckets by HTTP: GET and PUT of /name.
func serve(api *buckets) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := r.URL.Path[1:]
		found, err := api.Get(r.Context(), name)
		switch {
		case r.Method == http.MethodGet && err == nil:
			err = json.NewEncoder(w).Encode(found.Fields)
		case r.Method == http.MethodPut && err == nil:
			err = api.Update(r.Context(), fakeapi.Thing[int]{Name: name, Fields: int(r.ContentLength)})
		case r.Method == http.MethodPut:
			_, err = api.Create(r.Context(), fakeapi.Thing[int]{Name: name, Fields: int(r.ContentLength)})
		}
		if err != nil {
			http.Error(w, err.Error(), fakeapi.StatusOf(err))
		}
	})
}

// TestHTTP explores operators that call the API by HTTP.
func TestHTTP(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		pass   func(ctx context.Context, c client.Client, config *corev1.ConfigMap, call func(method string) (int, error)) error
		want   []reconciletest.FaultKind // the faults that find its mistake
	}{
		"Sound": {"it repeats what was refused", func(ctx context.Context, _ client.Client, _ *corev1.ConfigMap, call func(string) (int, error)) error {
			status, err := call(http.MethodGet)
			if err != nil || status == http.StatusOK {
				return err
			}
			if status == http.StatusNotFound {
				status, err = call(http.MethodPut)
			}
			if err == nil && status != http.StatusOK {
				err = fmt.Errorf("status %d", status)
			}
			return err
		}, nil},
		"UnavailableTakenAsDone": {"the status is not looked at", func(ctx context.Context, c client.Client, config *corev1.ConfigMap, call func(string) (int, error)) error {
			if config.Annotations["done"] != "" {
				return nil
			}
			status, err := call(http.MethodPut)
			if err != nil || status != http.StatusOK && status != http.StatusServiceUnavailable {
				return fmt.Errorf("status %d: %w", status, errors.Join(err, errors.New("not done")))
			}
			metav1.SetMetaDataAnnotation(&config.ObjectMeta, "done", "yes")
			return c.Update(ctx, config)
		}, []reconciletest.FaultKind{reconciletest.Faults.InternalError, reconciletest.Faults.Outage}},
		"NotFoundBelieved": {"the bucket was created just now", func(ctx context.Context, c client.Client, config *corev1.ConfigMap, call func(string) (int, error)) error {
			if config.Annotations["created"] == "" {
				if status, err := call(http.MethodPut); err != nil || status != http.StatusOK {
					return fmt.Errorf("status %d: %w", status, errors.Join(err, errors.New("not done")))
				}
				metav1.SetMetaDataAnnotation(&config.ObjectMeta, "created", "yes")
				return c.Update(ctx, config)
			}
			status, err := call(http.MethodGet)
			switch {
			case err != nil || status != http.StatusOK && status != http.StatusNotFound:
				return fmt.Errorf("status %d: %w", status, errors.Join(err, errors.New("not read")))
			case status == http.StatusNotFound && config.Annotations["lost"] == "":
				metav1.SetMetaDataAnnotation(&config.ObjectMeta, "lost", "yes")
				return c.Update(ctx, config)
			}
			return nil
		}, []reconciletest.FaultKind{reconciletest.Faults.StaleAnswer}},
	} {
		t.Run(name, func(t *testing.T) {
			report := reconciletest.ExploreQuietly(t, scenarioOf(func(p *reconciletest.Process) ctrlreconcile.Func {
				api := p.External().(*buckets)
				web := &http.Client{Transport: api.RoundTripper(p, serve(api))}
				return func(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
					config := &corev1.ConfigMap{}
					if err := p.Client().Get(ctx, r.NamespacedName, config); err != nil || r.Name != "web" {
						return ctrl.Result{}, client.IgnoreNotFound(err)
					}
					return ctrl.Result{}, tc.pass(ctx, p.Client(), config, func(method string) (int, error) { return send(ctx, web, method, r.Name) })
				}
			}))
			found := map[reconciletest.FaultKind]bool{}
			for _, f := range report.Failures {
				for _, fault := range f.Faults {
					found[fault.Kind] = true
				}
			}
			assert.ElementsMatch(t, tc.want, slices.Collect(maps.Keys(found)), "%s\n%s", tc.reason, report)
		})
	}
}

// send sends a request, and returns the status of the answer.
func send(ctx context.Context, web *http.Client, method, name string) (int, error) {
	request, err := http.NewRequestWithContext(ctx, method, "http://buckets/"+name, nil)
	if err != nil {
		return 0, err
	}
	answer, err := web.Do(request)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	if answer.StatusCode == http.StatusTooManyRequests && answer.Header.Get("Retry-After") != "1" {
		return 0, errors.New("no Retry-After")
	}
	return answer.StatusCode, nil
}

// TestErrors checks which errors an operator gets in all runs together.
func TestErrors(t *testing.T) {
	var mu sync.Mutex // runs happen at the same time
	met := map[string]bool{}
	note := func(err error) error {
		mu.Lock()
		defer mu.Unlock()
		if answer, ok := errors.AsType[*fakeapi.Error](err); ok {
			met[fmt.Sprintf("%s, %s", answer, answer.RetryAfter)] = true
		} else if err != nil && !errors.Is(err, context.Canceled) {
			met[err.Error()] = true
		}
		return err
	}
	reconciletest.Explore(t, scenarioOf(func(p *reconciletest.Process) ctrlreconcile.Func {
		api := p.External().(*buckets).Client(p)
		return func(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
			if r.Name != "web" {
				return ctrl.Result{}, nil
			}
			_, err := api.Get(ctx, "web")
			if fakeapi.StatusOf(note(err)) == http.StatusNotFound {
				_, err = api.Create(ctx, fakeapi.Thing[int]{Name: "web"})
			}
			return ctrl.Result{}, note(err)
		}
	}))
	want := []string{
		"404 Not Found: bucket web, 0s", "409 Conflict: bucket web exists, 0s", "429 Too Many Requests, 1s", "500 Internal Server Error, 0s", "503 Service Unavailable, 0s",
		"create bucket web: connection refused", "create bucket web: context deadline exceeded", "get bucket web: connection refused",
	}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(met))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestSoundOperators explores operators without a mistake. They must lead to no finding.
func TestSoundOperators(t *testing.T) {
	for name, tc := range map[string]struct {
		reason   string
		givesIDs bool
		pass     func(ctx context.Context, p *reconciletest.Process, api *fakeapi.Client[int], config *corev1.ConfigMap) (ctrl.Result, error)
	}{
		"AnotherID": {"the ID that is recorded is another one if a creation was repeated", true, keepOneBucket},
		"PollsInAnOutage": {
			"it returns no error, and looks again as long as the outage lasts", false,
			func(ctx context.Context, _ *reconciletest.Process, api *fakeapi.Client[int], config *corev1.ConfigMap) (ctrl.Result, error) {
				_, err := api.Create(ctx, fakeapi.Thing[int]{Name: config.Name})
				if err != nil && fakeapi.StatusOf(err) != http.StatusConflict {
					return ctrl.Result{RequeueAfter: 10 * time.Second}, nil
				}
				return ctrl.Result{}, nil
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Log(tc.reason)
			s := scenarioOf(func(p *reconciletest.Process) ctrlreconcile.Func {
				api := p.External().(*buckets).Client(p)
				return func(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
					config := &corev1.ConfigMap{}
					if err := p.APIReader().Get(ctx, r.NamespacedName, config); err != nil || r.Name != "web" {
						return ctrl.Result{}, client.IgnoreNotFound(err)
					}
					return tc.pass(ctx, p, api, config)
				}
			})
			s.External = func() reconciletest.External { return &buckets{Kind: "bucket", GivesIDs: tc.givesIDs} }
			reconciletest.Explore(t, s)
		})
	}
}

// keepOneBucket creates a bucket, deletes all but the first in the list, and records the ID of that one.
func keepOneBucket(ctx context.Context, p *reconciletest.Process, api *fakeapi.Client[int], config *corev1.ConfigMap) (ctrl.Result, error) {
	all, err := api.List(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	if len(all) == 0 {
		made, err := api.Create(ctx, fakeapi.Thing[int]{Name: config.Name})
		if err != nil {
			return ctrl.Result{}, err
		}
		all = append(all, made)
	}
	for _, extra := range all[1:] {
		if err := api.Delete(ctx, extra.ID); err != nil && fakeapi.StatusOf(err) != http.StatusNotFound {
			return ctrl.Result{}, err
		}
	}
	if config.Annotations["bucket"] != all[0].ID {
		metav1.SetMetaDataAnnotation(&config.ObjectMeta, "bucket", all[0].ID)
		if err := p.Client().Update(ctx, config); err != nil {
			return ctrl.Result{}, err
		}
	}
	return ctrl.Result{RequeueAfter: 20 * time.Second}, nil // the list may have shown an old state
}
