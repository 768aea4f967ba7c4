package servedkinds

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/testr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

func TestWatch(t *testing.T) {
	cases := map[string]struct {
		reason string
		do     func(t *testing.T, s *testServer)
	}{
		"ServedFromTheStart": {
			reason: "the controller waits until the cache has the objects, and nothing more is enqueued than they",
			do: func(t *testing.T, s *testServer) {
				s.serve(monitorGVK)
				s.create(monitorGVK, "a")
				begin := time.Now()
				c := s.start(s.newWatch(monitorGVK))
				assert.Less(t, time.Since(begin), time.Second)
				assert.True(t, c.reads())
				assert.Equal(t, []string{"a"}, c.took())
			},
		},
		"AppearsAndGoesAndComesAgain": {
			reason: "the watch follows, and each change enqueues what it concerns",
			do: func(t *testing.T, s *testServer) {
				begin := time.Now()
				c := s.start(s.newWatch(monitorGVK))
				assert.Zero(t, time.Since(begin), "a kind that is not served holds no controller up")
				assert.False(t, c.reads())
				for range 2 {
					s.serve(monitorGVK)
					wait(poll)
					assert.True(t, c.reads())
					assert.Equal(t, []string{"owner"}, c.took())
					s.create(monitorGVK, "a")
					assert.Equal(t, []string{"a"}, c.took())
					s.remove(monitorGVK)
					wait(poll)
					assert.False(t, c.reads())
					assert.Equal(t, []string{"owner"}, c.took())
				}
				assert.Equal(t, []string{"Monitor", "Monitor"}, s.removals())
			},
		},
		"EventOfADefinition": {
			reason: "discovery that lags behind the event is read again until it has caught up",
			do: func(t *testing.T, s *testServer) {
				c := s.start(s.newWatch(monitorGVK))
				s.kinds.definitionChanged("example.com", false)
				wait(5 * time.Second)
				s.serve(monitorGVK)
				wait(8 * time.Second)
				assert.True(t, c.reads())
				reads := s.discoveryReads()
				wait(30 * time.Second)
				assert.Equal(t, reads, s.discoveryReads(), "the quick checks end")
			},
		},
		"EventOfAnotherGroup": {
			reason: "it concerns no kind that is watched",
			do: func(t *testing.T, s *testServer) {
				s.start(s.newWatch(monitorGVK))
				reads := s.discoveryReads()
				s.kinds.definitionChanged("other.example.com", false)
				wait(30 * time.Second)
				assert.Equal(t, reads, s.discoveryReads())
			},
		},
		"TwoKinds": {
			reason: "a kind that goes does not touch another one",
			do: func(t *testing.T, s *testServer) {
				s.serve(monitorGVK)
				s.serve(ruleGVK)
				monitors, rules := s.start(s.newWatch(monitorGVK)), s.start(s.newWatch(ruleGVK))
				s.remove(monitorGVK)
				wait(poll)
				assert.False(t, monitors.reads())
				assert.True(t, rules.reads())
				assert.Equal(t, []string{"Monitor"}, s.removals())
				s.create(ruleGVK, "a")
				assert.Equal(t, []string{"a"}, rules.took())
			},
		},
		"TwoUsers": {
			reason: "they share an informer, which is removed once",
			do: func(t *testing.T, s *testServer) {
				s.serve(monitorGVK)
				one := s.start(s.newWatch(monitorGVK))
				wait(time.Second)
				s.create(monitorGVK, "a")
				two := s.start(s.newWatch(monitorGVK))
				assert.Equal(t, []string{"a"}, one.took())
				assert.Equal(t, []string{"a"}, two.took(), "the late one gets what is there")
				wait(2 * poll)
				assert.EqualValues(t, 2, s.informers[monitorGVK].handlers.Load(), "handlers are added once")
				s.remove(monitorGVK)
				wait(poll)
				assert.Equal(t, []string{"owner"}, one.took())
				assert.Equal(t, []string{"owner"}, two.took())
				s.serve(monitorGVK)
				wait(poll)
				assert.True(t, one.reads() && two.reads())
				assert.Equal(t, []string{"Monitor"}, s.removals(), "no informer of the time after is removed")
			},
		},
		"OneUserEnds": {
			reason: "the other one keeps the informer",
			do: func(t *testing.T, s *testServer) {
				s.serve(monitorGVK)
				one, two := s.start(s.newWatch(monitorGVK)), s.start(s.newWatch(monitorGVK))
				one.stop()
				synctest.Wait()
				s.create(monitorGVK, "a")
				assert.Equal(t, []string{"a"}, two.took())
				assert.False(t, one.reads())
				assert.Empty(t, s.removals())
			},
		},
		"ReadWhileTheKindGoes": {
			reason: "the informer stays until the read has ended: the read would start another one",
			do: func(t *testing.T, s *testServer) {
				s.serve(monitorGVK)
				c := s.start(s.newWatch(monitorGVK))
				require.True(t, c.Acquire())
				s.remove(monitorGVK)
				wait(poll)
				assert.False(t, c.reads(), "no further read begins")
				assert.Empty(t, s.removals())
				s.serve(monitorGVK)
				wait(poll)
				assert.False(t, c.reads(), "the informer of the time before is not used again")
				c.Release()
				wait(time.Second)
				assert.Equal(t, []string{"Monitor"}, s.removals())
				assert.True(t, c.reads())
			},
		},
		"APIServerDoesNotAnswer": {
			reason: "what is not known stays as it was",
			do: func(t *testing.T, s *testServer) {
				s.serve(monitorGVK)
				monitors := s.start(s.newWatch(monitorGVK))
				s.fail(apierrors.NewServiceUnavailable("down"))
				wait(poll)
				assert.True(t, monitors.reads())
				rules := s.start(s.newWatch(ruleGVK))
				assert.False(t, rules.reads(), "and nothing is read that was never seen")
				s.serve(ruleGVK)
				s.fail(nil)
				wait(poll)
				assert.True(t, rules.reads())
			},
		},
		"DefinitionBeingDeleted": {
			reason: "the API server refuses writes then",
			do: func(t *testing.T, s *testServer) {
				s.serve(monitorGVK)
				c := s.start(s.newWatch(monitorGVK))
				s.mu.Lock()
				s.served[monitorGVK] = metav1.APIResource{Name: "Monitors", Kind: "Monitor", Namespaced: true, Verbs: metav1.Verbs{"delete", "get", "list", "watch"}}
				s.mu.Unlock()
				wait(poll)
				assert.False(t, c.reads())
			},
		},
		"IndexFails": {
			reason: "it is tried again, and nothing is read without the index",
			do: func(t *testing.T, s *testServer) {
				c := s.start(s.newWatch(monitorGVK))
				s.failIndex(errors.New("injected"))
				s.serve(monitorGVK)
				wait(poll)
				assert.False(t, c.reads())
				s.failIndex(nil)
				wait(startRetry)
				assert.True(t, c.reads())
			},
		},
		"RequestsFail": {
			reason: "they are not lost",
			do: func(t *testing.T, s *testServer) {
				w := s.newWatch(monitorGVK)
				requests, failures := w.options.Requests, 3
				w.options.Requests = func(ctx context.Context) ([]ctrl.Request, error) {
					if failures--; failures >= 0 {
						return nil, errors.New("injected")
					}
					return requests(ctx)
				}
				c := s.start(w)
				s.serve(monitorGVK)
				wait(poll)
				wait(time.Minute)
				assert.Equal(t, []string{"owner"}, c.took())
			},
		},
		"Forbidden": {
			reason: "the operator works without the kind, and nothing reads it",
			do: func(t *testing.T, s *testServer) {
				s.forbidden = true
				s.serve(monitorGVK)
				c := s.start(s.newWatch(monitorGVK))
				assert.False(t, c.reads())
				assert.True(t, c.Served(), "so that it can be said what is wrong")
				s.remove(monitorGVK)
				wait(poll)
				assert.False(t, c.Served())
				assert.Equal(t, []string{"Monitor"}, s.removals())
			},
		},
		"EndsWhileForbidden": {
			reason: "the manager stops the Kinds before the controllers, and would wait for them until its timeout",
			do: func(t *testing.T, s *testServer) {
				s.forbidden = true
				s.serve(monitorGVK)
				c := s.start(s.newWatch(monitorGVK))
				s.stop()
				assert.False(t, c.reads())
			},
		},
		"ForbiddenLater": {
			reason: "a kind appears that the operator may not list, which its passes can show",
			do: func(t *testing.T, s *testServer) {
				s.forbidden = true
				c := s.start(s.newWatch(monitorGVK))
				s.serve(monitorGVK)
				wait(poll)
				wait(slowStart)
				assert.Equal(t, []string{"owner"}, c.took())
				assert.True(t, c.Served())
				assert.False(t, c.reads())
				wait(time.Hour)
				assert.Empty(t, c.took(), "once")
			},
		},
		"Hooks": {
			reason: "what was remembered of the kind can be dropped, with the cache still at hand",
			do: func(t *testing.T, s *testServer) {
				var happened []string
				w := s.newWatch(monitorGVK)
				w.options.Appeared = func() { happened = append(happened, "appeared") }
				w.options.Gone = func(context.Context) { happened = append(happened, fmt.Sprint("gone ", len(s.removals()))) }
				c := s.start(w)
				s.serve(monitorGVK)
				wait(poll)
				assert.True(t, c.reads())
				s.remove(monitorGVK)
				wait(poll)
				assert.Equal(t, []string{"appeared", "gone 0"}, happened)
			},
		},
		"CheckAgain": {
			reason: "an answer of the API server may be the first sign, and many such answers cause no more requests than one",
			do: func(t *testing.T, s *testServer) {
				s.serve(monitorGVK)
				c := s.start(s.newWatch(monitorGVK))
				reads := s.discoveryReads()
				for range 100 {
					c.CheckAgain()
					synctest.Wait()
				}
				assert.Equal(t, reads+1, s.discoveryReads())
				s.remove(monitorGVK)
				wait(8 * time.Second)
				assert.False(t, c.reads())
			},
		},
		"NotStarted": {
			reason: "a process that does not lead asks nothing",
			do: func(t *testing.T, s *testServer) {
				w := s.newWatch(monitorGVK)
				s.serve(monitorGVK)
				wait(time.Hour)
				assert.Zero(t, s.discoveryReads())
				assert.False(t, w.Acquire())
				assert.True(t, s.start(w).reads())
			},
		},
		"OtherResource": {
			reason: "the client remembers the former one, so only a restart helps",
			do: func(t *testing.T, s *testServer) {
				s.serve(monitorGVK)
				c := s.start(s.newWatch(monitorGVK))
				s.mu.Lock()
				s.served[monitorGVK] = metav1.APIResource{Name: "renamed", Kind: "Monitor", Namespaced: true, Verbs: allVerbs}
				s.mu.Unlock()
				wait(2 * poll)
				assert.False(t, c.reads())
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				t.Log(tc.reason)
				tc.do(t, newTestServer(t))
			})
		})
	}
}

// An informer may still deliver events that it has buffered after the attachment has ended.
func TestAttachmentDropsLateEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestServer(t)
		s.serve(monitorGVK)
		c := s.start(s.newWatch(monitorGVK))
		informer := &lateInformer{Informer: c.kind.informer}
		a, err := newAttachment(c.Watch, informer)
		require.NoError(t, err)
		obj := objectOf(monitorGVK)
		obj.SetName("a")
		informer.handler.OnAdd(obj, false)
		assert.Equal(t, []string{"a"}, c.took())
		a.stop()
		informer.handler.OnAdd(obj, false)
		informer.handler.OnUpdate(obj, obj)
		informer.handler.OnDelete(obj)
		assert.Empty(t, c.took())
	})
}

// lateInformer keeps the handlers that are added, so that the test can call them late.
type lateInformer struct {
	cache.Informer
	handler toolscache.ResourceEventHandler
}

func (i *lateInformer) AddEventHandlerWithOptions(h toolscache.ResourceEventHandler, o toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	i.handler = h
	return i.Informer.AddEventHandlerWithOptions(h, o)
}

func TestWatchOfUnknownType(t *testing.T) {
	_, err := newKinds(nil, runtime.NewScheme(), nil, nil, testr.New(t)).Watch(&corev1.Pod{}, Options{})
	assert.True(t, runtime.IsNotRegisteredError(err), fmt.Sprint(err))
}
