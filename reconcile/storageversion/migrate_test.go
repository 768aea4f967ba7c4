package storageversion

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
)

func TestMigrateUnknownType(t *testing.T) {
	mgr, err := ctrl.NewManager(&rest.Config{Host: "https://localhost:1"}, ctrl.Options{Scheme: runtime.NewScheme()})
	require.NoError(t, err)
	assert.ErrorContains(t, Migrate(mgr, &corev1.Pod{}), "migrate stored objects: register the type *v1.Pod in the manager's scheme")
}

func TestNeedLeaderElection(t *testing.T) { assert.True(t, (&migrator{}).NeedLeaderElection()) }

// TestStartWithoutDefinition proves that the log reports a missing CustomResourceDefinition, that Start looks for it again
// after longer and longer intervals, and that the manager keeps running.
func TestStartWithoutDefinition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logged []string
		m := &migrator{
			kind: schema.GroupKind{Group: "example.com", Kind: "Widget"}, mapper: meta.NewDefaultRESTMapper(nil), clock: clock.RealClock{},
			log: funcr.New(func(_, args string) { logged = append(logged, args) }, funcr.Options{}),
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.NoError(t, m.Start(ctx))
		require.Len(t, logged, 4, "after 0, 5, 15 and 35 seconds: %q", logged)
		assert.Contains(t, logged[0], "install the CustomResourceDefinition of Widget.example.com")
	})
}

func TestExplain(t *testing.T) {
	noRight := apierrors.NewForbidden(schema.GroupResource{Resource: "widgets"}, "", errors.New(`User "me" cannot list resource "widgets" in API group "" at the cluster scope`))
	assert.ErrorContains(t, explain(noRight), "compare the role with the rules in the documentation of package storageversion")
	require.ErrorIs(t, explain(noRight), noRight)
	assert.Equal(t, errChanged, explain(errChanged))
	policy := apierrors.NewForbidden(schema.GroupResource{Resource: "widgets"}, "w1", errors.New("a policy"))
	assert.Equal(t, policy, explain(policy), "no role helps")
}

// TestMetricOfTwoGroups proves that two kinds with the same name have different metrics.
func TestMetricOfTwoGroups(t *testing.T) {
	registry := prometheus.NewRegistry()
	for i, group := range []string{"a.example.com", "b.example.com"} {
		m, err := newMetrics(registry, schema.GroupKind{Group: group, Kind: "Widget"}.String())
		require.NoError(t, err)
		m.set(i, 0, 0)
	}
	families, err := registry.Gather()
	require.NoError(t, err)
	assert.Len(t, families[0].GetMetric(), 6)
}
