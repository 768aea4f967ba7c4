package apply_test

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
	"github.com/opblocks/opblocks/internal/owned/ownedtest"
	"github.com/opblocks/opblocks/reconcile/preview"
)

// diffOf returns what would change.
func diffOf(t *testing.T, env *ownedtest.Server, want client.Object) preview.Change {
	t.Helper()
	change, err := env.Diff(t, want)
	require.NoError(t, err)
	return change
}

func TestDiff(t *testing.T) {
	w := newServer(t)
	require.Equal(t, forecast.Create, diffOf(t, w, w.Deployment()).Action)
	require.False(t, w.Exists(t, w.Deployment()), "a dry run")

	w.Expect(t, w.Deployment(), apply.Created, "POST deployments")
	require.Equal(t, forecast.None, diffOf(t, w, w.Deployment()).Action)

	changed := func() *appsv1.Deployment {
		d := w.Deployment()
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
	if diff := cmp.Diff(first, diffOf(t, w, changed()).Differences); diff != "" {
		t.Errorf("fields of the POST that are not desired are removed too, and defaults are not (-want +got)\n%s", diff)
	}
	w.Expect(t, changed(), apply.Applied, "GET deployments", "PATCH deployments", "PATCH deployments")

	again := []preview.Difference{
		{Path: "metadata.labels.new", Have: `"label"`},
		{Path: "spec.template.spec.containers[0].env", Want: "(hidden)"},
		{Path: "spec.template.spec.containers[0].image", Have: `"nginx:1.28"`, Want: `"nginx:1.27"`},
	}
	if diff := cmp.Diff(again, diffOf(t, w, w.Deployment()).Differences); diff != "" {
		t.Errorf("environment values are hidden (-want +got)\n%s", diff)
	}
	require.Equal(t, `metadata.labels.new: - "label"`, again[0].String())
	w.Settled(t, changed())
}

func TestDiffHidesValuesOfSecrets(t *testing.T) {
	w := newServer(t)
	secret := func(password string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "web"}, StringData: map[string]string{"password": password}}
	}
	w.Expect(t, secret("canary-one"), apply.Created, "POST secrets")
	got := diffOf(t, w, secret("canary-two"))
	if diff := cmp.Diff([]preview.Difference{{Path: "data.password", Have: "(hidden)", Want: "(hidden)"}}, got.Differences); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
