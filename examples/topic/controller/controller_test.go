package controller_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	queuev1alpha1 "github.com/opblocks/opblocks/examples/topic/api/v1alpha1"
	"github.com/opblocks/opblocks/examples/topic/controller"
	"github.com/opblocks/opblocks/examples/topic/queue"
	"github.com/opblocks/opblocks/examples/topic/queue/queuetest"
	"github.com/opblocks/opblocks/reconcile/reconciletest"
	"github.com/opblocks/opblocks/reconcile/reconciletest/fakeapi"
)

// scenario returns a scenario with these options and actions. The server is in memory.
func scenario(t *testing.T, options reconciletest.Options, actions ...reconciletest.Action) reconciletest.Scenario {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	require.NoError(t, queuev1alpha1.AddToScheme(scheme))
	return reconciletest.Scenario{
		Scheme: scheme, CRDs: []string{"../config/crd/bases"}, Options: options, Actions: actions,
		Horizon:  5 * time.Minute, // shorter than the time between two looks: none repairs what a fault has broken
		External: func() reconciletest.External { return &queuetest.Server{Kind: "topic"} },
		Start: func(p *reconciletest.Process) error {
			memory := p.External().(*queuetest.Server)
			return start(p, memory.RoundTripper(p, queuetest.Handler(memory)))
		},
	}
}

func start(p *reconciletest.Process, transport http.RoundTripper) error {
	server, err := queue.NewServer("https://queue.example.net", transport)
	if err != nil {
		return err
	}
	return (&controller.Operator{Server: server}).SetupWithManager(p.Manager(controller.Cache()))
}

const name = "default.topic-sample"

func sample(partitions int32) *queuev1alpha1.Topic {
	t := &queuev1alpha1.Topic{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "topic-sample"}}
	t.Spec.Partitions = partitions
	t.Spec.Token = corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "queue-server"}, Key: "token"}
	return t
}

func secret(token string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "queue-server"}, Data: map[string][]byte{"token": []byte(token)}}
}

func edit(spec func(s *queuev1alpha1.TopicSpec)) reconciletest.Action {
	return reconciletest.Change(sample(0), func(t *queuev1alpha1.Topic) { spec(&t.Spec) })
}

// has returns a check that the server has a topic with this number of partitions, or none.
func has(partitions ...int32) func(env *reconciletest.Env) error {
	return func(env *reconciletest.Env) error {
		var found []int32
		for _, thing := range env.External.(*queuetest.Server).Things() {
			found = append(found, thing.Fields.Partitions)
		}
		if !slices.Equal(found, partitions) {
			return fmt.Errorf("the server has topics of %v partitions, and not of %v", found, partitions)
		}
		return nil
	}
}

// shows returns a check that the sample is not ready, for this reason.
func shows(reason string) func(env *reconciletest.Env) error {
	want := sample(0)
	want.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionFalse, Reason: reason}}
	return reconciletest.Has(want)
}

// gone is a check that the sample is gone.
func gone(env *reconciletest.Env) error {
	if err := env.Get(context.Background(), client.ObjectKeyFromObject(sample(0)), sample(0)); !apierrors.IsNotFound(err) {
		return fmt.Errorf("the sample is still there: %w", err)
	}
	return nil
}

// TestDoesWhatTheSpecSays runs more changes, and only without faults: nothing else in it can fail.
func TestDoesWhatTheSpecSays(t *testing.T) {
	byHand := reconciletest.DoExternal("change it by hand", func(s *queuetest.Server) error {
		return s.Update(context.Background(), fakeapi.Thing[queue.Settings]{Name: name, Fields: queue.Settings{Owner: s.Things()[0].Fields.Owner, Partitions: 1}})
	})
	others := reconciletest.DoExternal("somebody else creates it, in the place of ours", func(s *queuetest.Server) error {
		_ = s.Delete(context.Background(), name) // there may be none
		_, err := s.CreateForOthers(context.Background(), fakeapi.Thing[queue.Settings]{Name: name, Fields: queue.Settings{Partitions: 9}})
		return err
	})
	tests := map[string]struct {
		reason  string
		actions []reconciletest.Action
	}{
		"Drift": {"it is repaired at the next look", []reconciletest.Action{
			reconciletest.Create(secret(queuetest.Token)), reconciletest.Create(sample(3)).Then(reconciletest.Ready(sample(3))),
			byHand.Then(has(1)), reconciletest.Wait(11 * time.Minute).Then(has(3)),
		}},
		"Retained": {"the messages are needed", []reconciletest.Action{
			reconciletest.Create(secret(queuetest.Token)), reconciletest.Create(sample(3)),
			edit(func(s *queuev1alpha1.TopicSpec) { s.DeletionPolicy = queuev1alpha1.DeletionRetain }),
			reconciletest.Delete(secret("")), reconciletest.Delete(sample(0)).Then(has(3)).Then(gone),
		}},
		"Taken": {"it is somebody else's", []reconciletest.Action{
			others, reconciletest.Create(secret(queuetest.Token)), reconciletest.Create(sample(3)).Then(shows("AlreadyExists")),
			reconciletest.Delete(sample(0)).Then(has(9)).Then(gone),
		}},
		"Replaced": {"it has not our mark", []reconciletest.Action{
			reconciletest.Create(secret(queuetest.Token)), reconciletest.Create(sample(3)).Then(has(3)),
			others, reconciletest.Wait(11 * time.Minute).Then(has(9)).Then(shows("AlreadyExists")),
			reconciletest.Delete(sample(0)).Then(has(9)).Then(gone),
		}},
		"Never": {"nothing was created, so no token is needed to clean up", []reconciletest.Action{
			reconciletest.Create(sample(3)).Then(shows("SecretNotFound")), reconciletest.Delete(sample(0)).Then(has()).Then(gone),
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			reconciletest.Run(t, scenario(t, reconciletest.Options{}), func(t *testing.T, env *reconciletest.Env) {
				env.Do(tc.actions...)
			})
		})
	}
}

// TestAnswers checks what a Topic shows if the server answers each request so.
func TestAnswers(t *testing.T) {
	tests := map[string]struct {
		reason string
		status int
		body   string
		want   string
	}{
		"NotFound":     {"it is refused again and again, as only Create expects nothing else", http.StatusNotFound, "", "Failed"},
		"Unauthorized": {"somebody has to change the Secret", http.StatusUnauthorized, "", "Unauthorized"},
		"Forbidden":    {"as above", http.StatusForbidden, "", "Unauthorized"},
		"BadRequest":   {"the same request would be refused again", http.StatusBadRequest, "", "Refused"},
		"Moved":        {"no redirection is followed", http.StatusTemporaryRedirect, "", "Refused"},
		"TooMany":      {"the server asks to wait", http.StatusTooManyRequests, "", "RateLimited"},
		"Unavailable":  {"the server is spared for a while", http.StatusServiceUnavailable, "", "Unreachable"},
		"NoJSON":       {"it may be the page of a proxy", http.StatusOK, "<html>", "Failed"},
		"Others":       {"it has not the mark of this Topic", http.StatusOK, `{"owner": "somebody", "partitions": 3}`, "AlreadyExists"},
		"TooLong":      {"an answer without an end fills no memory", http.StatusOK, `{"owner": "` + strings.Repeat("x", 1<<20) + `"}`, "Failed"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := scenario(t, reconciletest.Options{}, reconciletest.Create(secret(queuetest.Token)), reconciletest.Create(sample(3)))
			s.Start = func(p *reconciletest.Process) error {
				return start(p, p.RoundTripper(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Location", "https://elsewhere.example.net")
					w.Header().Set("Retry-After", "600")
					w.WriteHeader(tc.status)
					_, _ = w.Write([]byte(tc.body))
				})))
			}
			reconciletest.Run(t, s, func(t *testing.T, env *reconciletest.Env) {
				assert.NoError(t, shows(tc.want)(env), tc.reason)
			})
		})
	}
}

// TestBadInput checks what the API server refuses.
func TestBadInput(t *testing.T) {
	tests := map[string]struct {
		reason string
		edit   func(s *queuev1alpha1.TopicSpec)
		want   string // in the error; empty if it is accepted
	}{
		"Defaults":     {"one partition, and a week", func(s *queuev1alpha1.TopicSpec) { s.Partitions = 0 }, ""},
		"Negative":     {"nothing could be in it", func(s *queuev1alpha1.TopicSpec) { s.Partitions = -1 }, "spec.partitions"},
		"TooMany":      {"a slip would cost the server much", func(s *queuev1alpha1.TopicSpec) { s.Partitions = 1025 }, "spec.partitions"},
		"LongTime":     {"ten years are enough", func(s *queuev1alpha1.TopicSpec) { s.RetentionHours = 87601 }, "spec.retentionHours"},
		"Policy":       {"it would be taken for Delete", func(s *queuev1alpha1.TopicSpec) { s.DeletionPolicy = "Keep" }, "spec.deletionPolicy"},
		"NoSecret":     {"there is no default", func(s *queuev1alpha1.TopicSpec) { s.Token.Name = "" }, "name the Secret and its key"},
		"NoKey":        {"there is no default", func(s *queuev1alpha1.TopicSpec) { s.Token.Key = "" }, "name the Secret and its key"},
		"LargestValue": {"both limits are allowed", func(s *queuev1alpha1.TopicSpec) { s.Partitions, s.RetentionHours = 1024, 87600 }, ""},
	}
	reconciletest.Run(t, scenario(t, reconciletest.Options{}), func(t *testing.T, env *reconciletest.Env) {
		check := func(name, want, reason string, err error) {
			if want == "" {
				assert.NoError(t, err, "%s: %s", name, reason)
			} else {
				assert.ErrorContains(t, err, want, "%s: %s", name, reason)
			}
		}
		for name, tc := range tests {
			made := sample(3)
			made.Name = strings.ToLower(name)
			tc.edit(&made.Spec)
			check(name, tc.want, tc.reason, env.Create(t.Context(), made))
		}
		made := sample(3)
		check("Create", "", "it is well", env.Create(t.Context(), made))
		made.Spec.Partitions = 2
		check("Shrink", "partitions cannot be removed", "their messages would be lost", env.Update(t.Context(), made))
		made.Spec.Partitions = 0
		check("Unset", "partitions cannot be removed", "the default is less", env.Update(t.Context(), made))
	})
}
