package storageversion

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestStep proves which requests two steps of a new process send, and when the next step follows. The first step waits until all
// replicas of the API server know the CustomResourceDefinition.
func TestStep(t *testing.T) {
	const name = "widgets.example.com"
	migrated := func(s *stub) { s.crd.Status.StoredVersions = []string{"v1"} }
	for name, tc := range map[string]struct {
		reason string
		served bool
		change func(*stub)
		first  time.Duration
		delay  time.Duration
		want   []string
	}{
		"Write":   {"this process writes", false, func(*stub) {}, settleTime, soon, []string{"list v1", "patch w1"}},
		"Request": {"the cluster's writes have to wait as ours have", true, func(*stub) {}, settleTime, clusterInterval, []string{"get " + name, "get " + name, "create " + name}},
		"Repair":  {"a replica may still serve a version that has ceased to be served", false, migrated, settleTime, soon, []string{"list v1"}},
		"Remove": {"a finalizer of somebody else may keep it for long", true, func(s *stub) {
			migrated(s)
			s.migration = s.migrationOf(time.Now())
		}, clusterInterval, clusterInterval, []string{"get " + name, "delete " + name, "get " + name, "delete " + name}},
		"Deleted": {"the objects are deleted with their definition", true, func(s *stub) { s.crd.DeletionTimestamp = new(metav1.Now()) }, idle, idle, nil},
		"Ended": {"the cluster's migration ends between the two reads, so no object is written again", true, func(s *stub) {
			s.migration = s.migrationOf(time.Now())
			s.answer = func(string) error { migrated(s); return nil }
		}, clusterInterval, clusterInterval, []string{"get " + name, "delete " + name, "get " + name, "delete " + name}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			s := newStub("w1")
			tc.change(s)
			m := s.migrator(t, tc.served)
			delay, err := m.step(t.Context())
			require.NoError(t, err)
			assert.Equal(t, tc.first, delay, name)
			delay, err = m.step(t.Context())
			require.NoError(t, err)
			assert.Equal(t, tc.delay, delay, name)
			assert.Equal(t, tc.want, s.requests, tc.reason)
		})
	}
}

// TestWithoutRightsForCluster: Kubernetes' own migration cannot be used. The test proves that the package writes the objects itself, and
// that the log says so once.
func TestWithoutRightsForCluster(t *testing.T) {
	const name = "widgets.example.com"
	for reason, tc := range map[string]struct {
		request string
		err     error
		stored  []string
		left    bool // a StorageVersionMigration that this package has created exists
	}{
		"the role is older than Kubernetes 1.37":         {"get " + name, noRight, []string{"v1alpha1", "v1"}, false},
		"the cluster ceases to serve it":                 {"get " + name, &meta.NoKindMatchError{GroupKind: migrationKind}, []string{"v1alpha1", "v1"}, false},
		"the role cannot create it":                      {"create " + name, noRight, []string{"v1alpha1", "v1"}, false},
		"the RESTMapper is older than the API server":    {"create " + name, apierrors.NewNotFound(widgets, name), []string{"v1alpha1", "v1"}, false},
		"a policy refuses it":                            {"create " + name, policy, []string{"v1alpha1", "v1"}, false},
		"a webhook refuses it":                           {"create " + name, denial(400, "no"), []string{"v1alpha1", "v1"}, false},
		"the cluster's validation refuses it":            {"create " + name, invalid, []string{"v1alpha1", "v1"}, false},
		"one of ours is left, and may not be taken away": {"delete " + name, noRight, []string{"v1"}, true},
	} {
		t.Run(reason, func(t *testing.T) {
			s := newStub("w1")
			s.crd.Status.StoredVersions = tc.stored
			if tc.left {
				s.migration = s.migrationOf(time.Now())
			}
			s.answer = func(request string) error {
				if request == tc.request {
					return tc.err
				}
				return nil
			}
			var logged []string
			m := s.migrator(t, true)
			m.log = funcr.New(func(_, args string) { logged = append(logged, args) }, funcr.Options{})
			delay := time.Duration(0)
			for steps := 0; delay != idle; steps++ {
				require.Less(t, steps, 10)
				var err error
				delay, err = m.step(t.Context())
				require.NoError(t, err)
			}
			assert.Contains(t, s.requests, "list v1")
			assert.Equal(t, []string{"v1"}, s.crd.Status.StoredVersions)
			said := 0
			for _, line := range logged {
				if strings.Contains(line, "cannot be used") {
					said++
				}
			}
			assert.Equal(t, 1, said, "%q", logged)
		})
	}
}

// TestWithoutWebhook: the operator converts the versions of a kind, and the kind has no webhook. The test proves that in no state
// anything is written, neither by this package nor by the cluster.
func TestWithoutWebhook(t *testing.T) {
	for reason, stored := range map[string][]string{
		"objects are stored in v1alpha1":                 {"v1alpha1", "v1"},
		"managers may have to be renamed in the objects": {"v1"},
	} {
		for _, served := range []bool{false, true} {
			t.Run(reason, func(t *testing.T) {
				s := newStub("w1")
				s.crd.Status.StoredVersions = stored
				m := s.migrator(t, served)
				m.conversions.converts = func() bool { return true }
				for range 3 {
					_, err := m.step(t.Context())
					require.ErrorIs(t, err, errNoConversion)
				}
				assert.NotContains(t, s.requests, "create widgets.example.com")
				assert.NotContains(t, s.requests, "list v1")
				assert.Equal(t, errNoConversion.Error(), condition(&s.crd).Message)
			})
		}
	}
}

// TestStartWaits proves that the migration never repeats its steps without a pause. It runs in a synctest bubble, whose
// clock is fake.
func TestStartWaits(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		change func(*stub)
		count  string
		most   int
	}{
		"Finalizer": {"our StorageVersionMigration stays", func(s *stub) {
			s.crd.Status.StoredVersions = []string{"v1"}
			s.migration = s.migrationOf(time.Now())
		}, "delete widgets.example.com", int(time.Minute / clusterInterval)},
		"Changed": {"somebody changes the CustomResourceDefinition during each walk", func(s *stub) {
			s.answer = func(request string) error {
				if request == "patch w1" {
					s.crd.Generation++
				}
				return nil
			}
		}, "patch w1", int(time.Minute / settleTime)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStub("w1")
				tc.change(s)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute-time.Millisecond)
				defer cancel()
				require.NoError(t, s.migrator(t, s.migration != nil).Start(ctx))
				sent := 0
				for _, request := range s.requests {
					if request == tc.count {
						sent++
					}
				}
				assert.Positive(t, sent)
				assert.LessOrEqual(t, sent, tc.most, tc.reason)
			})
		})
	}
}

// TestPause proves that a walk pauses before it repeats a request.
func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStub("w1")
		s.answer = func(string) error { return busy }
		m := s.migrator(t, false)
		m.pause = pauseTime
		begin := time.Now()
		require.ErrorIs(t, m.walk(t.Context(), &s.crd, true), busy)
		assert.Equal(t, 2*pauseTime, time.Since(begin))
		ctx, cancel := context.WithTimeout(t.Context(), pauseTime/2)
		defer cancel()
		require.ErrorIs(t, m.walk(ctx, &s.crd, true), context.DeadlineExceeded)
		assert.Equal(t, apiextensionsv1.CustomResourceDefinitionCondition{}, condition(&s.crd))
	})
}
