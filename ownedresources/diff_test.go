package ownedresources

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/forecast"
	"github.com/opblocks/opblocks/internal/owned/apply"
	"github.com/opblocks/opblocks/reconcile/preview"
)

// diff returns what would change.
func (env *serverEnv) diff(t *testing.T, want client.Object) preview.Change {
	t.Helper()
	changes, err := Diff(t.Context(), env.client, env.owner, want)
	require.NoError(t, err)
	require.Len(t, changes, 1)
	return changes[0]
}

func TestDiff(t *testing.T) {
	w := newServerEnv(t)
	require.Equal(t, forecast.Create, w.diff(t, w.deployment()).Action)
	require.False(t, w.exists(t, w.deployment()), "a dry run")

	w.expect(t, w.deployment(), apply.Created, "POST deployments")
	require.Equal(t, forecast.None, w.diff(t, w.deployment()).Action)

	changed := func() *appsv1.Deployment {
		d := w.deployment()
		d.Spec.Template.Spec.Containers[0].Image = "nginx:1.28"
		d.Spec.Template.Spec.Containers[0].Env = nil
		d.Labels["new"] = "label"
		return d
	}
	first := []preview.Difference{
		{Path: "metadata.labels.new", Want: `"label"`},
		{Path: "spec.template.spec.containers[0].env", Have: "(hidden)"},
		{Path: "spec.template.spec.containers[0].image", Have: `"nginx:1.27"`, Want: `"nginx:1.28"`},
	}
	if diff := cmp.Diff(first, w.diff(t, changed()).Differences); diff != "" {
		t.Errorf("fields of the POST that are not desired are removed too, and defaults are not (-want +got)\n%s", diff)
	}
	w.expect(t, changed(), apply.Applied, "GET deployments", "PATCH deployments", "PATCH deployments")

	again := []preview.Difference{
		{Path: "metadata.labels.new", Have: `"label"`},
		{Path: "spec.template.spec.containers[0].env", Want: "(hidden)"},
		{Path: "spec.template.spec.containers[0].image", Have: `"nginx:1.28"`, Want: `"nginx:1.27"`},
	}
	if diff := cmp.Diff(again, w.diff(t, w.deployment()).Differences); diff != "" {
		t.Errorf("environment values are hidden (-want +got)\n%s", diff)
	}
	require.Equal(t, `metadata.labels.new: - "label"`, again[0].String())
	w.expect(t, changed(), apply.Unchanged, none...)
}

func TestDiffHidesValuesOfSecrets(t *testing.T) {
	w := newServerEnv(t)
	secret := func(password string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "web"}, StringData: map[string]string{"password": password}}
	}
	w.expect(t, secret("canary-one"), apply.Created, "POST secrets")
	got := w.diff(t, secret("canary-two"))
	if diff := cmp.Diff([]preview.Difference{{Path: "data.password", Have: "(hidden)", Want: "(hidden)"}}, got.Differences); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
